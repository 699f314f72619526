// SPDX-License-Identifier: Apache-2.0
#include "cli/learn/computing.h"

#include <algorithm>
#include <climits>
#include <cstdlib>

#include <ATen/Parallel.h>
#include <c10/core/impl/VirtualGuardImpl.h>
#include <dlfcn.h>
#include <fmt/format.h>
#include <malloc.h>

#include "cli/numbers.h"
#include "core/check.h"

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

Result<at::Device> gpu_of(const std::string& text, const train::RankSetup& setup) {
  if (::dlopen("libtorch_cuda.so", RTLD_NOW | RTLD_GLOBAL) == nullptr) {
    return Error{ErrorCode::kUnavailable,
                 std::string("PyTorch's CUDA library does not load: ") + ::dlerror()};
  }
  at::Device device(text);
  if (setup.count > 1 && device.has_index()) {
    return invalid("--device " + text + ": several processes take a GPU each; give --device cuda");
  }
  const c10::impl::VirtualGuardImpl cuda(at::kCUDA);
  const auto index =
      static_cast<c10::DeviceIndex>(device.has_index() ? device.index() : setup.local);
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
int threads_of(const Computing& computing, const train::RankSetup& setup) {
  if (computing.threads > 0) return computing.threads;
  const int all = at::get_num_threads();
  return std::getenv("OMP_NUM_THREADS") != nullptr ? all : std::max(1, all / setup.local_count);
}

}  // namespace

Result<Target> prepare(const Computing& computing, const train::RankSetup& setup) {
  const bool is_cpu = computing.device == "cpu";
  if (!is_cpu && !computing.device.starts_with("cuda")) {
    return invalid("--device " + computing.device + ": cpu or cuda[:N]");
  }
  at::Device device = at::kCPU;
  if (!is_cpu) {
    MC_TRY(device, gpu_of(computing.device, setup), "--device");
  }
  const int threads = threads_of(computing, setup);
  if (is_cpu) at::set_num_threads(1);
  keep_memory();
  const std::string dtype =
      computing.dtype.empty() ? (is_cpu ? "float32" : "bfloat16") : computing.dtype;
  return Target{device, dtype_of(dtype), is_cpu ? threads : 1};
}

}  // namespace mc::learn
