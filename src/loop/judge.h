// SPDX-License-Identifier: Apache-2.0
//
// The verifier as a child process: `musacoder eval --stream`, or any program that reads a question
// a line and replies a line (docs/rl.md).
//
// Answers are judged while others are generated; the loop waits for a judgement when it needs it.
// The same answer to the same task is judged once in a run, also in one that was killed and goes
// on: each verdict is kept in the run's store.  An answer whose verdict is infra has no score, and
// is judged again by a run that goes on.
//
//   MC_TRY(auto judge, Judge::start({"musacoder", "eval", "--stream"}), "rl");
//   const std::string key = judge->ask(task, answer);
//   ... more of them ...
//   MC_TRY(Judgement judgement, judge->wait(key), "rl");
#ifndef MC_LOOP_JUDGE_H_
#define MC_LOOP_JUDGE_H_

#include <condition_variable>
#include <deque>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/line_child.h"
#include "core/result.h"
#include "rl/bdr.h"
#include "rl/score.h"
#include "store/store.h"
#include "task/task.h"

namespace mc::loop {

// A verdict, as far as the loop needs it.
struct Judgement {
  std::string outcome;       // The result of task::outcome_name
  std::optional<double> s;   // The result of rl::training_score; empty for infra and unsupported.
  double q = 0;              // Share of trials passed.
  std::optional<double> nu;  // The speed-up over eager PyTorch, where it passed and was timed.
  std::optional<rl::Stage> stage;  // The stage at which it failed, if it did.
  std::string feedback;            // For the model's next turn.
  bool operator==(const Judgement&) const = default;
};

// From a reply's line.  kInvalidInput for {"error"}, kProtocol for what is no reply.
Result<Judgement> parse_reply(const std::string& line, const rl::TrainingScoreOptions& options);

// The command as far as it decides verdicts, for the settings of a run: without the folder of the
// program and the number of jobs.
std::vector<std::string> verifier_of(const std::vector<std::string>& command);

class Judge {
 public:
  // Starts `command`; its standard error stays ours.  `run` keeps the verdicts, if it is given; it
  // outlives the judge.
  static Result<std::unique_ptr<Judge>> start(const std::vector<std::string>& command,
                                              const rl::TrainingScoreOptions& options,
                                              store::Run* run = nullptr);
  // Closes the child's input, and ends it.
  ~Judge();

  // The key to wait for.  Thread-safe, returns at once.  Without a dialect the answer is judged in
  // the verifier's own.
  std::string ask(const task::Task& task, const std::string& answer,
                  std::optional<task::Dialect> dialect = std::nullopt);
  // kUnavailable where the child ended, kInvalidInput where it refuses the question.
  // REQUIRES: the key is of an answer that was asked for.
  Result<Judgement> wait(const std::string& key);

 private:
  Judge(std::unique_ptr<LineChild> child, const rl::TrainingScoreOptions& options, store::Run* run);
  std::optional<Result<Judgement>> kept(const std::string& key) const;
  void write_requests();
  void read_replies();
  void take(const std::string& line);

  const std::unique_ptr<LineChild> child_;  // Constant after construction, like the next two.
  const rl::TrainingScoreOptions options_;
  store::Run* const run_;
  std::mutex mutex_;  // Guards the rest but the threads.
  std::condition_variable changed_;
  std::map<std::string, std::optional<Result<Judgement>>> judgements_;  // Keys: ask().
  std::deque<std::string> lines_;                                       // To write.
  std::optional<Error> ended_;
  std::thread writer_;
  std::thread reader_;
};

}  // namespace mc::loop

#endif  // MC_LOOP_JUDGE_H_
