// SPDX-License-Identifier: Apache-2.0
//
// FindingLog: the findings of one launch, and the text that its threads printed.
#ifndef MC_PTX_FINDING_LOG_H_
#define MC_PTX_FINDING_LOG_H_

#include <map>
#include <string>
#include <tuple>
#include <vector>

#include "ptx/finding.h"

namespace mc::ptx {

class FindingLog {
 public:
  // Adds a finding; equal findings are counted and keep the threads of the first. Findings beyond
  // kFindingsMax are dropped.
  void add(Finding finding);
  // Adds to the printed text, of which kPrintedMax bytes are kept.
  void print(std::string_view text);

  // Findings in the order of their source locations.
  std::vector<Finding> findings() const;
  const std::string& printed() const { return printed_; }

 private:
  using Key = std::tuple<std::string, int, FindingKind, std::string, std::string, std::string>;
  std::map<Key, Finding> findings_;
  std::string printed_;
};

}  // namespace mc::ptx

#endif  // MC_PTX_FINDING_LOG_H_
