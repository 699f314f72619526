// SPDX-License-Identifier: Apache-2.0
#include "legality/testing/extract_properties.h"

#include <algorithm>
#include <array>
#include <random>
#include <variant>

#include "core/check.h"
#include "core/utf8.h"
#include "legality/extract.h"

namespace mc::legality {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kPieces = {
    "```python\n"sv,
    "```\n"sv,
    "~~~\n"sv,
    "````markdown\n"sv,
    "  ```py\n"sv,
    "```cpp\r\n"sv,
    "``` `no` fence\n"sv,
    "<think>"sv,
    "</think>"sv,
    "<think>\n"sv,
    "import torch\n"sv,
    "from torch import nn\r\n"sv,
    "class ModelNew(nn.Module):\n"sv,
    "class ModelNew:\n    pass\n"sv,
    "    class ModelNew(nn.Module):\n"sv,
    "ModelNew = Other\n"sv,
    "class Model(nn.Module):\n"sv,
    "source = \"\"\"\n"sv,
    "\"\"\"\n"sv,
    "'''"sv,
    "'"sv,
    "\""sv,
    "\\\n"sv,
    "# comment\n"sv,
    "This kernel is fast.\n"sv,
    "Notes:\n"sv,
    "1. Uses shared memory\n"sv,
    "\n"sv,
    "    "sv,
    "((("sv,
    "\0"sv,
    "\xFF"sv,
    "\xE2\x82\xAC"sv,
};

// Checks that every line of the module is the end of some line of the answer.
void check_lines(std::string_view answer, std::string_view module) {
  std::size_t start = 0;
  while (start < module.size()) {
    const std::size_t end = module.find('\n', start);
    MC_CHECK(end != std::string_view::npos);
    const std::string_view line = module.substr(start, end - start);
    MC_CHECK(answer.find(line) != std::string_view::npos);
    start = end + 1;
  }
}

void check_module(std::string_view answer, const std::string& module) {
  MC_CHECK(module.size() <= task::kCandidateBytesMax);
  MC_CHECK(first_invalid_utf8(module) == module.size());
  MC_CHECK(module.find('\0') == std::string::npos);
  MC_CHECK(module.find("ModelNew") != std::string::npos);
  check_lines(answer, module);
}

}  // namespace

std::string random_answer(std::uint64_t seed, std::size_t num_pieces) {
  std::mt19937_64 random(seed);
  std::string text;
  for (std::size_t i = 0; i < num_pieces; ++i) text += kPieces[random() % kPieces.size()];
  return text;
}

void check_extraction(std::string_view answer) {
  const Extraction extraction = extract(answer);
  if (const auto* extracted = std::get_if<Extracted>(&extraction)) {
    check_module(answer, extracted->module);
  } else {
    const auto& refusal = std::get<task::Unextractable>(extraction);
    MC_CHECK(!refusal.reason.empty() && !refusal.detail.empty());
  }
}

}  // namespace mc::legality
