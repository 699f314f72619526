// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_ITERATOR_TRANSFORM_INPUT_ITERATOR_CUH_
#define MC_EMU_CUB_ITERATOR_TRANSFORM_INPUT_ITERATOR_CUH_

// Stands in for the header of this name.
#include "cub/iterator/iterators.cuh"

#endif  // MC_EMU_CUB_ITERATOR_TRANSFORM_INPUT_ITERATOR_CUH_
