// SPDX-License-Identifier: Apache-2.0
#include "musify/notices.h"

#include <algorithm>
#include <cctype>
#include <cstddef>
#include <cstdint>
#include <set>
#include <string_view>
#include <utility>

namespace mc::musify {
namespace {

using Kind = Word::Kind;
using Words = std::vector<Word>;

bool is_any_of(const std::vector<std::string>& patterns, std::string_view text) {
  return std::ranges::any_of(patterns,
                             [&](const std::string& pattern) { return matches(pattern, text); });
}

// The content of an asm statement.  PTX instructions are written in lower case, those of MUSA in
// upper case, as in "LSU.LD.B128".
enum class Assembly : std::uint8_t { kNone, kNothing, kPtx, kMusa };

Assembly assembly_in(std::string_view text) {
  while (!text.empty() && (text.front() == '\\' || text.front() == '{' || text.front() == ' ' ||
                           text.front() == '\n' || text.front() == '\t')) {
    text.remove_prefix(std::min<std::size_t>(text.front() == '\\' ? 2 : 1, text.size()));
  }
  if (text.empty()) return Assembly::kNothing;
  const auto is_of_instruction = [](unsigned char c) {
    return std::isupper(c) != 0 || std::isdigit(c) != 0 || c == '_' || c == '.';
  };
  const auto end = std::ranges::find_if_not(text, is_of_instruction);
  const bool is_label = end != text.end() && *end == ':';
  const bool is_whole = end == text.end() || std::isspace(static_cast<unsigned char>(*end)) != 0;
  const bool begins = std::isupper(static_cast<unsigned char>(text.front())) != 0;
  return begins && is_whole && !is_label ? Assembly::kMusa : Assembly::kPtx;
}

Assembly assembly_at(const Words& words, std::size_t i) {
  const std::string& text = words[i].text;
  if (text != "asm" && text != "__asm__" && text != "__asm") return Assembly::kNone;
  constexpr std::size_t kQualifiersMax = 4;
  for (std::size_t k = i + 1; k < words.size() && k <= i + kQualifiersMax; ++k) {
    if (words[k].kind == Kind::kString) return assembly_in(words[k].text);
  }
  return Assembly::kPtx;
}

bool is_noticed(const Notice& notice, const Words& words, std::size_t i, const Names& defined) {
  const Word& word = words[i];
  switch (word.kind) {
    case Kind::kName: {
      const Assembly assembly = assembly_at(words, i);
      const bool is_other = assembly == Assembly::kNothing || assembly == Assembly::kMusa;
      return !is_other && is_any_of(notice.names, word.text) && !defined.contains(word.text);
    }
    case Kind::kHeader:
      return is_any_of(notice.headers, word.text);
    case Kind::kString:
      return is_any_of(notice.strings, word.text);
    default:
      return false;
  }
}

std::string small_letters(std::string text) {
  std::ranges::transform(text, text.begin(), [](unsigned char c) { return std::tolower(c); });
  return text;
}

bool is_remnant(const Word& word, const Remnants& remnants) {
  const std::string small = small_letters(word.text);
  const bool is_contained = std::ranges::any_of(remnants.contained, [&](const std::string& part) {
    return small.find(part) != std::string::npos;
  });
  return is_contained ||
         is_any_of(word.kind == Kind::kHeader ? remnants.headers : remnants.names, word.text);
}

// True for `from torch_musa.core import x`: a definition of the name torch_musa does not provide
// the module.
bool is_imported_module(const Unit& unit, std::size_t i) {
  const bool follows =
      i > 0 && (unit.words[i - 1].text == "from" || unit.words[i - 1].text == "import");
  return unit.language == Language::kPython && follows && unit.words[i].text == "torch_musa";
}

// The arguments of the call whose name is at `i`, each as a range [first, last) of words.
std::vector<std::pair<std::size_t, std::size_t>> arguments_of(const Words& words, std::size_t i) {
  std::vector<std::pair<std::size_t, std::size_t>> arguments;
  if (!is_mark(words, i + 1, "(")) return arguments;
  std::size_t depth = 0;
  std::size_t first = i + 2;
  for (std::size_t k = i + 1; k < words.size(); ++k) {
    if (opens_bracket(words, k)) ++depth;
    const bool closes = closes_bracket(words, k);
    if (closes) --depth;
    const bool ends_all = closes && depth == 0;
    if (ends_all || (is_mark(words, k, ",") && depth == 1)) {
      arguments.emplace_back(first, k);
      first = k + 1;
    }
    if (ends_all) return arguments;
  }
  return arguments;
}

bool is_full_mask(std::string_view text) {
  std::string digits = small_letters(std::string(text));
  while (!digits.empty() && (digits.back() == 'u' || digits.back() == 'l')) digits.pop_back();
  return digits == "0xffffffff" || digits == "4294967295" || digits == "0xffffffffffffffff";
}

bool is_synchronised(std::string_view name) {
  return name.starts_with("__") && name.ends_with("_sync");
}

std::string hazard_of(const Words& words, std::size_t i, bool assumes_32) {
  const std::string& name = words[i].text;
  if (name == "__ballot_sync" || name == "__activemask" || name == "__ballot") {
    return name + " returns 32 bits, and a warp has 128 threads";
  }
  if (name == "__syncwarp" && assumes_32) {
    return name + " waits for 128 threads, in code that counts with 32";
  }
  if (!is_synchronised(name)) return "";
  const auto arguments = arguments_of(words, i);
  if (!arguments.empty() && arguments[0].second == arguments[0].first + 1) {
    const Word& mask = words[arguments[0].first];
    if (mask.kind == Kind::kNumber && !is_full_mask(mask.text)) {
      return name + " has a partial mask, and 32 bits cannot name 128 threads";
    }
  }
  const bool is_exchange = name == "__shfl_sync" || name == "__shfl_xor_sync";
  if (is_exchange && arguments.size() == 3 && assumes_32) {
    return name + " has no width, which is 128 here, in code that counts with 32";
  }
  if (name.starts_with("__reduce_") && assumes_32) {
    return name + " has the result of 128 threads, in code that counts with 32";
  }
  return "";
}

}  // namespace

std::vector<Finding> noticed(const Unit& unit, const std::vector<Notice>& notices,
                             const Names& defined, const Edits& edits) {
  std::vector<Finding> findings;
  // Pairs of line and notice that were already reported.
  std::set<std::pair<std::size_t, std::string>> seen;
  for (std::size_t i = 0; i < unit.words.size(); ++i) {
    const Word& word = unit.words[i];
    if (edits.is_excluded(word.offset)) continue;
    for (const Notice& notice : notices) {
      if (notice.is_for_cpp != (unit.language == Language::kCpp)) continue;
      if (!is_noticed(notice, unit.words, i, defined)) continue;
      const Location location = edits.location_of(word.offset);
      if (!seen.emplace(location.line, notice.id).second) continue;
      findings.push_back({location, word.text + ": " + notice.message, notice.id});
    }
  }
  return findings;
}

std::vector<Finding> remnants_of(const Unit& unit, const Rules& rules, const Names& defined,
                                 const Names& project_files, const Edits& edits) {
  const Remnants& remnants = rules.remnants;
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < unit.words.size(); ++i) {
    const Word& word = unit.words[i];
    if (word.kind != Kind::kName && word.kind != Kind::kHeader) continue;
    const std::size_t at = word.kind == Kind::kHeader ? word.content : word.offset;
    if (edits.is_changed(at) || edits.is_excluded(word.offset)) continue;
    const bool is_own = defined.contains(word.text) && !is_imported_module(unit, i);
    if (is_own || is_any_of(remnants.allowed, word.text)) continue;
    if (word.kind == Kind::kHeader && project_files.contains(file_name(word.text))) continue;
    const bool is_assembly_of_musa = rules.target == Target::kCuda &&
                                     unit.language == Language::kCpp &&
                                     assembly_at(unit.words, i) == Assembly::kMusa;
    if (!is_assembly_of_musa && !is_remnant(word, remnants)) continue;
    findings.push_back(
        {edits.location_of(word.offset), word.text + " is known to no rule", "remnant"});
  }
  return findings;
}

bool has_wide_warps(std::string_view architecture) {
  return architecture == "mp_21" || architecture == "mp_22";
}

std::vector<Finding> warp_hazards(const Unit& unit, const Edits& edits) {
  const bool assumes_32 = std::ranges::any_of(unit.words, [](const Word& word) {
    return word.kind == Kind::kNumber && (word.text == "32" || word.text == "31");
  });
  std::vector<Finding> findings;
  for (std::size_t i = 0; i < unit.words.size(); ++i) {
    const Word& word = unit.words[i];
    if (word.kind != Kind::kName || edits.is_excluded(word.offset)) continue;
    const std::string hazard = hazard_of(unit.words, i, assumes_32);
    if (hazard.empty()) continue;
    findings.push_back({edits.location_of(word.offset), hazard, "warp_width"});
  }
  return findings;
}

}  // namespace mc::musify
