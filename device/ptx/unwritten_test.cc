// SPDX-License-Identifier: Apache-2.0
//
// The kernels of testdata/unwritten.cu: correct kernels that read unwritten memory, and kernels
// whose results depend on marked reads.
#include "ptx/unwritten.h"

#include <cstring>

#include "ptx/program.h"
#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::HasSubstr;
using testing::IsEmpty;
using testing::NotNull;

constexpr uint32_t kRows = 16, kPitch = 64, kColumns = 60;
constexpr size_t kBytes = size_t{kRows} * kPitch * sizeof(float);

struct Reader {
  std::string kernel;
  int line = 0;  // The line of the read, or 0.
};

std::vector<Reader> readers() {
  std::vector<Reader> all;
  std::istringstream lines(read_testdata("unwritten.cu"));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("KERNEL(")) all.push_back({line.substr(7, line.find(')') - 7), 0});
    if (line.ends_with("// unwritten_global")) all.back().line = number;
  }
  return all;
}

class UnwrittenMemory : public Kernels {
 protected:
  // New memory with arbitrary bytes.
  uint64_t fresh(const std::string& name, uint8_t byte) {
    const uint64_t address = device_->allocate(kBytes, name).value();
    std::memset(device_->host(address, kBytes), byte, kBytes);
    return address;
  }

  // The array whose rows have padding.
  uint64_t padded() {
    const uint64_t x = fresh("x", 0x7F);
    const std::vector<float> row(kColumns, 1.0F);
    const auto bytes = std::as_bytes(std::span(row));
    for (uint64_t k = 0; k < kRows; ++k) {
      EXPECT_TRUE(device_->copy_in(x + k * kPitch * sizeof(float),
                                   {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
    }
    return x;
  }

  // The findings of a launch and of its result.
  std::vector<Finding> run(const std::string& kernel, uint8_t byte) {
    result_ = fresh("result", byte);
    const LaunchReport report = launch({.kernel = kernel,
                                        .grid = {kRows, 1, 1},
                                        .block = {kPitch, 1, 1},
                                        .arguments = Arguments()
                                                         .add(padded())
                                                         .add(fresh("y", byte))
                                                         .add(fresh("words", byte))
                                                         .add(result_)});
    std::vector<Finding> found = report.findings;
    const auto read = device_->unwritten_read(result_, kBytes);
    if (read != nullptr && found.empty()) found.push_back(*read);
    return found;
  }
  uint64_t result_ = 0;
};

class Readers : public UnwrittenMemory, public testing::WithParamInterface<Reader> {};

TEST_P(Readers, HasAFindingIfResultsDependOnTheRead) {
  open(read_testdata("unwritten.ptx"));
  for (const uint8_t byte : {0x00, 0x7F, 0xFF}) {
    const std::vector<Finding> found = run(GetParam().kernel, byte);
    if (GetParam().line == 0) {
      EXPECT_THAT(lines_of(found), IsEmpty());
      continue;
    }
    ASSERT_EQ(found.size(), 1U);
    EXPECT_EQ(found[0].line, GetParam().line);
    EXPECT_TRUE(found[0].thread);
  }
}

INSTANTIATE_TEST_SUITE_P(All, Readers, testing::ValuesIn(readers()),
                         [](const auto& test) { return test.param.kernel; });

class Following : public UnwrittenMemory {
 protected:
  void SetUp() override { open(read_testdata("unwritten.ptx")); }
};

TEST_F(Following, LeavesTheBytesOfTheFirstRun) {
  for (const uint8_t byte : {0x00, 0x7F}) {
    run("bad_branches", byte);
    EXPECT_EQ(get<float>(result_, 1)[0], byte == 0 ? 2 : 1);
  }
}

TEST_F(Following, NamesTheArrayAndTheByte) {
  EXPECT_THAT(lines_of(run("bad_sums_padding", 0)).front(),
              HasSubstr("array \"x\": a thread reads what nothing wrote, and results follow from "
                        "it: an access of 4 bytes at byte 240 of 4096 bytes"));
}

TEST_F(Following, GoesWithACopyAndThroughAnotherKernel) {
  run("bad_sums_padding", 0);
  const uint64_t copy = fresh("copy", 0), result = fresh("second", 0);
  std::memcpy(device_->host(copy, kBytes), device_->host(result_, kBytes), kBytes);
  device_->note_copy(copy, result_, kBytes);
  launch({.kernel = "ok_masks_after_the_load",
          .grid = {kRows, 1, 1},
          .block = {kPitch, 1, 1},
          .arguments = Arguments().add(copy).add(copy).add(copy).add(result)});
  const auto read = device_->unwritten_read(result, 4);
  ASSERT_THAT(read, NotNull());
  EXPECT_THAT(describe(*read), HasSubstr("kernel bad_sums_padding"));
}

TEST_F(Following, EndsWhereBytesAreWritten) {
  run("bad_sums_padding", 0);
  EXPECT_TRUE(device_->fill(result_, 0, kBytes));
  EXPECT_EQ(device_->unwritten_read(result_, kBytes), nullptr);
}

TEST_F(Following, TracksBytesThatAnOperatorWroteToAView) {
  const uint64_t x = padded(), result = fresh("result", 0);
  const uint64_t padding = x + kColumns * sizeof(float);
  std::memset(device_->host(padding, 16), 0, 16);
  device_->note_write(padding, kBytes - (padding - x));
  launch({.kernel = "bad_sums_padding",
          .grid = {kRows, 1, 1},
          .block = {kPitch, 1, 1},
          .arguments = Arguments().add(x).add(x).add(x).add(result)});
  EXPECT_EQ(device_->unwritten_read(result, 4), nullptr);
}

TEST_F(Following, WorksWithSeveralWorkers) {
  open(read_testdata("unwritten.ptx"), {.workers = 3});
  EXPECT_EQ(run("bad_sums_padding", 0).size(), 1U);
  EXPECT_THAT(lines_of(run("ok_writes_before_it_reads", 0)), IsEmpty());
}

TEST(Unwritten, KeepsBitsOfBytes) {
  const auto memory = Unwritten::create(4096).value();
  const uint64_t base = kGlobalBase;
  memory->add({base + 3, base + 30});
  memory->remove({base + 5, base + 29});
  for (uint64_t k = 0; k < 40; ++k) {
    EXPECT_EQ(memory->has(base + k), k == 3 || k == 4 || k == 29) << k;
  }
  EXPECT_FALSE(memory->has_any({base + 5, base + 29}));
  EXPECT_TRUE(memory->has_any({base + 5, base + 30}));
}

}  // namespace
}  // namespace mc::ptx
