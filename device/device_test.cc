// SPDX-License-Identifier: Apache-2.0
//
// Client and executor together, in one process, over a driver that needs no GPU
// (fakes/cuda_driver.h).
#include <cuda_runtime_api.h>
#include <fcntl.h>
#include <gmock/gmock.h>
#include <gtest/gtest.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <random>
#include <set>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "check.h"
#include "client/client.h"
#include "client/sender.h"
#include "cuda/executor.h"
#include "cuda/offload_bundle.h"
#include "fakes/cuda_driver.h"
#include "library_calls.h"

namespace mc::device {
namespace {

constexpr uint64_t kMiB = 1u << 20;

int new_channel() {
  const int descriptor = memfd_create("channel", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(descriptor, kChannelBytes), 0);
  return descriptor;
}

// A file with an image at offset 64, until the process ends.
class FileOfImage {
 public:
  explicit FileOfImage(const std::string& image) {
    const int descriptor = mkstemp(path.data());
    const std::string bytes = std::string(64, '\0') + image;
    EXPECT_EQ(write(descriptor, bytes.data(), bytes.size()), static_cast<ssize_t>(bytes.size()));
    close(descriptor);
  }
  ~FileOfImage() { unlink(path.c_str()); }
  FileOfImage(const FileOfImage&) = delete;
  FileOfImage& operator=(const FileOfImage&) = delete;

