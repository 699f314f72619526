// SPDX-License-Identifier: Apache-2.0
//
// Hints: the usual meaning of a kind of failure, in one sentence that a model can act on.
#ifndef MC_REWARD_HINTS_H_
#define MC_REWARD_HINTS_H_

#include <string_view>

namespace mc::reward {

// The hint for a KernelFinding's kind; "" for a kind without a hint.
std::string_view kernel_hint(std::string_view kind);

// The hint for an Unextractable's reason; "" for a reason without a hint.
std::string_view extraction_hint(std::string_view reason);

// The hint for an Illegal's `when` under a policy and its version: only "musacoder" forbids
// computing with PyTorch.
std::string_view illegal_hint(std::string_view when, std::string_view policy);

// The hint for an OutputCheck's problem; "" for a problem without a hint.
std::string_view output_hint(std::string_view problem);

// The hint for a compiler's message; "" for a message without a hint.
std::string_view compile_hint(std::string_view message);

// The hint for a fatal signal's number; "" for a signal without a hint.
std::string_view signal_hint(int signal);

}  // namespace mc::reward

#endif  // MC_REWARD_HINTS_H_
