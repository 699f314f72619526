// SPDX-License-Identifier: Apache-2.0
//
// KnownTasks: what judges found out about tasks (python/harness/judge/judge.py, `_known`), so that
// each is looked into once and not for every candidate.  Kept in a directory, which several
// processes may share.  Thread-safe.
//
// Example:
//   KnownTasks tasks(cache_directory() / "tasks", facts_depend_on);
//   std::unique_ptr<KnownTasks::Turn> turn = tasks.take_turn(key);
//   open(tasks.find(key).text);  // Empty: this one looks into it.
//   tasks.learn(key, {answer, call_memory});
#ifndef MC_EVAL_KNOWN_TASKS_H_
#define MC_EVAL_KNOWN_TASKS_H_

#include <condition_variable>
#include <cstddef>
#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

#include "worker/protocol.h"

namespace mc::eval {

struct KnownTask {
  std::string text;           // For the judge; empty where nothing is known.
  worker::CallMemory memory;  // A call's at the main shape.
};

class KnownTasks {
 public:
  static constexpr size_t kTasksMax = 4096;  // In memory.

  // Nothing is kept on disk where `directory` is empty.  `versions` is all that facts depend on
  // beside the task and its settings: the device's kind, PyTorch, the judge's own code.
  explicit KnownTasks(std::filesystem::path directory = {}, std::string versions = {})
      : directory_(std::move(directory)), versions_(std::move(versions)) {}

  // A turn to look into a task; its end lets the next one go on.
  class Turn {
   public:
    Turn(KnownTasks& tasks, std::string key) : tasks_(tasks), key_(std::move(key)) {}
    ~Turn();
    Turn(const Turn&) = delete;
    Turn& operator=(const Turn&) = delete;

   private:
    KnownTasks& tasks_;
    std::string key_;
  };

  // Null where the task is known.  Waits while another one looks into it.
  // REQUIRES: the caller holds nothing that this one may wait for.
  std::unique_ptr<Turn> take_turn(const std::string& key);
  KnownTask find(const std::string& key);
  void learn(const std::string& key, const KnownTask& known);

 private:
  std::filesystem::path path_of(const std::string& key) const;
  // REQUIRES: mutex_ is held.
  const KnownTask* look_up(const std::string& key);

  // Constant after construction.
  const std::filesystem::path directory_;
  const std::string versions_;

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, KnownTask> known_;  // Guarded by mutex_, as what follows.
  std::set<std::string> looked_into_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_KNOWN_TASKS_H_
