// SPDX-License-Identifier: Apache-2.0
//
// Policy: the rules for candidates, as data (data/policy/NAME.json; docs/legality.md describes each
// member).  The version is part of the file and of every verdict; a change of the rules changes the
// version.  Parsing is strict: an unknown or missing member is an error, since a rule that is
// silently ignored is worse than none.
//
//   MC_TRY(Policy policy, load_policy(layout.share("data/policy"), "musacoder"), "policy");
#ifndef MC_LEGALITY_POLICY_H_
#define MC_LEGALITY_POLICY_H_

#include <filesystem>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::legality {

using Words = std::set<std::string, std::less<>>;

// One rule for native source.  A use of any of its members breaks it.
struct SourceRule {
  std::string id;       // "cpp.process"
  std::string message;  // The reason, for the candidate's author.
  Words operators;      // PyTorch operators: torch::x, at::x, x(tensor), tensor.x.
  Words calls;          // Names of functions, unless the sources define one with the name.
  Words names;          // Identifiers.
  Words prefixes;       // Prefixes of calls that a capital letter follows: cublas of cublasCreate.
  Words scopes;         // Qualified names with all names in them: at::native.
};

// One rule for the undefined symbols of the compiled library, by their qualified names
// (core/demangle.h); `*` matches any text.
struct SymbolRule {
  std::string id;
  std::string message;
  std::vector<std::string> patterns;
};

// Lists of compiler flags, as patterns like those of a SymbolRule.
struct FlagList {
  std::vector<std::string> passed;  // Takes precedence over `dropped`.
  std::vector<std::string> dropped;
};

// The rule on compiler flags; any flag that is in no list breaks it.
struct FlagRules {
  std::string id;
  std::string message;
  Words valued;  // Options whose value may be the next item.
  // Options that pass flags on, such as -Xptxas, with the list for these flags.
  std::map<std::string, std::string, std::less<>> nested;
  // "cxx", "cuda", "link", and the lists of `nested`.
  std::map<std::string, FlagList, std::less<>> lists;
};

// The kernels that may run in forward beside the candidate's own, as patterns like a SymbolRule's.
struct KernelRules {
  struct Rule {
    std::string id;
    std::string message;
  };
  Rule foreign;
  Rule share;
  std::vector<std::string> foreign_owners;   // Libraries with allowed kernels.
  std::vector<std::string> foreign_allowed;  // Mangled names of the allowed ones.
  double own_share_min = 0;                  // The least share of the kernels' time in forward.
};

struct Policy {
  std::string version;  // "musacoder/6": the name, and a number that changes with the rules.
  Words operators;      // ATen operators that may run in forward: "empty"; "*" for all.
  // Further operators that __init__ may call to prepare the state of forward; they compute nothing.
  Words init_operators;
  Words overloads;  // Suffixes that PyTorch appends to an operator's name for its overloads.
  int own_launches_min = 0;  // Launches of the candidate's own kernels in each forward.
  std::string python_json;   // The inspector's rules {"python": {...}}, with `operators`.
  std::vector<SourceRule> source_rules;
  std::vector<SymbolRule> symbol_rules;
  FlagRules flags;
  KernelRules kernels;

  std::string name() const { return version.substr(0, version.find('/')); }
};

// Parses a policy.  `patch`, if any, is merged into it as a JSON merge patch (RFC 7396).
// kInvalidInput names the wrong member.
Result<Policy> parse_policy(std::string_view json, std::string_view patch = "{}");

// Loads NAME.json of `folder`, merged into the policy that it extends, if it names one.
// kInvalidInput lists the known names for an unknown name; else it names the file.
Result<Policy> load_policy(const std::filesystem::path& folder, std::string_view name);

}  // namespace mc::legality

#endif  // MC_LEGALITY_POLICY_H_
