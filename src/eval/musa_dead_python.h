// SPDX-License-Identifier: Apache-2.0
//
// The Python of a candidate that does not run where PyTorch is torch_musa's: a program for several
// platforms asks which one it is on.
//
//   Handlers: try: import torch_musa        Branches: if hasattr(torch, "musa"): ...
//             except ImportError: ...                 else: ...
//
// Known are `hasattr(torch, "musa")`, `is_available()` of torch.musa and torch.cuda, True and
// False, names that have such a value alone, and `not`, `and` and `or`.  A handler is dead where
// the text that it guards names MUSA: that text does not fail for the want of MUSA.
#ifndef MC_EVAL_MUSA_DEAD_PYTHON_H_
#define MC_EVAL_MUSA_DEAD_PYTHON_H_

#include <string>
#include <string_view>

namespace mc::eval {

// The module with `raise NameError` for each block that does not run on MUSA, and None for each
// operand of a conditional expression that does not.  Each line keeps its number.
std::string live_python(std::string_view module);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_DEAD_PYTHON_H_
