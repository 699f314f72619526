// SPDX-License-Identifier: Apache-2.0
//
// The rules of the port between CUDA and MUSA, as data (data/musify/rules.json; docs/musify.md).
//
// They are in an order, and a word is changed by the first rule that fits.  The file is written for
// the direction from CUDA to MUSA; the other direction has each pair the other way round, and where
// two pairs have one MUSA name, the first one holds.
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

// The target that the command line calls "musa" or "cuda".
std::optional<Target> target_named(std::string_view name);

struct Pair {
  std::string from;
  std::string to;
};

struct Rule {
  enum class Kind : std::uint8_t {
    kHeader,        // The path of an #include; its delimiters stay.
    kQuotedHeader,  // The path of an #include; CUDA has it in <>, MUSA in quotes.
    kThreshold,     // A number that the architecture macro is compared with, and the macro.
    kPhrase,        // Words in a row, with spaces between them; * is any word, or any end of one.
    kPrefix,        // The beginning of a name.
    kImport,        // A module that is imported from torch.
    kKeyword,       // The name of a keyword argument, or the same in a string.
    kDevice,        // The string `cuda` or one that begins with `cuda:`.
    kString,        // A whole string.
    kFlag,          // A whole string that is a compiler's flag.
  };
  enum class Next : std::uint8_t { kAny, kCapital, kSmall };  // The character after a prefix.

  std::string id;
  Kind kind = Kind::kPhrase;
  bool is_for_cpp = true;
  bool is_for_python = true;
  std::vector<Pair> pairs;
  Next next = Next::kAny;
  Pair macro;                        // Thresholds: the architecture macro.
  std::set<std::string> not_after;   // Phrases: words before a qualified name that forbid it.
  std::set<std::string> keywords;    // Flags: the keyword arguments that they are looked for in.
  std::vector<std::string> dropped;  // Keywords and flags (a pattern may end in *) to remove.
};

// Words that end or accompany a port: a name or header (a pattern may end in *), or a string.
struct Notice {
  std::string id;
  std::string message;
  bool is_for_cpp = true;
  std::vector<std::string> names;
  std::vector<std::string> headers;
  std::vector<std::string> strings;
};

// Names that show that a port is not whole.  Those in `allowed` stay: both sides have them, or only
// the target.
struct Remnants {
  std::vector<std::string> contained;  // In small letters; compared without regard to case.
  std::vector<std::string> names;      // Patterns may end in *, as those of headers.
  std::vector<std::string> headers;
  std::vector<std::string> allowed;
};

struct Rules {
  std::string version;
  Target target = Target::kMusa;
  std::vector<Pair> suffixes;
  Markers cpp_markers;
  std::string architecture_flag;
  std::vector<Notice> refused;  // Empty where the target is CUDA, and so is `warned`.
  std::vector<Notice> warned;
  std::vector<Rule> rules;
  Remnants remnants;
};

// kInvalidInput names the member that is wrong.
Result<Rules> parse_rules(std::string_view json, Target target);
// The rules of <folder>/rules.json.
Result<Rules> load_rules(const std::filesystem::path& folder, Target target);

// True where `text` is `pattern`, or begins with what comes before the * that ends it.
bool matches(std::string_view pattern, std::string_view text);

}  // namespace mc::musify

#endif  // MC_MUSIFY_RULES_H_
