// SPDX-License-Identifier: Apache-2.0
// cuRAND's host side, for sources that include it and do not use it: names of types, and no
// function.
#ifndef MC_EMU_CURAND_H_
#define MC_EMU_CURAND_H_

typedef struct mc_emu_curandGenerator_t* curandGenerator_t;
enum curandStatus_t { CURAND_STATUS_SUCCESS = 0 };

#endif  // MC_EMU_CURAND_H_
