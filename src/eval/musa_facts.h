// SPDX-License-Identifier: Apache-2.0
//
// The doctor's section "MUSA": the parts that the MUSA backend needs, and how to add the missing
// ones.
#ifndef MC_EVAL_MUSA_FACTS_H_
#define MC_EVAL_MUSA_FACTS_H_

#include <filesystem>
#include <string>
#include <vector>

#include "compile/pytorch.h"
#include "core/fact.h"
#include "execute/cuda_driver.h"

namespace mc::eval {

inline constexpr const char* kMusaDriver = "libmusa.so";

// Device nodes of Moore Threads' driver, and the render nodes of its GPUs.
std::vector<std::string> musa_nodes();

struct MusaFindings {
  std::filesystem::path mcc;  // The path where the compiler is expected.
  bool has_mcc = false;
  std::vector<std::string> nodes;
  Result<execute::CudaDriver> driver = Error{ErrorCode::kNotFound, "not asked"};
  std::string python = "python3";
  bool has_torch_musa = false;
  bool is_patched_pytorch = false;  // True for a PyTorch whose version module names MUSA.
};

// Detects the parts.  `pytorch` is null where there is none.
MusaFindings look_for_musa(const compile::PyTorch* pytorch);

// The facts of the section "MUSA".
std::vector<Fact> musa_facts(const MusaFindings& found);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_FACTS_H_
