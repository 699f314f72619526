// SPDX-License-Identifier: Apache-2.0
//
// The verifier as a child process: `musacoder eval --stream`, or any program that reads one request
// per line and writes one reply per line (docs/rl.md).
//
// Answers are judged while others are generated; the loop waits for a judgement only when it needs
// it. The same answer to the same task is judged once in a run, even if the run is killed and
// resumed, because the run's store keeps each verdict.  An answer with outcome infra has no score;
// a resumed run judges it again.
//
//   MC_TRY(auto judge, Judge::start({"musacoder", "eval", "--stream"}), "rl");
//   const std::string key = judge->submit(task, answer);
//   ... more requests ...
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

// The parts of a verdict that the training loop needs.
struct Judgement {
  std::string outcome;       // The result of task::outcome_name
  std::optional<double> s;   // The result of rl::training_score; empty for infra and unsupported.
  double q = 0;              // The share of trials that passed.
  std::optional<double> nu;  // The speed-up over eager PyTorch, if the answer passed and was timed.
  std::optional<rl::Stage> stage;  // The stage at which the answer failed, if it failed.
  std::string feedback;            // The feedback for the model's next turn.
  bool operator==(const Judgement&) const = default;
};

// Parses the line of a reply.  kInvalidInput for {"error"}; kProtocol for a line that is not a
// reply.
Result<Judgement> parse_reply(const std::string& line, const rl::TrainingScoreOptions& options);

// The arguments of the verifier's command that can change verdicts, for the settings of a run:
// without the program's folder and the number of jobs.
std::vector<std::string> verifier_of(const std::vector<std::string>& command);

class Judge {
 public:
  // Starts `command`; it inherits standard error.  `run`, if not null, stores the verdicts and must
  // outlive the judge.
  static Result<std::unique_ptr<Judge>> start(const std::vector<std::string>& command,
                                              const rl::TrainingScoreOptions& options,
                                              store::Run* run = nullptr);
  // Closes the child's input and terminates the child.
  ~Judge();

  // Requests a verdict and returns the key for wait() at once.  Thread-safe.  Without a dialect,
  // the verifier judges the answer in its default dialect.
  std::string submit(const task::Task& task, const std::string& answer,
                     std::optional<task::Dialect> dialect = std::nullopt);
  // Waits for the verdict.  kUnavailable if the child ended; kInvalidInput if it rejected the
  // request. REQUIRES: submit() returned the key.
  Result<Judgement> wait(const std::string& key);

 private:
  Judge(std::unique_ptr<LineChild> child, const rl::TrainingScoreOptions& options, store::Run* run);
  std::optional<Result<Judgement>> kept(const std::string& key) const;
  void write_requests();
  void read_replies();
  void take(const std::string& line);

  // This and the next two members are constant after construction.
  const std::unique_ptr<LineChild> child_;
  const rl::TrainingScoreOptions options_;
  store::Run* const run_;
  std::mutex mutex_;  // The mutex guards the members below, except the threads.
  std::condition_variable changed_;
  // A key has an entry from submit() on, and never loses it.  The entry is empty while the verdict
  // is pending; the first reply fills it, and each change wakes all callers of wait().
  std::map<std::string, std::optional<Result<Judgement>>> judgements_;
  std::deque<std::string> lines_;  // Lines that are not yet written to the child.
  // The reason why no further reply will come.  It is set once, by the reader or the destructor;
  // then the writer ends, and a wait() for a pending verdict returns it.
  std::optional<Error> ended_;
  // The writer ends by ended_ or a failed send(), the reader by a failed receive().  The destructor
  // causes both by hang_up(), and joins the threads before any member goes.
  std::thread writer_;
  std::thread reader_;
};

}  // namespace mc::loop

#endif  // MC_LOOP_JUDGE_H_
