// SPDX-License-Identifier: Apache-2.0
//
// The options of the device on which musacoder-learn computes, and its preparation.
#ifndef MC_CLI_LEARN_COMPUTING_H_
#define MC_CLI_LEARN_COMPUTING_H_

#include <string>

#include <ATen/core/Tensor.h>
#include <CLI/CLI.hpp>

#include "core/result.h"
#include "train/ranks.h"

namespace mc::learn {

// The device and the dtype of the decoder: --device, --dtype, --threads.
struct Computing {
  std::string device = "cpu";
  std::string dtype;  // The default is float32 on the CPU, and bfloat16 on other devices.
  int threads = 0;    // 0: one thread for each core.
};
// REQUIRES: the name is float32 or bfloat16.
at::ScalarType dtype_of(const std::string& name);
void add_computing(CLI::App& command, Computing& computing);
struct Target {
  at::Device device;
  at::ScalarType dtype;
  int workers;  // The number of threads for parts of a batch; each operator then uses one thread.
};
// Loads the device's libraries if it needs any, and sets the device and the number of threads. Each
// of several ranks has its own GPU, or its share of the cores.
Result<Target> prepare(const Computing& computing, const train::RankSetup& setup = {});

}  // namespace mc::learn

#endif  // MC_CLI_LEARN_COMPUTING_H_
