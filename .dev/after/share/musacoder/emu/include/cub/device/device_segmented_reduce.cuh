// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_DEVICE_DEVICE_SEGMENTED_REDUCE_CUH_
#define MC_EMU_CUB_DEVICE_DEVICE_SEGMENTED_REDUCE_CUH_

// Stands in for the header of this name.
#include "cub/device/device_algorithms.cuh"

#endif  // MC_EMU_CUB_DEVICE_DEVICE_SEGMENTED_REDUCE_CUH_
