// SPDX-License-Identifier: Apache-2.0
//
// Cancellation of the work of one thread.
//
// A thread that works for a request holds a CancelScope.  Each wait for a child process
// (sandbox/child.h) polls the scope's token and kills the child once a stop is requested, so that
// the work ends soon.  The result of cancelled work is meaningless, and the thread that requested
// the stop must discard it.  A thread that gives a part of its work to another thread passes
// this_cancellation() to it.
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
  // The scope is in force for this thread until its destructor restores the enclosing scope.
  explicit CancelScope(std::stop_token token);
  ~CancelScope();
  CancelScope(const CancelScope&) = delete;
  CancelScope& operator=(const CancelScope&) = delete;

 private:
  std::stop_token outer_;
};

// The innermost scope's token.  A thread without a scope gets a token that is never stopped.
std::stop_token this_cancellation();
bool is_cancelled();

}  // namespace mc

#endif  // MC_CORE_CANCEL_H_
