// SPDX-License-Identifier: Apache-2.0
#include "forge/code.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/check.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

const char* whole_identity(Combine combine, Type type) {
  const bool is_long = type == Type::kInt64;
  if (combine == Combine::kMax) return is_long ? "INT64_MIN" : "INT_MIN";
  if (combine == Combine::kMin) return is_long ? "INT64_MAX" : "INT_MAX";
  return combine == Combine::kSum ? "0" : "1";
}

}  // namespace

bool Code::uses(std::string_view name) const {
  const Form& form = *stage_.core->form;
  return mentions(form.result, name) || (form.scan && mentions(*form.scan, name)) ||
         std::ranges::any_of(form.passes,
                             [&](const Pass& pass) { return mentions(pass.element, name); });
}

// ---- Walks over elements

std::string Code::value() const {
  if (stage_.core == nullptr) {
    return nodes_text(stage_.nodes, output_index(), {}, "v", "");
  }
  const std::string loaded = load();
  return loaded + result_text(uses("v"), loaded);
}

std::string Code::value_of_vectors() {
  reads_vectors_ = true;
  std::string text = value();
  reads_vectors_ = false;
  return text;
}

std::vector<std::string> Code::flat_operands() const {
  std::vector<std::string> names;
  const std::string text = value();
  for (const auto& [value, name] : tensors_) {
    const std::string flat = fmt::format("{}[{}]", name, site("index", "i"));
    if (text.find(flat) != std::string::npos) names.push_back(name);
  }
  return names;
}

// ---- Walks over rows

std::string Code::accumulator(size_t pass) {
  static constexpr const char* kNames[] = {"a", "b", "s", "f"};
  MC_CHECK(pass < std::size(kNames));
  return kNames[pass];
}

std::string Code::operand_lines(size_t operand, const std::string& name,
                                const std::string& above) const {
  const int value = stage_.core->operands.at(operand);
  const Index index = index_of(stage_.core->form->operands.at(operand).axes);
  std::vector<int> in_memory;
  for (const auto& [known, tensor] : tensors_) in_memory.push_back(known);
  const auto nodes = cone_of(graph_, value, in_memory, -1);
  if (nodes.empty()) return fmt::format("{} {} = {};\n", real(), name, read(value, index));
  return nodes_text(nodes, index, {}, name, above);
}

bool Code::loads_anything() const { return uses("v") || uses("u") || uses("w"); }

std::string Code::load() const {
  std::string lines;
  for (size_t i = 0; i < 3 && i < stage_.core->operands.size(); ++i) {
    if (uses(kOperandNames[i])) lines += operand_lines(i, kOperandNames[i], lines);
  }
  return lines;
}

bool Code::loads_by_function() const {
  if (!uses("v") || uses("u") || uses("w")) return false;
  const size_t loads = stage_.core->form->passes.size() + (stage_.core->keeps_inner() ? 1 : 0);
  return loads > 1 && std::ranges::count(operand_lines(0, "v", ""), '\n') > 1;
}

std::string Code::function() const { return operand_lines(0, "v", "") + "return v;\n"; }

std::string Code::identity(size_t pass) const {
  const Type type = graph_.value(stage_.output).type;
  if (is_whole(type)) return whole_identity(stage_.core->form->passes.at(pass).combine, type);
  switch (stage_.core->form->passes.at(pass).combine) {
    case Combine::kSum:
      return "0.0f";
    case Combine::kMax:
      return "-INFINITY";
    case Combine::kMin:
      return "INFINITY";
    case Combine::kProduct:
      return "1.0f";
  }
  MC_CHECK(false);
}

std::string Code::element(size_t pass) const {
  return text(stage_.core->form->passes.at(pass).element, {}, *stage_.core);
}

// The combination of a pass, with "{a}" for the accumulator and "{v}" for the new value.
std::string Code::combine(size_t pass) const {
  // The maximum of a softmax is only subtracted, so it need not propagate NaN.
  const bool shifts =
      stage_.core->form->passes.size() > 1 && mentions(stage_.core->form->passes[1].element, "a");
  const bool whole = is_whole(graph_.value(stage_.output).type);
  switch (stage_.core->form->passes.at(pass).combine) {
    case Combine::kSum:
      return "{a} += {v};";
    case Combine::kMax:
      if (whole) return "{a} = max({a}, {v});";
      return shifts ? "{a} = fmaxf({a}, {v});" : "{a} = larger({a}, {v});";
    case Combine::kMin:
      if (whole) return "{a} = min({a}, {v});";
      return shifts ? "{a} = fminf({a}, {v});" : "{a} = smaller({a}, {v});";
    case Combine::kProduct:
      return "{a} *= {v};";
  }
  MC_CHECK(false);
}

std::string Code::finish(size_t pass) const {
  const auto& finish = stage_.core->form->passes.at(pass).finish;
  if (!finish) return "";
  return fmt::format("{} = {};\n", accumulator(pass), text(*finish, {}, *stage_.core));
}

std::string Code::result_text(bool is_declared, const std::string& above) const {
  std::string lines;
  if (stage_.core == nullptr) return lines;
  const std::string value = text(stage_.core->form->result, {}, *stage_.core);
  if (!is_declared) lines = fmt::format("{} v = {};\n", real(), value);
  if (is_declared && value != "v") lines = fmt::format("v = {};\n", site("result", value));
  return lines + nodes_text(stage_.nodes, output_index(), {{stage_.core->output, "v"}}, "v", above);
}

std::string Code::result() const { return result_text(false, ""); }
std::string Code::result_after_load() const {
  return result_text(true, loads_by_function() ? "" : load());
}

std::string Code::place() const {
  return flatten(graph_.value(stage_.output).dims, output_index());
}

std::string Code::stored() const { return store_text(graph_.value(stage_.output).type, "v"); }

// ---- Tiles and scans

std::string Code::left() const {
  return text(stage_.core->form->passes.front().element.args.at(0), {}, *stage_.core);
}
std::string Code::right() const {
  return text(stage_.core->form->passes.front().element.args.at(1), {}, *stage_.core);
}
std::string Code::scanned() const { return text(*stage_.core->form->scan, {}, *stage_.core); }

}  // namespace mc::forge
