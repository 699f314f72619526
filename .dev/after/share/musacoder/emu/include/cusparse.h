// SPDX-License-Identifier: Apache-2.0
// cuSPARSE, for sources that include it and do not use it: names of types, and no function.
#ifndef MC_EMU_CUSPARSE_H_
#define MC_EMU_CUSPARSE_H_

typedef struct mc_emu_cusparseHandle_t* cusparseHandle_t;
typedef struct mc_emu_cusparseMatDescr_t* cusparseMatDescr_t;
typedef struct mc_emu_cusparseSpMatDescr_t* cusparseSpMatDescr_t;
typedef struct mc_emu_cusparseDnMatDescr_t* cusparseDnMatDescr_t;
typedef struct mc_emu_cusparseDnVecDescr_t* cusparseDnVecDescr_t;
enum cusparseStatus_t { CUSPARSE_STATUS_SUCCESS = 0 };

#endif  // MC_EMU_CUSPARSE_H_
