// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <climits>
#include <cstdio>
#include <cstdlib>
#include <exception>
#include <iostream>
#include <string>
#include <vector>

#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>
#include <CLI/CLI.hpp>

#include "cli/defaults.h"
#include "cli/learn/commands.h"
#include "cli/numbers.h"
#include "cli/python_path.h"
#include "cli/suggest.h"
#include "core/check.h"
#include "core/file.h"

namespace mc::learn {
namespace {

// Every step allocates and frees the same tensors.  Freed memory is kept in the process, so that
// its pages need not be mapped and cleared again.  There is one arena, because other arenas cannot
// hold large blocks.
void keep_memory() {
  constexpr int kBlockMax = 32 << 20;  // The largest block that glibc allocates from its heap.
  ::mallopt(M_ARENA_MAX, 1);
  ::mallopt(M_MMAP_THRESHOLD, kBlockMax);
  ::mallopt(M_TRIM_THRESHOLD, INT_MAX);
}

}  // namespace

int report_error(const Error& error) {
  fmt::print(stderr, "musacoder-learn: {}\n", error.message);
  return error.code == ErrorCode::kInvalidInput || error.code == ErrorCode::kNotFound
             ? kExitInput
             : kExitMachine;
}

at::ScalarType dtype_of(const std::string& name) {
  MC_CHECK(name == "float32" || name == "bfloat16");
  return name == "float32" ? at::kFloat : at::kBFloat16;
}

void add_computing(CLI::App& command, Computing& computing) {
  command.option_defaults()->group("Where it computes");
  command.add_option("--device", computing.device, "cpu, cuda or cuda:N");
  command.add_option("--dtype", computing.dtype, "float32 (cpu) or bfloat16 (cuda)")
      ->check(cli::one_of({"float32", "bfloat16"}));
  command.add_option("--threads", computing.threads, "Threads on the CPU (default: one a core)");
}

namespace {

Result<at::Device> gpu_of(const std::string& text, const train::RankPlace& place) {
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 std::string("PyTorch's CUDA library does not load: ") + ::dlerror()};
  }
  at::Device device(text);
  if (place.count > 1 && device.has_index()) {
    return invalid("--device " + text + ": several processes take a GPU each; give --device cuda");
  }
  const c10::impl::VirtualGuardImpl cuda(at::kCUDA);
  const auto index =
      static_cast<c10::DeviceIndex>(device.has_index() ? device.index() : place.local);
  const int available = cuda.deviceCount();
  if (index >= available) {
    return Error{ErrorCode::kUnavailable,
                 fmt::format("GPU number {} is asked for, and {} are to be seen here; --device cpu "
                             "needs none",
                             index, available)};
  }
  device = at::Device(at::kCUDA, index);
  cuda.setDevice(device);
  return device;
}

// The number of threads.  Processes that share a machine divide its cores, unless OMP_NUM_THREADS
// is set.
int threads_of(const Computing& computing, const train::RankPlace& place) {
  if (computing.threads > 0) return computing.threads;
  const int all = at::get_num_threads();
  return std::getenv("OMP_NUM_THREADS") != nullptr ? all : std::max(1, all / place.local_count);
}

}  // namespace

Result<Target> prepare(const Computing& computing, const train::RankPlace& place) {
  const bool is_cpu = computing.device == "cpu";
  if (!is_cpu && !computing.device.starts_with("cuda")) {
    return Error{ErrorCode::kInvalidInput, "--device " + computing.device + ": cpu or cuda[:N]"};
  }
  at::Device device = at::kCPU;
  if (!is_cpu) {
    MC_TRY(device, gpu_of(computing.device, place), "--device");
  }
  const int threads = threads_of(computing, place);
  if (is_cpu) at::set_num_threads(1);
  keep_memory();
  const std::string dtype =
      computing.dtype.empty() ? (is_cpu ? "float32" : "bfloat16") : computing.dtype;
  return Target{device, dtype_of(dtype), is_cpu ? threads : 1};
}

}  // namespace mc::learn

// Flushes the output and returns the exit code.
int end(int exit_code) {
  const mc::Status printed = mc::flush_standard_output();
  return printed ? exit_code : mc::learn::report_error(printed.error());
}

int main(int argc, char** argv) {
  mc::cli::leave_current_folder_out_of_python_path();
  CLI::App app{"MusaCoder: trains and runs language models on PyTorch's libraries"};
  mc::cli::show_defaults(app);
  app.require_subcommand(1);
  int exit_code = 0;
  mc::learn::add_init(app, exit_code);
  mc::learn::add_sft(app, exit_code);
  mc::learn::add_rft(app, exit_code);
  mc::learn::add_rl(app, exit_code);
  mc::learn::add_generate(app, exit_code);
  mc::learn::add_tokenize(app, exit_code);
  mc::learn::add_check(app, exit_code);
  mc::cli::describe_values(app);
  std::vector<std::string> names;
  for (const CLI::App* command : app.get_subcommands({})) names.push_back(command->get_name());
  if (const auto wrong = mc::cli::unknown_subcommand({argv + 1, argv + argc}, names)) {
    std::cerr << "musacoder-learn: " << *wrong << "\n";
    return mc::learn::kExitInput;
  }
  try {
    app.parse(argc, argv);
  } catch (const CLI::ParseError& wrong) {
    if (wrong.get_exit_code() == 0) return end(app.exit(wrong));
    std::cerr << "musacoder-learn: "
              << mc::cli::advice_for(wrong, app, "musacoder-learn", {argv + 1, argv + argc})
              << "\n";
    return mc::learn::kExitInput;
  } catch (const c10::Error& failure) {
    std::cerr << "musacoder-learn: PyTorch: " << failure.what_without_backtrace() << "\n";
    return mc::learn::kExitMachine;
  } catch (const std::exception& failure) {
    std::cerr << "musacoder-learn: " << failure.what() << "\n";
    return mc::learn::kExitMachine;
  }
  return end(exit_code);
}
