// SPDX-License-Identifier: Apache-2.0
#include "forge/lessons.h"

#include <algorithm>
#include <numeric>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forge/random.h"
#include "forge/reason.h"
#include "forge/text.h"
#include "forge/types.h"
#include "forge/views.h"
#include "forge/words.h"
#include "timing/occupancy.h"

namespace mc::forge {
namespace {

constexpr int64_t kBytes = 4;  // A float has as many.
// An H100 SXM: 66.9 TFLOP/s in float32 without tensor cores, 3.35 TB/s.
constexpr double kRidge = 66.9 / 3.35;
constexpr int64_t kGigabytesPerSecond = 3350;

std::string text_of(int64_t number) { return std::to_string(number); }

int64_t percent_of(const timing::Occupancy& found) { return found.warps * 100 / timing::kWarpsMax; }

int64_t bytes_of(const TaskGraph& graph, int value) {
  const Value& found = graph.value(value);
  return graph.count_of(found.dims, graph.shown) * bytes_of(found.type);
}

// The values that a stage reads from memory: operands that are not made inside of it.
std::set<int> operands_of(const TaskGraph& graph, const std::vector<Part>& parts,
                          const Part& part) {
  std::set<int> in_memory;
  for (const Part& other : parts) in_memory.insert(other.stage.output);
  std::set<int> read;
  std::vector<int> left;
  const auto use = [&](const Node* node) {
    left.insert(left.end(), node->operands.begin(), node->operands.end());
  };
  if (part.stage.core != nullptr) use(part.stage.core);
  for (const Node* node : part.stage.nodes) use(node);
  while (!left.empty()) {
    const int value = left.back();
    left.pop_back();
    const Node* maker = graph.maker(value);
    if (maker == nullptr || (in_memory.contains(value) && value != part.stage.output)) {
      read.insert(value);
    } else if (maker != part.stage.core &&
               std::ranges::find(part.stage.nodes, maker) == part.stage.nodes.end()) {
      use(maker);  // It is computed where it is loaded.
    }
  }
  return read;
}

std::string readable(std::string feature) {
  std::ranges::replace(feature, '_', ' ');
  return feature;
}

class Analyst {
 public:
  Analyst(const TaskGraph& graph, const Solution& solution, const TemplateLibrary& library)
      : graph_(graph),
        solution_(solution),
        library_(library),
        random_(graph.seed, "performance " + solution.name, graph.number) {}

  std::string run() {
    say("right");
    int64_t moved = 0;
    for (size_t k = 0; k < solution_.parts.size(); ++k) moved += kernel(k);
    int64_t needed = 0;
    for (const int value : graph_.given()) needed += bytes_of(graph_, value);
    for (const int value : graph_.outputs) needed += bytes_of(graph_, value);
    say("total", {{"bytes", text_of(moved)}, {"needed", text_of(needed)}});
    return std::move(text_);
  }

 private:
  void say(std::string_view sentence, const Slots& slots = {}) {
    text_ += phrased(sentence, slots, random_) + "\n";
  }

  // The bytes that it moves, each operand read once.
  int64_t kernel(size_t k) {
    const Part& part = solution_.parts[k];
    const std::string number = text_of(static_cast<int64_t>(k) + 1);
    int64_t read = 0;
    for (const int value : operands_of(graph_, solution_.parts, part))
      read += bytes_of(graph_, value);
    const int64_t written = bytes_of(graph_, part.stage.output);
    say("traffic", {{"k", number}, {"read", text_of(read)}, {"written", text_of(written)}});
    say("feature", {{"k", number}, {"feature", readable(part.used->feature)}});
    intensity(part, number, read + written);
    std::set<std::string> others;
    for (const Template& one : library_.templates) {
      if (one.feature != part.used->feature && one.feature != "baseline" &&
          fits(one, graph_, part.stage)) {
        others.insert(readable(one.feature));
      }
    }
    if (!others.empty()) {
      say("options", {{"k", number}, {"features", fmt::format("{}", fmt::join(others, ", "))}});
    }
    return read + written;
  }

  // Products: a multiplication and an addition for each term.
  void intensity(const Part& part, const std::string& number, int64_t bytes) {
    const auto& sizes = part.shown_sizes;
    if (part.used->walk != Walk::kTiles || !sizes.contains("depth")) return;
    int64_t flops = 2;
    for (const auto& [name, size] : sizes) flops *= size;
    const double ratio = static_cast<double>(flops) / static_cast<double>(bytes);
    say("intensity", {{"k", number},
                      {"flops", text_of(flops)},
                      {"bytes", text_of(bytes)},
                      {"ratio", fmt::format("{:.2f}", ratio)},
                      {"bound", ratio < kRidge ? "bound by memory" : "bound by arithmetic"}});
  }

  const TaskGraph& graph_;
  const Solution& solution_;
  const TemplateLibrary& library_;
  Random random_;
  std::string text_;
};

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
                   {"percent", text_of(percent_of(found))},
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
      {{"sectors", text_of(count)}, {"percent", text_of(32 * kBytes * 100 / (count * 32))}},
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

std::string performance_text(const TaskGraph& graph, const Solution& solution,
                             const TemplateLibrary& library) {
  return Analyst(graph, solution, library).run();
}

std::string resources_text(const std::vector<Resources>& resources) {
  std::string text;
  for (const Resources& one : resources) {
    text += fmt::format(
        "{}: {} registers, {} bytes smem, {} bytes spill stores, {} bytes spill loads\n",
        one.kernel, one.registers, one.shared, one.spill_stores, one.spill_loads);
  }
  return text;
}

std::string profile_text(const TaskGraph& graph, const Solution& solution,
                         const std::vector<Resources>& resources) {
  const std::vector<int64_t> threads = threads_of_launches(solution.cuda);
  if (resources.empty() || threads.size() != resources.size()) return "";
  if (std::ranges::find(threads, 0) != threads.end()) return "";
  Random random(graph.seed, "profile " + solution.name, graph.number);
  std::string text;
  for (size_t k = 0; k < resources.size(); ++k) {
    const Resources& one = resources[k];
    text += phrased("registers",
                    {{"kernel", one.kernel},
                     {"registers", text_of(one.registers)},
                     {"shared", text_of(one.shared)}},
                    random) +
            "\n";
    text += phrased("spills",
                    {{"kernel", one.kernel},
                     {"stores", text_of(one.spill_stores)},
                     {"loads", text_of(one.spill_loads)}},
                    random) +
            "\n";
    const timing::Occupancy found = timing::occupancy_of(threads[k], one.registers, one.shared);
    text += phrased("occupancy",
                    {{"threads", text_of(threads[k])},
                     {"blocks", text_of(found.blocks)},
                     {"percent", text_of(percent_of(found))},
                     {"limit", found.limit}},
                    random) +
            "\n";
  }
  return text;
}

Question question_of(uint64_t seed, uint64_t number) {
  Random random(seed, "question", number);
  Maker maker = random.pick(kMakers);
  return maker(random);
}

}  // namespace mc::forge
