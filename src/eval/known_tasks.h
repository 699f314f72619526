// SPDX-License-Identifier: Apache-2.0
//
// KnownTasks: the facts that judges have found about tasks (python/harness/judge/judge.py,
// `_known`), so that each task is analysed once and not for every candidate.  They are kept in a
// directory, which several processes may share.  Thread-safe.
//
// Example:
//   KnownTasks tasks(cache_directory() / "tasks", facts_depend_on);
//   std::unique_ptr<KnownTasks::Turn> turn = tasks.take_turn(key);
//   open(tasks.find(key).text);  // Empty: this judge analyses the task.
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
  std::string text;           // The facts, for the judge; empty where nothing is known.
  worker::CallMemory memory;  // The memory of a call at the main shape.
};

class KnownTasks {
 public:
  static constexpr size_t kTasksMax = 4096;  // The bound on tasks in memory.

  // An empty `directory` keeps nothing on disk.  `versions` is everything that the facts depend on
  // beside the task and its settings: the device's kind, PyTorch, the judge's own code.
  explicit KnownTasks(std::filesystem::path directory = {}, std::string versions = {})
      : directory_(std::move(directory)), versions_(std::move(versions)) {}

  // The exclusive right to analyse a task; its destructor lets the next thread continue.
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

  // Null where the task is known.  Waits while another thread analyses it.  REQUIRES: the caller
  // holds nothing that the other thread may wait for.
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
  std::condition_variable_any changed_;
  std::map<std::string, KnownTask> known_;  // Guarded by mutex_, like the next member.
  std::set<std::string> looked_into_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_KNOWN_TASKS_H_
