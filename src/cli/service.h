// SPDX-License-Identifier: Apache-2.0
//
// Questions to one evaluator, each a JSON object, in any number at once: what `eval --stream` reads
// a line each.
//
//   {"id": "a", "task": {"id": "t", "code": "class Model…"}, "answer": "…"}
//   → {"id": "a", "reward": 1.0, "seconds": 0.4, "feedback": "…", "verdict": {…}}
//
// "options" may change how this one is judged: {"trials", "inputs", "shapes", "require_general",
// "mode", "precision", "tolerance", "tolerance_half"}, each as the option of the same name.
// "task" may also be the name of a task, as --task takes it.  A reward of null is no score (infra,
// unsupported,
// or passed on a trivial task).  A question that cannot be judged gets {"id", "error"}.
#ifndef MC_CLI_SERVICE_H_
#define MC_CLI_SERVICE_H_

#include <cstddef>
#include <iosfwd>
#include <map>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>

#include "core/result.h"
#include "eval/pipeline.h"
#include "reward/score.h"
#include "task/correctness.h"
#include "task/suite.h"

namespace mc::cli {

inline constexpr size_t kQuestionBytesMax = 4 << 20;

struct Question {
  std::string id;
  task::Task task;
  task::Candidate candidate;
  task::Correctness correctness;
};

// kInvalidInput or kNotFound says what is wrong with it.  What the question does not say of how it
// is to be judged is as in `correctness`.
Result<Question> parse_question(std::string_view json, const task::Roots& roots,
                                const task::Correctness& correctness);

// The "id" of a question, also of one that cannot be judged; "" where it has none.
std::string question_id(std::string_view json);

struct ServiceOptions {
  task::Correctness correctness;
  reward::ScoreOptions score;
  size_t feedback_tokens = 2000;
};

// Safe for calls from several threads.
class Service {
 public:
  Service(eval::Pipeline& pipeline, const ServiceOptions& options)
      : pipeline_(pipeline), options_(options) {}
  // One line of JSON with its line break.
  std::string reply(const Question& question);
  const task::Correctness& correctness() const { return options_.correctness; }

 private:
  // What is wrong with the task; each is looked at once.
  std::optional<std::string> fault_of(const task::Task& task);

  eval::Pipeline& pipeline_;  // Constant after construction, like the next.
  ServiceOptions options_;
  std::mutex mutex_;                                        // Guards the rest.
  std::map<std::string, std::optional<std::string>> seen_;  // By content_hash of the code.
};

// {"id": …, "error": …} with a line break.
std::string error_line(std::string_view id, std::string_view message);

// Answers the lines of `in` with `jobs` threads until it ends; replies come as they are ready.
void serve_lines(std::istream& in, std::ostream& out, Service& service, const task::Roots& roots,
                 int jobs);

}  // namespace mc::cli

#endif  // MC_CLI_SERVICE_H_
