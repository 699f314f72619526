// SPDX-License-Identifier: Apache-2.0
//
// JudgePool: the judges of a device: those in use, and the idle ones that keep their task open for
// its next candidate.  Thread-safe.
//
// A judge on a device needs a context.  Its creation takes 0.2 to 0.5 s, in which all other
// processes of the machine wait; that is much longer than opening a known task.  Therefore the
// number of judges is bounded and judges are kept; a caller that finds no idle judge waits for one.
//
//   JudgePool::Lease lease = pool.take(key, /*may_wait=*/true);
//   // lease.judge has the task open if lease.is_open, has another task open if not, and must be
//   // created where it is null.
//   pool.give_back(key, std::move(lease));  // Without this call, ~Lease() frees its seat.
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
    size_t reused_from;  // The number of idle judges from which on another task's judge is lent.
    size_t idle_max;     // The most idle judges; each holds a reference model.
    size_t all_max;      // The most judges, those in use included.
  };
  static constexpr Bounds kOnCpu = {16, 16, std::numeric_limits<size_t>::max()};
  static constexpr Bounds kOnDevice = {4, 12, 12};

  // The permission to have one judge.
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
  struct Lease {
    Lease();
    Lease(Seat its_seat, std::unique_ptr<execute::Judge> its_judge, bool has_task_open);
    Lease(Lease&& other) noexcept;
    Lease& operator=(Lease&& other) noexcept;
    ~Lease();

    Seat seat;
    std::unique_ptr<execute::Judge> judge;
    bool is_open = false;
  };

  explicit JudgePool(Bounds bounds = kOnCpu);
  ~JudgePool();

  bool has(const std::string& key) const;
  // A judge that has this task open; else, where the pool is full, the judge of another task that
  // has been idle longest; else a seat for a new judge.  Where none of these is available it waits;
  // a caller that may not wait, or is cancelled, gets a seat beyond the bound.  REQUIRES: the
  // caller holds nothing that users of judges wait for.
  Lease take(const std::string& key, bool may_wait);
  // Keeps a judge for later.  The judge that has been idle longest ends when there are too many.
  void give_back(const std::string& key, Lease lease);
  // Ends all idle judges and so frees their memory.
  void clear();

 private:
  struct Idle {
    std::string key;
    Lease lease;
  };

  void free_seat();
  // True if no judge may be added without need.  REQUIRES: mutex_ is held.
  bool is_full() const;

  const Bounds bounds_;
  mutable std::mutex mutex_;
  std::condition_variable_any changed_;
  size_t num_seats_ = 0;  // Guarded by mutex_.
  std::list<Idle> idle_;  // Guarded by mutex_; the longest idle first.
};

}  // namespace mc::eval

#endif  // MC_EVAL_JUDGE_POOL_H_
