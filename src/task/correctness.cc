// SPDX-License-Identifier: Apache-2.0
#include "task/correctness.h"

#include <algorithm>
#include <cmath>
#include <sstream>

namespace mc::task {
namespace {

std::string one_of(const std::vector<std::string>& names) {
  std::string text;
  for (const std::string& name : names) {
    if (!text.empty()) text += name == names.back() ? " or " : ", ";
    text += name;
  }
  return text;
}

Status check_name(const std::string& member, const std::string& value,
                  const std::vector<std::string>& names) {
  if (std::ranges::find(names, value) != names.end()) return ok();
  return Error{ErrorCode::kInvalidInput,
               member + ": expected " + one_of(names) + ", got \"" + value + '"'};
}

Status check_tolerance(const std::string& member, double value) {
  if (std::isfinite(value) && value > 0) return ok();
  return Error{ErrorCode::kInvalidInput, member + ": expected a positive number"};
}

}  // namespace

const std::vector<std::string>& input_sets() {
  static const std::vector<std::string> kNames = {"varied", "native", "verified"};
  return kNames;
}

const std::vector<std::string>& modes() {
  static const std::vector<std::string> kNames = {"train", "eval"};
  return kNames;
}

const std::vector<std::string>& precisions() {
  static const std::vector<std::string> kNames = {"task", "fp32", "fp16", "bf16"};
  return kNames;
}

Status check(const Correctness& correctness) {
  if (correctness.trials < 1 || correctness.trials > kTrialsMax) {
    return Error{ErrorCode::kInvalidInput, "trials: expected 1 to " + std::to_string(kTrialsMax) +
                                               ", got " + std::to_string(correctness.trials)};
  }
  MC_TRY_VOID(check_name("inputs", correctness.inputs, input_sets()), "correctness");
  MC_TRY_VOID(check_name("mode", correctness.mode, modes()), "correctness");
  MC_TRY_VOID(check_name("precision", correctness.precision, precisions()), "correctness");
  MC_TRY_VOID(check_tolerance("tolerance", correctness.tolerance_fp32), "correctness");
  return check_tolerance("tolerance_half", correctness.tolerance_half);
}

std::string to_string(const Correctness& correctness) {
  std::ostringstream text;
  text << std::hexfloat << correctness.trials << ' ' << correctness.inputs << ' '
       << correctness.shapes << ' ' << correctness.require_general << ' ' << correctness.mode << ' '
       << correctness.precision << ' ' << correctness.tolerance_fp32 << ' '
       << correctness.tolerance_half;
  return text.str();
}

}  // namespace mc::task
