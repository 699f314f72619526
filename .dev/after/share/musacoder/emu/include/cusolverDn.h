// SPDX-License-Identifier: Apache-2.0
// cuSOLVER, for sources that include it and do not use it: names of types, and no function.
#ifndef MC_EMU_CUSOLVERDN_H_
#define MC_EMU_CUSOLVERDN_H_

typedef struct mc_emu_cusolverDnHandle_t* cusolverDnHandle_t;
typedef struct mc_emu_cusolverSpHandle_t* cusolverSpHandle_t;
enum cusolverStatus_t { CUSOLVER_STATUS_SUCCESS = 0 };

#endif  // MC_EMU_CUSOLVERDN_H_
