// SPDX-License-Identifier: Apache-2.0
//
// Sums over ranks on GPUs, by the NCCL that PyTorch's CUDA libraries contain.  It is loaded at run
// time, so a build needs neither NCCL nor CUDA.
#ifndef MC_TRAIN_NCCL_H_
#define MC_TRAIN_NCCL_H_

#include <memory>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "train/ranks.h"

namespace mc::train {

// REQUIRES: the device is the current one.
std::unique_ptr<Reducer> join_by_nccl(const c10::intrusive_ptr<c10d::Store>& store,
                                      const RankSetup& setup, at::Device device);

}  // namespace mc::train

#endif  // MC_TRAIN_NCCL_H_