  std::string path = testing::TempDir() + "imageXXXXXX";
};

std::string bytes_of(uint64_t number) {
  return {reinterpret_cast<const char*>(&number), sizeof number};
}

// An empty fat binary: its magic, its version and the size of its header, and its size.
std::string image_file() {
  static const FileOfImage file(bytes_of(0x0010'0001'BA55'ED50) + bytes_of(8) + bytes_of(0));
  return file.path;
}

// A bundle of Clang's with one entry of this name, whose code is `code`.
std::string bundle(const std::string& name, const std::string& code, uint64_t size) {
  const std::string head = "__CLANG_OFFLOAD_BUNDLE__" + bytes_of(2);
  const std::string host = bytes_of(0) + bytes_of(0) + bytes_of(5) + "host-";
  const uint64_t offset = head.size() + host.size() + 24 + name.size();
  return head + host + bytes_of(offset) + bytes_of(size) + bytes_of(name.size()) + name + code;
}

class Device : public testing::Test {
 protected:
  Device() {
    FakeDriver::reset();
    std::string why;
    executor = Executor::create(
        {.arena_bytes = 256 * kMiB, .regions_bytes = 256 * kMiB, .memory_bytes_max = 64 * kMiB},
        why);
    EXPECT_NE(executor, nullptr) << why;
    begin();
  }
  ~Device() override { end(); }

  void begin() {
    channel = new_channel();
    EXPECT_TRUE(executor->attach(channel));
    executor->allow_file("/artifacts/own.so", image_file(), /*is_own=*/true);
    EXPECT_TRUE(sender.open(channel));
    is_over = false;
    server = std::thread([this] { executor->serve(is_over); });
  }
  bool end() {
    if (!server.joinable()) return true;
    is_over = true;
    server.join();
    close(channel);
    return executor->detach();
  }

  uint64_t arena() { return sender.page().arena; }
  uint32_t synchronize() { return sender.call(Op::kSynchronize, Handle{kWholeDevice}); }
  uint32_t taken_error() { return sender.page().error.exchange(0); }
  uint32_t load(const char* path, uint64_t offset, uint32_t module = 0) {
    return sender.call(Op::kLoadModule, LoadModule{offset, module}, nullptr, 0,
                       {path, std::strlen(path) + 1});
  }
  uint32_t find(const char* name, uint32_t function, FunctionFacts& facts) {
    return sender.call(Op::kFindFunction, Find{0, function}, &facts, sizeof facts,
                       {name, std::strlen(name) + 1});
  }

  // Adds 1 to the first float of the arena, by the first `argument_bytes` of what that takes.
  void launch_add_one(uint32_t function, uint32_t stream, uint32_t argument_bytes = 12) {
    std::array<char, 12> arguments{};
    const uint64_t address = arena();
    const int n = 1;
    std::memcpy(arguments.data(), &address, 8);
    std::memcpy(arguments.data() + 8, &n, 4);
    sender.send(Op::kLaunch,
                Launch{.function = function,
                       .grid = {1, 1, 1},
                       .block = {32, 1, 1},
                       .shared_bytes = 0,
                       .stream = stream,
                       .cluster = {0, 0, 0},
                       .is_cooperative = 0,
                       .argument_bytes = argument_bytes},
                {arguments.data(), argument_bytes});
  }
  void use_add_one(uint32_t function) {
    sender.call(Op::kMap, Map{arena(), kGranularity});
    sender.send(Op::kFill, Fill{arena(), 4, 1, 4, 0, 1, 0});
    FunctionFacts facts{};
    EXPECT_EQ(load("/artifacts/own.so", 64), 0u);
    EXPECT_EQ(find("add_one", function, facts), 0u);
  }
  float first_float() {
    float value = -1;
    EXPECT_EQ(sender.call(Op::kRead, Read{arena(), 4, 4, 1, 0}, &value, 4), 0u);
    return value;
  }

  std::unique_ptr<Executor> executor;
  Sender sender;
  int channel = -1;
  std::atomic<bool> is_over{false};
  std::thread server;
};

TEST_F(Device, RunsAKernelOnWrittenMemory) {
  sender.call(Op::kMap, Map{arena(), kGranularity});
  const std::vector<float> values = {1, 2, 3};
  sender.send(Op::kWrite, Write{arena(), 12, 0}, {values.data(), 12});
  ASSERT_EQ(load("/artifacts/own.so", 64), 0u);
  FunctionFacts facts{};
  ASSERT_EQ(find("add_one", 5, facts), 0u);
  ASSERT_EQ(facts.num_parameters, 2u);
  std::array<char, 12> arguments{};
  const uint64_t address = arena();
  const int n = 3;
  std::memcpy(arguments.data(), &address, 8);
  std::memcpy(arguments.data() + 8, &n, 4);
  sender.send(Op::kLaunch,
              Launch{.function = 5,
                     .grid = {1, 1, 1},
                     .block = {32, 1, 1},
                     .shared_bytes = 0,
                     .stream = 0,
                     .cluster = {0, 0, 0},
                     .is_cooperative = 0,
                     .argument_bytes = 12},
              {arguments.data(), 12});
  std::vector<float> got(3);
  EXPECT_EQ(sender.call(Op::kRead, Read{arena(), 12, 12, 1, 0}, got.data(), 12), 0u);
  EXPECT_THAT(got, testing::ElementsAre(2, 3, 4));
  EXPECT_EQ(executor->use().launches_own, 1u);
  EXPECT_EQ(executor->use().bytes_to_host, 12u);
}

TEST_F(Device, CountsNoBytesThatTheHostAlreadyHas) {
  use_add_one(5);
  const float given = 7;
  sender.send(Op::kWrite, Write{arena(), 4, 0}, {&given, 4});
  EXPECT_EQ(first_float(), 7);
  EXPECT_EQ(executor->use().bytes_to_host, 0u);
  launch_add_one(5, 0);
  EXPECT_EQ(first_float(), 8);
  EXPECT_EQ(executor->use().bytes_to_host, 4u);
}

TEST_F(Device, LoadsATextInParts) {
  const auto load = [&](uint32_t module, std::string_view part, bool is_last) {
    return sender.call(Op::kLoadText,
                       LoadText{module, static_cast<uint32_t>(part.size()), is_last ? 1u : 0u},
                       nullptr, 0, {part.data(), part.size()});
  };
  EXPECT_EQ(load(0, ".version 8.0\n", false), 0u);
  FunctionFacts facts{};
  EXPECT_NE(find("add_one", 5, facts), 0u) << "a part is missing";
  EXPECT_EQ(load(0, ".target sm_80\n", true), 0u);
  EXPECT_EQ(find("add_one", 5, facts), 0u);
  EXPECT_NE(load(0, ".version 8.0\n", true), 0u) << "the handle is taken";
  using std::string_view_literals::operator""sv;
  EXPECT_NE(load(1,
                 "\x7F"
                 "ELF\2\1\1\0 .version"sv,
                 true),
            0u)
      << "machine code is no text";
  EXPECT_NE(load(2, "", true), 0u);
  const std::string large(kTextPartMax, ' ');
  uint32_t status = 0;
  for (uint64_t sent = 0; status == 0 && sent <= kTextBytesMax; sent += large.size()) {
    status = load(3, large, false);
  }
  EXPECT_EQ(status, static_cast<uint32_t>(cudaErrorMemoryAllocation));
}

TEST_F(Device, MakesATensorMap) {
  TensorMap command{};
  command.address = arena();
  command.rank = 2;
  command.sizes[0] = 64;
  command.sizes[1] = 3;
  std::array<uint64_t, kTensorMapBytes / 8> map{};
  ASSERT_EQ(sender.call(Op::kTensorMap, command, map.data(), kTensorMapBytes), 0u);
  EXPECT_EQ(map[0], arena());
  EXPECT_EQ(map[2], 3u);
  for (const uint32_t rank : {0u, kTensorMapRankMax + 1}) {
    command.rank = rank;
    EXPECT_EQ(sender.call(Op::kTensorMap, command, map.data(), kTensorMapBytes),
              static_cast<uint32_t>(cudaErrorInvalidValue));
  }
}

TEST_F(Device, FreshMemoryHasOtherBytesInEachCall) {
  const int memory = memfd_create("region", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(memory, kGranularity), 0);
  uint64_t at = arena();
  for (const uint32_t fresh : {0x7F7F7F7Fu, 0xFFFFFFFFu, 0u, 0x7F7F7F7Fu}) {
    ASSERT_EQ(sender.call(Op::kMap, Map{at, kGranularity}), 0u);
    uint32_t word = 0;
    EXPECT_EQ(sender.call(Op::kRead, Read{at + 4096, 4, 4, 1, 0}, &word, 4), 0u);
    EXPECT_EQ(word, fresh);
    executor->release_region(executor->import_region(memory, kGranularity));
    at += kGranularity;
  }
  close(memory);
}

TEST_F(Device, RefusesMemoryThatIsNotTheCandidates) {
  alignas(8) static uint64_t secret = 42;
  const auto here = reinterpret_cast<uint64_t>(&secret);
  uint64_t got = 0;
  EXPECT_NE(sender.call(Op::kRead, Read{here, 8, 8, 1, 0}, &got, 8), 0u);
  EXPECT_EQ(got, 0u);
  sender.send(Op::kWrite, Write{here, 8, 0}, {&got, 8});
  sender.send(Op::kFill, Fill{here, 8, 1, 8, 0, 1, 0});
  sender.send(Op::kCopy, Copy{arena(), here, 8, 1, 8, 8, 0});
  EXPECT_EQ(synchronize(), 0u);
  EXPECT_NE(taken_error(), 0u);
  EXPECT_EQ(secret, 42u);
}

TEST_F(Device, RefusesRangesThatWrapAround) {
  sender.call(Op::kMap, Map{arena(), kGranularity});
  for (const uint64_t bytes : {~uint64_t{0}, ~uint64_t{0} - arena() + 1, uint64_t{1} << 63}) {
    sender.send(Op::kFill, Fill{arena(), bytes, 1, bytes, 0, 1, 0});
    EXPECT_EQ(synchronize(), 0u);
    EXPECT_NE(taken_error(), 0u) << bytes;
    sender.send(Op::kCopy, Copy{arena(), arena(), bytes, 2, bytes, bytes, 0});
    EXPECT_EQ(synchronize(), 0u);
    EXPECT_NE(taken_error(), 0u) << bytes;
  }
}

TEST_F(Device, MapsNoMoreThanItsLimitAndNothingTwice) {
  constexpr uint32_t kInvalid = 1;
  constexpr uint32_t kOutOfMemory = 2;
  EXPECT_EQ(sender.call(Op::kMap, Map{arena(), 64 * kMiB}), 0u);
  EXPECT_EQ(sender.call(Op::kMap, Map{arena() + 128 * kMiB, kGranularity}), kOutOfMemory);
  sender.send(Op::kUnmap, Map{arena(), 64 * kMiB});
  EXPECT_EQ(sender.call(Op::kMap, Map{arena(), kGranularity * 2}), 0u);
  EXPECT_EQ(sender.call(Op::kMap, Map{arena() + kGranularity, kGranularity}), kInvalid);
  EXPECT_EQ(sender.call(Op::kMap, Map{arena() - kGranularity, kGranularity}), kInvalid);
  EXPECT_EQ(synchronize(), 0u);
  EXPECT_EQ(taken_error(), 0u);
}

TEST_F(Device, LoadsOnlyFilesThatItWasAllowed) {
  EXPECT_NE(load("/etc/passwd", 0), 0u);
  EXPECT_NE(load(image_file().c_str(), 64), 0u);  // The candidate must use its own path.
  EXPECT_NE(load("/artifacts/own.so", 0), 0u);    // No image begins there.
  EXPECT_NE(load("/artifacts/own.so", 1u << 20), 0u);
  EXPECT_EQ(load("/artifacts/own.so", 64), 0u);
  EXPECT_NE(load("/artifacts/own.so", 64), 0u);  // The handle is in use.
}

// The fake device has the capability 9.0.
TEST_F(Device, LoadsTheCodeForItsArchitectureOutOfABundle) {
  struct Case {
    std::string image;
    bool is_loaded;
  };
  const std::string name = "musa-mtgpu-mt-musa--mp_90";
  const Case cases[] = {{bundle(name, "code", 4), true},
                        {bundle("musa-mtgpu-mt-musa--mp_22", "code", 4), false},
                        {bundle("hip-amdgcn-amd-amdhsa--mp_90", "code", 4), false},
                        {bundle(name, "code", 5), false},  // Its end is behind the file's.
                        {bundle(name, "code", UINT64_MAX), false},
                        {bundle(name, "", 0), false},
                        {bundle(name, "code", 4).substr(0, 80), false}};
  uint32_t module = 0;
  for (const Case& one : cases) {
    const FileOfImage file(one.image);
    const std::string path = "/artifacts/" + std::to_string(module) + ".so";
    executor->allow_file(path, file.path, /*is_own=*/true);
    EXPECT_EQ(load(path.c_str(), 64, module) == 0, one.is_loaded) << module;
    ++module;
  }
}

TEST(OffloadBundle, HasTheCodeOfAnArchitecture) {
  const std::string image = bundle("musa-mtgpu-mt-musa--mp_22", "code", 4);
  EXPECT_EQ(code_in_bundle(image, "mp_22"), "code");
  EXPECT_EQ(code_in_bundle(image, "mp_31"), "");
  for (size_t size = 0; size < image.size(); ++size) {
    EXPECT_EQ(code_in_bundle(image.substr(0, size), "mp_22"), "") << size;
  }
}

TEST_F(Device, RefusesKernelsOfPyTorchThatThePolicyDoesNotName) {
  executor->allow_file("/torch/libtorch_cuda.so", image_file(), /*is_own=*/false);
  executor->allow_foreign_kernels("*add_on*");
  ASSERT_EQ(load("/torch/libtorch_cuda.so", 64), 0u);
  FunctionFacts facts{};
  EXPECT_EQ(find("add_one", 1, facts), 0u);
  EXPECT_EQ(executor->use().forbidden, "");
  EXPECT_EQ(find("fault", 2, facts), 800u);
  EXPECT_EQ(executor->use().forbidden, "fault");
}

TEST_F(Device, AKernelFaultIsStickyAndMakesTheProcessUnusable) {
  ASSERT_EQ(load("/artifacts/own.so", 64), 0u);
  FunctionFacts facts{};
  ASSERT_EQ(find("fault", 1, facts), 0u);
  sender.send(Op::kLaunch, Launch{.function = 1,
                                  .grid = {1, 1, 1},
                                  .block = {1, 1, 1},
                                  .shared_bytes = 0,
                                  .stream = 0,
                                  .cluster = {0, 0, 0},
                                  .is_cooperative = 0,
                                  .argument_bytes = 0});
  EXPECT_EQ(synchronize(), 700u);
  EXPECT_FALSE(end());
}

// The refused launch is of a kernel without parameters, which would fault.
TEST_F(Device, DoesNotMakeALaunchThatTheClientRefused) {
  ASSERT_EQ(load("/artifacts/own.so", 64), 0u);
  FunctionFacts facts{};
  ASSERT_EQ(find("fault", 1, facts), 0u);
  sender.send(Op::kRefusedLaunch, Launch{.function = 1,
                                         .grid = {1, 1, 1},
                                         .block = {1, 1, 1},
                                         .shared_bytes = 0,
                                         .stream = 0,
                                         .cluster = {0, 0, 0},
                                         .is_cooperative = 0,
                                         .argument_bytes = 0});
  EXPECT_EQ(synchronize(), 0u);
  EXPECT_EQ(executor->use().launches, 0u);
  EXPECT_TRUE(end());
}

std::atomic<int> num_late{0};

TEST_F(Device, ManyRepliesAfterLaunchesInACallAreDelayedAtRandom) {
  end();
  std::string why;
  executor = Executor::create({.arena_bytes = 256 * kMiB,
                               .regions_bytes = 256 * kMiB,
                               .memory_bytes_max = 64 * kMiB,
                               .sleep = [](std::chrono::microseconds) { ++num_late; }},
                              why);
  ASSERT_NE(executor, nullptr) << why;
  begin();
  const auto late_answers = [this](int launches) {
    num_late = 0;
    for (int i = 0; i < launches; ++i) {
      launch_add_one(0, 0);
      synchronize(), synchronize();
    }
    return num_late.load();
  };
  use_add_one(0);
  EXPECT_EQ(late_answers(100), 0) << "there were no inputs";
  executor->import_region(-1, 0);
  EXPECT_EQ(late_answers(64), 0);
  EXPECT_EQ(late_answers(36), 36);
  executor->import_region(-1, 0);
  EXPECT_EQ(late_answers(64), 0) << "another call";
}

TEST_F(Device, LeavesNothingForTheNextCandidate) {
  sender.call(Op::kMap, Map{arena(), kGranularity});
  sender.send(Op::kCreateStream, CreateStream{10, 1, 0});
  sender.send(Op::kCreateEvent, CreateEvent{11, 0});
  ASSERT_EQ(load("/artifacts/own.so", 64), 0u);
  EXPECT_EQ(synchronize(), 0u);
  EXPECT_TRUE(end());
  EXPECT_EQ(FakeDriver::live_objects(), 0);
  EXPECT_EQ(FakeDriver::mapped_ranges(), 0u);
  begin();
  uint32_t word = 0;
  EXPECT_NE(sender.call(Op::kRead, Read{arena(), 4, 4, 1, 0}, &word, 4), 0u);
  FunctionFacts facts{};
  EXPECT_NE(find("add_one", 5, facts), 0u);  // The previous candidate's module is unloaded.
  EXPECT_NE(sender.call(Op::kQueryStream, Handle{10}), 0u);
}

TEST_F(Device, PyTorchsModulesStayForTheNextCandidateUnlessThisOneMayHaveChangedThem) {
  executor->allow_file("/torch/libtorch_cuda.so", image_file(), /*is_own=*/false);
  executor->allow_foreign_kernels("*");
  FunctionFacts facts{};
  ASSERT_EQ(load("/torch/libtorch_cuda.so", 64), 0u);
  ASSERT_EQ(find("add_one", 1, facts), 0u);
  EXPECT_TRUE(end());
  EXPECT_EQ(FakeDriver::live_objects(), 1);
  for (const bool has_variable : {false, true}) {
    begin();
    executor->allow_file("/torch/libtorch_cuda.so", image_file(), /*is_own=*/false);
    executor->allow_foreign_kernels("*");
    ASSERT_EQ(load("/torch/libtorch_cuda.so", 64), 0u);
    if (has_variable) {
      VariableFacts variable{};
      EXPECT_EQ(sender.call(Op::kFindVariable, Find{0, 0}, &variable, sizeof variable,
                            {"variable", sizeof "variable"}),
                0u);
    } else {
      ASSERT_EQ(find("add_one", 1, facts), 0u);
      sender.send(Op::kSetAttribute, SetAttribute{1, 8, 4096});
      EXPECT_EQ(synchronize(), 0u);
    }
    EXPECT_TRUE(end());
    EXPECT_EQ(FakeDriver::live_objects(), 0);
  }
}

TEST_F(Device, RefusesALaunchWithFewerArgumentsThanTheKernelHas) {
  use_add_one(1);
  for (const uint32_t bytes : {0u, 8u, 11u}) {
    launch_add_one(1, 0, bytes);
    EXPECT_EQ(first_float(), 0);
    EXPECT_EQ(taken_error(), 1u);
  }
  EXPECT_EQ(executor->use().launches_own, 0u);
}

TEST_F(Device, AGraphHasAsManyLaunchesAsWereCapturedForIt) {
  use_add_one(1);
  sender.send(Op::kCreateStream, CreateStream{10, 1, 0});
  for (const uint32_t graph : {0u, 1u}) {
    sender.send(Op::kBeginCapture, Capture{10, 2, 0});
    for (uint32_t i = 0; i < 2 * graph; ++i) launch_add_one(1, 10);
    EXPECT_EQ(sender.call(Op::kEndCapture, Capture{10, 2, graph}), 0u);
    EXPECT_EQ(sender.call(Op::kInstantiate, Graph{graph, graph, 10}), 0u);
  }
  EXPECT_EQ(executor->use().launches_own, 0u);
  sender.send(Op::kLaunchGraph, Graph{0, 0, 10});
  EXPECT_EQ(first_float(), 0);
  EXPECT_EQ(executor->use().launches_own, 0u);
  sender.send(Op::kLaunchGraph, Graph{1, 1, 10});
  EXPECT_EQ(first_float(), 2);
  EXPECT_EQ(executor->use().launches_own, 2u);
  EXPECT_EQ(taken_error(), 0u);
  launch_add_one(1, 10);
  EXPECT_EQ(first_float(), 3);
  EXPECT_EQ(executor->use().launches_own, 3u);
}

TEST_F(Device, CopiesOfWholeTensorsMoveNothing) {
  use_add_one(1);
  const int memory = memfd_create("region", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(memory, kGranularity), 0);
  constexpr Executor::Extent kTensors[] = {{512, 256}, {0, 512}};
  const uint64_t inputs = executor->import_region(memory, kGranularity, kTensors);
  const auto moved = [&](uint64_t target, uint64_t source, uint64_t rows = 1, uint64_t pitch = 4) {
    const uint64_t before = executor->use().bytes_moved;
    sender.send(Op::kCopy, Copy{target, source, 4, rows, 4, pitch, 0});
    synchronize();
    return executor->use().bytes_moved - before;
  };
  EXPECT_EQ(moved(arena(), inputs), 0u);
  EXPECT_EQ(moved(arena(), inputs + 512), 0u);
  EXPECT_EQ(moved(arena() + 64, inputs + 512), 0u) << "the allocation may hold several tensors";
  EXPECT_EQ(moved(arena(), inputs + 4), 4u);
  EXPECT_EQ(moved(arena(), inputs + 512 + 8), 4u);
  EXPECT_EQ(moved(arena() + 8, arena()), 0u);
  EXPECT_EQ(moved(arena(), inputs, 3, 8), 8u) << "of three rows the first stays";
  EXPECT_EQ(moved(arena(), inputs + 4, 3, 8), 12u);
  EXPECT_EQ(taken_error(), 0u);
  executor->release_region(inputs);
  close(memory);
}

TEST_F(Device, CopiesInAGraphMoveWithEachRunOfIt) {
  use_add_one(1);
  sender.send(Op::kCreateStream, CreateStream{10, 1, 0});
  sender.send(Op::kBeginCapture, Capture{10, 2, 0});
  sender.send(Op::kCopy, Copy{arena() + 8, arena(), 4, 2, 8, 4, 10});
  EXPECT_EQ(sender.call(Op::kEndCapture, Capture{10, 2, 0}), 0u);
  EXPECT_EQ(sender.call(Op::kInstantiate, Graph{0, 0, 10}), 0u);
  EXPECT_EQ(executor->use().bytes_moved, 0u);
  for (const uint64_t runs : {1u, 2u}) {
    sender.send(Op::kLaunchGraph, Graph{0, 0, 10});
    synchronize();
    EXPECT_EQ(executor->use().bytes_moved, 4 * runs);
  }
}

TEST_F(Device, MemoryWhoseFillFailedIsNotTheCandidates) {
  FakeDriver::fail_next_fill();
  EXPECT_NE(sender.call(Op::kMap, Map{arena(), kGranularity}), 0u);
  uint32_t word = 0;
  EXPECT_NE(sender.call(Op::kRead, Read{arena(), 4, 4, 1, 0}, &word, 4), 0u);
  EXPECT_EQ(FakeDriver::mapped_ranges(), 0u);
  EXPECT_EQ(sender.call(Op::kMap, Map{arena(), kGranularity}), 0u);
}

TEST_F(Device, TheCandidateWritesNothingFromTheCopyOfItsOutputsUntilItsInputsAreGone) {
  use_add_one(1);
  const int memory = memfd_create("region", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(memory, kGranularity), 0);
  const uint64_t inputs = executor->import_region(memory, kGranularity);
  launch_add_one(1, 0);
  EXPECT_EQ(first_float(), 1);
  const Executor::Part parts[] = {{arena(), 4, 0}};
  const int outputs = executor->export_parts(parts, 1, kGranularity);
  ASSERT_GE(outputs, 0);
  launch_add_one(1, 0);
  sender.send(Op::kFill, Fill{inputs, 4, 1, 4, 7, 1, 0});
  sender.send(Op::kWrite, Write{inputs, 4, 0}, {"abc", 4});
  sender.send(Op::kCopy, Copy{inputs, arena(), 4, 1, 4, 4, 0});
  EXPECT_EQ(first_float(), 1);
  EXPECT_NE(taken_error(), 0u);
  uint32_t word = 1;
  EXPECT_EQ(pread(memory, &word, 4, 0), 4);
  EXPECT_EQ(word, 0u);
  executor->release_region(inputs);
  launch_add_one(1, 0);
  EXPECT_EQ(first_float(), 2);
  close(outputs);
  close(memory);
}

TEST_F(Device, SharesARegionOfTheJudgesAndCopiesOutputs) {
  const int memory = memfd_create("region", MFD_CLOEXEC);
  ASSERT_EQ(ftruncate(memory, kGranularity), 0);
  const float input = 2.5f;
  ASSERT_EQ(pwrite(memory, &input, 4, 8), 4);
  const uint64_t address = executor->import_region(memory, kGranularity);
  ASSERT_NE(address, 0u);
  float got = 0;
  EXPECT_EQ(sender.call(Op::kRead, Read{address + 8, 4, 4, 1, 0}, &got, 4), 0u);
  EXPECT_EQ(got, 2.5f);
  const Executor::Part parts[] = {{address + 8, 4, 512}};
  const int outputs = executor->export_parts(parts, 1, kGranularity);
  ASSERT_GE(outputs, 0);
  EXPECT_EQ(pread(outputs, &got, 4, 512), 4);
  EXPECT_EQ(got, 2.5f);
  const Executor::Part foreign[] = {{reinterpret_cast<uint64_t>(&got), 4, 0}};
  EXPECT_EQ(executor->export_parts(foreign, 1, kGranularity), -1);
  const Executor::Part outside[] = {{address, 8, kGranularity - 4}};
  EXPECT_EQ(executor->export_parts(outside, 1, kGranularity), -1);
  constexpr uint64_t kMoreThanIsLeft = uint64_t{5} << 30;
  EXPECT_EQ(executor->export_parts(parts, 1, kMoreThanIsLeft), Executor::kNoRoom);
  executor->release_region(address);
  EXPECT_NE(sender.call(Op::kRead, Read{address + 8, 4, 4, 1, 0}, &got, 4), 0u);
  close(outputs);
  close(memory);
}

// A region of the judge with the inputs of two calls, 512 bytes each; the first floats are 10 and
// 20.
int two_inputs() {
  const int memory = memfd_create("inputs", MFD_CLOEXEC);
  EXPECT_EQ(ftruncate(memory, kGranularity), 0);
  for (const int call : {0, 1}) {
    const float value = 10.0f * static_cast<float>(call + 1);
    EXPECT_EQ(pwrite(memory, &value, 4, 512 * call), 4);
  }
  return memory;
}

class Timed : public Device {
 protected:
  using BatchKind = Executor::BatchKind;

  Timed() : inputs(two_inputs()) {
    sender.call(Op::kMap, Map{arena(), kGranularity});
    EXPECT_EQ(synchronize(), 0u);
    slots = executor->prepare_batches(2, {512, 512});
  }
  ~Timed() override { close(inputs); }

  void begin_call(uint32_t call) { sender.send(Op::kBeginCall, Call{call, 0}); }
  void end_call(uint32_t call, const std::vector<OutputPart>& parts) {
    sender.send(Op::kEndCall, Call{call, static_cast<uint32_t>(parts.size())},
                {parts.data(), parts.size() * sizeof(OutputPart)});
  }
  void copy(uint64_t target, uint64_t source) {
    sender.send(Op::kCopy, Copy{target, source, 4, 1, 4, 4, 0});
  }
  float output(uint32_t call) {
    const uint64_t bytes = 4;
    const int memory = executor->export_outputs(call, &bytes, 1);
    float value = -1;
    if (memory < 0 || pread(memory, &value, 4, 0) != 4) return -1;
    close(memory);
    return value;
  }

  int inputs;
  uint64_t slots = 0;
  std::vector<Executor::TimedCall> calls;
};

TEST_F(Timed, EachCallHasInputsOfItsOwnAndItsOutputsAreCopiedAway) {
  ASSERT_NE(slots, 0u);
  ASSERT_TRUE(executor->start_batch(inputs, kGranularity, 2, BatchKind::kGated));
  for (const uint32_t call : {0u, 1u}) {
    begin_call(call);
    copy(arena(), slots + 512 * call);
    end_call(call, {{arena(), 4}});
  }
  EXPECT_EQ(synchronize(), 0u);
  ASSERT_TRUE(executor->finish_batch(calls));
  ASSERT_EQ(calls.size(), 2u);
  EXPECT_EQ(calls[0].us, 1500);
  EXPECT_EQ(calls[0].was_queued_whole, 1u);
  EXPECT_GT(calls[1].host_us, 0);  // The last one is checked by the host's clock.
  EXPECT_EQ(FakeDriver::gates_waited_for(), 2 + 5);
  EXPECT_EQ(output(0), 10);  // The second call overwrote it afterwards.
  EXPECT_EQ(output(1), 20);
}

TEST_F(Timed, InputsAreHiddenBeforeTheirCall) {
  ASSERT_TRUE(executor->start_batch(inputs, kGranularity, 2, BatchKind::kUngated));
  begin_call(0);
  float got = 0;
  EXPECT_EQ(sender.call(Op::kRead, Read{slots + 512, 4, 4, 1, 0}, &got, 4), 0u);
  EXPECT_NE(got, 20);
}

TEST_F(Timed, ACallThatWaitsForTheDeviceIsNotQueuedWhole) {
  ASSERT_TRUE(executor->start_batch(inputs, kGranularity, 2, BatchKind::kGated));
  begin_call(0);
  EXPECT_EQ(synchronize(), 0u);
  end_call(0, {});
  begin_call(1);
  end_call(1, {});
  EXPECT_EQ(synchronize(), 0u);
  ASSERT_TRUE(executor->finish_batch(calls));
  EXPECT_EQ(calls[0].was_queued_whole, 0u);
  EXPECT_EQ(calls[1].was_queued_whole, 1u);
}

TEST_F(Timed, TheDeviceWorksOnlyInsideCalls) {
  ASSERT_TRUE(executor->start_batch(inputs, kGranularity, 2, BatchKind::kGated));
  begin_call(0);
  end_call(0, {});
  copy(arena(), slots);
  EXPECT_EQ(synchronize(), 0u);
  EXPECT_EQ(taken_error(), 800u);
  begin_call(1);
  end_call(1, {});
  EXPECT_EQ(synchronize(), 0u);
  EXPECT_FALSE(executor->finish_batch(calls));
  // The map is refused between batches, too.
  EXPECT_EQ(sender.call(Op::kMap, Map{arena() + 4 * kGranularity, kGranularity}), 800u);
}

TEST_F(Timed, CallsComeInTheirOrderAndAllOfThem) {
  for (const std::vector<uint32_t>& order :
       std::vector<std::vector<uint32_t>>{{0}, {1}, {0, 0}, {0, 1, 2}}) {
    ASSERT_TRUE(executor->start_batch(inputs, kGranularity, 2, BatchKind::kGated));
    for (const uint32_t call : order) {
      begin_call(call);
      end_call(call, {});
    }
    EXPECT_EQ(synchronize(), 0u);
    EXPECT_FALSE(executor->finish_batch(calls)) << order.size();
    taken_error();
  }
}

TEST_F(Timed, OutputsAreInTheCandidatesMemoryAndFitTheirRoom) {
  alignas(8) static uint64_t secret = 42;
  for (const OutputPart& part :
       {OutputPart{reinterpret_cast<uint64_t>(&secret), 8}, OutputPart{slots, 1024}}) {
    ASSERT_TRUE(executor->start_batch(inputs, kGranularity, 1, BatchKind::kGated));
    begin_call(0);
    end_call(0, {part});
    EXPECT_EQ(synchronize(), 0u);
    EXPECT_FALSE(executor->finish_batch(calls));
    taken_error();
  }
}

TEST_F(Timed, ReportsThePeakMemoryOfABatch) {
  for (const uint64_t units : {3u, 1u}) {  // The second batch must see no data of the first.
    ASSERT_TRUE(executor->start_batch(inputs, kGranularity, 1, BatchKind::kItemised));
    begin_call(0);
    const Map more{arena() + 4 * kGranularity, units * kGranularity};
    EXPECT_EQ(sender.call(Op::kMap, more), 0u);
    sender.send(Op::kUnmap, more);
    end_call(0, {{arena(), 4}});
    EXPECT_EQ(synchronize(), 0u);
    ASSERT_TRUE(executor->finish_batch(calls));
    EXPECT_EQ(executor->batch_memory_bytes(), (1 + units) * kGranularity);
  }
}

TEST_F(Timed, ReportsEachItemOfACall) {
  using testing::AllOf;
  using testing::Field;
  ASSERT_EQ(load("/artifacts/own.so", 64), 0u);
  FunctionFacts facts{};
  ASSERT_EQ(find("add_one", 5, facts), 0u);
  const Launch launch{.function = 5,
                      .grid = {3, 1, 1},
                      .block = {32, 1, 1},
                      .shared_bytes = 16,
                      .stream = 0,
                      .cluster = {0, 0, 0},
                      .is_cooperative = 0,
                      .argument_bytes = 12};
  std::vector<CallItem> items;
  for (const BatchKind kind : {BatchKind::kItemised, BatchKind::kUngated}) {
    ASSERT_TRUE(executor->start_batch(inputs, kGranularity, 1, kind));
    begin_call(0);
    copy(arena(), slots);
    for (int i = 0; i < 2; ++i) {
      std::array<char, 12> arguments{};
      const uint64_t address = arena();
      std::memcpy(arguments.data(), &address, 8);
      sender.send(Op::kLaunch, launch, {arguments.data(), 12});
    }
    sender.send(Op::kFill, Fill{arena(), 4, 1, 4, 0, 1, 0});
    end_call(0, {{arena(), 4}});
    EXPECT_EQ(synchronize(), 0u);
    ASSERT_TRUE(executor->finish_batch(calls));
    ASSERT_TRUE(executor->take_items(items));
    if (kind != BatchKind::kItemised) continue;
    EXPECT_THAT(items, testing::UnorderedElementsAre(
                           AllOf(Field(&CallItem::name, "[memcpy]"), Field(&CallItem::us, 1500)),
                           AllOf(Field(&CallItem::name, "add_one"), Field(&CallItem::owner, ""),
                                 Field(&CallItem::launches, 2u), Field(&CallItem::us, 3000)),
                           AllOf(Field(&CallItem::name, "[memset]"), Field(&CallItem::us, 1500))));
    EXPECT_EQ(items[0].grid[0], 3u);
  }
  EXPECT_TRUE(items.empty());
}

// A malformed command closes the channel and has no other effect.
TEST_F(Device, ClosesTheChannelOnAMalformedCommand) {
  char* ring = static_cast<char*>(
                   mmap(nullptr, kChannelBytes, PROT_READ | PROT_WRITE, MAP_SHARED, channel, 0)) +
               kPageBytes;
  const Header header{static_cast<Op>(9999), 64, 0};
  std::memcpy(ring, &header, sizeof header);
  sender.page().written.store(64);
  while (sender.page().is_closed.load() == 0) std::this_thread::yield();
  EXPECT_EQ(executor->use().unsupported, "");  // Not a limitation of the device.
  EXPECT_TRUE(end());
  munmap(ring - kPageBytes, kChannelBytes);
}

// With any bytes in the ring, the executor survives and the process can serve another candidate.
TEST_F(Device, SurvivesRandomCommands) {
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int i = 0; i < 4000; ++i) {
    std::array<char, 256> body;
    for (char& byte : body) byte = static_cast<char>(random() % 4 == 0 ? random() : 0);
    const uint64_t address = arena() + random() % 4 * kGranularity;
    if (random() % 2 == 0) std::memcpy(body.data(), &address, 8);
    sender.send(static_cast<Op>(random() % kOps), body);
  }
  // The test ignores replies for which no call waits.
  while (sender.page().read.load() != sender.page().written.load()) std::this_thread::yield();
  end();
  begin();
  EXPECT_EQ(synchronize(), 0u);
}

// ---- Libraries (library_calls.h; fakes/libraries.cc).

struct LibraryReply {
  uint32_t status = 0;
  std::vector<uint64_t> words;
};

class Library : public Device {
 protected:
  Library() { executor->allow_foreign_kernels("*"); }

  static uint32_t index_of(std::string_view name) {
    uint32_t index = 0;
    while (index < kNumLibraryFunctions && kLibraryFunctions[index].name != name) ++index;
    EXPECT_LT(index, kNumLibraryFunctions) << name;
    return index;
  }

  LibraryReply call(std::string_view name, const std::vector<uint64_t>& words) {
    LibraryReply reply{0, std::vector<uint64_t>(64)};
    const LibraryCall command{index_of(name), static_cast<uint32_t>(words.size()), 1};
    reply.status = sender.call(Op::kLibraryCall, command, reply.words.data(),
                               reply.words.size() * 8, {words.data(), words.size() * 8});
    return reply;
  }
  uint64_t handle(std::string_view name) {
    const LibraryReply reply = call(name, {});
    EXPECT_EQ(reply.status, 0u) << name;
    EXPECT_EQ(reply.words[0], 0u) << name;
    return reply.words[1];
  }
  // Creates an object, whose number is the last argument.
  uint64_t object(std::string_view name, std::vector<uint64_t> words = {}) {
    words.push_back(++last_object);
    EXPECT_EQ(call(name, words).status, 0u) << name;
    return last_object;
  }

  uint64_t last_object = 100;
};

TEST_F(Library, RefusesObjectsOfAnotherKind) {
  const uint64_t blas = handle("cublasCreate_v2"), dnn = handle("cudnnCreate");
  const uint64_t tensor = object("cudnnCreateTensorDescriptor");
  const uint64_t graph = object("cudnnBackendCreateDescriptor", {0});
  EXPECT_EQ(call("cublasSetMathMode", {blas, 1}).status, 0u);
  EXPECT_NE(call("cublasSetMathMode", {dnn, 1}).status, 0u);
  EXPECT_NE(call("cublasSetMathMode", {tensor, 1}).status, 0u);
  EXPECT_NE(call("cublasSetMathMode", {12345, 1}).status, 0u);
  EXPECT_NE(call("cudnnDestroyTensorDescriptor", {graph}).status, 0u);
  EXPECT_NE(call("cudnnCreateTensorDescriptor", {tensor}).status, 0u);
  EXPECT_EQ(call("cudnnDestroyTensorDescriptor", {tensor}).status, 0u);
  EXPECT_NE(call("cudnnDestroyTensorDescriptor", {tensor}).status, 0u);
  EXPECT_TRUE(end());
}

TEST_F(Library, RefusesAddressesThatAreNotTheDevices) {
  static float here = 1;
  const uint64_t blas = handle("cublasCreate_v2");
  const auto host = reinterpret_cast<uint64_t>(&here);
  const auto product = [&](uint64_t a, uint64_t alpha) {
    return call("cublasSgemm_v2",
                {blas, 0, 0, 0, 0, 0, alpha, a, 1, arena(), 1, kScalarIsNull, arena(), 1});
  };
  EXPECT_EQ(product(arena(), kScalarIsNull).status, 0u);
  EXPECT_NE(product(host, kScalarIsNull).status, 0u);
  EXPECT_NE(product(arena(), host).status, 0u);
  EXPECT_NE(product(arena(), arena()).status, 0u);  // Scalars are on the host for this handle.
  // The library would read a different (32-bit) number than the check.
  EXPECT_NE(call("cublasSetPointerMode_v2", {blas, uint64_t{1} << 32}).status, 0u);
  EXPECT_EQ(call("cublasSetPointerMode_v2", {blas, 1}).status, 0u);
  EXPECT_EQ(product(arena(), arena()).status, 0u);
  EXPECT_TRUE(end());
}

TEST_F(Library, RefusesLengthsThatDoNotFit) {
  const uint64_t tensor = object("cudnnCreateTensorDescriptor");
  const uint64_t two = 2, dims = (uint64_t{4} << 32) | 3;
  EXPECT_EQ(call("cudnnSetTensorNdDescriptor", {tensor, 0, 2, two, dims, two, dims}).status, 0u);
  EXPECT_NE(call("cudnnSetTensorNdDescriptor", {tensor, 0, 3, two, dims, two, dims}).status, 0u);
  EXPECT_NE(call("cudnnSetTensorNdDescriptor", {tensor, 0, 2, two, dims, two}).status, 0u);
  EXPECT_NE(call("cudnnSetTensorNdDescriptor", {tensor, 0, 2, two, dims, two, dims, 0}).status, 0u);
  const LibraryReply got = call("cudnnGetTensorNdDescriptor", {tensor, 2});
  EXPECT_THAT(got.words, testing::Contains(dims));
  EXPECT_NE(call("cudnnGetTensorNdDescriptor", {tensor, kLibraryElementsMax + 1}).status, 0u);
  EXPECT_TRUE(end());
}

TEST_F(Library, AHandleOutlivesItsStream) {
  const uint64_t blas = handle("cublasCreate_v2");
  for (const uint32_t stream : {5u, 6u}) {
    sender.send(Op::kCreateStream, CreateStream{stream, 0, 0});
    EXPECT_EQ(call("cublasSetStream_v2", {blas, stream}).status, 0u);
    EXPECT_EQ(call("cublasSetMathMode", {blas, 1}).status, 0u);
    sender.send(Op::kDestroyStream, Handle{stream});
    EXPECT_NE(call("cublasSetMathMode", {blas, 1}).status, 0u);
  }
  EXPECT_EQ(call("cublasSetStream_v2", {blas, 0}).status, 0u);
  EXPECT_EQ(call("cublasSetMathMode", {blas, 1}).status, 0u);
  EXPECT_TRUE(end());
}

TEST_F(Library, EndsADropoutWithTheCandidateForOthersReferToIt) {
  const uint64_t dropout = object("cudnnCreateDropoutDescriptor");
  EXPECT_EQ(call("cudnnDestroyDropoutDescriptor", {dropout}).status, 0u);
  EXPECT_NE(call("cudnnDestroyDropoutDescriptor", {dropout}).status, 0u);
  object("cudnnCreateDropoutDescriptor");
  EXPECT_TRUE(end());
}

// PyTorch requests the matrices of a recurrent layer without a descriptor and address for biases.
TEST_F(Library, AnUnwantedResultHasNoAddress) {
  const uint64_t dnn = handle("cudnnCreate"), layer = object("cudnnCreateRNNDescriptor");
  const uint64_t matrix = object("cudnnCreateTensorDescriptor");
  const auto weights = [&](const std::vector<uint64_t>& wanted) {
    std::vector<uint64_t> words = {dnn, layer, 2, 1000, arena(), 3};
    words.insert(words.end(), wanted.begin(), wanted.end());
    return call("cudnnGetRNNWeightParams", words);
  };
  LibraryReply reply = weights({matrix, 1, 0, 0});
  EXPECT_EQ(reply.status, 0u);
  EXPECT_EQ(reply.words[0], 0u);
  EXPECT_EQ(reply.words[1], 1023u);
  reply = weights({matrix, 1, 0, 1});
  EXPECT_NE(reply.words[0], 0u) << "an address without a descriptor";
  EXPECT_NE(weights({matrix, 2, 0, 0}).status, 0u) << "neither wanted nor not";
  EXPECT_NE(weights({matrix, 1, 0}).status, 0u);
  EXPECT_TRUE(end());
}

TEST_F(Library, GivesFewHandles) {
  uint64_t last = 0;
  for (int i = 0; i < 200; ++i) {
    const LibraryReply reply = call("cublasCreate_v2", {});
    if (reply.status == 0) last = reply.words[1];
  }
  EXPECT_EQ(last, 64u);
  EXPECT_TRUE(end());
}

TEST_F(Library, IsRefusedWhereTheKernelsOfOthersAre) {
  EXPECT_TRUE(end());
  begin();
  executor->allow_foreign_kernels("*copy_kernel*");
  EXPECT_NE(call("cublasCreate_v2", {}).status, 0u);
  EXPECT_EQ(executor->use().forbidden, "cublasCreate_v2");
}

TEST_F(Library, SurvivesRandomCalls) {
  const uint32_t seed = std::random_device()();
  std::mt19937_64 random(seed);
  SCOPED_TRACE("seed " + std::to_string(seed));
  for (int i = 0; i < 20'000; ++i) {
    const auto function = static_cast<uint32_t>(random() % kNumLibraryFunctions);
    const std::string_view name = kLibraryFunctions[function].name;
    // The fakes of these functions compute, and trust the sizes.
    if (name == "cublasSgemm_v2" || name == "cudnnBatchNormalizationForwardInference") continue;
    std::vector<uint64_t> words(random() % 24);
    for (uint64_t& word : words) {
      word = random() % 4 == 0 ? arena() + random() % 64 : random() % 8;
      if (random() % 50 == 0) word = random();
    }
    call(name, words);
  }
  EXPECT_TRUE(end());
  begin();
  EXPECT_EQ(synchronize(), 0u);
}

// ---- Records and replays ------------------------------------------------------------------------

// The notes in a file, one behind the other.
std::vector<std::pair<Executor::Note, std::string>> notes_in(int file) {
  std::vector<std::pair<Executor::Note, std::string>> notes;
  Executor::NoteHeader header;
  for (off_t at = 0; pread(file, &header, sizeof header, at) == sizeof header;) {
    std::string bytes(header.bytes, '\0');
    at += sizeof header;
    EXPECT_EQ(pread(file, bytes.data(), bytes.size(), at), static_cast<ssize_t>(bytes.size()));
    at += header.bytes;
    notes.emplace_back(header.kind, std::move(bytes));
  }
  return notes;
}

TEST_F(Device, NotesCommandsRepliesAndErrorsInTheirOrder) {
  const int file = memfd_create("notes", MFD_CLOEXEC);
  executor->record(file);
  sender.call(Op::kMap, Map{arena(), kGranularity});
  sender.send(Op::kDestroyEvent, Handle{77});
  synchronize();
  EXPECT_TRUE(executor->is_recorded());
  EXPECT_TRUE(end());
  EXPECT_FALSE(executor->is_recorded()) << "the next candidate is not recorded";
  const auto notes = notes_in(file);
  ASSERT_EQ(notes.size(), 6u);
  using Note = Executor::Note;
  const std::vector<Note> kinds = {Note::kCommand, Note::kReply,   Note::kCommand,
                                   Note::kError,   Note::kCommand, Note::kReply};
  for (size_t i = 0; i < kinds.size(); ++i) EXPECT_EQ(notes[i].first, kinds[i]) << i;
  EXPECT_EQ(notes[0].second.substr(0, 4), bytes_of(1).substr(0, 4)) << "kMap";
  EXPECT_EQ(notes[0].second.substr(4, 8), bytes_of(arena()));
  EXPECT_EQ(notes[1].second, bytes_of(0).substr(0, 4));
  EXPECT_EQ(notes[3].second, bytes_of(CUDA_ERROR_INVALID_HANDLE).substr(0, 4));
  close(file);
}

TEST_F(Device, DropsARecordThatHasNoRoom) {
  executor->record(open("/dev/full", O_WRONLY | O_CLOEXEC));
  EXPECT_EQ(synchronize(), 0u);
  EXPECT_FALSE(executor->is_recorded());
}

TEST_F(Device, RunsCommandsWithoutACandidate) {
  is_over = true;
  server.join();
  const auto run = [&](Op op, const auto& command) {
    Executor::Outcome outcome;
    EXPECT_TRUE(
        executor->run_alone(op, reinterpret_cast<const char*>(&command), sizeof command, outcome));
    return outcome;
  };
  const Executor::Outcome mapped = run(Op::kMap, Map{arena(), kGranularity});
  EXPECT_TRUE(mapped.is_reply);
  EXPECT_EQ(mapped.status, 0u);
  const Executor::Outcome failed = run(Op::kDestroyEvent, Handle{77});
  EXPECT_FALSE(failed.is_reply);
  EXPECT_EQ(failed.status, static_cast<uint32_t>(CUDA_ERROR_INVALID_HANDLE));
  EXPECT_EQ(run(Op::kFill, Fill{arena(), 4, 1, 4, 7, 1, 0}).status, 0u) << "the error was reported";
  std::array<char, 4> bytes{};
  EXPECT_TRUE(executor->read_bytes(arena(), 4, bytes.data()));
  EXPECT_THAT(bytes, testing::Each(7));
  EXPECT_FALSE(executor->read_bytes(arena() - 1, 4, bytes.data()));
  EXPECT_EQ(run(Op::kRead, Read{arena(), 4, 4, 1, 0}).reply, "\7\7\7\7");
  Executor::Outcome none;
  EXPECT_FALSE(executor->run_alone(static_cast<Op>(kOps), "", 0, none));
  executor->detach();
  close(channel);
  begin();
}

TEST_F(Device, RepliesToTheCommandsForWhoseReplyTheClientWaits) {
  is_over = true;
  server.join();
  const std::set<Op> replied = {Op::kMap,
                                Op::kRead,
                                Op::kLoadModule,
                                Op::kLoadText,
                                Op::kFindFunction,
                                Op::kFindVariable,
                                Op::kOccupancy,
                                Op::kTensorMap,
                                Op::kElapsed,
                                Op::kQueryStream,
                                Op::kQueryEvent,
                                Op::kSynchronize,
                                Op::kSynchronizeEvent,
                                Op::kEndCapture,
                                Op::kCaptureInfo,
                                Op::kInstantiate,
                                Op::kOperator,
                                Op::kHostAccess};
  for (uint32_t number = 1; number < kOps; ++number) {
    const auto op = static_cast<Op>(number);
    Executor::Outcome outcome;
    ASSERT_TRUE(executor->run_alone(op, "", 0, outcome));  // Without its fixed part.
    EXPECT_EQ(outcome.is_reply, replied.contains(op)) << number;
    EXPECT_EQ(outcome.status, static_cast<uint32_t>(CUDA_ERROR_INVALID_VALUE)) << number;
  }
  executor->detach();
  close(channel);
  begin();
}

TEST_F(Device, PlacesTheBytesOfAFileWhereAnImportedRegionWouldBe) {
  const int file = memfd_create("inputs", MFD_CLOEXEC);
  ASSERT_EQ(pwrite(file, "abcdefgh", 8, 512), 8);
  const std::array<Executor::Extent, 2> extents{{{0, 4}, {514, 6}}};
  const uint64_t address = executor->place_region(file, 520, extents);
  EXPECT_EQ(address, executor->regions());
  std::array<char, 6> bytes{};
  EXPECT_TRUE(executor->read_bytes(address + 514, 6, bytes.data()));
  EXPECT_EQ(std::string_view(bytes.data(), 6), "cdefgh");
  executor->release_region(address);
  const std::array<Executor::Extent, 1> beyond{{{519, 2}}};
  EXPECT_EQ(executor->place_region(file, 520, beyond), 0u);
  EXPECT_EQ(executor->place_region(file, 0, {}), 0u);
  close(file);
}

TEST(ArenaMap, KeepsAGapBehindEachBlockAndReusesWhatWasReleasedLast) {
  ArenaMap map;
  map.open(16 * kGranularity, 8 * kGranularity, 4 * kGranularity, ArenaMap::Order::kOldest);
  const auto first = map.allocate(1);
  const auto second = map.allocate(kGranularity + 1);
  ASSERT_TRUE(first && second);
  EXPECT_EQ(first->address, 16 * kGranularity);
  EXPECT_EQ(second->address, 18 * kGranularity);
  EXPECT_EQ(second->bytes, 2 * kGranularity);
  EXPECT_FALSE(map.allocate(2 * kGranularity));  // Over the limit.
  EXPECT_FALSE(map.block_of(17 * kGranularity));
  EXPECT_EQ(map.block_of(19 * kGranularity + 5)->address, second->address);
  EXPECT_TRUE(map.release(first->address));
  EXPECT_FALSE(map.release(first->address));
  const auto third = map.allocate(1);
  EXPECT_EQ(third->address, 21 * kGranularity);
  EXPECT_TRUE(map.release(third->address));
  EXPECT_EQ(map.allocate(1)->address, 23 * kGranularity);
  EXPECT_EQ(map.allocate(1)->address, first->address);
  EXPECT_FALSE(map.allocate(1)) << "over the limit";
}

TEST(ArenaMap, ReusesTheFirstAddressInTheOrderOfInputs) {
  ArenaMap map;
  map.open(16 * kGranularity, 8 * kGranularity, 4 * kGranularity, ArenaMap::Order::kFirst);
  const auto first = map.allocate(1);
  EXPECT_TRUE(map.allocate(1));
  EXPECT_TRUE(map.release(first->address));
  EXPECT_EQ(map.allocate(1)->address, first->address);
}

TEST(FailedCheck, EndsTheDeviceProcessWithAnExitCodeOfItsOwn) {
  EXPECT_EXIT(MC_CHECK(kRingBytes < kPageBytes), testing::ExitedWithCode(kFailedCheckExit),
              "check failed: kRingBytes < kPageBytes");
  ArenaMap map;
  map.open(0, 2 * kGranularity, kGranularity, ArenaMap::Order::kFirst);
  EXPECT_TRUE(map.allocate(1));
  EXPECT_EXIT(map.open(0, kGranularity, kGranularity, ArenaMap::Order::kFirst),
              testing::ExitedWithCode(kFailedCheckExit), "arena_map.cc:.*blocks_.empty");
}

}  // namespace
}  // namespace mc::device
