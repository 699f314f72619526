// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_THRUST_REDUCE_H_
#define MC_EMU_THRUST_REDUCE_H_

// Stands in for the header of this name.
#include "thrust/detail/algorithms.h"

#endif  // MC_EMU_THRUST_REDUCE_H_
