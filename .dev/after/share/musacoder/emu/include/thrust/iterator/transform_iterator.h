// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_THRUST_ITERATOR_TRANSFORM_ITERATOR_H_
#define MC_EMU_THRUST_ITERATOR_TRANSFORM_ITERATOR_H_

// Stands in for the header of this name.
#include "thrust/detail/iterators.h"

#endif  // MC_EMU_THRUST_ITERATOR_TRANSFORM_ITERATOR_H_
