// SPDX-License-Identifier: Apache-2.0
#include "forge/reason.h"

#include <algorithm>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/check.h"
#include "forge/cost.h"
#include "forge/random.h"
#include "forge/render.h"
#include "forge/stage_writer.h"
#include "forge/text.h"
#include "forge/views.h"
#include "forge/words.h"

namespace mc::forge {
namespace {

constexpr double kLoadedGainMin = 1.5, kSectorGainMin = 2, kBusyGainMin = 1.5;
constexpr size_t kPlainFormulaMax = 6;  // A formula as short as "v + u" needs no explanation.

std::vector<int64_t> sizes_of(const TaskGraph& graph, const Value& value) {
  std::vector<int64_t> sizes;
  for (const int dim : value.dims) sizes.push_back(graph.shown_size_of(dim));
  return sizes;
}

// The name of a value in texts: "x", "weight", "t2" after step 2, "output".
std::string value_name(const TaskGraph& graph, int value) {
  if (graph.value(value).origin != Origin::kNode) return graph.value(value).name;
  const auto output = std::ranges::find(graph.outputs, value);
  if (output != graph.outputs.end()) {
    return graph.outputs.size() == 1 ? "output"
                                     : fmt::format("output {}", output - graph.outputs.begin() + 1);
  }
  return fmt::format("t{}", graph.maker(value) - graph.nodes.data() + 1);
}

// The comparison of a plan with another one: the sentence that states the difference, and both
// figures.
struct Comparison {
  std::string sentence;
  std::string other;  // The rejected plan.
  int64_t ours = 0, theirs = 0;
};

bool is_times(int64_t more, int64_t less, double gain) {
  return less > 0 && static_cast<double>(more) >= gain * static_cast<double>(less);
}

// The most important figure in which `other` costs more.
std::optional<Comparison> advantage(const Cost& own, const Cost& other) {
  if (is_times(other.loaded, own.loaded, kLoadedGainMin)) {
    return Comparison{"less_loaded", "", own.loaded, other.loaded};
  }
  if (own.lanes == other.lanes && is_times(other.sectors, own.sectors, kSectorGainMin)) {
    return Comparison{"less_sectors", "", own.sectors, other.sectors};
  }
  if (other.launches > own.launches) {
    return Comparison{"less_launches", "", own.launches, other.launches};
  }
  if (other.barriers > own.barriers) {
    return Comparison{"less_barriers", "", own.barriers, other.barriers};
  }
  if (is_times(own.busy, other.busy, kBusyGainMin)) {
    return Comparison{"more_busy", "", own.busy, other.busy};
  }
  if (other.blocks > own.blocks) {
    return Comparison{"fewer_blocks", "", own.blocks, other.blocks};
  }
  return std::nullopt;
}

// A figure in which `other` costs less.
std::optional<Comparison> price(const Cost& own, const Cost& other) {
  if (own.barriers > other.barriers) {
    return Comparison{"price_barriers", "", own.barriers, other.barriers};
  }
  if (is_times(other.busy, own.busy, kBusyGainMin)) {
    return Comparison{"price_busy", "", own.busy, other.busy};
  }
  return std::nullopt;
}

// Writes sentences about one solution, one per line.
class AnalysisWriter {
 public:
  AnalysisWriter(const TaskGraph& graph, const Solution& solution, const std::string& purpose)
      : graph_(graph),
        solution_(solution),
        random_(graph.seed, purpose + " " + solution.name, graph.number) {
    for (const Part& part : solution.parts) {
      costs_.push_back(cost_of(*part.used, graph, part.stage));
    }
  }

  std::string plan(const TemplateLibrary& library) {
    launches();
    mathematics();
    for (size_t k = 0; k < solution_.parts.size(); ++k) {
      kernel(k);
      rejected(k, library);
      details(k);
    }
    types();
    return std::move(text_);
  }

  std::string variant(const Solution& baseline) {
    MC_CHECK(baseline.parts.size() == solution_.parts.size());
    const bool is_baseline = &baseline == &solution_;
    for (size_t k = 0; k < solution_.parts.size(); ++k) {
      const Template& other = *baseline.parts[k].used;
      const bool is_changed = solution_.parts[k].used != &other;
      if (!is_baseline && !is_changed) continue;
      kernel(k);
      if (is_changed) compare_with(k, other);
      details(k);
    }
    return std::move(text_);
  }

