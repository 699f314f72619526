// SPDX-License-Identifier: Apache-2.0
//
// Fenced code blocks in the style of models: Markdown's rules, with more tolerance.  Accepts any
// indentation, ``` and ~~~, a missing closing fence, and a new block before the last one was
// closed.
#ifndef MC_LEGALITY_FENCES_H_
#define MC_LEGALITY_FENCES_H_

#include <cstddef>
#include <string_view>
#include <vector>

namespace mc::legality {

// A line that opens or closes a block.
struct Fence {
  char mark = '`';
  std::size_t length = 0;  // At least 3; 0 where the line is not a fence.
  std::size_t indent = 0;
  bool has_info = false;  // ```python: such a fence can only open a block.
};
Fence fence_of(std::string_view line);

// The lines [begin, end) between two fences, without `indent` columns of white space.
struct Block {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::size_t indent = 0;
};

// The blocks in order.  A fence inside a Python string in triple quotes belongs to the block, if
// the string ends and the block is closed after it.
std::vector<Block> blocks_in(const std::vector<std::string_view>& lines);

// The block's lines without its indentation; views into the same text.
std::vector<std::string_view> lines_of(const std::vector<std::string_view>& lines,
                                       const Block& block);

}  // namespace mc::legality

#endif  // MC_LEGALITY_FENCES_H_
