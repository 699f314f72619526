// SPDX-License-Identifier: Apache-2.0
//
// BaselineStore: how torch.compile compares with eager PyTorch on a task, measured once for each
// task, device, driver, PyTorch and protocol, and kept in the cache.  Thread-safe; several
// processes may share one directory.
//
// The stored value is the ratio of times that were measured alternately, so that it does not depend
// on the device's speed on one day.
#ifndef MC_EVAL_BASELINE_STORE_H_
#define MC_EVAL_BASELINE_STORE_H_

#include <filesystem>
#include <optional>
#include <string>

#include "core/result.h"
#include "task/performance.h"

namespace mc::eval {

struct CompiledBaseline {
  task::Estimate speedup_eager;  // The time of eager PyTorch over that of torch.compile.
  task::Estimate time_us;
  bool operator==(const CompiledBaseline&) const = default;
};

// Everything that the stored ratio depends on.
struct BaselineKey {
  std::string task_code;
  std::string mode;      // The mode of torch.compile.
  std::string device;    // The device with its driver.
  std::string pytorch;   // The version of PyTorch.
  std::string protocol;  // How the task is run: mode, precision, TF32.
};

class BaselineStore {
 public:
  explicit BaselineStore(std::filesystem::path directory) : directory_(std::move(directory)) {}

  // The stored baseline; nothing where it was never measured, or its file cannot be read.
  std::optional<CompiledBaseline> find(const BaselineKey& key) const;
  Status keep(const BaselineKey& key, const CompiledBaseline& baseline) const;

 private:
  std::filesystem::path path_of(const BaselineKey& key) const;
  std::filesystem::path directory_;
};

// The speed-up over torch.compile of a candidate whose speed-up over eager PyTorch is `eager`.
task::Estimate speedup_over(const CompiledBaseline& baseline, const task::Estimate& eager);

}  // namespace mc::eval

#endif  // MC_EVAL_BASELINE_STORE_H_
