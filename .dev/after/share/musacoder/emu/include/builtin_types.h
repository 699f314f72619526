// SPDX-License-Identifier: Apache-2.0
// Stands in for CUDA's header of this name.
#pragma once
#include "mc_emu/cuda.h"
