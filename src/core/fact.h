// SPDX-License-Identifier: Apache-2.0
//
// Fact: one property of this machine, present or missing, for the user of `musacoder doctor`.
#ifndef MC_CORE_FACT_H_
#define MC_CORE_FACT_H_

#include <string>

namespace mc {

enum class State {
  kPresent,
  kOptional,  // Missing; the program works without it.
  kMissing,   // Missing, and required.
};

struct Fact {
  std::string section;  // "machine", "compilers", "sandbox" ...
  std::string name;     // "g++", "user_namespace" ...
  State state = State::kPresent;
  std::string detail;  // The thing that was found, or why it is missing.
  // The command or setting that adds it; "" where it is present or cannot be added.
  std::string remedy;
};

}  // namespace mc

#endif  // MC_CORE_FACT_H_
