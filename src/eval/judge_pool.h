// SPDX-License-Identifier: Apache-2.0
//
// JudgePool: the judges of a device, those that work and those that wait for the next candidate of
// their task.  Thread-safe.
//
// A judge of a device costs a context, 0.2 to 0.5 s for which all other processes of the machine
// wait, far more than opening a task that is known.  So there are only so many, and they are
// kept: whoever finds none that is free waits for one.
//
//   JudgePool::Lent lent = pool.take(key, /*may_wait=*/true);
//   // lent.judge has the task open, or another one where !lent.is_open, or is to be made where
//   null. pool.give_back(key, std::move(lent));  // Else its seat is free again as `lent` ends.
#ifndef MC_EVAL_JUDGE_POOL_H_
#define MC_EVAL_JUDGE_POOL_H_

#include <condition_variable>
#include <cstddef>
#include <limits>
#include <list>
#include <memory>
#include <mutex>
#include <string>
#include <utility>

namespace mc::execute {
class Judge;
}

namespace mc::eval {

class JudgePool {
 public:
  struct Bounds {
    size_t reused_from;  // So many wait before another task's judge is lent.
    size_t idle_max;     // Judges that wait; each holds a reference model.
    size_t all_max;      // Those that work counted too.
  };
  static constexpr Bounds kOnCpu = {16, 16, std::numeric_limits<size_t>::max()};
  static constexpr Bounds kOnDevice = {4, 12, 12};

  // The right to have one judge.
  class Seat {
   public:
    Seat() = default;
    explicit Seat(JudgePool& pool) : pool_(&pool) {}
    Seat(Seat&& other) noexcept : pool_(std::exchange(other.pool_, nullptr)) {}
    Seat& operator=(Seat&& other) noexcept {
      std::swap(pool_, other.pool_);
      return *this;
    }
    ~Seat() {
      if (pool_ != nullptr) pool_->free_seat();
    }

   private:
    JudgePool* pool_ = nullptr;
  };
  struct Lent {
    Lent();
    Lent(Seat its_seat, std::unique_ptr<execute::Judge> its_judge, bool has_task_open);
    Lent(Lent&& other) noexcept;
    Lent& operator=(Lent&& other) noexcept;
    ~Lent();

    Seat seat;
    std::unique_ptr<execute::Judge> judge;
    bool is_open = false;
  };

  explicit JudgePool(Bounds bounds = kOnCpu);
  ~JudgePool();

  bool has(const std::string& key) const;
  // A judge that has this task open; else one of another task where there is no room for one more,
  // the one that waited longest; else a seat for a new one.  Where there is neither it waits, or
  // takes a seat all the same where it may not wait or is cancelled.
  // REQUIRES: the caller holds nothing that those with judges wait for.
  Lent take(const std::string& key, bool may_wait);
  // Keeps a judge for later; the one that waited longest goes when there are too many.
  void give_back(const std::string& key, Lent lent);
  // Ends all that wait, and gives their memory back.
  void clear();

 private:
  struct Idle {
    std::string key;
    Lent lent;
  };

  void free_seat();

  const Bounds bounds_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  size_t num_seats_ = 0;  // Guarded by mutex_.
  std::list<Idle> idle_;  // Guarded by mutex_; longest waiting first.
};

}  // namespace mc::eval

#endif  // MC_EVAL_JUDGE_POOL_H_
