// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_CUB_CUH_
#define MC_EMU_CUB_CUB_CUH_

// CUB for code that runs on the CPU: the block-wide and warp-wide primitives, the operators and
// iterators, and the device-wide reductions, scans and radix sorts.  Written in CUDA's own
// language; simple where CUB is fast.  Every header can also be included alone, by CUB's name for
// it.

// The standard headers first: the language has macros that they trip over.
#include "cuda/functional"

#include "cub/block/block_exchange.cuh"
#include "cub/block/block_load.cuh"
#include "cub/block/block_merge_sort.cuh"
#include "cub/block/block_neighbours.cuh"
#include "cub/block/block_radix_sort.cuh"
#include "cub/block/block_reduce.cuh"
#include "cub/block/block_scan.cuh"
#include "cub/block/block_store.cuh"
#include "cub/device/device_algorithms.cuh"
#include "cub/device/device_selection.cuh"
#include "cub/iterator/iterators.cuh"
#include "cub/util/operators.cuh"
#include "cub/util_ptx.cuh"
#include "cub/warp/warp_reduce.cuh"
#include "cub/warp/warp_scan.cuh"

#endif  // MC_EMU_CUB_CUB_CUH_
