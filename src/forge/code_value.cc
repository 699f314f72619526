// SPDX-License-Identifier: Apache-2.0
//
// The parts of Code that compute values: expressions, and statements for a stage's nodes.
#include "core/check.h"
#include "forge/code.h"

#include <algorithm>

#include <fmt/format.h>

#include "forge/text.h"

namespace mc::forge {
namespace {

std::string literal(const std::string& text, const char* suffix) {
  return text.empty() ? text : site("literal", text + suffix);
}

int count_mentions(const Expr& expr, std::string_view name) {
  int count = expr.kind == Expr::Kind::kName && expr.text == name ? 1 : 0;
  for (const Expr& arg : expr.args) count += count_mentions(arg, name);
  return count;
}

}  // namespace

std::string Code::text(const Expr& expr, const std::map<std::string, std::string>& names,
                       const Node& node) const {
  Spelling spelling;
  spelling.name = [&](const std::string& name) -> std::string {
    if (const auto found = names.find(name); found != names.end()) return found->second;
    if (node.op->is_pointwise)
      return literal(name == "c" ? node.c : node.d, node.op->is_whole ? "" : "f");
    if (const auto axis = axes_.find(name); axis != axes_.end()) return axis->second.front();
    const auto axis = node.axes.find(lower(name));
    if (name != lower(name) && axis != node.axes.end()) {
      return graph_.extent_text(axis->second.front());
    }
    if (name == "count") return runs_.size() > 2 ? "depth" : "m";
    if (name == "places") return runs_.front().count;
    return name;
  };
  spelling.access = [&](const Expr& access) {
    MC_CHECK(access.slot >= 0);
    const int value = node.operands.at(static_cast<size_t>(access.slot));
    const auto& dims = graph_.value(value).dims;
    Index index;
    std::string condition;
    for (size_t i = 0; i < dims.size(); ++i) {
      std::string at = cuda_text(access.args.at(i), spelling);
      if (access.has_default && access.args[i].kind != Expr::Kind::kName) {
        condition += fmt::format("{}{} >= 0 && {} < {}", condition.empty() ? "" : " && ", at, at,
                                 graph_.extent_text(dims[i]));
      }
      index.push_back(i + 1 == dims.size() ? at : parenthesized(at));
    }
    std::string read =
        load_text(graph_.value(value).type,
                  fmt::format("{}[{}]", tensors_.at(value), site("access", offset(value, index))));
    if (access.is_int) read = "(int)" + read;
    if (condition.empty()) return read;
    return fmt::format("{} ? {} : {}", site("padding", condition), read,
                       cuda_text(access.args.back(), spelling));
  };
  return cuda_text(expr, spelling);
}

std::string Code::node_expression(const Node& node, const std::map<int, std::string>& variables,
                                  const Index& index, const std::string& above,
                                  std::string& lines) const {
  MC_CHECK(node.operands.size() <= std::size(kOperandNames));
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const int operand = node.operands[i];
    const auto known = variables.find(operand);
    std::string value =
        known != variables.end() ? known->second : read(operand, broadcast(operand, index));
    const bool is_repeated = count_mentions(node.form->result, kOperandNames[i]) > 1;
    if (is_repeated && known == variables.end()) {
      const std::string name = unused_name(above + lines, kOperandNames[i], node.output);
      lines += fmt::format("{} {} = {};\n", real(), name, value);
      value = name;
    }
    names[kOperandNames[i]] = value;
  }
  return text(node.form->result, names, node);
}

// The nodes as statements.  A variable that is no longer needed is reused for the next value.  The
// last value is in `base`.
std::string Code::nodes_text(const std::vector<const Node*>& nodes, const Index& index,
                             std::map<int, std::string> variables, const std::string& base,
                             const std::string& above) const {
  std::string lines;
  const auto is_needed = [&](int value, size_t after) {
    for (size_t k = after; k < nodes.size(); ++k) {
      if (std::ranges::find(nodes[k]->operands, value) != nodes[k]->operands.end()) return true;
    }
    return false;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    if (variables.empty()) {  // The load of the first operand is a separate statement.
      const int first = node.operands.front();
      lines += fmt::format("{} {} = {};\n", real(), base, read(first, broadcast(first, index)));
      variables[first] = base;
    }
    const std::string expression = node_expression(node, variables, index, above, lines);
    std::string target;
    for (const int operand : node.operands) {
      const auto known = variables.find(operand);
      if (known == variables.end() || is_needed(operand, i + 1) || !target.empty()) continue;
      target = known->second;
      variables.erase(known);
    }
    const bool is_last = i + 1 == nodes.size();
    if (target.empty()) {
      const bool is_free =
          std::ranges::none_of(variables, [&](const auto& entry) { return entry.second == base; });
      const std::string stem = is_free ? base : base == "v" ? "t" : base + "t";
      target = unused_name(above + lines + expression, stem, 1);
      lines += site("operator_new", fmt::format("{} {} = {};", real(), target, expression)) + "\n";
    } else {
      lines += site("operator", fmt::format("{} = {};", target, expression)) + "\n";
    }
    variables[node.output] = target;
    if (is_last && target != base) lines += fmt::format("{} = {};\n", base, target);
  }
  return lines;
}

}  // namespace mc::forge
