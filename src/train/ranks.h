// SPDX-License-Identifier: Apache-2.0
//
// Processes that train one model together: each takes a part of a step, and the gradients are
// summed over all of them.  NCCL sums on GPUs (nccl.h), gloo on the CPU (gloo.h).
//
//   MC_TRY(const RankPlace place, place_of_environment(), "train");    // torchrun starts the ranks
//   Ranks ranks = Ranks::join(place, device);                          // waits for all the others
//   ranks.sum(gradients);                                              // in place, everywhere
//   alike
//
// Every rank makes the same calls in the same order.  A rank that waits longer than the timeout, or
// whose peer ended, throws: no call waits for ever.
#ifndef MC_TRAIN_RANKS_H_
#define MC_TRAIN_RANKS_H_

#include <chrono>
#include <cstdint>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include <ATen/core/Tensor.h>

#include "core/result.h"

namespace mc::train {

struct RankPlace {
  int rank = 0;
  int count = 1;
  int local = 0;        // The rank among those of its machine, which is the number of its GPU.
  int local_count = 1;  // The ranks of this machine.
  std::string host;     // The ranks meet at this address.
  uint16_t port = 0;
  bool serves = false;  // This rank serves the meeting place, where no launcher does.
  int listen_fd = -1;   // A bound socket for that; join() takes it over.
  std::string prefix;   // The names of this group at the meeting place begin with it.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

// The place that torchrun or another launcher wrote into RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT; one rank where there is no WORLD_SIZE.
Result<RankPlace> place_of_environment();

// Places for `count` ranks of this machine, which meet at a free port of its loopback address.
Result<std::vector<RankPlace>> places_here(int count);

// The sum of a tensor over all ranks, in place.  Throws.
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void sum(const at::Tensor& tensor) = 0;
};

class Ranks {
 public:
  // A process alone, whose sums are what they are.
  Ranks();
  // Throws what PyTorch throws, for one where the ranks do not meet in time.
  static Ranks join(const RankPlace& place, at::Device device);
  Ranks(Ranks&&) noexcept;
  ~Ranks();

  int rank() const { return rank_; }
  int count() const { return count_; }
  bool is_first() const { return rank_ == 0; }

  // REQUIRES: the tensor is contiguous, of float32 or float64, and on the device of join().
  void sum(const at::Tensor& tensor);
  double sum(double value);
  // The value that the first rank gave.
  double of_first(double value) { return sum(is_first() ? value : 0); }

  // The last call, after which a rank may end: all have made all their sums.
  void finish();

 private:
  struct Meeting;
  int rank_ = 0;
  int count_ = 1;
  at::Device device_ = at::kCPU;
  std::unique_ptr<Meeting> meeting_;
  std::unique_ptr<Reducer> reducer_;  // Null for one rank.
};

}  // namespace mc::train

#endif  // MC_TRAIN_RANKS_H_
