// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_TESTS_SURFACE_KERNEL_TEST_H_
#define MC_EMU_TESTS_SURFACE_KERNEL_TEST_H_

// Runs a kernel in a test, as rewritten candidate code does, and expects that the launch went well
// and that the emulator found nothing: no race, no read of uninitialised shared memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/socket.h>
#include <unistd.h>

#include <cstring>
#include <string>
#include <vector>

#include "cuda_runtime.h"
#include "runtime/mc_emu.h"

namespace mc_emu_test {

// The text of all findings so far, from a report that is set up on first use.
inline const std::string& findings() {
  static std::string text;
  static const int report = [] {
    int ends[2];
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends), 0);
    const char key[kMcEmuReportKeyBytes] = {};
    EXPECT_EQ(send(ends[0], key, sizeof key, 0), static_cast<ssize_t>(sizeof key));
    McEmuOptions options{};
    options.size = sizeof(options);
    options.report_fd = ends[1];
    EXPECT_EQ(mc_emu_init(&options), 0);
    return ends[0];
  }();
  char line[4096];
  for (ssize_t size = 0; (size = recv(report, line, sizeof line, MSG_DONTWAIT)) > 0;) {
    text.append(line, static_cast<size_t>(size)).append("\n");
  }
  return text;
}

// An allocator of managed memory: kernels cannot use the host's.
template <class T>
struct Managed {
  using value_type = T;

  Managed() = default;
  template <class Other>
  Managed(const Managed<Other>&) {}

  T* allocate(size_t count) {
    findings();  // The report is set up before anything else is asked of the runtime.
    void* pointer = nullptr;
    EXPECT_EQ(cudaMallocManaged(&pointer, count * sizeof(T), cudaMemAttachGlobal), cudaSuccess);
    return static_cast<T*>(pointer);
  }
  void deallocate(T* pointer, size_t) { cudaFree(pointer); }
  bool operator==(const Managed&) const = default;
};

template <class T>
using Vector = std::vector<T, Managed<T>>;

template <class Kernel, class... Arguments>
void launch_kernel(dim3 grid, dim3 block, Kernel kernel, Arguments... arguments) {
  ::mc_emu::launch(
      ::mc_emu::Config(grid, block), "kernel under test",
      [kernel](auto... values) { kernel(values...); }, arguments...);
}

template <class Kernel, class... Arguments>
void run(dim3 grid, dim3 block, Kernel kernel, Arguments... arguments) {
  const std::string before = findings();
  launch_kernel(grid, block, kernel, arguments...);
  EXPECT_EQ(cudaGetLastError(), cudaSuccess);
  EXPECT_EQ(findings().substr(before.size()), "");
}

}  // namespace mc_emu_test

#endif  // MC_EMU_TESTS_SURFACE_KERNEL_TEST_H_
