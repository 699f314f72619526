// SPDX-License-Identifier: Apache-2.0
//
// JudgePool: open judges that wait for the next candidate of their task.  Thread-safe.
#ifndef MC_EVAL_JUDGE_POOL_H_
#define MC_EVAL_JUDGE_POOL_H_

#include <cstddef>
#include <list>
#include <memory>
#include <mutex>
#include <string>

namespace mc::execute {
class Judge;
}

namespace mc::eval {

class JudgePool {
 public:
  // Each holds a reference model, so only some wait.
  static constexpr size_t kIdleMax = 16;
  // There a judge costs a context, which all others wait for, and more than opening another task:
  // few wait, so that most become the next task's.
  static constexpr size_t kIdleMaxOnDevice = 4;

  explicit JudgePool(size_t idle_max = kIdleMax);
  JudgePool(JudgePool&& other) noexcept;
  ~JudgePool();

  bool has(const std::string& key) const;
  // A judge that has this task open, or null.
  std::unique_ptr<execute::Judge> take(const std::string& key);
  // Where as many wait as may: the one that waited longest, whatever its task; else null.
  std::unique_ptr<execute::Judge> take_any_where_full();
  // Ends all that wait, and gives their memory back.
  void clear();
  // Keeps a judge for later; the one that waited longest goes when there are too many.
  void give_back(const std::string& key, std::unique_ptr<execute::Judge> judge);

 private:
  struct Idle {
    std::string key;
    std::unique_ptr<execute::Judge> judge;
  };
  size_t idle_max_;  // Constant after construction.
  mutable std::mutex mutex_;
  std::list<Idle> idle_;  // Guarded by mutex_; longest waiting first.
};

}  // namespace mc::eval

#endif  // MC_EVAL_JUDGE_POOL_H_
