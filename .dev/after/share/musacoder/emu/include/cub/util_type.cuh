// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_UTIL_TYPE_CUH_
#define MC_EMU_CUB_UTIL_TYPE_CUH_

// Stands in for the header of this name.
#include "cub/util/operators.cuh"

#endif  // MC_EMU_CUB_UTIL_TYPE_CUH_
