// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of musacoder-learn.  Each registers its options with the parser, and a callback
// that runs it and stores the exit code: 0 success, 1 a failure of the machine, 2 invalid input.
#ifndef MC_CLI_LEARN_COMMANDS_H_
#define MC_CLI_LEARN_COMMANDS_H_

#include <string>

#include <ATen/core/Tensor.h>
#include <CLI/CLI.hpp>

#include "core/result.h"
#include "train/ranks.h"

namespace mc::learn {

inline constexpr int kExitDone = 0;
inline constexpr int kExitMachine = 1;
inline constexpr int kExitInput = 2;

void add_init(CLI::App& app, int& exit_code);
void add_sft(CLI::App& app, int& exit_code);
void add_rft(CLI::App& app, int& exit_code);
void add_rl(CLI::App& app, int& exit_code);
void add_generate(CLI::App& app, int& exit_code);
void add_check(CLI::App& app, int& exit_code);
void add_tokenize(CLI::App& app, int& exit_code);

// Prints the error as one line on standard error, and returns its exit code.
int report_error(const Error& error);

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
Result<Target> prepare(const Computing& computing, const train::RankPlace& place = {});

}  // namespace mc::learn

#endif  // MC_CLI_LEARN_COMMANDS_H_
