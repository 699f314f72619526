// SPDX-License-Identifier: Apache-2.0
#include "forge/code.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forge/text.h"

namespace mc::forge {
namespace {

constexpr const char* kOperandNames[] = {"v", "u", "w"};

bool contains_axis(const std::vector<Axis>& axes, const std::string& name) {
  return std::ranges::any_of(axes, [&](const Axis& axis) { return axis.name == name; });
}

std::string literal(const std::string& text, const char* suffix) {
  return text.empty() ? text : site("literal", text + suffix);
}

int count_mentions(const Expr& expr, std::string_view name) {
  int count = expr.kind == Expr::Kind::kName && expr.text == name ? 1 : 0;
  for (const Expr& arg : expr.args) count += count_mentions(arg, name);
  return count;
}

bool is_word(const std::string& text) {
  return std::ranges::all_of(text,
                             [](char c) { return std::isalnum(static_cast<unsigned char>(c)); });
}

const char* whole_identity(Combine combine, Type type) {
  const bool is_long = type == Type::kInt64;
  if (combine == Combine::kMax) return is_long ? "INT64_MIN" : "INT_MIN";
  if (combine == Combine::kMin) return is_long ? "INT64_MAX" : "INT_MAX";
  return combine == Combine::kSum ? "0" : "1";
}

std::string factor(const std::string& text) { return is_word(text) ? text : "(" + text + ")"; }

}  // namespace

Code::Code(const TaskGraph& graph, const Stage& stage, Walk walk,
           std::map<int, std::string> tensors, Reads reads)
    : graph_(graph), stage_(stage), tensors_(std::move(tensors)), reads_(reads) {
  std::vector<std::pair<std::string, size_t>> group, inner, rows, columns, batch;
  std::vector<int> group_dims, inner_dims, row_dims, column_dims, batch_dims;
  if (stage.core == nullptr) {
    const auto& dims = graph.value(stage.output).dims;
    for (size_t i = 0; i < dims.size(); ++i) group.emplace_back("*", i);
    add_run("i", "n", dims, group);
    return;
  }
  const Form& form = *stage.core->form;
  const auto has = [](const std::vector<std::string>& names, const std::string& name) {
    return std::ranges::find(names, name) != names.end();
  };
  for (const Axis& axis : form.out) {
    if (contains_axis(form.inner, axis.name)) continue;
    const auto& dims = stage.core->axes.at(axis.name);
    for (size_t i = 0; i < dims.size(); ++i) {
      group.emplace_back(axis.name, i), group_dims.push_back(dims[i]);
      const bool is_row = has(form.row_axes, axis.name),
                 is_column = has(form.column_axes, axis.name);
      auto& list = is_row ? rows : is_column ? columns : batch;
      list.emplace_back(axis.name, i);
      (is_row ? row_dims : is_column ? column_dims : batch_dims).push_back(dims[i]);
    }
  }
  for (const Axis& axis : form.inner) {
    const auto& dims = stage.core->axes.at(axis.name);
    for (size_t i = 0; i < dims.size(); ++i) {
      inner.emplace_back(axis.name, i), inner_dims.push_back(dims[i]);
    }
  }
  if (walk == Walk::kScans) {
    rows.insert(rows.begin(), batch.begin(), batch.end());
    row_dims.insert(row_dims.begin(), batch_dims.begin(), batch_dims.end());
    add_run("r", "n", row_dims, rows);
    add_run("j", "m", column_dims, columns);
  } else if (walk == Walk::kTiles) {
    add_run("r", "n", row_dims, rows);
    add_run("j", "m", column_dims, columns);
    add_run("q", "depth", inner_dims, inner);
    add_run("l", "batch", batch_dims, batch);
  } else {
    const bool is_map = walk == Walk::kElements;
    add_run(is_map ? "i" : "r", "n", group_dims, group);
    if (!is_map) add_run("j", "m", inner_dims, inner);
  }
}

void Code::add_run(std::string name, std::string count, std::vector<int> dims,
                   const std::vector<std::pair<std::string, size_t>>& axes) {
  Run run{std::move(name), std::move(count), std::move(dims), {}};
  const auto real = std::ranges::count_if(run.dims, [](int dim) { return dim != kOne; });
  for (size_t i = 0; i < run.dims.size(); ++i) {
    std::string variable = real == 1 ? run.name : fmt::format("{}{}", run.name, i);
    if (run.dims[i] == kOne) variable = "0";
    run.axes.push_back(variable);
    auto& list = axes_[axes[i].first];
    if (list.size() <= axes[i].second) list.resize(axes[i].second + 1);
    list[axes[i].second] = variable;
  }
  runs_.push_back(std::move(run));
}

// ---- Indices

std::string Code::extents(const std::vector<int>& dims) const {
  std::string text;
  for (const int dim : dims) {
    if (dim == kOne) continue;
    text += (text.empty() ? "" : " * ") + graph_.extent_text(dim);
  }
  return text.empty() ? "1" : text;
}

// A whole run is one factor: "r * m + j".
std::string Code::flatten(const std::vector<int>& dims, const Index& index) const {
  std::string text;
  for (size_t i = 0; i < dims.size();) {
    if (dims[i] == kOne) {
      ++i;
      continue;
    }
    size_t width = 1;
    std::string variable = index[i], extent = graph_.extent_text(dims[i]);
    for (const Run& run : runs_) {
      const size_t size = run.dims.size();
      if (size == 0 || i + size > dims.size()) continue;
      const auto begin = static_cast<ptrdiff_t>(i), end = static_cast<ptrdiff_t>(i + size);
      if (std::equal(run.dims.begin(), run.dims.end(), dims.begin() + begin, dims.begin() + end) &&
          std::equal(run.axes.begin(), run.axes.end(), index.begin() + begin,
                     index.begin() + end)) {
        width = size, variable = run.name, extent = run.count;
      }
    }
    if (text.empty()) {
      text = variable;
    } else {
      text = fmt::format("{} * {} + {}", factor(text), extent, variable);
    }
    i += width;
  }
  return text.empty() ? "0" : text;
}

// "r * x_s0 + j * x_s1" of a view that is read by its strides.
std::string Code::offset(int value, const Index& index) const {
  if (graph_.value(value).view == View::kNone || reads_ == Reads::kContiguous) {
    return flatten(graph_.value(value).dims, index);
  }
  std::string text;
  for (size_t i = 0; i < index.size(); ++i) {
    text +=
        fmt::format("{}{} * {}_s{}", i == 0 ? "" : " + ", factor(index[i]), tensors_.at(value), i);
  }
  return text;
}

Code::Index Code::index_of(const std::vector<Axis>& pattern) const {
  Index index;
  for (const Axis& axis : pattern) {
    const auto own = axes_.find(axis.name);
    if (own == axes_.end()) {  // An axis of length 1 of a gradient's operand.
      index.emplace_back("0");
    } else {
      index.insert(index.end(), own->second.begin(), own->second.end());
    }
  }
  return index;
}

Code::Index Code::output_index() const {
  return stage_.core == nullptr ? runs_.front().axes : index_of(stage_.core->form->out);
}

Code::Index Code::broadcast(int value, const Index& full) const {
  const auto& dims = graph_.value(value).dims;
  Index index(full.end() - static_cast<ptrdiff_t>(dims.size()), full.end());
  for (size_t i = 0; i < dims.size(); ++i) {
    if (dims[i] == kOne) index[i] = "0";
  }
  return index;
}

std::string Code::read(int value, const Index& index) const {
  const std::string at = offset(value, index);
  const std::string& name = tensors_.at(value);
  const bool is_part = reads_vectors_ && at == "i";
  return load_text(graph_.value(value).type, is_part
                                                 ? fmt::format("{}s[c]", name)
                                                 : fmt::format("{}[{}]", name, site("index", at)));
}

// ---- Expressions

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
      index.push_back(is_word(at) || i + 1 == dims.size() ? at : "(" + at + ")");
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
                                  const Index& index, std::string& lines) const {
  std::map<std::string, std::string> names;
  for (size_t i = 0; i < node.operands.size(); ++i) {
    const int operand = node.operands[i];
    const auto known = variables.find(operand);
    std::string value =
        known != variables.end() ? known->second : read(operand, broadcast(operand, index));
    const bool is_repeated = count_mentions(node.form->result, kOperandNames[i]) > 1;
    if (is_repeated && known == variables.end()) {
      const std::string name = fmt::format("{}{}", kOperandNames[i], node.output);
      lines += fmt::format("{} {} = {};\n", real(), name, value);
      value = name;
    }
    names[kOperandNames[i]] = value;
  }
  return text(node.form->result, names, node);
}

