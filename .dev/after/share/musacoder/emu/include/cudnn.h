// SPDX-License-Identifier: Apache-2.0
// cuDNN, for sources that include it and do not use it: names of types, and no function.
#ifndef MC_EMU_CUDNN_H_
#define MC_EMU_CUDNN_H_

typedef struct mc_emu_cudnnHandle_t* cudnnHandle_t;
typedef struct mc_emu_cudnnTensorDescriptor_t* cudnnTensorDescriptor_t;
typedef struct mc_emu_cudnnFilterDescriptor_t* cudnnFilterDescriptor_t;
typedef struct mc_emu_cudnnConvolutionDescriptor_t* cudnnConvolutionDescriptor_t;
typedef struct mc_emu_cudnnActivationDescriptor_t* cudnnActivationDescriptor_t;
typedef struct mc_emu_cudnnPoolingDescriptor_t* cudnnPoolingDescriptor_t;
enum cudnnStatus_t { CUDNN_STATUS_SUCCESS = 0 };

#endif  // MC_EMU_CUDNN_H_
