// SPDX-License-Identifier: Apache-2.0
//
// Special cases: kernels of memory, atomics, meetings of threads, branches and calls, which the
// forms (forms.h) do not describe.
#ifndef MC_PTX_TESTING_SPECIALS_H_
#define MC_PTX_TESTING_SPECIALS_H_

#include <string>

#include "ptx/testing/case.h"

namespace mc::ptx {

// One module. The head has the version, the target and the size of addresses.
CaseModule special_cases(const std::string& head);

}  // namespace mc::ptx

#endif  // MC_PTX_TESTING_SPECIALS_H_
