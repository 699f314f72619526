// SPDX-License-Identifier: Apache-2.0
//
// Processes that train one model together: each processes a part of a step, and the gradients are
// summed over all of them, on GPUs by NCCL (nccl.h), on the CPU by gloo (gloo.h).
//
//   MC_TRY(const RankSetup setup, setup_of_environment(), "train");    // torchrun starts the ranks
//   Ranks ranks = Ranks::join(setup, device);                          // waits for all the others
//   ranks.sum(gradients);                                              // in place, on every rank
//
// Every rank makes the same calls in the same order.  A call throws if it waits longer than the
// timeout or if a peer ended, so no call waits for ever.
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

struct RankSetup {
  int rank = 0;
  int count = 1;
  int local = 0;        // The rank within its machine, which is also the index of its GPU.
  int local_count = 1;  // The number of ranks on this machine.
  std::string host;     // The address of the rendezvous.
  uint16_t port = 0;
  bool serves = false;  // True if this rank serves the rendezvous, because no launcher does.
  int listen_fd = -1;   // A socket that is bound for the rendezvous; join() takes ownership.
  std::string prefix;   // The prefix of this group's keys at the rendezvous.
  std::chrono::milliseconds timeout = std::chrono::minutes(10);
};

// Reads the variables of torchrun or another launcher: RANK, WORLD_SIZE, LOCAL_RANK,
// LOCAL_WORLD_SIZE, MASTER_ADDR and MASTER_PORT.  Without WORLD_SIZE, the result is a single rank.
Result<RankSetup> setup_of_environment();

// Setups for `count` ranks on this machine, which meet at a free port of its loopback address.
Result<std::vector<RankSetup>> setups_here(int count);

// An interface for sums of a tensor over all ranks, in setup.  Throws on failure.
class Reducer {
 public:
  virtual ~Reducer() = default;
  virtual void sum(const at::Tensor& tensor) = 0;
};

class Ranks {
 public:
  // A single process: sums return their input.
  Ranks();
  // Joins the other ranks.  Throws PyTorch's exceptions, for example if a rank does not join in
  // time.
  static Ranks join(const RankSetup& setup, at::Device device);
  Ranks(Ranks&&) noexcept;
  ~Ranks();

  int rank() const { return rank_; }
  int count() const { return count_; }
  bool is_first() const { return rank_ == 0; }

  // REQUIRES: the tensor is contiguous, of float32 or float64, and on the device of join().
  void sum(const at::Tensor& tensor);
  double sum(double value);
  // The value that the first rank passed, on every rank.
  double of_first(double value) { return sum(is_first() ? value : 0); }

  // The last call: returns when all ranks have finished their sums, so that this rank may end.
  void finish();

 private:
  struct Rendezvous;
  int rank_ = 0;
  int count_ = 1;
  at::Device device_ = at::kCPU;
  std::unique_ptr<Rendezvous> rendezvous_;
  std::unique_ptr<Reducer> reducer_;  // Null for a single rank.
};

}  // namespace mc::train

#endif  // MC_TRAIN_RANKS_H_