// The nodes as statements; a variable that is not needed again takes the next value.  The last
// value is in `base`.
std::string Code::nodes_text(const std::vector<const Node*>& nodes, const Index& index,
                             std::map<int, std::string> variables, const std::string& base) const {
  std::string lines;
  int num_temporaries = 0;
  const auto is_needed = [&](int value, size_t after) {
    for (size_t k = after; k < nodes.size(); ++k) {
      if (std::ranges::find(nodes[k]->operands, value) != nodes[k]->operands.end()) return true;
    }
    return false;
  };
  for (size_t i = 0; i < nodes.size(); ++i) {
    const Node& node = *nodes[i];
    if (variables.empty()) {  // The first operand's load is a statement of its own.
      const int first = node.operands.front();
      lines += fmt::format("{} {} = {};\n", real(), base, read(first, broadcast(first, index)));
      variables[first] = base;
    }
    std::string before;
    const std::string expression = node_expression(node, variables, index, before);
    lines += before;
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
      target = is_free ? base + std::to_string(++num_temporaries)
                       : fmt::format("{}{}", base == "v" ? "t" : base + "t", ++num_temporaries);
      lines += site("operator_new", fmt::format("{} {} = {};", real(), target, expression)) + "\n";
    } else {
      lines += site("operator", fmt::format("{} = {};", target, expression)) + "\n";
    }
    variables[node.output] = target;
    if (is_last && target != base) lines += fmt::format("{} = {};\n", base, target);
  }
  return lines;
}

