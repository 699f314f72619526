// SPDX-License-Identifier: Apache-2.0
//
// Policy: what a candidate may do, as data (data/policy/NAME.json; docs/legality.md says what each
// member means).  The version is part of the file and of every verdict; a change of the rules is a
// change of the version.  Reading is strict: an unknown or missing member is an error, since a rule
// that is silently ignored is worse than none.
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

// One rule for native source; each member is a way to break it.
struct SourceRule {
  std::string id;       // "cpp.process"
  std::string message;  // Why, for the candidate's author.
  Words operators;      // PyTorch operators: torch::x, at::x, x(tensor), tensor.x.
  Words calls;          // Functions by name, unless the sources define one of that name.
  Words names;          // Identifiers.
  Words prefixes;       // Prefixes of calls whose names go on with a capital letter: cublas of
                        // cublasCreate.
  Words scopes;         // Qualified names and all below them: at::native.
};

// One rule for the undefined symbols of the compiled library, by their qualified names
// (core/demangle.h); `*` matches any text.
struct SymbolRule {
  std::string id;
  std::string message;
  std::vector<std::string> patterns;
};

// Compiler flags, as patterns like those of a SymbolRule.
struct FlagList {
  std::vector<std::string> passed;  // Asked first.
  std::vector<std::string> dropped;
};

// Flags that a candidate may ask of its compilers; all that no list names breaks the rule.
struct FlagRules {
  std::string id;
  std::string message;
  Words valued;  // Options whose value may be the next word.
  // Options that hand flags on, such as -Xptxas, and the list that judges these.
  std::map<std::string, std::string, std::less<>> nested;
  std::map<std::string, FlagList, std::less<>> lists;  // "cxx", "cuda", "link", and those above.
};

// Which kernels may run in forward besides the candidate's own, by patterns like a SymbolRule's.
struct KernelRules {
  struct Rule {
    std::string id;
    std::string message;
  };
  Rule foreign;
  Rule share;
  std::vector<std::string> foreign_owners;   // Libraries whose kernels may run,
  std::vector<std::string> foreign_allowed;  // The allowed ones of them, mangled.
  double own_share_min = 0;                  // The share of the device's time in forward.
};

struct Policy {
  std::string version;  // "musacoder/6": the name, and a number that changes with the rules.
  Words operators;      // ATen operators that may run in forward: "empty"; "*" for all.
  // Those that may, besides, put in place in __init__ what forward uses, and compute nothing.
  Words init_operators;
  Words overloads;  // Suffixes that PyTorch appends to an operator's name for its overloads.
  int own_launches_min = 0;  // Launches of the candidate's own kernels in each forward.
  std::string python_json;   // {"python": {...}}: for the inspector, with `operators` added.
  std::vector<SourceRule> source_rules;
  std::vector<SymbolRule> symbol_rules;
  FlagRules flags;
  KernelRules kernels;

  std::string name() const { return version.substr(0, version.find('/')); }
};

// `patch`, if any, is merged into it as a JSON merge patch (RFC 7396).  kInvalidInput names the
// member that is wrong.
Result<Policy> parse_policy(std::string_view json, std::string_view patch = "{}");

// NAME.json of `folder`, merged into the policy that it extends, if it names one.  kInvalidInput
// for an unknown name says which there are; else the message names the file.
Result<Policy> load_policy(const std::filesystem::path& folder, std::string_view name);

}  // namespace mc::legality

#endif  // MC_LEGALITY_POLICY_H_
