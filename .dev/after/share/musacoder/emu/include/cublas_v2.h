// SPDX-License-Identifier: Apache-2.0
// cuBLAS, for sources that include it and do not use it: names of types, and no function.
#ifndef MC_EMU_CUBLAS_V2_H_
#define MC_EMU_CUBLAS_V2_H_

typedef struct mc_emu_cublasHandle_t* cublasHandle_t;
typedef struct mc_emu_cublasLtHandle_t* cublasLtHandle_t;
typedef struct mc_emu_cublasLtMatmulDesc_t* cublasLtMatmulDesc_t;
typedef struct mc_emu_cublasLtMatrixLayout_t* cublasLtMatrixLayout_t;
typedef struct mc_emu_cublasLtMatmulPreference_t* cublasLtMatmulPreference_t;
typedef struct mc_emu_cublasXtHandle_t* cublasXtHandle_t;
enum cublasStatus_t { CUBLAS_STATUS_SUCCESS = 0 };

#endif  // MC_EMU_CUBLAS_V2_H_
