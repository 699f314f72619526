// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstring>
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "ptx_driver/description.h"
#include "ptx_driver/driver.h"
#include "ptx_driver/fat_binary.h"

namespace mc::ptx_driver {
namespace {

using testing::AllOf;
using testing::HasSubstr;
using testing::IsEmpty;

constexpr std::string_view kAddOne = R"(
.version 8.0
.target sm_90
.address_size 64
.global .align 4 .u32 step = 1;
.visible .entry add_one(.param .u64 p, .param .u32 n) {
  .reg .pred %q; .reg .b32 %r<6>; .reg .b64 %rd<4>;
  ld.param.u64 %rd1, [p];
  ld.param.u32 %r1, [n];
  mov.u32 %r2, %tid.x;
  setp.ge.u32 %q, %r2, %r1;
  @%q bra DONE;
  mul.wide.u32 %rd2, %r2, 4;
  add.s64 %rd3, %rd1, %rd2;
  ld.global.u32 %r3, [%rd3];
  ld.global.u32 %r5, [step];
  add.s32 %r4, %r3, %r5;
  st.global.u32 [%rd3], %r4;
DONE:
  ret;
}
)";

struct EntryOptions {
  uint32_t architecture = 90;
  uint64_t flags = 0;
  uint16_t kind = 1;  // 1: PTX; 2: machine code.
};

// A fat binary with one entry.
std::vector<char> fat_binary(std::string_view ptx, const EntryOptions& options = {}) {
  const std::string text = std::string(ptx) + std::string(8 - ptx.size() % 8, '\0');
  constexpr uint32_t kHeaderBytes = 64;
  std::vector<char> bytes;
  const auto put = [&bytes](auto value) {
    const char* begin = reinterpret_cast<const char*>(&value);
    bytes.insert(bytes.end(), begin, begin + sizeof value);
  };
  put(uint32_t{0xBA55ED50});
  put(uint16_t{1});
  put(uint16_t{16});
  put(uint64_t{kHeaderBytes + text.size()});
  put(options.kind);
  put(uint16_t{0x101});
  put(kHeaderBytes);
  put(uint64_t{text.size()});
  put(uint64_t{0});
  put(uint32_t{9} << 16);
  put(options.architecture);
  put(uint64_t{0});
  put(options.flags);
  bytes.resize(16 + kHeaderBytes);
  bytes.insert(bytes.end(), text.begin(), text.end());
  return bytes;
}

// The entries of several fat binaries in one.
std::vector<char> joined(std::vector<char> first, const std::vector<std::vector<char>>& others) {
  for (const std::vector<char>& one : others)
    first.insert(first.end(), one.begin() + 16, one.end());
  const uint64_t bytes = first.size() - 16;
  std::memcpy(first.data() + 8, &bytes, sizeof bytes);
  return first;
}

TEST(CodeInFatBinary, IsThePtxOfTheNewestArchitectureThatTheDeviceRuns) {
  const std::vector<char> all =
      joined(fat_binary("old", {.architecture = 80}),
             {fat_binary("new"), fat_binary("too new", {.architecture = 100})});
  EXPECT_EQ(code_in(all.data(), 90)->ptx, "new");
  EXPECT_EQ(code_in(all.data(), 89)->ptx, "old");
  EXPECT_THAT(code_in(all.data(), 75).error().message, HasSubstr("no PTX"));
  EXPECT_THAT(code_in(fat_binary("x", {.flags = 0x2000}).data(), 90).error().message,
              HasSubstr("compressed"));
}

TEST(CodeInFatBinary, HasMachineCodeOfTheSameArchitecture) {
  const std::vector<char> machine_code = fat_binary("code", {.kind = 2});
  EXPECT_EQ(code_in(joined(fat_binary("x"), {machine_code}).data(), 90)->machine_code.substr(0, 5),
            std::string_view("code\0", 5));
  EXPECT_EQ(code_in(joined(fat_binary("x", {.architecture = 80}), {machine_code}).data(), 90)
                ->machine_code,
            "");
  EXPECT_EQ(code_in(fat_binary("x").data(), 90)->machine_code, "");
  const std::vector<char> compressed = fat_binary("code", {.flags = 0x8000, .kind = 2});
  EXPECT_EQ(code_in(joined(fat_binary("x"), {compressed}).data(), 90)->machine_code, "");
}

TEST(PtxDescription, CountsResidentBlocks) {
  EXPECT_EQ(Description().resident_blocks({.threads = 1024}), 2);
  EXPECT_EQ(Description().resident_blocks({.threads = 33}), 32);
  EXPECT_EQ(Description().resident_blocks({.threads = 256, .shared_bytes = 100 << 10}), 2);
  EXPECT_EQ(Description().resident_blocks({.threads = 256, .shared_bytes = 228 << 10}), 0);
  EXPECT_EQ(Description().resident_blocks({.threads = 256, .registers = 65}), 3);
  EXPECT_EQ(Description().resident_blocks({.threads = 257, .registers = 255}), 0);
}

TEST(PtxDescription, HasAttributesOfAnotherDevice) {
  const Description other({{CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN, 72 << 10},
                           {CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_MULTIPROCESSOR, 72 << 10},
                           {CU_DEVICE_ATTRIBUTE_RESERVED_SHARED_MEMORY_PER_BLOCK, 0},
                           {CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR, 6144}});
  EXPECT_EQ(other.at(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR), 6144);
  EXPECT_EQ(other.at(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_BLOCK), 1024);
  EXPECT_EQ(other.resident_blocks({.threads = 256, .shared_bytes = 72 << 10}), 1);
  EXPECT_EQ(other.resident_blocks({.threads = 256, .shared_bytes = 73 << 10}), 0);
}

TEST(PtxDescription, CountsTheThreadsThatRegistersAreEnoughFor) {
  EXPECT_EQ(threads_by_registers(32), 2048);
  EXPECT_EQ(threads_by_registers(64), 1024);
  EXPECT_EQ(threads_by_registers(65), 896);
  // An H200 reports these values and refuses larger blocks.
  EXPECT_EQ(threads_by_registers(80), 768);
  EXPECT_EQ(threads_by_registers(96), 640);
  EXPECT_EQ(threads_by_registers(168), 384);
  EXPECT_EQ(threads_by_registers(255), 256);
  EXPECT_EQ(threads_by_registers(0), 8192);
}

// The calls that the executor makes, in its order.
class PtxDriver : public testing::Test {
 protected:
  static constexpr size_t kRangeBytes = size_t{64} << 20;

