// SPDX-License-Identifier: Apache-2.0
// cuFFT, for sources that include it and do not use it: names of types, and no function.
#ifndef MC_EMU_CUFFT_H_
#define MC_EMU_CUFFT_H_

#include "cuComplex.h"

typedef int cufftHandle;
typedef float cufftReal;
typedef double cufftDoubleReal;
typedef cuComplex cufftComplex;
typedef cuDoubleComplex cufftDoubleComplex;
enum cufftResult { CUFFT_SUCCESS = 0 };

#endif  // MC_EMU_CUFFT_H_