bool Code::uses(std::string_view name) const {
  const Form& form = *stage_.core->form;
  return mentions(form.result, name) || (form.scan && mentions(*form.scan, name)) ||
         std::ranges::any_of(form.passes,
                             [&](const Pass& pass) { return mentions(pass.element, name); });
}

// ---- Walks over elements

std::string Code::value() const {
  if (stage_.core == nullptr) {
    return nodes_text(stage_.nodes, output_index(), {}, "v");
  }
  return load() + result_text(uses("v"));
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
  return kNames[pass];
}

std::string Code::operand_lines(size_t operand, const std::string& name) const {
  const int value = stage_.core->operands.at(operand);
  const Index index = index_of(stage_.core->form->operands.at(operand).axes);
  std::vector<int> in_memory;
  for (const auto& [known, tensor] : tensors_) in_memory.push_back(known);
  const auto nodes = cone_of(graph_, value, in_memory, -1);
  if (nodes.empty()) return fmt::format("{} {} = {};\n", real(), name, read(value, index));
  return nodes_text(nodes, index, {}, name);
}

bool Code::loads_anything() const { return uses("v") || uses("u") || uses("w"); }

std::string Code::load() const {
  std::string lines;
  for (size_t i = 0; i < 3 && i < stage_.core->operands.size(); ++i) {
    if (uses(kOperandNames[i])) lines += operand_lines(i, kOperandNames[i]);
  }
  return lines;
}

