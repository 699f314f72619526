// SPDX-License-Identifier: Apache-2.0
//
// MC_CHECK: a fact that only a defect of ours can break.  A failed check prints its condition and
// aborts, in every build.  Input from outside is never checked with it: a fault there is a Result
// or a Verdict.
#ifndef MC_CORE_CHECK_H_
#define MC_CORE_CHECK_H_

namespace mc {

[[noreturn]] void check_failed(const char* file, int line, const char* condition);

}  // namespace mc

#define MC_CHECK(condition)                                               \
  do {                                                                    \
    if (!(condition)) ::mc::check_failed(__FILE__, __LINE__, #condition); \
  } while (false)

#endif  // MC_CORE_CHECK_H_
