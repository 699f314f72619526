// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_MATH_H_
#define MC_EMU_MATH_H_

// The mathematics of CUDA C++ that the C++ library does not have, as global names, for device and
// host code alike.  Four parts: functions of real numbers, arithmetic and conversion with a
// rounding mode, integers and bits, and the minimum and maximum of mixed types.
//
// Fast functions (__expf and kin) are as exact here as their plain forms, so a candidate that
// relies on their errors is not found out; __powf of a negative base is NaN, as on a GPU.

#include <math.h>
#include <stdlib.h>

#include "mc_emu/math_functions.h"
#include "mc_emu/math_integer.h"
#include "mc_emu/math_minmax.h"
#include "mc_emu/math_rounding.h"
#include "mc_emu/math_simd.h"

#endif  // MC_EMU_MATH_H_
