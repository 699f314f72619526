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

// The longest request with an answer; one with a prepared candidate is as long as that is.
inline constexpr size_t kRequestBytesMax = 4 << 20;

enum class Verb { kEvaluate, kPrepare, kMeasure, kCancel, kAbout };

struct Request {
  Verb verb = Verb::kEvaluate;
  std::string id;
  int priority = 0;
  std::optional<double> deadline_s;
  task::Correctness correctness;
  task::Task task;                       // Empty for the last three verbs, like the candidate.
  std::optional<task::Dialect> dialect;  // The candidate's; absent: as the program was started.
  task::Candidate candidate;             // Its id is the request's, or the task's where that is "".
  std::string prepared;                  // The bytes of eval::to_bytes(), for kMeasure.
};

// kInvalidInput or kNotFound with the fault of the request.  What the request does not say about
// how it is judged is as in `correctness`.
Result<Request> parse_request(std::string_view json, const task::Roots& roots,
                              const task::Correctness& correctness);

// The "id" of a request, also of one with a fault; "" where it has none.
std::string request_id(std::string_view json);

// Equal for requests that may share one verdict: all but id, priority and deadline.
std::string content_key(const Request& request);

}  // namespace mc::service

#endif  // MC_SERVICE_REQUEST_H_
