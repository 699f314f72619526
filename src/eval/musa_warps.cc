// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_warps.h"

#include <algorithm>
#include <iterator>
#include <utility>
#include <vector>

#include "lex/edit.h"
#include "lex/token.h"

namespace mc::eval {
namespace {

// The functions of the header, without the prefix of their names.
constexpr std::string_view kFunctions[] = {
    "shfl_sync",       "shfl_up_sync",   "shfl_down_sync",  "shfl_xor_sync",   "syncwarp",
    "activemask",      "ballot_sync",    "any_sync",        "all_sync",        "uni_sync",
    "match_any_sync",  "match_all_sync", "reduce_add_sync", "reduce_min_sync", "reduce_max_sync",
    "reduce_and_sync", "reduce_or_sync", "reduce_xor_sync"};
constexpr std::string_view kCuda = "__";
constexpr std::string_view kOurs = "mc";

std::string renamed(std::string_view text, std::string_view from, std::string_view to) {
  std::vector<lex::Edit> edits;
  for (const lex::Token& token : lex::tokenize(text)) {
    const std::string_view word = lex::text_of(text, token);
    if (token.kind != lex::Kind::kIdentifier || !word.starts_with(from)) continue;
    const auto* found = std::ranges::find(kFunctions, word.substr(from.size()));
    if (found == std::end(kFunctions)) continue;
    edits.push_back({token.offset, from.size(), std::string(to)});
  }
  return lex::apply_edits(text, std::move(edits));
}

}  // namespace

std::string with_warps_of_128(std::string_view source) { return renamed(source, kCuda, kOurs); }

std::string without_warps_of_128(std::string_view text) {
  std::string back(text);
  for (const std::string_view function : kFunctions) {
    const std::string ours = std::string(kOurs) + std::string(function);
    for (size_t at = back.find(ours); at != std::string::npos; at = back.find(ours, at + 1)) {
      back.replace(at, kOurs.size(), kCuda);
    }
  }
  return back;
}

}  // namespace mc::eval