bool Code::loads_by_function() const {
  if (!uses("v") || uses("u") || uses("w")) return false;
  const size_t loads = stage_.core->form->passes.size() + (stage_.core->keeps_inner() ? 1 : 0);
  return loads > 1 && std::ranges::count(operand_lines(0, "v"), '\n') > 1;
}

std::string Code::function() const { return operand_lines(0, "v") + "return v;\n"; }

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
  return "";
}

std::string Code::element(size_t pass) const {
  return text(stage_.core->form->passes.at(pass).element, {}, *stage_.core);
}

// With "{a}" for the accumulator and "{v}" for what is combined.
std::string Code::combine(size_t pass) const {
  // The maximum of a softmax only shifts, so it need not pass NaN on.
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
  return "";
}

std::string Code::finish(size_t pass) const {
  const auto& finish = stage_.core->form->passes.at(pass).finish;
  if (!finish) return "";
  return fmt::format("{} = {};\n", accumulator(pass), text(*finish, {}, *stage_.core));
}

std::string Code::result_text(bool is_declared) const {
  std::string lines;
  if (stage_.core == nullptr) return lines;
  const std::string value = text(stage_.core->form->result, {}, *stage_.core);
  if (!is_declared) lines = fmt::format("{} v = {};\n", real(), value);
  if (is_declared && value != "v") lines = fmt::format("v = {};\n", site("result", value));
  return lines + nodes_text(stage_.nodes, output_index(), {{stage_.core->output, "v"}}, "v");
}

std::string Code::result() const { return result_text(false); }
std::string Code::result_after_load() const { return result_text(true); }

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

// ---- Splitting of flat indices

std::string Code::decode_mark(const std::string& run) { return "\x04" + run + "\x05"; }

std::string Code::decode_lines(const Run& run, std::string& scope) const {
  std::string lines;
  std::vector<size_t> real;
  for (size_t i = 0; i < run.dims.size(); ++i) {
    if (run.dims[i] != kOne) real.push_back(i);
  }
  if (real.size() < 2) return lines;
  for (size_t k = 0; k < real.size(); ++k) {
    const std::string& name = run.axes[real[k]];
    if (!has_word(scope, name)) continue;
    std::string value = run.name;
    std::vector<int> behind;
    for (size_t q = k + 1; q < real.size(); ++q) behind.push_back(run.dims[real[q]]);
    if (!behind.empty()) value += " / " + factor(extents(behind));
    if (k > 0) value += " % " + graph_.extent_text(run.dims[real[k]]);
    // A single use as a whole index needs no variable.
    const std::string alone = "\x02" + name + "\x03";
    const std::string without = substituted(scope, alone, "");
    if (!has_word(without, name) && scope.find(alone) == scope.rfind(alone)) {
      scope = substituted(scope, alone, "\x02" + value + "\x03");
    } else {
      lines += fmt::format("int {} = {};\n", name, value);
    }
  }
  return lines;
}

std::string Code::decoded(std::string text) const {
  for (size_t at; (at = text.rfind('\x04')) != std::string::npos;) {
    const size_t end = text.find('\x05', at);
    const std::string name = text.substr(at + 1, end - at - 1);
    size_t close = end + 1;
    for (int depth = 0; close < text.size() && depth >= 0; ++close) {
      depth += text[close] == '{' ? 1 : text[close] == '}' ? -1 : 0;
    }
    std::string scope = text.substr(end + 1, close - end - 1);
    std::string lines;
    for (const Run& run : runs_) {
      if (run.name == name) lines += decode_lines(run, scope);
    }
    const size_t line = text.rfind('\n', at) + 1;
    const size_t blanks = at - line;
    if (lines.empty()) {
      // The mark has a line of its own.
      text =
          text.substr(0, line) + scope.substr(scope.starts_with("\n") ? 1 : 0) + text.substr(close);
    } else {
      lines.pop_back();
      text = text.substr(0, line) + indented(lines, blanks) + scope + text.substr(close);
    }
  }
  return text;
}

}  // namespace mc::forge
