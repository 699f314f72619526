// SPDX-License-Identifier: Apache-2.0
//
// Sums over ranks on the CPU, by the gloo library inside PyTorch.
#ifndef MC_TRAIN_GLOO_H_
#define MC_TRAIN_GLOO_H_

#include <memory>

#include <torch/csrc/distributed/c10d/Store.hpp>

#include "train/ranks.h"

namespace mc::train {

std::unique_ptr<Reducer> join_by_gloo(const c10::intrusive_ptr<c10d::Store>& store,
                                      const RankSetup& setup);

}  // namespace mc::train

#endif  // MC_TRAIN_GLOO_H_
