// SPDX-License-Identifier: Apache-2.0
//
// Course: judges a model's answers in bulk while it trains.
//
// A verdict of MooreEval costs a second of a core and more, mostly for protections: a small model
// that was taught the forge's form attacks nothing, and answers faster than that.  So its answers
// are verified as the forge's own kernels are (bulk.h): without a sandbox, in one process that
// also runs the module's Python.  Trials, comparison, emulator and outcomes are MooreEval's.
// Figures are never made by it: what is held out is judged by MooreEval.
//
// An answer is read where its module has one r"""...""" text, the CUDA source, and calls the
// function `f` of one extension.  A pass in another form does not exist: it is refused as it runs.
#ifndef MC_FORGE_COURSE_H_
#define MC_FORGE_COURSE_H_

#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <thread>
#include <vector>

#include "core/result.h"
#include "forge/bulk.h"
#include "task/task.h"
#include "task/verdict.h"

namespace mc::forge {

// The CUDA text of a module in the forge's form.
std::optional<std::string> cuda_of(const std::string& module);

struct CourseOptions {
  int num_workers = 1;   // Processes that judge.
  uint64_t seed = 0;     // The same seed gives an answer the same trials.
  bool explains = true;  // TaskWork::explains.
};

class Course {
 public:
  static Result<std::unique_ptr<Course>> create(const CourseOptions& options,
                                                const BatchVerifier::Progress& progress);
  ~Course();

  // Waits for its turn; answers that wait together are compiled together, those to one task first.
  // Thread-safe.
  Result<task::Verdict> judge(const task::Task& task, const task::Candidate& candidate);

 private:
  struct Waiting {
    const task::Task* task = nullptr;
    Attempt attempt;
    std::optional<Result<task::Outcome>> outcome{};
  };
  Course(std::vector<std::unique_ptr<BatchVerifier>> bulks, const CourseOptions& options);
  void work(BatchVerifier& bulk);
  std::vector<Waiting*> take();
  void verify(BatchVerifier& bulk, const std::vector<Waiting*>& batch);

  const CourseOptions options_;
  std::mutex mutex_;  // Guards the next three.
  std::condition_variable changed_;
  std::deque<Waiting*> waiting_;
  bool is_closing_ = false;
  std::vector<std::unique_ptr<BatchVerifier>> bulks_;  // One for each thread.
  std::vector<std::thread> threads_;
};

}  // namespace mc::forge

#endif  // MC_FORGE_COURSE_H_
