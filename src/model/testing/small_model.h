// SPDX-License-Identifier: Apache-2.0
//
// A small model with random weights, for tests.  Its tokenizer has one token for each byte and the
// two tokens of ChatML, and its answers end with <|im_end|>.
#ifndef MC_MODEL_TESTING_SMALL_MODEL_H_
#define MC_MODEL_TESTING_SMALL_MODEL_H_

#include "model/config.h"
#include "model/model_folder.h"

namespace mc::model {

Config small_config();
Model small_model(const Config& config = small_config(), uint64_t seed = 4);

}  // namespace mc::model

#endif  // MC_MODEL_TESTING_SMALL_MODEL_H_
