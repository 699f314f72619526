// SPDX-License-Identifier: Apache-2.0
//
// Request: one line of the protocol of `musacoder eval --stream`, a JSON object (docs/serve.md).
//
//   {"id": "a", "verb": "evaluate", "task": {"id": "t", "code": "class Model…"}, "answer": "…"}
//   {"id": "b", "verb": "prepare", "task": "kernelbench:1/19", "answer": "…"}
//   {"id": "c", "verb": "measure", "prepared": "<base64>"}
//   {"id": "a", "verb": "cancel"}
//   {"id": "d", "verb": "about"}
//
// "verb" is "evaluate" where it is absent.  "task" is code or the name of a task, as --task takes
// it.  "options" may change how this request alone is judged: {"trials", "inputs", "shapes",
// "require_general", "mode", "precision", "tolerance", "tolerance_half", "dialect"}, each as the
// option of the same name.  "priority" is a whole number, 0 where it is absent: the waiting request
// with the highest one is next.  "deadline_s" is the number of seconds after which no reply is
// wanted.
#ifndef MC_SERVICE_REQUEST_H_
#define MC_SERVICE_REQUEST_H_

#include <cstddef>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "task/correctness.h"
#include "task/suite.h"

namespace mc::service {

// The bound on a request with an answer; a request with a prepared candidate may be longer.
inline constexpr size_t kRequestBytesMax = 4 << 20;

enum class Verb { kEvaluate, kPrepare, kMeasure, kCancel, kAbout };

struct Request {
  Verb verb = Verb::kEvaluate;
  std::string id;
  int priority = 0;
  std::optional<double> deadline_s;
  task::Correctness correctness;
  task::Task task;                       // Empty for the last three verbs, like the candidate.
  std::optional<task::Dialect> dialect;  // The candidate's dialect; absent: the program's default.
  task::Candidate candidate;             // The id is the request's, or the task's where that is "".
  std::string prepared;                  // The bytes of eval::to_bytes(), for kMeasure.
};

// Parses a request.  kInvalidInput or kNotFound names the fault of the request.  Settings that the
// request does not contain are those of `correctness`.
Result<Request> parse_request(std::string_view json, const task::Roots& roots,
                              const task::Correctness& correctness);

// The "id" of a request, even of a faulty one; "" where it has none.
std::string request_id(std::string_view json);

// A key that is equal for requests that may share one verdict: it covers all but id, priority and
// deadline.
std::string content_key(const Request& request);

}  // namespace mc::service

#endif  // MC_SERVICE_REQUEST_H_
