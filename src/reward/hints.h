// SPDX-License-Identifier: Apache-2.0
//
// The meaning of a kind of failure usually means, in one sentence that a model can act on.
#ifndef MC_REWARD_HINTS_H_
#define MC_REWARD_HINTS_H_

#include <string_view>

namespace mc::reward {

// For a KernelFinding's kind; "" for a kind without a hint.
std::string_view kernel_hint(std::string_view kind);

// For an Unextractable's reason; "" for a reason without a hint.
std::string_view extraction_hint(std::string_view reason);

// For an Illegal's `when`, under a policy and its version: only "musacoder" forbids PyTorch to
// compute.
std::string_view illegal_hint(std::string_view when, std::string_view policy);

// For an OutputCheck's problem; "" for a problem without a hint.
std::string_view output_hint(std::string_view problem);

// For a compiler's message; "" for one without a hint.
std::string_view compile_hint(std::string_view message);

// For a fatal signal's number; "" for one without a hint.
std::string_view signal_hint(int signal);

}  // namespace mc::reward

#endif  // MC_REWARD_HINTS_H_
