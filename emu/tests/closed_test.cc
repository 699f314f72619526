// SPDX-License-Identifier: Apache-2.0
// Device memory that is closed to host code, and what the emulator says of a call.  Closing is for
// good, so each test does it in a process of its own (ctest starts one for each; a death test
// forks).
#include "emulation.h"

#include <sys/mman.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <csignal>
#include <thread>

namespace mc::emu::testing {
namespace {

using ::testing::HasSubstr;

__global__ void add_one(const float* x, float* y, int n) {
  const int i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < n) y[i] = x[i] + 1;
}

class Closed {
 public:
  Closed() {
    EXPECT_EQ(socketpair(AF_UNIX, SOCK_SEQPACKET, 0, ends_), 0);
    const char key[kMcEmuReportKeyBytes] = {};
    EXPECT_EQ(send(ends_[0], key, sizeof key, 0), static_cast<ssize_t>(sizeof key));
    const McEmuOptions options{sizeof(McEmuOptions), ends_[1], 2, kMcEmuClosed, 0, 0};
    EXPECT_EQ(mc_emu_init(&options), 0);
    EXPECT_EQ(mc_emu_init(&options), EALREADY);
    EXPECT_EQ(cudaMalloc(&x_, kBytes), cudaSuccess);
    EXPECT_EQ(cudaMalloc(&y_, kBytes), cudaSuccess);
    const std::vector<float> ones(kCount, 1.0f);
    EXPECT_EQ(cudaMemcpy(x_, ones.data(), kBytes, cudaMemcpyHostToDevice), cudaSuccess);
  }

  // All of the report so far.
  std::string report() {
    std::string text;
    char line[4096];
    for (;;) {
      const ssize_t size = recv(ends_[0], line, sizeof line, MSG_DONTWAIT);
      if (size <= 0) return text;
      text += std::string(line, static_cast<size_t>(size)) + "\n";
    }
  }

  // Tells of the first bytes of y as the call's outputs.
  void note_output(size_t bytes) {
    std::vector<char> copy(bytes);
    mc_emu_open(y_);
    std::memcpy(copy.data(), y_, bytes);
    mc_emu_close(y_);
    mc_emu_note_output(copy.data(), bytes, mc_emu_origins(y_));
  }

