// SPDX-License-Identifier: Apache-2.0
//
// Finds the Python code of a candidate that does not run under torch_musa: a program for several
// platforms tests which one it runs on.
//
//   Handlers: try: import torch_musa        Branches: if hasattr(torch, "musa"): ...
//             except ImportError: ...                 else: ...
//
// Conditions with a known value are `hasattr(torch, "musa")`, `is_available()` of torch.musa and
// torch.cuda, True and False, names that only ever have such a value, and `not`, `and` and `or` of
// these.  A handler is dead where the code that it guards names MUSA: there that code does not fail
// for lack of MUSA.
#ifndef MC_EVAL_MUSA_DEAD_PYTHON_H_
#define MC_EVAL_MUSA_DEAD_PYTHON_H_

#include <string>
#include <string_view>

namespace mc::eval {

// The module with `raise NameError` for each block that does not run on MUSA, and None for each
// operand of a conditional expression that is not evaluated there.  Each line keeps its number.
std::string live_python(std::string_view module);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_DEAD_PYTHON_H_
