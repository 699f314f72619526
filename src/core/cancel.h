// SPDX-License-Identifier: Apache-2.0
//
// Cancellation of what one thread works for.
//
// A thread that works for a request holds a CancelScope.  Each wait for a child process looks at
// it (sandbox/child.h) and ends the child once a stop is requested, so that the work comes to its
// end soon.  What it then returns says nothing and must be dropped by the thread that requested the
// stop.  A thread that hands a part of its work to another one gives it this_cancellation().
//
//   Stop stop;  (a std::stop_source)
//   ...
//   const CancelScope scope(stop.get_token());
//   const task::Verdict verdict = pipeline.evaluate(task, candidate);
//   if (is_cancelled()) return;
#ifndef MC_CORE_CANCEL_H_
#define MC_CORE_CANCEL_H_

#include <stop_token>

namespace mc {

class CancelScope {
 public:
  // Holds for this thread until the destructor, which restores the scope around it.
  explicit CancelScope(std::stop_token token);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  std::stop_token outer_;
};

// The innermost scope's token; one that is never requested to stop where there is no scope.
std::stop_token this_cancellation();
bool is_cancelled();

}  // namespace mc

#endif  // MC_CORE_CANCEL_H_
