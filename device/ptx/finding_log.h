// SPDX-License-Identifier: Apache-2.0
//
// FindingLog: the findings of one launch, and what its threads printed. Thread-safe.
#ifndef MC_PTX_FINDING_LOG_H_
#define MC_PTX_FINDING_LOG_H_

#include <map>
#include <mutex>
#include <string>
#include <tuple>
#include <utility>
#include <vector>

#include "ptx/finding.h"

namespace mc::ptx {

class FindingLog {
 public:
  // A finding of a block, by its number. Equal ones are counted, and the threads are those of the
  // first block and its first thread. Those beyond kFindingsMax are dropped.
  void add(uint64_t block, Finding finding);
  // Adds to the printed text, of which kPrintedMax bytes are kept.
  void print(std::string_view text);

  // Those of the blocks up to the one that ended the launch, in the order of their places in the
  // source. They have no counts if the launch was ended: other blocks were under way.
  std::vector<Finding> findings(uint64_t stop_block) const;
  std::string printed() const;

 private:
  using Key = std::tuple<std::string, int, FindingKind, std::string, std::string, std::string>;
  mutable std::mutex mutex_;
  // Guarded by mutex_.
  std::map<Key, std::pair<uint64_t, Finding>> findings_;
  std::string printed_;
};

}  // namespace mc::ptx

#endif  // MC_PTX_FINDING_LOG_H_
