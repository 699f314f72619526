// SPDX-License-Identifier: Apache-2.0
//
// SampleTable: one line a sample, redrawn in place on a terminal; elsewhere one line a verdict.
//
//   `sample 0  turn 3 of 4  pass     1.83x  best 1.83x`
#ifndef MC_CLI_SAMPLE_TABLE_H_
#define MC_CLI_SAMPLE_TABLE_H_

#include <cstdint>
#include <optional>
#include <string>
#include <vector>

#include "store/records.h"

namespace mc::cli {

// Writes to standard error.  Not thread-safe.
class SampleTable {
 public:
  SampleTable(int64_t samples, int64_t turns);
  // Verdicts of samples that the table does not have are left out.
  void show(const store::Judgement& judgement);

 private:
  struct Row {
    std::string text = "waiting";
    std::optional<double> best;
  };
  std::string line(size_t sample) const;
  void draw();

  const int64_t turns_;
  const bool is_terminal_;
  std::vector<Row> rows_;
  bool is_drawn_ = false;
};

}  // namespace mc::cli

#endif  // MC_CLI_SAMPLE_TABLE_H_
