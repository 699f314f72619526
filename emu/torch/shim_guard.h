// SPDX-License-Identifier: Apache-2.0
// What a candidate calls and may not: one refusal for all of the shim.
#ifndef MC_EMU_TORCH_SHIM_GUARD_H_
#define MC_EMU_TORCH_SHIM_GUARD_H_

#include <ATen/core/dispatch/Dispatcher.h>

namespace mc::shim {

// Notes the operator for mc_guard_refused and throws NotImplementedError, which names operator and
// policy.
[[noreturn]] void refuse(const c10::OperatorHandle& op);

}  // namespace mc::shim

#endif  // MC_EMU_TORCH_SHIM_GUARD_H_