  std::string analysis() {
    say("no_bug");
    for (size_t k = 0; k < solution_.parts.size(); ++k) {
      kernel(k);
      details(k);
    }
    say("stream", {{"count", std::to_string(num_launches())}});
    types();
    return std::move(text_);
  }

 private:
  void say(std::string_view sentence, const Slots& slots = {}) {
    text_ += phrased(sentence, slots, random_) + "\n";
  }

  static std::string number(size_t index) { return std::to_string(index + 1); }

  int64_t num_launches() const {
    int64_t count = 0;
    for (const Cost& cost : costs_) count += cost.launches;
    return count;
  }

  // Lists the values that no kernel writes; with one kernel for each operator, they would go
  // through memory.
  void launches() {
    int64_t elements = 0, bytes = 0;
    std::vector<std::string> values;
    for (const Node& node : graph_.nodes) {
      const bool is_written = std::ranges::any_of(
          solution_.parts, [&](const Part& part) { return part.stage.output == node.output; });
      if (is_written) continue;
      const Value& value = graph_.value(node.output);
      const int64_t count = graph_.count_of(value.dims, graph_.shown);
      values.push_back(fmt::format("{} ({})", node.op->name, count));
      elements += count;
      bytes += 2 * count * bytes_of(value.type);
    }
    if (values.empty() || graph_.depth() <= num_launches()) {
      say("separate", {{"kernels", std::to_string(num_launches())}});
      return;
    }
    say("fusion", {{"count", std::to_string(graph_.depth())},
                   {"kernels", std::to_string(num_launches())},
                   {"values", fmt::format("{}", fmt::join(values, " + "))},
                   {"bytes", std::to_string(bytes)}});
  }

  void mathematics() {
    std::set<std::string> seen;
    for (const Node& node : graph_.nodes) {
      const std::string formula = formula_text(node);
      const bool is_name = formula.starts_with(node.op->name + "(");
      if (is_name || formula.size() <= kPlainFormulaMax ||
          !seen.insert(node.op->name + formula).second) {
        continue;
      }
      say("formula", {{"op", node.op->name}, {"formula", formula}});
    }
  }

  std::string plan_of(const Template& used, const Stage& stage) const {
    const bool is_product = properties_of(graph_, stage).contains("product");
    return substituted(used.plan, "{{item}}", is_product ? "output" : "row");
  }

  void kernel(size_t k) {
    const Part& part = solution_.parts[k];
    std::vector<std::string> chain;
    if (part.stage.core != nullptr) chain.push_back(part.stage.core->op->name);
    for (const Node* node : part.stage.nodes) chain.push_back(node->op->name);
    say("kernel", {{"k", number(k)},
                   {"kernel", part.kernel},
                   {"chain", fmt::format("{}", fmt::join(chain, ", "))},
                   {"plan", plan_of(*part.used, part.stage)},
                   {"blocks", std::to_string(costs_[k].blocks)},
                   {"threads", std::to_string(costs_[k].threads)}});
    for (const auto& [name, value] : part.shown_sizes) {
      const std::string own = renamed(name, part.names);
      if (name == "batch" && value == 1) continue;
      say("run", {{"k", number(k)}, {"name", own}, {"value", std::to_string(value)}});
    }
  }

  // Names another template that fits, and why it was rejected.
  void rejected(size_t k, const TemplateLibrary& library) {
    const Part& part = solution_.parts[k];
    std::vector<std::pair<const Template*, Comparison>> found;
    for (const Template& other : library.templates) {
      const bool is_comparable = other.walk == part.used->walk ||
                                 (part.used->walk == Walk::kTiles && other.walk == Walk::kRows);
      if (other.name == part.used->name || !is_comparable || !fits(other, graph_, part.stage)) {
        continue;
      }
      const auto difference = advantage(costs_[k], cost_of(other, graph_, part.stage));
      if (difference) found.emplace_back(&other, *difference);
    }
    if (found.empty()) return;
    // Differences in bytes are a better reason than those in blocks.
    const auto rank = [](const std::string& sentence) {
      return sentence == "fewer_blocks" ? 2 : sentence == "more_busy" ? 1 : 0;
    };
    int best = 2;
    for (const auto& [other, difference] : found) best = std::min(best, rank(difference.sentence));
    std::erase_if(found, [&](const auto& one) { return rank(one.second.sentence) > best; });
    compare_with(k, *random_.pick(found).first);
  }

