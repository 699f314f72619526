// SPDX-License-Identifier: Apache-2.0
// Forbidden operators that a candidate calls, and operators that it defines itself.
#ifndef MC_FACADE_RUNTIME_GUARD_H_
#define MC_FACADE_RUNTIME_GUARD_H_

#include <ATen/core/dispatch/Dispatcher.h>

#include <string>

namespace mc::shim {

// Notes the operator for mc_guard_refused and throws NotImplementedError, which names operator and
// policy.
[[noreturn]] void refuse(const c10::OperatorHandle& op);

// True for an operator that PyTorch did not have at mc_guard_know: the candidate's own.  `name` has
// its namespace and no overload, "mine::swish".
bool is_own(const std::string& name);

// A candidate may register kernels for PyTorch's operators, and the shim's own use of the operator
// would then run the candidate's code.  remember_kernels() stores which kernels the operator has;
// the second function throws if they have changed since.  It does not check an operator that was
// not remembered.
void remember_kernels(const c10::OperatorHandle& op);
void require_same_kernels(const c10::OperatorHandle& op);

}  // namespace mc::shim

#endif  // MC_FACADE_RUNTIME_GUARD_H_
