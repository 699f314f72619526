// SPDX-License-Identifier: Apache-2.0
#include "eval/musa_headers.h"

#include <algorithm>
#include <iterator>

#include "lex/token.h"

namespace mc::eval {
namespace {

// A name, and parts of the names of headers that declare it, directly or by inclusion.  The first
// one is the suggestion.  Nothing of torch_musa is included by default: load_inline adds
// <musa_runtime.h> alone.
struct Need {
  std::string_view name;
  std::vector<std::string_view> headers;
};

const std::vector<Need>& needs() {
  static const std::vector<Need> kNeeds = {
      {"getCurrentMUSAStream", {"torch_musa/csrc/core/MUSAStream.h", "torch_musa/", "musa/"}},
      {"getStreamFromPool", {"torch_musa/csrc/core/MUSAStream.h", "torch_musa/", "musa/"}},
      {"C10_MUSA_CHECK", {"torch_musa/csrc/core/MUSAException.h", "torch_musa/", "musa/"}},
      {"C10_MUSA_KERNEL_LAUNCH_CHECK",
       {"torch_musa/csrc/core/MUSAException.h", "torch_musa/", "musa/"}},
      {"TORCH_MUSA_CHECK", {"torch_musa/csrc/core/MUSAException.h", "torch_musa/", "musa/"}},
      {"AT_MUSA_CHECK",
       {"torch_musa/csrc/aten/musa/Exceptions.h", "/aten/", "ATen/musa/", "Exception"}},
      {"getCurrentDeviceProperties",
       {"torch_musa/csrc/aten/musa/MUSAContext.h", "/aten/", "ATen/musa/"}},
      {"MUSAGuard",
       {"torch_musa/csrc/core/MUSAGuard.h", "MUSAGuard", "MUSAEvent", "/aten/", "ATen/musa/"}},
      {"OptionalMUSAGuard",
       {"torch_musa/csrc/core/MUSAGuard.h", "MUSAGuard", "MUSAEvent", "/aten/", "ATen/musa/"}},
      {"__mt_bfloat16", {"musa_bf16.h", "/aten/", "ATen/musa/", "mublas", "mudnn"}},
      {"mt_bfloat16", {"musa_bf16.h", "/aten/", "ATen/musa/", "mublas", "mudnn"}}};
  return kNeeds;
}

bool is_met(const Need& need, const std::vector<std::string>& headers) {
  return std::ranges::any_of(need.headers, [&](std::string_view part) {
    return std::ranges::any_of(
        headers, [&](const std::string& header) { return header.find(part) != std::string::npos; });
  });
}

}  // namespace

void add_includes(std::string_view source, std::vector<std::string>& headers) {
  for (const lex::Token& token : lex::tokenize(source)) {
    if (token.kind == lex::Kind::kHeader) headers.push_back(lex::spelling_of(source, token));
  }
}

std::vector<MissingHeader> missing_headers(std::string_view source,
                                           const std::vector<std::string>& headers) {
  std::vector<Need> unmet;
  std::ranges::copy_if(needs(), std::back_inserter(unmet),
                       [&](const Need& need) { return !is_met(need, headers); });
  std::vector<MissingHeader> missing;
  for (const lex::Token& token : lex::tokenize(source)) {
    const auto need = std::ranges::find(unmet, lex::text_of(source, token), &Need::name);
    if (need == unmet.end()) continue;
    missing.push_back({need->name, need->headers[0], token.line, token.column});
  }
  return missing;
}

}  // namespace mc::eval
