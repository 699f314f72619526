// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_THRUST_PAIR_H_
#define MC_EMU_THRUST_PAIR_H_

// Stands in for the header of this name.
#include "cub/util/standard.cuh"

#endif  // MC_EMU_THRUST_PAIR_H_
