// SPDX-License-Identifier: Apache-2.0
#include "forge/cost.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "core/check.h"
#include "forge/code.h"
#include "forge/stage_writer.h"

namespace mc::forge {
namespace {

constexpr int64_t kSectorBytes = 32;
constexpr int64_t kLanes = 32;
// The bytes that a GPU moves in the several microseconds of a launch.
constexpr double kLaunchBytes = 65536;
constexpr double kBarrierBytes = 64;
constexpr double kBusyEnough = 4096;  // Fewer threads do not fill a GPU.

bool uses(const Form& form, std::string_view name) {
  return mentions(form.result, name) || std::ranges::any_of(form.passes, [&](const Pass& pass) {
           return mentions(pass.element, name);
         });
}

// True if the stage also reads its first operand at other indices, such as that of a label.
bool accesses_first(const Expr& expr) {
  if (expr.kind == Expr::Kind::kAccess && expr.slot == 0) return true;
  return std::ranges::any_of(expr.args, [](const Expr& arg) { return accesses_first(arg); });
}
bool accesses_first(const Form& form) {
  return accesses_first(form.result) || std::ranges::any_of(form.passes, [](const Pass& pass) {
           return accesses_first(pass.element) || (pass.finish && accesses_first(*pass.finish));
         });
}

// True if a lane may load nothing for an element: because of a mask or of padding.
bool is_masked(const Expr& expr) {
  return expr.kind == Expr::Kind::kSelect || expr.has_default ||
         std::ranges::any_of(expr.args, [](const Expr& arg) { return is_masked(arg); });
}
bool is_masked(const Stage& stage) {
  return stage.core != nullptr &&
         std::ranges::any_of(stage.core->form->passes,
                             [](const Pass& pass) { return is_masked(pass.element); });
}

// True if the elements of a row are along the operand's last axis, so that they are adjacent in
// memory.
bool has_rows_of_neighbours(const Stage& stage) {
  const Form& form = *stage.core->form;
  const auto& axes = form.operands.front().axes;
  return form.inner.size() == 1 && !axes.empty() && axes.back().name == form.inner.back().name;
}

class Estimator {
 public:
  Estimator(const Template& used, const TaskGraph& graph, const Stage& stage)
      : used_(used), graph_(graph), stage_(stage) {
    const Code code(graph, stage, used.walk, {}, Reads::kContiguous);
    for (const Run& run : code.runs()) facts_[run.count] = graph.count_of(run.dims, graph.shown);
    const auto& out = graph.value(stage.output).dims;
    facts_["last"] = out.empty() ? 1 : graph.shown_size_of(out.back());
    if (stage.core != nullptr) {
      facts_["passes"] = static_cast<int64_t>(stage.core->form->passes.size());
      facts_["keeps"] = stage.core->keeps_inner() ? 1 : 0;
    }
    for (const auto& [name, value] : used.values) {
      if (value.find_first_not_of("0123456789") == std::string::npos && value.size() < 10) {
        facts_[name] = std::stoll(value);
      }
    }
  }

  int64_t at(const std::string& name, const std::map<std::string, int64_t>& others) const {
    const auto found = used_.cost.find(name);
    MC_CHECK(found != used_.cost.end());
    return std::llround(evaluate_with(found->second, [&](const std::string& wanted) {
      const auto other = others.find(wanted);
      if (other != others.end()) return static_cast<double>(other->second);
      const auto fact = facts_.find(wanted);
      return fact == facts_.end() ? 1.0 : static_cast<double>(fact->second);
    }));
  }

  Cost run() const {
    Cost cost;
    cost.launches = or_else("launches", 1);
    cost.blocks = at("blocks", {});
    cost.threads = at("threads", {});
    cost.busy = at("busy", {});
    const bool shares_rows =
        used_.walk == Walk::kRows && at("row", {{"block", 0}, {"thread", 1}}) == 0;
    if (shares_rows && is_masked(stage_)) cost.busy = 0;
    cost.barriers = or_else("barriers", 0);
    const Type type = graph_.value(stage_.output).type;
    const int64_t computed = is_whole(type) ? bytes_of(type) : 4;
    cost.shared = or_else("shared", 0) * computed;
    cost.buffer = or_else("buffer", 0) * computed;
    const int read = read_whole(graph_, stage_);
    if (read >= 0) add_reads(cost, bytes_of(graph_.value(read).type));
    if (is_plain_product()) add_factors(cost);
    return cost;
  }

 private:
  int64_t or_else(const std::string& name, int64_t value) const {
    return used_.cost.contains(name) ? at(name, {}) : value;
  }
  int64_t fact(const std::string& name) const {
    const auto found = facts_.find(name);
    return found == facts_.end() ? 1 : found->second;
  }

  void add_reads(Cost& cost, int64_t bytes) const {
    if (used_.walk == Walk::kElements) {
      cost.loaded = fact("n") * bytes;
    } else if (used_.walk == Walk::kRows) {
      cost.reads = or_else("reads", fact("passes") + fact("keeps"));
      cost.loaded = cost.reads * fact("n") * fact("m") * bytes;
    }
    if (used_.cost.contains("place")) add_sectors(cost, bytes);
  }

