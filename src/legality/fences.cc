// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  A block ends at the first line that closes it by Markdown's rule or opens
// another one.  If a Python string is open there, the fence may belong to a docstring: the block is
// then extended to the first closing fence outside of strings, if there is one.  Extending scans to
// the end of the text, so only a few blocks of a text may try it.
#include "legality/fences.h"

#include <algorithm>
#include <optional>

#include "legality/python_text.h"

namespace mc::legality {
namespace {

constexpr int kExtensionsMax = 16;

bool closes(const Fence& fence, const Fence& opening) {
  return fence.mark == opening.mark && fence.length >= opening.length && !fence.has_info;
}

bool opens_next(const Fence& fence, const Fence& opening) {
  return fence.mark == opening.mark && fence.length >= opening.length && fence.has_info;
}

std::string_view without_indent(std::string_view line, std::size_t indent) {
  std::size_t i = 0;
  while (i < indent && i < line.size() && (line[i] == ' ' || line[i] == '\t')) ++i;
  return line.substr(i);
}

// The line that ends the block from `begin`, by Markdown's rule; lines.size() if there is none.
std::size_t plain_end(const std::vector<std::string_view>& lines, std::size_t begin,
                      const Fence& opening, StringTracker& strings) {
  for (std::size_t i = begin; i < lines.size(); ++i) {
    const Fence fence = fence_of(lines[i]);
    if (fence.length > 0 && (closes(fence, opening) || opens_next(fence, opening))) return i;
    strings.read(lines[i]);
  }
  return lines.size();
}

// The first line from `i` on that closes the block outside of strings.
std::optional<std::size_t> extended_end(const std::vector<std::string_view>& lines, std::size_t i,
                                        const Fence& opening, StringTracker strings) {
  for (; i < lines.size(); ++i) {
    const Fence fence = fence_of(lines[i]);
    if (fence.length > 0 && !strings.is_inside()) {
      if (closes(fence, opening)) return i;
      if (opens_next(fence, opening)) return std::nullopt;
    }
    strings.read(lines[i]);
  }
  return std::nullopt;
}

}  // namespace

Fence fence_of(std::string_view line) {
  Fence fence;
  fence.indent = std::min(line.find_first_not_of(" \t"), line.size());
  const std::string_view text = line.substr(fence.indent);
  if (text.empty() || (text[0] != '`' && text[0] != '~')) return {};
  fence.mark = text[0];
  fence.length = std::min(text.find_first_not_of(fence.mark), text.size());
  const std::string_view info = text.substr(fence.length);
  if (fence.length < 3) return {};
  // ```code``` within a line is not a fence.
  if (fence.mark == '`' && info.find('`') != std::string_view::npos) return {};
  fence.has_info = info.find_first_not_of(" \t") != std::string_view::npos;
  return fence;
}

std::vector<Block> blocks_in(const std::vector<std::string_view>& lines) {
  std::vector<Block> blocks;
  int num_extensions = 0;
  std::size_t i = 0;
  while (i < lines.size()) {
    const Fence opening = fence_of(lines[i++]);
    if (opening.length == 0) continue;
    StringTracker strings;
    std::size_t end = plain_end(lines, i, opening, strings);
    if (strings.is_inside() && end < lines.size() && num_extensions++ < kExtensionsMax) {
      end = extended_end(lines, end, opening, strings).value_or(end);
    }
    blocks.push_back({i, end, opening.indent});
    const bool ends_by_closing = end < lines.size() && closes(fence_of(lines[end]), opening);
    i = ends_by_closing ? end + 1 : end;
  }
  return blocks;
}

std::vector<std::string_view> lines_of(const std::vector<std::string_view>& lines,
                                       const Block& block) {
  std::vector<std::string_view> inner;
  for (std::size_t i = block.begin; i < block.end; ++i) {
    inner.push_back(without_indent(lines[i], block.indent));
  }
  return inner;
}

}  // namespace mc::legality
