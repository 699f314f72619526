// SPDX-License-Identifier: Apache-2.0
//
// Fact: what was found of this machine, for who is told what it can do (`musacoder doctor`).
#ifndef MC_CORE_FACT_H_
#define MC_CORE_FACT_H_

#include <string>

namespace mc {

enum class State {
  kPresent,
  kOptional,  // Missing; who looked does without it.
  kMissing,   // Missing, and needed.
};

struct Fact {
  std::string section;  // "machine", "compilers", "sandbox" ...
  std::string name;     // "g++", "user_namespace" ...
  State state = State::kPresent;
  std::string detail;  // The thing that was found, or why it is missing.
  std::string remedy;  // The command or setting that adds it; "" when present or when nothing does.
};

}  // namespace mc

#endif  // MC_CORE_FACT_H_
