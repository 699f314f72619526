// SPDX-License-Identifier: Apache-2.0
//
// The rules of the port between CUDA and MUSA, as data (data/musify/rules.json; docs/musify.md).
//
// The rules have an order, and a word is changed by the first rule that matches.  The file is
// written for the direction from CUDA to MUSA; the other direction swaps each pair.  If two pairs
// have the same MUSA name, the first pair wins.
//
//   MC_TRY(Rules rules, load_rules(layout.share("data/musify"), Target::kMusa), "musify");
#ifndef MC_MUSIFY_RULES_H_
#define MC_MUSIFY_RULES_H_

#include <cstdint>
#include <filesystem>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "core/result.h"
#include "musify/words.h"

namespace mc::musify {

enum class Target : std::uint8_t { kMusa, kCuda };

inline constexpr const char* kTargetDefault = "musa";

// The target for the name "musa" or "cuda" of the command line.
std::optional<Target> target_named(std::string_view name);

struct Pair {
  std::string from;
  std::string to;
};

struct Rule {
  enum class Kind : std::uint8_t {
    kHeader,        // The path of an #include; its delimiters stay.
    kQuotedHeader,  // The path of an #include, written in <> for CUDA and in quotes for MUSA.
    kThreshold,     // The architecture macro, with the number to which it is compared.
    kPhrase,   // Adjacent words, separated by spaces; * matches any word, or any end of a word.
    kPrefix,   // The prefix of a name.
    kImport,   // A module that is imported from torch.
    kKeyword,  // The name of a keyword argument, also inside a string.
    kDevice,   // The string `cuda` or one that begins with `cuda:`.
    kString,   // A whole string.
    kFlag,     // A whole string that is a compiler's flag.
  };
  enum class Next : std::uint8_t { kAny, kCapital, kSmall };  // The character after a prefix.

  std::string id;
  Kind kind = Kind::kPhrase;
  bool is_for_cpp = true;
  bool is_for_python = true;
  std::vector<Pair> pairs;
  Next next = Next::kAny;
  Pair macro;  // Thresholds: the architecture macro.
  // Phrases: a qualified name after one of these words is not changed.
  std::set<std::string> not_after;
  std::set<std::string> keywords;    // Flags: the keyword arguments in which they are searched.
  std::vector<std::string> dropped;  // Keywords and flags to remove (a pattern may end in *).
};

// Words that make a port fail or add a warning: a name or header (a pattern may end in *), or a
// string.
struct Notice {
  std::string id;
  std::string message;
  bool is_for_cpp = true;
  std::vector<std::string> names;
  std::vector<std::string> headers;
  std::vector<std::string> strings;
};

// Names that show that a port is incomplete.  Names in `allowed` are not reported: both platforms
// have them, or only the target.
struct Remnants {
  std::vector<std::string> contained;  // In lower case; the comparison ignores case.
  std::vector<std::string> names;      // Patterns may end in *, also those of headers.
  std::vector<std::string> headers;
  std::vector<std::string> allowed;
};

struct Rules {
  std::string version;
  Target target = Target::kMusa;
  std::vector<Pair> suffixes;
  Markers cpp_markers;
  std::string architecture_flag;
  std::vector<Notice> refused;  // Both `refused` and `warned` are empty if the target is CUDA.
  std::vector<Notice> warned;
  std::vector<Rule> rules;
  Remnants remnants;
};

// Parses rules.  kInvalidInput names the invalid member.
Result<Rules> parse_rules(std::string_view json, Target target);
// The rules of <folder>/rules.json.
Result<Rules> load_rules(const std::filesystem::path& folder, Target target);

// True if `text` equals `pattern`, or if `pattern` ends in * and `text` begins with the part before
// it.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace mc::musify

#endif  // MC_MUSIFY_RULES_H_
