// SPDX-License-Identifier: Apache-2.0
//
// Verifier: executes the requests of a service; the pipeline, or a test's fake.
#ifndef MC_SERVICE_VERIFIER_H_
#define MC_SERVICE_VERIFIER_H_

#include <cstddef>
#include <map>
#include <mutex>
#include <optional>
#include <string>

#include "core/result.h"
#include "eval/pipeline.h"
#include "service/request.h"

namespace mc::service {

// All methods are thread-safe.
class Verifier {
 public:
  virtual ~Verifier() = default;
  // The verdict, or for kPrepare a candidate that is ready to be measured.  kInvalidInput is a
  // fault of the request: the task is invalid, or the candidate was prepared for another machine.
  // REQUIRES: the verb is one of the first three.
  virtual Result<eval::Preparation> run(const Request& request) = 0;
};

class PipelineVerifier final : public Verifier {
 public:
  // REQUIRES: the pipeline outlives it.
  explicit PipelineVerifier(eval::Pipeline& pipeline) : pipeline_(pipeline) {}
  Result<eval::Preparation> run(const Request& request) override;

 private:
  // The fault of a task; each task is checked once.
  std::optional<std::string> fault_of(const task::Task& task);

  eval::Pipeline& pipeline_;
  std::mutex mutex_;                                        // Guards `seen_`.
  std::map<std::string, std::optional<std::string>> seen_;  // Keys: content_hash of the code.
};

}  // namespace mc::service

#endif  // MC_SERVICE_VERIFIER_H_