  static constexpr size_t kCount = 4096, kBytes = kCount * sizeof(float);
  float* x_ = nullptr;
  float* y_ = nullptr;
  int ends_[2] = {-1, -1};
};

TEST(Closed, HostCodeCannotReadDeviceMemory) {
  EXPECT_EXIT(
      {
        Closed closed;
        volatile float value = *closed.x_;
        (void)value;
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

TEST(Closed, NorWriteItAfterALaunch) {
  EXPECT_EXIT(
      {
        Closed closed;
        MC_LAUNCH(add_one, 16, 256, 0, closed.x_, closed.y_, 4096);
        *static_cast<volatile float*>(closed.y_) = 0;
      },
      ::testing::KilledBySignal(SIGSEGV), "");
}

TEST(Closed, LosingTheReportEndsTheProcess) {
  EXPECT_EXIT(
      {
        Closed closed;
        mc_emu_begin_call();
        close(closed.ends_[1]);
        mc_emu_end_call();
      },
      ::testing::ExitedWithCode(kMcEmuReportLost), "");
}

// Reports a defect, since what is closed twice was not open.
Closed* reporting = nullptr;
TEST(Closed, ADefectOfTheEmulatorIsReportedBeforeTheProcessEnds) {
  EXPECT_EXIT(
      {
        Closed closed;
        reporting = &closed;
        std::signal(SIGABRT, [](int) {
          std::fputs(reporting->report().c_str(), stderr);
          _exit(3);
        });
        mc_emu_close(closed.x_);
      },
      ::testing::ExitedWithCode(3), "\"unsupported\".*a defect of the emulator at .*arena.cc");
}

TEST(Closed, ThereAreNoFurtherThreads) {
  Closed closed;
  EXPECT_THROW(std::thread([] {}).join(), std::system_error);
}

TEST(Closed, KernelsAndCopiesReachIt) {
  Closed closed;
  MC_LAUNCH(add_one, 16, 256, 0, closed.x_, closed.y_, 4096);
  std::vector<float> values(Closed::kCount);
  EXPECT_EQ(cudaMemcpy(values.data(), closed.y_, Closed::kBytes, cudaMemcpyDeviceToHost),
            cudaSuccess);
  EXPECT_EQ(values, std::vector<float>(Closed::kCount, 2.0f));
}

TEST(Closed, ACallSaysWhereTheBytesOfItsOutputsCameFrom) {
  Closed closed;
  mc_emu_begin_call();
  cudaMemset(closed.y_, 0, 400);
  MC_LAUNCH(add_one, 1, 64, 0, closed.x_, closed.y_, 50);
  cudaMemcpy(closed.y_ + 100, std::vector<float>(10).data(), 40, cudaMemcpyHostToDevice);
  cudaMemcpy(closed.y_ + 110, closed.x_, 20, cudaMemcpyDeviceToDevice);
  cudaMemcpy(closed.y_ + 115, closed.y_, 60, cudaMemcpyDeviceToDevice);
  closed.note_output(520 + 8);
  mc_emu_end_call();
  const std::string report = closed.report();
  EXPECT_THAT(report, HasSubstr("\"call\":1,\"launches\":1,"));
  EXPECT_THAT(report,
              HasSubstr("\"kernel\":260,\"fill\":200,\"given\":20,\"host\":40,\"nowhere\":8"));
}

__global__ void ask_the_system(float* y) { y[0] = static_cast<float>(syscall(SYS_getppid)); }

TEST(Closed, AKernelCannotCallTheSystem) {
  Closed closed;
  ASSERT_GE(syscall(SYS_getppid), 0);
  MC_LAUNCH(ask_the_system, 1, 1, 0, closed.y_);
  float answer = 0;
  EXPECT_EQ(cudaMemcpy(&answer, closed.y_, sizeof answer, cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(answer, -1.0f);
}

TEST(Closed, BringingTheInputsToTheHostIsAFinding) {
  Closed closed;
  std::vector<float> values(Closed::kCount);
  mc_emu_begin_call();
  cudaMemcpy(values.data(), closed.x_, 1024, cudaMemcpyDeviceToHost);
  EXPECT_EQ(closed.report(), "");
  cudaMemcpy(values.data(), closed.x_, 4, cudaMemcpyDeviceToHost);
  EXPECT_THAT(closed.report(), HasSubstr("\"kind\":\"host_compute\""));
}

TEST(Closed, SoIsWritingThemToMemoryThatTheHostSees) {
  Closed closed;
  float* pinned = nullptr;
  ASSERT_EQ(cudaMallocHost(&pinned, Closed::kBytes), cudaSuccess);
  pinned[0] = 1;  // Open to the host.
  mc_emu_begin_call();
  MC_LAUNCH(add_one, 16, 256, 0, closed.x_, pinned, 4096);
  EXPECT_THAT(closed.report(), HasSubstr("\"kind\":\"host_compute\""));
}

TEST(Closed, CopiesToAnotherPlaceAreCountedAndThoseOfAWholeAreNot) {
  Closed closed;
  cudaMemcpy(closed.y_ + 1, closed.x_, 4, cudaMemcpyDeviceToDevice);
  const auto moved_by = [](auto work) {
    mc_emu_begin_call();
    work();
    mc_emu_end_call();
    return mc_emu_moved_bytes();
  };
  EXPECT_EQ(moved_by([&] {
              cudaMemcpy(closed.y_, closed.x_, Closed::kBytes, cudaMemcpyDeviceToDevice);
              cudaMemset(closed.y_, 0, 16);
            }),
            0U);
  EXPECT_EQ(moved_by([&] {  // A column becomes a row; its first element stays where it was.
              cudaMemcpy2D(closed.y_, 4, closed.x_, 64, 4, 10, cudaMemcpyDeviceToDevice);
            }),
            36U);
}

TEST(Closed, WorkFromTheReturnOfForwardUntilTheNextCallIsAFinding) {
  Closed closed;
  const int file = memfd_create("inputs", 0);
  ASSERT_EQ(ftruncate(file, 4096), 0);
  auto* input = static_cast<float*>(mc_emu_arena_map(file, 0, 4096));
  const auto is_late = [&](auto work) {
    mc_emu_reset();  // A finding is written once.
    mc_emu_begin_call();
    work();  // Inside of forward.
    mc_emu_end_forward();
    const bool is_late_at_once = closed.report().find("late_work") != std::string::npos;
    work();
    mc_emu_end_call();
    return !is_late_at_once && closed.report().find("late_work") != std::string::npos;
  };
  EXPECT_TRUE(is_late([&] { MC_LAUNCH(add_one, 1, 64, 0, closed.x_, closed.y_, 50); }));
  EXPECT_TRUE(is_late([&] { cudaMemset(input, 0, 16); }));
  EXPECT_TRUE(is_late([&] { cudaMemcpy(input + 1, closed.x_, 4, cudaMemcpyDeviceToDevice); }));
  EXPECT_FALSE(is_late([&] { cudaMemset(closed.y_, 0, 16); }));
  mc_emu_reset();
  MC_LAUNCH(add_one, 1, 64, 0, closed.x_, closed.y_, 50);
  EXPECT_THAT(closed.report(), HasSubstr("late_work"));
}

// A device would have no error there, so the next call is judged by itself.
__global__ void unknown_to_the_emulator() { mc_emu_unsupported("a new construct"); }

TEST(Closed, WhatIsUnsupportedIsReportedInEachCallAndEndsNoOther) {
  Closed closed;
  for (int call = 0; call < 2; ++call) {
    mc_emu_begin_call();
    EXPECT_EQ(mc_emu_sticky_error(), 0);
    MC_LAUNCH(unknown_to_the_emulator, 1, 1, 0);
    EXPECT_NE(mc_emu_sticky_error(), 0);
    mc_emu_end_call();
    EXPECT_THAT(closed.report(), HasSubstr("a new construct")) << call;
  }
}

}  // namespace
}  // namespace mc::emu::testing
