// SPDX-License-Identifier: Apache-2.0
// For tests of the emulator: a fresh report for each test, device arrays, and launches as the
// rewriter writes them.  The sources are compiled with a candidate's flags.
#ifndef MC_EMU_TESTS_EMULATION_H_
#define MC_EMU_TESTS_EMULATION_H_

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <sys/mman.h>
#include <sys/socket.h>
#include <unistd.h>

#include <string>
#include <vector>

#include "runtime/mc_emu.h"
// Last: it defines words that the standard library uses.
#include "mc_emu/cuda.h"

// kernel<<<grid, block, shared>>>(arguments...)
#define MC_LAUNCH(kernel, grid, block, shared, ...)   \
  ::mc_emu::launch(                                   \
      ::mc_emu::Config(grid, block, shared), #kernel, \
      [=](auto... mc_a) MC_EMU_CALL { kernel(mc_a...); }, ##__VA_ARGS__)

namespace mc::emu::testing {

class EmulationTest : public ::testing::Test {
 protected:
  explicit EmulationTest(uint32_t warp_size = 32) {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_), 0);
    const char key[kMcEmuReportKeyBytes] = {};
    EXPECT_EQ(send(ends_[0], key, sizeof key, 0), static_cast<ssize_t>(sizeof key));
    const McEmuOptions options{sizeof(McEmuOptions), ends_[1], 2, 0, 0, warp_size};
    EXPECT_EQ(mc_emu_init(&options), 0);
    mc_emu_reset();
    mc_emu_set_schedule(0);
  }
  ~EmulationTest() override {
    close(ends_[0]);
    close(ends_[1]);
  }

  // The report's text so far: one JSON object a line, without the key.
  const std::string& report() {
    static constexpr size_t kLeadBytes = sizeof "{\"key\":\"" + 2 * 16 + sizeof "\"," - 2;
    char line[4096];
    for (;;) {
      const ssize_t size = recv(ends_[0], line, sizeof line, MSG_DONTWAIT);
      if (size <= 0) return text_;
      text_ += "{" + std::string(line + kLeadBytes, static_cast<size_t>(size) - kLeadBytes) + "\n";
    }
  }

 private:
  int ends_[2] = {-1, -1};
  std::string text_;
};

// An array in device memory.
template <class T>
class Device {
 public:
  explicit Device(size_t size, T value = T()) : size_(size) {
    EXPECT_EQ(cudaMalloc(&data_, size * sizeof(T)), cudaSuccess);
    for (size_t i = 0; i < size; ++i) data_[i] = value;
  }
  explicit Device(const std::vector<T>& values) : Device(values.size()) {
    for (size_t i = 0; i < size_; ++i) data_[i] = values[i];
  }
  ~Device() { mc_emu_arena_release(data_); }
  Device(const Device&) = delete;
  Device& operator=(const Device&) = delete;
  T* get() { return data_; }
  T& operator[](size_t i) { return data_[i]; }
  std::vector<T> values() const { return std::vector<T>(data_, data_ + size_); }

 private:
  size_t size_;
  T* data_ = nullptr;
};

constexpr uint64_t kSchedules[] = {0, 1, 2, 77};

}  // namespace mc::emu::testing

#endif  // MC_EMU_TESTS_EMULATION_H_
