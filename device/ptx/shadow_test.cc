// SPDX-License-Identifier: Apache-2.0
//
// The shadow of global memory against a model with a set of readers for each word.
#include <gmock/gmock.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <set>

#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

constexpr int kThreads = 32, kWordsOfY = 160;
enum What { kReadWord, kWriteWord, kReadPair, kWritePair };

// The accesses of blocks of one warp. The words of a block's threads are distinct, so that only
// blocks race.
struct Accesses {
  std::vector<int> what, at;

  explicit Accesses(unsigned seed, int blocks) {
    std::mt19937 random(seed);
    std::vector<int> pairs(kWordsOfY / 2);
    std::iota(pairs.begin(), pairs.end(), 0);
    for (int b = 0; b < blocks; ++b) {
      const bool is_row = random() % 2 == 0;
      const int of_row = static_cast<int>(random() % 4), first = static_cast<int>(random() % 90);
      std::shuffle(pairs.begin(), pairs.end(), random);
      for (int l = 0; l < kThreads; ++l) {
        const int own = is_row ? of_row : static_cast<int>(random() % 4);
        const bool is_pair = own >= kReadPair;
        what.push_back(own);
        at.push_back(is_row ? (is_pair ? first / 2 * 2 + 2 * l : first + l)
                            : 2 * pairs[static_cast<size_t>(l)] +
                                  (is_pair ? 0 : static_cast<int>(random() % 2)));
      }
    }
  }
};

using Counts = std::map<std::string, int64_t>;
constexpr const char* kReadAfterWrite = "reads what another thread";
constexpr const char* kWriteAfterWrite = "two threads write the same word";
constexpr const char* kWriteAfterRead = "writes what another thread read";

Counts model(const Accesses& accesses) {
  Counts counts = {{kReadAfterWrite, 0}, {kWriteAfterWrite, 0}, {kWriteAfterRead, 0}};
  std::map<int, int> writers;
  std::map<int, std::set<int>> readers;
  for (size_t i = 0; i < accesses.what.size(); ++i) {
    const int block = static_cast<int>(i) / kThreads, what = accesses.what[i];
    const int end = accesses.at[i] + (what >= kReadPair ? 2 : 1);
    for (int word = accesses.at[i]; word < end; ++word) {
      const bool is_written = writers.contains(word) && writers[word] != block;
      std::set<int>& read = readers[word];
      const bool is_read = read.size() > (read.contains(block) ? 1U : 0U);
      if (what == kReadWord || what == kReadPair) {
        counts[kReadAfterWrite] += is_written ? 1 : 0;
        read.insert(block);
      } else {
        counts[kWriteAfterWrite] += is_written ? 1 : 0;
        counts[kWriteAfterRead] += !is_written && is_read ? 1 : 0;
        writers[word] = block;
      }
    }
  }
  return counts;
}

class GlobalShadows : public Kernels {
 protected:
  std::pair<Counts, std::vector<float>> run(const char* kernel, const Accesses& accesses,
                                            int workers) {
    DeviceOptions options;
    options.workers = workers;
    open(read_testdata("features.ptx"), options);
    const uint64_t y = put(std::vector<float>(kWordsOfY), "y");
    const uint64_t out = put(std::vector<float>(accesses.what.size()), "out");
    Arguments arguments;
    arguments.add(put(accesses.what, "what")).add(put(accesses.at, "at")).add(y).add(out);
    const uint32_t blocks = static_cast<uint32_t>(accesses.what.size() / kThreads);
    const LaunchReport report = launch({.kernel = kernel,
                                        .grid = {blocks, 1, 1},
                                        .block = {kThreads, 1, 1},
                                        .arguments = arguments});
    Counts counts = {{kReadAfterWrite, 0}, {kWriteAfterWrite, 0}, {kWriteAfterRead, 0}};
    for (const Finding& one : report.findings) {
      for (auto& [detail, count] : counts) {
        if (one.detail.find(detail) != std::string::npos) count += one.count;
      }
    }
    return {counts, get<float>(y, kWordsOfY)};
  }
};

TEST_F(GlobalShadows, FindTheRacesOfTheModel) {
  Counts total;
  for (unsigned seed = 0; seed < 20; ++seed) {
    const Accesses accesses(seed, 2 + static_cast<int>(seed % 5));
    const Counts expected = model(accesses);
    const auto by_words = run("touches", accesses, 1),
               by_bytes = run("touches_by_bytes", accesses, 1);
    EXPECT_EQ(by_words.first, expected) << seed;
    EXPECT_EQ(by_words.second, by_bytes.second) << seed;
    for (const auto& [detail, count] : expected) {
      total[detail] += count;
      EXPECT_EQ(by_bytes.first.at(detail) > 0, count > 0) << seed << " " << detail;
      EXPECT_LE(by_bytes.first.at(detail), 4 * count) << seed << " " << detail;
    }
    EXPECT_EQ(run("touches", accesses, 2), by_words) << seed;
  }
  for (const auto& [detail, count] : total) EXPECT_GT(count, 100) << detail;
}

}  // namespace
}  // namespace mc::ptx
