// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_BLOCK_BLOCK_SHUFFLE_CUH_
#define MC_EMU_CUB_BLOCK_BLOCK_SHUFFLE_CUH_

// Stands in for the header of this name.
#include "cub/block/block_neighbours.cuh"

#endif  // MC_EMU_CUB_BLOCK_BLOCK_SHUFFLE_CUH_
