// SPDX-License-Identifier: Apache-2.0
//
// The parts of Code for indices: runs over axes, flat indices, and their splitting.
#include "core/check.h"
#include "forge/code.h"

#include <algorithm>

#include <fmt/format.h>

#include "forge/text.h"

namespace mc::forge {
namespace {

bool contains_axis(const std::vector<Axis>& axes, const std::string& name) {
  return std::ranges::any_of(axes, [&](const Axis& axis) { return axis.name == name; });
}

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
  MC_CHECK(dims.size() == axes.size());
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

// The flat index over `dims`.  A whole run is one factor: "r * m + j".
std::string Code::flatten(const std::vector<int>& dims, const Index& index) const {
  MC_CHECK(dims.size() == index.size());
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
      text = fmt::format("{} * {} + {}", parenthesized(text), extent, variable);
    }
    i += width;
  }
  return text.empty() ? "0" : text;
}

// The offset in a view that is read by its strides: "r * x_s0 + j * x_s1".
std::string Code::offset(int value, const Index& index) const {
  if (graph_.value(value).view == View::kNone || reads_ == Reads::kContiguous) {
    return flatten(graph_.value(value).dims, index);
  }
  std::string text;
  for (size_t i = 0; i < index.size(); ++i) {
    text += fmt::format("{}{} * {}_s{}", i == 0 ? "" : " + ", parenthesized(index[i]),
                        tensors_.at(value), i);
  }
  return text;
}

Code::Index Code::index_of(const std::vector<Axis>& pattern) const {
  Index index;
  for (const Axis& axis : pattern) {
    const auto own = axes_.find(axis.name);
    if (own == axes_.end()) {  // The axis has length 1 in an operand of a gradient.
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
  MC_CHECK(full.size() >= dims.size());
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
    if (!behind.empty()) value += " / " + parenthesized(extents(behind));
    if (k > 0) value += " % " + graph_.extent_text(run.dims[real[k]]);
    // If the only use of the index is as a whole, it needs no variable.
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
      // The mark is on a separate line.
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