  // Computes the sectors and lanes of the first warp's first load.
  void add_sectors(Cost& cost, int64_t bytes) const {
    const bool has_rows = used_.walk == Walk::kRows;
    if (has_rows && !has_rows_of_neighbours(stage_)) return;
    const int64_t width = or_else("width", 1);
    std::set<int64_t> sectors;
    for (int64_t lane = 0; lane < std::min(kLanes, cost.threads); ++lane) {
      const std::map<std::string, int64_t> here = {{"block", 0}, {"thread", lane}};
      int64_t place = at("place", here);
      if (has_rows) {
        const int64_t row = at("row", here);
        if (row >= fact("n") || place >= fact("m")) continue;
        place += row * fact("m");
      } else if (place + width > fact("n") ||
                 (used_.name == "block_row" && place >= fact("last"))) {
        continue;
      }
      ++cost.lanes;
      for (int64_t i = 0; i < width * bytes; i += std::min(bytes, kSectorBytes)) {
        sectors.insert((place * bytes + i) / kSectorBytes);
      }
    }
    cost.sectors = width == 1 ? static_cast<int64_t>(sectors.size()) : 0;
  }

  // True for a product whose factors are each one load, without padding.
  bool is_plain_product() const {
    if (!properties_of(graph_, stage_).contains("product")) return false;
    const Form& form = *stage_.core->form;
    return form.passes.size() == 1 &&
           std::ranges::all_of(form.passes.front().element.args, [&](const Expr& factor) {
             if (factor.has_default) return false;
             if (factor.kind == Expr::Kind::kAccess) return true;
             const bool is_operand =
                 factor.kind == Expr::Kind::kName && (factor.text == "v" || factor.text == "u");
             if (!is_operand) return false;
             const size_t slot = factor.text == "v" ? 0 : 1;
             return is_in_memory(graph_, stage_.core->operands.at(slot));
           });
  }

  static bool is_in_memory(const TaskGraph& graph, int value) {
    const Node* maker = graph.maker(value);
    return maker == nullptr || !maker->op->is_pointwise;
  }

  void add_factors(Cost& cost) const {
    const int64_t bytes = bytes_of(graph_.value(stage_.core->operands.front()).type);
    if (used_.walk == Walk::kTiles) cost.loaded = or_else("loads", 0) * bytes;
    if (used_.walk == Walk::kRows) cost.loaded = 2 * fact("n") * fact("m") * bytes;
  }

  const Template& used_;
  const TaskGraph& graph_;
  const Stage& stage_;
  std::map<std::string, int64_t> facts_;
};

}  // namespace

Cost cost_of(const Template& used, const TaskGraph& graph, const Stage& stage) {
  return Estimator(used, graph, stage).run();
}

int64_t cost_at(const Template& used, const TaskGraph& graph, const Stage& stage,
                const std::string& name, const std::map<std::string, int64_t>& others) {
  return Estimator(used, graph, stage).at(name, others);
}

int read_whole(const TaskGraph& graph, const Stage& stage) {
  if (stage.core == nullptr) {
    for (const Node* node : stage.nodes) {
      for (const int operand : node->operands) {
        const Value& value = graph.value(operand);
        const bool is_made_here = std::ranges::any_of(
            stage.nodes, [&](const Node* other) { return other->output == operand; });
        const bool is_flat = value.dims == graph.value(stage.output).dims;
        if (!is_made_here && is_flat && value.view == View::kNone) return operand;
      }
    }
    return -1;
  }
  const Form& form = *stage.core->form;
  if (form.inner.empty() || form.scan || accesses_first(form) || !uses(form, "v") ||
      uses(form, "u") || uses(form, "w")) {
    return -1;
  }
  const int operand = stage.core->operands.front();
  const Node* maker = graph.maker(operand);
  const bool is_in_memory = maker == nullptr || !maker->op->is_pointwise;
  const auto has_inner = std::ranges::all_of(form.inner, [&](const Axis& axis) {
    return std::ranges::any_of(form.operands.front().axes,
                               [&](const Axis& own) { return own.name == axis.name; });
  });
  const bool is_read_after = std::ranges::any_of(stage.nodes, [&](const Node* node) {
    return std::ranges::find(node->operands, operand) != node->operands.end();
  });
  if (!is_in_memory || !has_inner || is_read_after || graph.value(operand).view != View::kNone)
    return -1;
  return operand;
}

double weight_of(const Cost& cost, int64_t bytes_of_stage) {
  double bytes = static_cast<double>(cost.loaded > 0 ? cost.loaded : bytes_of_stage);
  if (cost.sectors > 0 && cost.lanes > 0) {
    const double wanted = static_cast<double>(cost.lanes) * 4 / kSectorBytes;
    bytes *= std::max(1.0, static_cast<double>(cost.sectors) / std::max(1.0, wanted)) / 2 + 0.5;
  }
  bytes *= std::max(1.0, std::sqrt(kBusyEnough / std::max(1.0, static_cast<double>(cost.busy))));
  bytes += static_cast<double>(cost.launches) * kLaunchBytes +
           static_cast<double>(cost.buffer) * 2 +
           static_cast<double>(cost.barriers) * kBarrierBytes;
  return 1 / bytes;
}

}  // namespace mc::forge