  void SetUp() override {
    ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
    Driver::get().report().forget();
    ASSERT_EQ(cuMemAddressReserve(&range_, kRangeBytes, 0, 0, 0), CUDA_SUCCESS);
    const std::vector<char> image = fat_binary(kAddOne);
    ASSERT_EQ(cuModuleLoadData(&module_, image.data()), CUDA_SUCCESS);
    ASSERT_EQ(cuModuleGetFunction(&function_, module_, "add_one"), CUDA_SUCCESS);
  }
  void TearDown() override { EXPECT_EQ(cuModuleUnload(module_), CUDA_SUCCESS); }

  CUdeviceptr map(size_t bytes, CUmemGenericAllocationHandle* given = nullptr) {
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemCreate(&handle, bytes, nullptr, 0), CUDA_SUCCESS);
    EXPECT_EQ(cuMemMap(range_, bytes, 0, handle, 0), CUDA_SUCCESS);
    if (given != nullptr) *given = handle;
    return range_;
  }

  CUresult launch(CUdeviceptr address, uint32_t count, CUstream stream = nullptr) {
    struct {
      uint64_t address;
      uint32_t count;
    } arguments{address, count};
    size_t bytes = 12;
    void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, &arguments, CU_LAUNCH_PARAM_BUFFER_SIZE,
                     &bytes, CU_LAUNCH_PARAM_END};
    CUlaunchConfig config{};
    config.gridDimX = config.gridDimY = config.gridDimZ = 1;
    config.blockDimX = 64;
    config.blockDimY = config.blockDimZ = 1;
    config.hStream = stream;
    return cuLaunchKernelEx(&config, function_, nullptr, extra);
  }

  std::vector<uint32_t> read(CUdeviceptr address, size_t count) {
    std::vector<uint32_t> words(count);
    EXPECT_EQ(cuMemcpyDtoHAsync(words.data(), address, 4 * count, nullptr), CUDA_SUCCESS);
    return words;
  }

  CUdeviceptr range_ = 0;
  CUmodule module_ = nullptr;
  CUfunction function_ = nullptr;
};

