// SPDX-License-Identifier: Apache-2.0
//
// KnownTasks: what judges found out about tasks (harness/judge/judge.py, `_known`), so that each is
// looked into once and not for every candidate.  Thread-safe.
//
// Example:
//   std::unique_ptr<KnownTasks::Turn> turn = tasks.take_turn(key);
//   open(tasks.find(key).text);  // Empty: this one looks into it.
//   tasks.learn(key, {answer, call_bytes});
#ifndef MC_EVAL_KNOWN_TASKS_H_
#define MC_EVAL_KNOWN_TASKS_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <utility>

namespace mc::eval {

struct KnownTask {
  std::string text;        // For the judge; empty where nothing is known.
  int64_t call_bytes = 0;  // Inputs and outputs of a call.
};

class KnownTasks {
 public:
  static constexpr size_t kTasksMax = 4096;

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
  void learn(const std::string& key, KnownTask known);

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::string, KnownTask> known_;  // Guarded by mutex_, as what follows.
  std::set<std::string> looked_into_;
};

}  // namespace mc::eval

#endif  // MC_EVAL_KNOWN_TASKS_H_
