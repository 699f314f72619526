// SPDX-License-Identifier: Apache-2.0
#include "bench/sampler.h"

#include <chrono>
#include <utility>

#include "core/check.h"

namespace mc::bench {
namespace {

// The endpoint counts as down after this number of consecutive requests without a connection.
constexpr int kUnreachableMax = 4;

// The seeds of all turns and samples of a task differ.
constexpr uint64_t kSeedsOfTurns = 1'000'003;

}  // namespace

Result<std::vector<Result<store::Answer>>> EndpointSampler::ask(std::span<const Request> requests) {
  MC_CHECK(requests.size() == 1);
  const Request& request = requests.front();
  sample::Sampling sampling = sampling_;
  sampling.seed = seed_ + static_cast<uint64_t>(request.key.sample) +
                  kSeedsOfTurns * static_cast<uint64_t>(request.key.turn);
  const auto start = std::chrono::steady_clock::now();
  auto completion = client_.complete(request.messages, sampling);
  if (!completion) {
    MC_TRY_VOID(take_failure(completion.error()), "ask");
    return std::vector<Result<store::Answer>>{completion.error()};
  }
  has_answered_ = true;
  num_unreachable_ = 0;
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  store::Answer answer{.key = request.key,
                       .completion = std::move(completion->text),
                       .reasoning = std::move(completion->reasoning),
                       .finish = std::move(completion->finish),
                       .num_tokens = completion->num_tokens,
                       .reasoning_tokens = completion->reasoning_tokens,
                       .prompt_tokens = completion->prompt_tokens,
                       .seconds = taken.count()};
  return std::vector<Result<store::Answer>>{std::move(answer)};
}

// An error if no other request could be answered either.
Status EndpointSampler::take_failure(const Error& error) {
  const bool is_wrong_address = error.code == ErrorCode::kNotFound && !has_answered_;
  const bool is_down = error.code == ErrorCode::kUnavailable &&
                       (!has_answered_ || ++num_unreachable_ >= kUnreachableMax);
  return is_wrong_address || is_down ? Status(error) : ok();
}

}  // namespace mc::bench
