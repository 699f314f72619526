// SPDX-License-Identifier: Apache-2.0
//
// The kernels of testdata/order.cu, under several schedules: those without a fault, and those whose
// marked line is a race.
#include <gmock/gmock.h>

#include <set>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

using testing::Contains;
using testing::Each;
using testing::IsEmpty;

constexpr size_t kWords = 4096;
constexpr uint64_t kSchedules = 6;

struct Mark {
  std::string kernel;
  std::vector<int> lines;
  std::string kind;  // "" for a kernel without a fault.
};

// The kernels of order.cu, and the lines whose comment names a finding.
std::vector<Mark> marks() {
  std::vector<Mark> all;
  std::istringstream lines(read_testdata("order.cu"));
  std::string line;
  for (int number = 1; std::getline(lines, line); ++number) {
    if (line.starts_with("KERNEL(")) all.push_back({line.substr(7, line.find(')') - 7), {}, ""});
    const size_t comment = line.find("  // ");
    if (all.empty() || comment == std::string::npos || line.ends_with('.')) continue;
    all.back().lines.push_back(number);
    all.back().kind = line.substr(comment + 5);
  }
  return all;
}

struct Shape {
  uint32_t blocks = 16, threads = 64;
};

Shape shape_of(const std::string& kernel) {
  static const std::set<std::string> kOneBlock = {
      "ok_last_warp",          "ok_producer_and_consumer",  "ok_tiles_of_16",
      "ok_flag_in_shared",     "bad_shuffle_for_a_barrier", "bad_tiles_of_16",
      "bad_arrives_and_reads", "bad_shift_in_place"};
  if (kernel == "bad_barrier_of_others") return {1, 128};
  return kOneBlock.contains(kernel) ? Shape{1, 64} : Shape{};
}

class Words : public Kernels, public testing::WithParamInterface<Mark> {
 protected:
  LaunchReport run(const std::string& kernel, uint64_t seed) {
    const Shape shape = shape_of(kernel);
    const std::vector<int> zeros(kWords);
    std::vector<int> values(kWords);
    for (size_t k = 0; k < kWords; ++k) values[k] = static_cast<int>(k % 7) + 1;
    const uint64_t x = put(values, "x"), words = put(zeros, "words");
    y_ = put(zeros, "y");
    return launch({.kernel = kernel,
                   .grid = {shape.blocks, 1, 1},
                   .block = {shape.threads, 1, 1},
                   .arguments = Arguments().add(x).add(words).add(y_),
                   .seed = seed});
  }
  uint64_t y_ = 0;
};

TEST_P(Words, FindingsAreTheMarkedRaces) {
  open(read_testdata("order.ptx"));
  const Mark& mark = GetParam();
  std::set<int> found;
  std::vector<std::string> others;
  for (uint64_t seed = 0; seed < kSchedules; ++seed) {
    for (const Finding& one : run(mark.kernel, seed).findings) {
      const bool is_marked =
          name_of(one.kind) == mark.kind && std::ranges::count(mark.lines, one.line) != 0;
      if (is_marked) found.insert(one.line);
      if (mark.kind.empty()) others.push_back(describe(one));
    }
  }
  EXPECT_THAT(others, IsEmpty());
  EXPECT_EQ(found, std::set<int>(mark.lines.begin(), mark.lines.end()));
}

INSTANTIATE_TEST_SUITE_P(Kernels, Words, testing::ValuesIn(marks()),
                         [](const auto& one) { return one.param.kernel; });

TEST_F(Kernels, SynchronisedByWordsComputeTheExpectedValues) {
  open(read_testdata("order.ptx"));
  const std::vector<int> zeros(kWords), ones(kWords, 1);
  const auto values_of = [&](const char* kernel, uint32_t blocks, size_t count) {
    const uint64_t y = put(zeros, "y");
    const LaunchReport report =
        launch({.kernel = kernel,
                .grid = {blocks, 1, 1},
                .block = {64, 1, 1},
                .arguments = Arguments().add(put(ones, "x")).add(put(zeros, "words")).add(y),
                .seed = 3});
    EXPECT_THAT(lines_of(report.findings), IsEmpty()) << kernel;
    return get<int>(y, count);
  };
  EXPECT_THAT(values_of("ok_locks", 16, 4), Each(16 * 16));
  EXPECT_THAT(values_of("ok_shared_lock", 4, 4), Each(3 * 64));
  EXPECT_THAT(values_of("ok_plain_unlock", 16, 1), Each(16));
  EXPECT_THAT(values_of("ok_fence_of_all_threads", 16, 1), Each(16 * 64));
  EXPECT_THAT(values_of("ok_lane_of_each_warp", 16, 1), Each(16 * 64));
  EXPECT_THAT(values_of("ok_producer_and_consumer", 1, 32), Each(6));
  EXPECT_EQ(values_of("ok_look_back", 24, 24 * 64).back(), 24 * 64);
  EXPECT_EQ(values_of("ok_packed_look_back", 24, 24).back(), 24);
  EXPECT_EQ(values_of("ok_turns", 32, 32).back(), 32);
  EXPECT_EQ(values_of("ok_passed_on", 32, 32).back(), 7);
}

// The blocks run in numerical order, without a pause or a late block.
TEST_F(Kernels, AnAtomicWithAnUnusedResultAcquiresNothing) {
  open(read_testdata("order.ptx"));
  const std::vector<int> zeros(kWords);
  const LaunchReport report =
      launch({.kernel = "bad_dummy_of_far_blocks",
              .grid = {16, 1, 1},
              .block = {64, 1, 1},
              .arguments =
                  Arguments().add(put(zeros, "x")).add(put(zeros, "words")).add(put(zeros, "y"))});
  EXPECT_THAT(lines_of(report.findings), Contains(testing::HasSubstr("global_race")));
}

// The kernel has no race, and in numerical order its result is right.
TEST_F(Kernels, ALateBlockRevealsAMissingWait) {
  open(read_testdata("order.ptx"));
  const std::vector<int> zeros(kWords), ones(kWords, 1);
  std::set<int> sums;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    const uint64_t y = put(zeros, "y");
    launch({.kernel = "early_ticket",
            .grid = {16, 1, 1},
            .block = {64, 1, 1},
            .arguments = Arguments().add(put(ones, "x")).add(put(zeros, "words")).add(y),
            .seed = seed});
    sums.insert(get<int>(y, 1)[0]);
  }
  EXPECT_THAT(sums, testing::IsSupersetOf({15, 16}));
}

}  // namespace
}  // namespace mc::ptx