  // The figure that speaks for the kernel, and the one that speaks against it, where there are
  // such.
  void compare_with(size_t k, const Template& other) {
    const Stage& stage = solution_.parts[k].stage;
    const Cost cost = cost_of(other, graph_, stage);
    const std::string plan = plan_of(other, stage);
    for (const auto& difference : {advantage(costs_[k], cost), price(costs_[k], cost)}) {
      if (difference) compare(k, *difference, plan);
    }
  }

  void compare(size_t k, const Comparison& difference, const std::string& other) {
    say(difference.sentence, {{"k", number(k)},
                              {"other", other},
                              {"ours", std::to_string(difference.ours)},
                              {"theirs", std::to_string(difference.theirs)}});
  }

  void details(size_t k) {
    const Part& part = solution_.parts[k];
    const Cost& cost = costs_[k];
    coverage(k);
    example(k);
    const auto say_of = [&](std::string_view sentence, const char* slot, int64_t value) {
      if (value > 0) say(sentence, {{"k", number(k)}, {slot, std::to_string(value)}});
    };
    say_of("barriers", "barriers", cost.barriers);
    say_of("shared_bytes", "bytes", cost.shared);
    const int read = read_whole(graph_, part.stage);
    if (cost.reads > 1 && read >= 0 && graph_.value(read).origin != Origin::kNode) {
      say("reads", {{"k", number(k)},
                    {"name", graph_.value(read).name},
                    {"count", std::to_string(cost.reads)}});
    }
  }

  void coverage(size_t k) {
    const Part& part = solution_.parts[k];
    if (part.used->check.empty() || costs_[k].busy == 0) return;
    const int64_t all = costs_[k].blocks * costs_[k].threads, busy = costs_[k].busy;
    Slots slots = {{"k", number(k)},
                   {"check", renamed(part.used->check, part.names)},
                   {"all", std::to_string(all)}};
    // If a row is shorter than its number of lanes, the loop's bound stops more threads than the
    // check.
    constexpr int64_t kLanes = 32;
    const auto m = part.shown_sizes.find("m");
    const bool is_short = part.used->walk == Walk::kRows && m != part.shown_sizes.end() &&
                          m->second < kLanes && !is_row_a_thread(part);
    if (is_short) return;
    if (all == busy) {
      if (is_filled(part)) say("exact", slots);
      return;
    }
    slots["busy"] = std::to_string(busy);
    slots["idle"] = std::to_string(all - busy);
    say("spare", slots);
  }

  // True if all threads have the same number of elements.
  static bool is_filled(const Part& part) {
    const auto is_whole = [&](const char* size, const char* tile) {
      const auto found = part.used->values.find(tile);
      return found == part.used->values.end() ||
             part.shown_sizes.at(size) % std::stoll(found->second) == 0;
    };
    if (part.used->walk == Walk::kElements) return is_whole("n", "B");
    return part.used->walk != Walk::kTiles || (is_whole("n", "H") && is_whole("m", "W"));
  }

  bool is_row_a_thread(const Part& part) const {
    const auto at = [&](int64_t thread) {
      return cost_at(*part.used, graph_, part.stage, "row", {{"block", 0}, {"thread", thread}});
    };
    return at(1) == 1;
  }