TEST_F(PtxDriver, RunsAKernelOfAFatBinaryOnMappedMemory) {
  const CUdeviceptr x = map(40);
  const std::vector<uint32_t> given(10, 41);
  ASSERT_EQ(cuMemcpyHtoDAsync(x, given.data(), 40, nullptr), CUDA_SUCCESS);
  ASSERT_EQ(launch(x, 10), CUDA_SUCCESS);
  EXPECT_EQ(read(x, 10), std::vector<uint32_t>(10, 42));
  EXPECT_THAT(Driver::get().report().take(), IsEmpty());
}

TEST(PtxDriverWarps, HaveTheThreadsThatWereGiven) {
  Driver& driver = Driver::get();
  driver.warp_threads = 128;
  ASSERT_EQ(cuInit(0), CUDA_SUCCESS);
  int threads = 0;
  ASSERT_EQ(cuDeviceGetAttribute(&threads, CU_DEVICE_ATTRIBUTE_WARP_SIZE, 0), CUDA_SUCCESS);
  EXPECT_EQ(threads, 128);
  const auto module = driver.device().load(
      ".version 8.0\n.target sm_90\n.address_size 64\n.visible .entry k(.param .u64 p) {\n"
      ".reg .b32 %r; .reg .b64 %rd; ld.param.u64 %rd, [p]; mov.u32 %r, WARP_SZ;\n"
      "st.global.u32 [%rd], %r; ret; }");
  ASSERT_TRUE(module) << module.error().message;
  const uint64_t y = driver.device().allocate(4, "y").value();
  ptx::LaunchOptions launch{.module = *module, .kernel = "k"};
  launch.arguments.add(y);
  ASSERT_EQ(driver.launch(launch), CUDA_SUCCESS);
  uint32_t size = 0;
  ASSERT_TRUE(driver.device().copy_out(y, {reinterpret_cast<uint8_t*>(&size), sizeof size}));
  EXPECT_EQ(size, 128u);
}

TEST_F(PtxDriver, WritesAndReadsVariables) {
  CUdeviceptr step = 0;
  size_t bytes = 0;
  ASSERT_EQ(cuModuleGetGlobal(&step, &bytes, module_, "step"), CUDA_SUCCESS);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(read(step, 1)[0], 1u);
  EXPECT_EQ(cuModuleGetGlobal(&step, &bytes, module_, "other"), CUDA_ERROR_NOT_FOUND);
}

TEST_F(PtxDriver, KnowsTheParametersOfAKernel) {
  size_t offset = 0, bytes = 0;
  EXPECT_EQ(cuFuncGetParamInfo(function_, 1, &offset, &bytes), CUDA_SUCCESS);
  EXPECT_EQ(offset, 8u);
  EXPECT_EQ(bytes, 4u);
  EXPECT_EQ(cuFuncGetParamInfo(function_, 2, &offset, &bytes), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(PtxDriver, LaunchesNoMoreThreadsThanRegistersAreEnoughFor) {
  reinterpret_cast<Function*>(function_)->registers = 255;
  int value = 0;
  ASSERT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_NUM_REGS, function_), CUDA_SUCCESS);
  EXPECT_EQ(value, 255);
  ASSERT_EQ(cuFuncGetAttribute(&value, CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK, function_),
            CUDA_SUCCESS);
  EXPECT_EQ(value, 256);
  CUlaunchConfig config{};
  config.gridDimX = config.gridDimY = config.gridDimZ = 1;
  config.blockDimX = 257;
  config.blockDimY = config.blockDimZ = 1;
  EXPECT_EQ(cuLaunchKernelEx(&config, function_, nullptr, nullptr),
            CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES);
  EXPECT_THAT(Driver::get().report().take(),
              AllOf(HasSubstr("\"kind\":\"launch_error\""),
                    HasSubstr("257 threads with 255 registers each: at most 256")));
}

