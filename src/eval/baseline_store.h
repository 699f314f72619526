// SPDX-License-Identifier: Apache-2.0
//
// BaselineStore: how torch.compile compares with eager PyTorch on a task, measured once for each
// task, shape, device, driver and PyTorch, and kept in the cache.  Thread-safe; several processes
// may share one directory.
//
// The value that is kept is a ratio of times measured alternately, so that a device that is
// slower today does not change it.
#ifndef MC_EVAL_BASELINE_STORE_H_
#define MC_EVAL_BASELINE_STORE_H_

#include <filesystem>
#include <optional>
#include <string>

#include "core/result.h"
#include "task/verdict.h"

namespace mc::eval {

struct CompiledBaseline {
  task::Estimate speedup_eager;  // Eager's time over torch.compile's.
  task::Estimate time_us;
  bool operator==(const CompiledBaseline&) const = default;
};

// All that the figure depends on.
struct BaselineKey {
  std::string task_code;
  std::string mode;      // The mode of torch.compile.
  std::string device;    // With its driver.
  std::string pytorch;   // Version.
  std::string protocol;  // How the task is run: mode, precision, TF32.
};

class BaselineStore {
 public:
  explicit BaselineStore(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // Nothing where it was never measured, or the file cannot be read.
  std::optional<CompiledBaseline> find(const BaselineKey& key) const;
  Status keep(const BaselineKey& key, const CompiledBaseline& baseline) const;

 private:
  std::filesystem::path path_of(const BaselineKey& key) const;
  std::filesystem::path directory_;
};

// The speed-up against this baseline of a candidate that is `eager` times as fast as eager PyTorch.
task::Estimate speedup_over(const CompiledBaseline& baseline, const task::Estimate& eager);

}  // namespace mc::eval

#endif  // MC_EVAL_BASELINE_STORE_H_
