// SPDX-License-Identifier: Apache-2.0
// Stands in for PyTorch's header of this name.
#pragma once
#ifndef MC_EMU_PRELUDE_H_
#include "mc_emu/prelude.h"
#endif
