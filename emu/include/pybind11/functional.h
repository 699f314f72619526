// SPDX-License-Identifier: Apache-2.0
// Stands in for pybind11's header of this name.
#pragma once
#include "mc_emu/bind.h"
