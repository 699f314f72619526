// SPDX-License-Identifier: Apache-2.0
#include "forge/lessons.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forge/random.h"
#include "forge/text.h"
#include "forge/views.h"
#include "forge/words.h"
#include "timing/occupancy.h"

namespace mc::forge {
namespace {

constexpr int64_t kBytes = 4;  // The size of a float.
// The bandwidth of an H100 SXM is 3.35 TB/s.
constexpr int64_t kGigabytesPerSecond = 3350;

std::string text_of(int64_t number) { return std::to_string(number); }

// The percentage, rounded.
int64_t percent_of(int64_t part, int64_t whole) { return (200 * part + whole) / (2 * whole); }

// ---- Questions ----------------------------------------------------------------------------------

using Maker = Question (*)(Random&);

Question question(const char* topic, const Slots& asked, const Slots& told, Random& random) {
  const std::string name = topic;
  return {name, phrased("ask_" + name, asked, random), phrased("tell_" + name, told, random)};
}

int64_t picked(std::vector<int64_t> choices, Random& random) { return random.pick(choices); }

Question grid(Random& random) {
  const int64_t threads = picked({64, 128, 192, 256, 512, 1024}, random);
  const int64_t n = 1 + random.below(1 << 22);
  const int64_t blocks = (n + threads - 1) / threads;
  return question("grid", {{"threads", text_of(threads)}, {"n", text_of(n)}},
                  {{"blocks", text_of(blocks)}, {"idle", text_of(blocks * threads - n)}}, random);
}

Question occupancy(Random& random) {
  const int64_t threads = picked({32, 64, 96, 128, 192, 256, 384, 512, 768, 1024}, random);
  const int64_t registers = 16 + random.below(static_cast<int>(std::min<int64_t>(
                                     239, timing::kRegistersMax / threads - 16 + 1)));
  const int64_t shared = picked({0, 1024, 4096, 8448, 16384, 33792, 49152}, random);
  const timing::Occupancy found = timing::occupancy_of(threads, registers, shared);
  const std::string asked = phrased("ask_occupancy",
                                    {{"threads", text_of(threads)},
                                     {"registers", text_of(registers)},
                                     {"shared", text_of(shared)}},
                                    random);
  return {"occupancy", asked,
          phrased("occupancy",
                  {{"threads", text_of(threads)},
                   {"blocks", text_of(found.blocks)},
                   {"percent", text_of(percent_of(found.warps, timing::kWarpsMax))},
                   {"limit", found.limit}},
                  random)};
}

Question sectors(Random& random) {
  const int64_t stride = 1 + random.below(40);
  std::set<int64_t> touched;
  for (int64_t lane = 0; lane < 32; ++lane) touched.insert(lane * stride * kBytes / 32);
  const auto count = static_cast<int64_t>(touched.size());
  return question(
      "sectors", {{"stride", text_of(stride)}},
      {{"sectors", text_of(count)}, {"percent", text_of(percent_of(32 * kBytes, count * 32))}},
      random);
}

Question banks(Random& random) {
  const int64_t stride = 1 + random.below(64);
  return question("banks", {{"stride", text_of(stride)}},
                  {{"ways", text_of(std::gcd(stride, int64_t{32}))}}, random);
}

Question offset(Random& random) {
  std::vector<int64_t> sizes, index;
  const int rank = 2 + random.below(3);
  for (int i = 0; i < rank; ++i) {
    sizes.push_back(2 + random.below(96));
    index.push_back(random.below(static_cast<int>(sizes.back())));
  }
  const std::vector<int64_t> strides = strides_of(View::kNone, sizes);
  const int64_t found = std::inner_product(index.begin(), index.end(), strides.begin(), int64_t{0});
  return question("offset", {{"sizes", joined(sizes)}, {"index", joined(index)}},
                  {{"strides", joined(strides)}, {"offset", text_of(found)}}, random);
}

Question time(Random& random) {
  const int64_t bytes = (int64_t{1} + random.below(1 << 20)) << (4 + random.below(9));
  const double us = static_cast<double>(bytes) / (static_cast<double>(kGigabytesPerSecond) * 1000);
  return question("time", {{"bytes", text_of(bytes)}, {"rate", text_of(kGigabytesPerSecond)}},
                  {{"us", fmt::format("{:.2f}", us)}}, random);
}

Question convolution(Random& random) {
  const int64_t kernel = 1 + random.below(7), stride = 1 + random.below(3);
  const int64_t padding = random.below(4), dilation = 1 + random.below(3);
  const int64_t size = dilation * (kernel - 1) + 1 + random.below(224);
  const int64_t out = (size + 2 * padding - dilation * (kernel - 1) - 1) / stride + 1;
  Slots slots = {{"size", text_of(size)},
                 {"kernel", text_of(kernel)},
                 {"stride", text_of(stride)},
                 {"padding", text_of(padding)},
                 {"dilation", text_of(dilation)}};
  Slots told = slots;
  told["out"] = text_of(out);
  return question("convolution", slots, told, random);
}

Question overflow(Random& random) {
  std::vector<int64_t> sizes;
  for (int i = 0; i < 4; ++i) sizes.push_back(int64_t{8} << random.below(7));
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return question("overflow", {{"sizes", joined(sizes)}},
                  {{"count", text_of(count)}, {"type", count > 2147483647 ? "int64_t" : "int"}},
                  random);
}

constexpr Maker kMakers[] = {grid, occupancy, sectors, banks, offset, time, convolution, overflow};

}  // namespace

Question question_of(uint64_t seed, uint64_t number) {
  Random random(seed, "question", number);
  Maker maker = random.pick(kMakers);
  return maker(random);
}

}  // namespace mc::forge
