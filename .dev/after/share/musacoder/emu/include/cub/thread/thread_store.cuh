// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_THREAD_THREAD_STORE_CUH_
#define MC_EMU_CUB_THREAD_THREAD_STORE_CUH_

// Stands in for the header of this name.
#include "cub/iterator/iterators.cuh"

#endif  // MC_EMU_CUB_THREAD_THREAD_STORE_CUH_