  // The work of a random thread, with the index at which it begins.
  void example(size_t k) {
    const Part& part = solution_.parts[k];
    const Template& used = *part.used;
    const bool has_rows = used.walk != Walk::kElements;
    const char* formula = has_rows ? "row" : "place";
    if (!used.cost.contains(formula)) return;
    const auto below = [&](int64_t count) {
      return static_cast<int64_t>(
          random_.below(static_cast<int>(std::min<int64_t>(count, 1 << 30))));
    };
    for (int tries = 0; tries < 4; ++tries) {
      const int64_t block = below(costs_[k].blocks), thread = below(costs_[k].threads);
      const std::map<std::string, int64_t> here = {{"block", block}, {"thread", thread}};
      const int64_t place = cost_at(used, graph_, part.stage, formula, here);
      if (place >= part.shown_sizes.at("n")) continue;
      const auto& last = graph_.value(part.stage.output).dims;
      if (used.name == "block_row" && thread >= graph_.shown_size_of(last.back())) continue;
      const std::string name = has_rows ? "r" : used.names.contains("t") ? "t" : "i";
      return say("example", {{"k", number(k)},
                             {"block", std::to_string(block)},
                             {"thread", std::to_string(thread)},
                             {"name", renamed(name, part.names)},
                             {"place", std::to_string(place)}});
    }
  }

  void types() {
    int64_t largest = 0;
    for (const int value : graph_.given()) largest = std::max(largest, count(value));
    for (size_t k = 0; k < solution_.parts.size(); ++k) {
      largest = std::max(largest, count(solution_.parts[k].stage.output));
      const Type type = graph_.value(solution_.parts[k].stage.output).type;
      largest = std::max(largest, costs_[k].buffer / (is_whole(type) ? bytes_of(type) : 4));
    }
    say("largest", {{"count", std::to_string(largest)}});
    if (is_half(graph_.type)) {
      say("types", {{"type", to_string(graph_.type)}, {"sums", to_string(Type::kFloat32)}});
    }
    for (const Value& value : graph_.values) {
      if (value.view != View::kNone) strides(value);
    }
  }

  int64_t count(int value) const { return graph_.count_of(graph_.value(value).dims, graph_.shown); }

  // A random element and its offset in memory.
  void strides(const Value& value) {
    const std::vector<int64_t> sizes = sizes_of(graph_, value);
    const std::vector<int64_t> steps = strides_of(value.view, sizes);
    std::vector<int64_t> index;
    int64_t offset = 0;
    for (size_t i = 0; i < sizes.size(); ++i) {
      index.push_back(random_.below(static_cast<int>(std::min<int64_t>(sizes[i], 1 << 30))));
      offset += index.back() * steps[i];
    }
    say("strides", {{"name", value.name},
                    {"strides", joined(steps)},
                    {"index", joined(index)},
                    {"offset", std::to_string(offset)}});
  }

  const TaskGraph& graph_;
  const Solution& solution_;
  Random random_;
  std::vector<Cost> costs_;
  std::string text_;
};

}  // namespace

std::string formula_text(const Node& node) {
  if (!node.op->is_pointwise) return node.op->formula;
  const std::string text = with_word(node.op->formula, "c", node.c);
  return with_word(text, "d", node.d);
}

std::string metadata_table(const TaskGraph& graph) {
  std::string text = "| tensor | shape | strides | dtype | from |\n|---|---|---|---|---|\n";
  size_t step = 0;
  for (int at = 0; at < static_cast<int>(graph.values.size()); ++at) {
    const Value& value = graph.value(at);
    const std::vector<int64_t> sizes = sizes_of(graph, value);
    const std::string name = value_name(graph, at);
    std::string from = "input";
    const char* dtype = to_string(value.type);
    if (value.origin == Origin::kParameter) from = "parameter";
    if (value.origin == Origin::kNode) {
      from = graph.nodes[step++].op->name;
    }
    text += fmt::format("| {} | {} = [{}] | [{}] | {} | {} |\n", name, shape_text(graph, value),
                        fmt::join(sizes, ", "), fmt::join(strides_of(value.view, sizes), ", "),
                        dtype, from);
  }
  return text;
}

std::string plan_text(const TaskGraph& graph, const Solution& solution,
                      const TemplateLibrary& library) {
  return AnalysisWriter(graph, solution, "plan").plan(library);
}

std::vector<std::string> variant_sentences(const TaskGraph& graph, const Solution& solution,
                                           const Solution& baseline) {
  std::istringstream lines(AnalysisWriter(graph, solution, "variant").variant(baseline));
  std::vector<std::string> found;
  for (std::string line; std::getline(lines, line);) found.push_back(line);
  return found;
}

std::string analysis_text(const TaskGraph& graph, const Solution& solution) {
  return AnalysisWriter(graph, solution, "analysis").analysis();
}

}  // namespace mc::forge
