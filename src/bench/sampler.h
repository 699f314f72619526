// SPDX-License-Identifier: Apache-2.0
//
// Sampler: whatever answers prompts: an endpoint, a model's folder, a test's script.
#ifndef MC_BENCH_SAMPLER_H_
#define MC_BENCH_SAMPLER_H_

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <mutex>
#include <span>
#include <vector>

#include "core/result.h"
#include "sample/chat_client.h"
#include "sample/suite.h"
#include "store/records.h"

namespace mc::bench {

// One turn of one sample, with all that was said before it.
struct Request {
  store::AnswerKey key;
  sample::Messages messages;
};

class Sampler {
 public:
  virtual ~Sampler() = default;
  // True where one call takes all open requests at once, false where each call takes one and
  // several run beside each other.
  virtual bool takes_all() const = 0;
  // One result for each request: an answer, or why this request has none.  An error of the whole
  // call means that no request can be answered, and ends the run.
  virtual Result<std::vector<Result<store::Answer>>> ask(std::span<const Request> requests) = 0;
};

// Asks one request at a time.  Thread-safe.  An endpoint that refuses the first request as no
// endpoint, key or model, that does not answer the first request at all, or that no connection can
// be made to several times in a row, is an error of the whole call.
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
  std::atomic<int> num_unreachable_ = 0;  // Requests without a connection since the last answer.
};

}  // namespace mc::bench

#endif  // MC_BENCH_SAMPLER_H_
