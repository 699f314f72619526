// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_TESTS_SURFACE_KERNEL_TEST_H_
#define MC_EMU_TESTS_SURFACE_KERNEL_TEST_H_

// Runs a kernel in a test, as rewritten candidate code does, and expects that the launch went well
// and that the emulator found nothing: no race, no read of uninitialised shared memory.

#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <cstring>
#include <string>

#include "cuda_runtime.h"
#include "runtime/mc_emu.h"

namespace mc_emu_test {

// The text of all findings so far, from a report that is set up on first use.
inline std::string findings() {
  static const char* const report = [] {
    const int fd = memfd_create("report", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(fd, kMcEmuReportBytes), 0);
    McEmuOptions options{};
    options.size = sizeof(options);
    options.report_fd = fd;
    EXPECT_EQ(mc_emu_init(&options), 0);
    void* const text = mmap(nullptr, kMcEmuReportBytes, PROT_READ, MAP_SHARED, fd, 0);
    return static_cast<const char*>(text);
  }();
  return std::string(report, strnlen(report, kMcEmuReportBytes));
}

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