TEST_F(PtxDriver, ReportsALaunchThatItRefuses) {
  struct Refused {
    std::array<unsigned, 3> grid, block;
    unsigned shared_bytes;
    const char* says;
  };
  const Refused table[] = {
      {{1, 1, 1}, {2048, 1, 1}, 0, "a block of 2048 x 1 x 1 threads"},
      {{1, 1, 65536}, {1, 1, 1}, 0, "a grid of 1 x 1 x 65536 blocks"},
      {{1, 1, 1}, {1, 1, 1}, 49153, "49153 bytes of dynamic shared memory"},
  };
  for (const auto& [grid, block, shared_bytes, says] : table) {
    CUlaunchConfig config{};
    config = {grid[0],  grid[1],      grid[2],        block[0],     block[1],
              block[2], shared_bytes, config.hStream, config.attrs, config.numAttrs};
    EXPECT_EQ(cuLaunchKernelEx(&config, function_, nullptr, nullptr), CUDA_ERROR_INVALID_VALUE);
    EXPECT_THAT(Driver::get().report().take(),
                AllOf(HasSubstr("\"kind\":\"launch_error\""), HasSubstr(says)));
    EXPECT_EQ(cuCtxSynchronize(), CUDA_SUCCESS);
  }
}

TEST_F(PtxDriver, CopiesPartsOfAnExportedAllocationAndBackAgain) {
  CUmemGenericAllocationHandle handle = 0;
  const CUdeviceptr x = map(12, &handle);
  const std::vector<uint32_t> given = {1, 2, 3};
  ASSERT_EQ(cuMemcpyHtoDAsync(x, given.data(), 12, nullptr), CUDA_SUCCESS);
  int file = -1;
  ASSERT_EQ(
      cuMemExportToShareableHandle(&file, handle, CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR, 0),
      CUDA_SUCCESS);
  CUmemGenericAllocationHandle copy = 0;
  ASSERT_EQ(cuMemImportFromShareableHandle(&copy, reinterpret_cast<void*>(intptr_t{file}),
                                           CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
            CUDA_SUCCESS);
  const CUdeviceptr there = range_ + (32 << 20);
  ASSERT_EQ(cuMemMap(there + 4, 8, 4, copy, 0), CUDA_SUCCESS);
  EXPECT_EQ(read(there + 4, 2), (std::vector<uint32_t>{2, 3}));
  EXPECT_EQ(cuMemsetD8Async(there, 0, 4, nullptr), CUDA_ERROR_INVALID_VALUE);
  ASSERT_EQ(cuMemsetD8Async(there + 4, 0, 4, nullptr), CUDA_SUCCESS);
  EXPECT_EQ(cuMemUnmap(there, 12), CUDA_SUCCESS);
  std::vector<uint32_t> left(3);
  EXPECT_EQ(pread(file, left.data(), 12, 0), 12);
  EXPECT_EQ(left, (std::vector<uint32_t>{1, 0, 3}));
  close(file);
  EXPECT_EQ(cuMemsetD8Async(there + 4, 0, 4, nullptr), CUDA_ERROR_INVALID_VALUE);
}

TEST_F(PtxDriver, ACopyOntoItselfIsAFinding) {
  const CUdeviceptr x = map(64);
  EXPECT_EQ(cuMemcpyDtoDAsync(x + 8, x, 8, nullptr), CUDA_SUCCESS);
  EXPECT_NE(cuMemcpyDtoDAsync(x + 4, x, 8, nullptr), CUDA_SUCCESS);
  EXPECT_THAT(Driver::get().report().take(), HasSubstr("source and target overlap"));
}

TEST_F(PtxDriver, AGraphRunsTheCapturedWorkOfItsStream) {
  const CUdeviceptr x = map(4);
  ASSERT_EQ(cuMemsetD8Async(x, 0, 4, nullptr), CUDA_SUCCESS);
  CUstream stream = nullptr;
  ASSERT_EQ(cuStreamCreateWithPriority(&stream, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(launch(x, 1, stream), CUDA_SUCCESS);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  EXPECT_EQ(read(x, 1)[0], 0u);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(read(x, 1)[0], 2u);
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
  cuStreamDestroy(stream);
}

TEST_F(PtxDriver, AStreamThatWaitsForACapturedEventIsPartOfTheGraph) {
  const CUdeviceptr x = map(4);
  ASSERT_EQ(cuMemsetD8Async(x, 0, 4, nullptr), CUDA_SUCCESS);
  CUstream stream = nullptr, other = nullptr;
  CUevent begun = nullptr;
  CUstreamCaptureStatus status = CU_STREAM_CAPTURE_STATUS_NONE;
  ASSERT_EQ(cuStreamCreateWithPriority(&stream, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamCreateWithPriority(&other, 0, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuEventCreate(&begun, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamBeginCapture(stream, CU_STREAM_CAPTURE_MODE_RELAXED), CUDA_SUCCESS);
  ASSERT_EQ(cuEventRecord(begun, stream), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamWaitEvent(other, begun, 0), CUDA_SUCCESS);
  ASSERT_EQ(launch(x, 1, other), CUDA_SUCCESS);
  EXPECT_EQ(read(x, 1)[0], 0u);
  CUgraph graph = nullptr;
  ASSERT_EQ(cuStreamEndCapture(stream, &graph), CUDA_SUCCESS);
  ASSERT_EQ(cuStreamIsCapturing(other, &status), CUDA_SUCCESS);
  EXPECT_EQ(status, CU_STREAM_CAPTURE_STATUS_NONE);
  CUgraphExec exec = nullptr;
  ASSERT_EQ(cuGraphInstantiate(&exec, graph, 0), CUDA_SUCCESS);
  ASSERT_EQ(cuGraphLaunch(exec, stream), CUDA_SUCCESS);
  EXPECT_EQ(read(x, 1)[0], 1u);
  cuGraphExecDestroy(exec);
  cuGraphDestroy(graph);
  cuEventDestroy(begun);
  cuStreamDestroy(other);
  cuStreamDestroy(stream);
}

class PtxCall : public PtxDriver {
 protected:
  // Memory of the judge, in the second half of the range.
  CUdeviceptr give(size_t bytes) {
    const int file = memfd_create("given", MFD_CLOEXEC);
    EXPECT_EQ(ftruncate(file, static_cast<off_t>(bytes)), 0);
    CUmemGenericAllocationHandle handle = 0;
    EXPECT_EQ(cuMemImportFromShareableHandle(&handle, reinterpret_cast<void*>(intptr_t{file}),
                                             CU_MEM_HANDLE_TYPE_POSIX_FILE_DESCRIPTOR),
              CUDA_SUCCESS);
    close(file);
    EXPECT_EQ(cuMemMap(range_ + kHalf, bytes, 0, handle, 0), CUDA_SUCCESS);
    return range_ + kHalf;
  }
  // The report of a call that does the work, with `bytes` at `y` as its output.
  std::string call(CUdeviceptr y, size_t bytes, const std::function<void()>& work) {
    Driver::get().begin_call(8);
    work();
    const OutputPart output{y, bytes};
    Driver::get().end_call({&output, 1});
    return Driver::get().report().take();
  }

  static constexpr uint64_t kHalf = 32 << 20;
};

TEST_F(PtxCall, ReportsTheOriginOfOutputs) {
  const CUdeviceptr y = map(8), x = give(8);
  const uint32_t value[] = {1, 2};
  const auto write = [&] { cuMemcpyHtoDAsync(y, value, 8, nullptr); };
  EXPECT_THAT(call(y, 8, [&] { launch(y, 2); }), HasSubstr("\"kernel\":8"));
  EXPECT_THAT(call(y, 8, [&] { cuMemsetD8Async(y, 0, 8, nullptr); }), HasSubstr("\"fill\":8"));
  EXPECT_THAT(call(y, 8, write), HasSubstr("\"host\":8"));
  EXPECT_THAT(call(y, 8, [&] { cuMemcpyDtoDAsync(y, x, 8, nullptr); }), HasSubstr("\"given\":8"));
  // A kernel's write replaces an earlier write of the host, but not a later one.
  write();
  EXPECT_THAT(call(y, 8, [&] { launch(y, 1); }), HasSubstr("\"kernel\":8"));
  EXPECT_THAT(call(y, 8, [&] { cuMemcpyHtoDAsync(y, value, 4, nullptr); }),
              HasSubstr("\"host\":8"));
  // Nor may the host write by a fill that follows a kernel.
  const auto fill_late = [&](uint8_t byte) {
    launch(y, 2);
    cuMemsetD8Async(y, byte, 1, nullptr);
  };
  EXPECT_THAT(call(y, 8, [&] { fill_late(0); }), HasSubstr("\"kernel\":8"));
  EXPECT_THAT(call(y, 8, [&] { fill_late(7); }), HasSubstr("\"host\":8"));
  EXPECT_THAT(call(y, 8, [&] { launch(y, 2); }), HasSubstr("\"kernel\":8"));
  // Weights are written before the first call.
  write();
  EXPECT_THAT(call(y, 8, [] {}), HasSubstr("\"given\":8"));
}

TEST_F(PtxCall, ReportsWhetherKernelsReadInputs) {
  const CUdeviceptr y = map(8), x = give(8);
  constexpr const char *kReads = "\"reads_given\":true", *kReadsNone = "\"reads_given\":false";
  EXPECT_THAT(call(y, 8, [&] { launch(y, 2); }), HasSubstr(kReadsNone));
  EXPECT_THAT(call(y, 8, [&] { launch(x, 2); }), HasSubstr(kReads));
  EXPECT_THAT(call(y, 8, [&] { launch(y, 2); }), HasSubstr(kReadsNone));
  EXPECT_THAT(call(y, 8, [&] { cuMemcpyDtoDAsync(y, x, 8, nullptr); }), HasSubstr(kReadsNone));
  EXPECT_THAT(call(y, 8, [&] { launch(y, 2); }), HasSubstr(kReads)) << "a copy of the input";
}

TEST_F(PtxCall, NumbersTheCallsOfACandidate) {
  const CUdeviceptr y = map(8);
  EXPECT_THAT(call(y, 8, [] {}), HasSubstr("\"call\":1"));
  EXPECT_THAT(call(y, 8, [] {}), HasSubstr("\"call\":2"));
  Driver::get().begin_candidate(3);
  EXPECT_THAT(call(y, 8, [] {}), HasSubstr("\"call\":1"));
}

TEST(PtxReport, NamesKernelsAndArraysAsTheSourceDoes) {
  ptx::Finding finding;
  finding.kernel = "_Z3sumIfEvPT_i";
  finding.array = "_ZZ3sumIfEvPT_iE9partial_2";
  Report report;
  report.add(finding);
  const std::string line = report.take();
  EXPECT_THAT(line, HasSubstr("\"kernel\":\"sum<float>\""));
  EXPECT_THAT(line, HasSubstr("\\\"partial_2\\\": "));
  report.add(finding);
  EXPECT_THAT(report.take(), IsEmpty());  // The location was already reported.
}

TEST_F(PtxDriver, RefusesMoreStaticSharedMemoryThanABlockHas) {
  std::string text(kAddOne);
  text.insert(text.find("  .reg .pred"), "  .shared .align 4 .b8 large[49156];\n");
  text.insert(text.find("  ld.param.u64"), "  st.shared.u32 [large], 1;\n");
  const std::vector<char> image = fat_binary(text);
  CUmodule module = nullptr;
  CUfunction function = nullptr;
  ASSERT_EQ(cuModuleLoadData(&module, image.data()), CUDA_SUCCESS);
  EXPECT_EQ(cuModuleGetFunction(&function, module, "add_one"), CUDA_ERROR_INVALID_PTX);
  EXPECT_THAT(Driver::get().report().take(), HasSubstr("49156 bytes of static shared memory"));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_INVALID_PTX);
  cuModuleUnload(module);
}

// Each test is its own process, so that the fault affects no other test.
TEST_F(PtxDriver, AFaultIsReportedAndIsSticky) {
  const CUdeviceptr x = map(40);
  EXPECT_EQ(launch(x, 11), CUDA_ERROR_ILLEGAL_ADDRESS);
  const std::string report = Driver::get().report().take();
  EXPECT_THAT(report, HasSubstr("\"kind\":\"out_of_bounds_read\""));
  EXPECT_THAT(report, HasSubstr("\"thread\":[10,0,0]"));
  EXPECT_EQ(cuCtxSynchronize(), CUDA_ERROR_ILLEGAL_ADDRESS);
  EXPECT_EQ(launch(x, 1), CUDA_ERROR_ILLEGAL_ADDRESS);
}

}  // namespace
}  // namespace mc::ptx_driver
