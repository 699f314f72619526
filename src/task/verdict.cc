// SPDX-License-Identifier: Apache-2.0
#include "task/verdict.h"

namespace mc::task {

const char* to_string(Backend backend) {
  switch (backend) {
    case Backend::kCpu:
      return "cpu";
    case Backend::kCuda:
      return "cuda";
    case Backend::kMusa:
      return "musa";
  }
  return "cpu";
}

const std::vector<std::string>& outcome_names() {
  // In the order of the variant's alternatives.
  static const std::vector<std::string> kNames = {"extraction",  "illegal", "compile", "runtime",
                                                  "timeout",     "oom",     "wrong",   "pass",
                                                  "unsupported", "infra"};
  return kNames;
}

const char* outcome_name(const Outcome& outcome) {
  return outcome_names()[outcome.index()].c_str();
}

}  // namespace mc::task
