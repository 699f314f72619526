// SPDX-License-Identifier: Apache-2.0
//
// The subcommands of musacoder-learn.  Each registers its options with the parser and a callback
// that runs it and stores the exit code: 0 done, 1 the machine failed, 2 bad input.
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

// One line on standard error; returns the exit code for the error.
int report_error(const Error& error);

// The device and the type with which the decoder computes: --device, --dtype, --threads.
struct Computing {
  std::string device = "cpu";
  std::string dtype;  // The default is float32 on the CPU, bfloat16 elsewhere.
  int threads = 0;    // 0: one a core.
};
// REQUIRES: the name is float32 or bfloat16.
at::ScalarType dtype_of(const std::string& name);
void add_computing(CLI::App& command, Computing& computing);
struct Target {
  at::Device device;
  at::ScalarType dtype;
  int workers;  // Threads for parts of a batch; each operator then runs in one.
};
// Loads the device's libraries where it needs some, and sets the device and the number of threads.
// Each rank of several has a GPU of its own, or its part of the cores.
Result<Target> prepare(const Computing& computing, const train::RankPlace& place = {});

}  // namespace mc::learn

#endif  // MC_CLI_LEARN_COMMANDS_H_
