// SPDX-License-Identifier: Apache-2.0
//
// Sampler: the source of answers to prompts, for example an endpoint, a model's folder or a test's
// script.
#ifndef MC_BENCH_SAMPLER_H_
#define MC_BENCH_SAMPLER_H_

#include <atomic>
#include <cstdint>
#include <span>
#include <vector>

#include "core/result.h"
#include "sample/chat_client.h"
#include "sample/suite.h"
#include "store/records.h"

namespace mc::bench {

// The request for one turn of one sample, with all previous messages.
struct Request {
  store::AnswerKey key;
  sample::Messages messages;
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  // True if one call takes all open requests; false if each call takes one request, and several
  // calls run concurrently.
  virtual bool takes_all() const = 0;
  // Returns one result for each request: an answer, or the reason why there is none.  An error of
  // the whole call means that no request can be answered; it ends the run.
  virtual Result<std::vector<Result<store::Answer>>> ask(std::span<const Request> requests) = 0;
};

// Sends one request at a time.  Thread-safe.  An error of the whole call: the first request fails
// because the endpoint, the key or the model does not exist or because the server does not respond,
// or several requests in a row cannot connect.
class EndpointSampler final : public Sampler {
 public:
  // REQUIRES: `client` outlives it.
  EndpointSampler(const sample::ChatClient& client, sample::Sampling sampling, uint64_t seed)
      : client_(client), sampling_(sampling), seed_(seed) {}
  bool takes_all() const override { return false; }
  Result<std::vector<Result<store::Answer>>> ask(std::span<const Request> requests) override;

 private:
  Status take_failure(const Error& error);

  const sample::ChatClient& client_;
  const sample::Sampling sampling_;
  const uint64_t seed_;
  std::atomic<bool> has_answered_ = false;
  // The number of requests without a connection since the last answer.
  std::atomic<int> num_unreachable_ = 0;
};

}  // namespace mc::bench

#endif  // MC_BENCH_SAMPLER_H_
