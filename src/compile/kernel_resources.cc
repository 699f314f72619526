// SPDX-License-Identifier: Apache-2.0
//
// The lines of ptxas -v (13.0), one group for each function.  Functions that are not inlined have a
// group without a first line, which may be before or after that of the calling kernel.  Example:
//   ptxas info    : Compiling entry function '_Z4axpyPf' for 'sm_90a'
//   ptxas info    : Function properties for _Z4axpyPf
//       256 bytes stack frame, 0 bytes spill stores, 0 bytes spill loads
//   ptxas info    : Used 32 registers, used 1 barriers, 512 bytes smem, 8 bytes cmem[2]
#include "compile/kernel_resources.h"

#include <algorithm>
#include <charconv>
#include <sstream>

#include <nlohmann/json.hpp>

#include "core/demangle.h"

namespace mc::compile {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(KernelResources, kernel, name, registers, spill_store_bytes,
                                   spill_load_bytes, stack_bytes, shared_bytes, constant_bytes)

namespace {

using Json = nlohmann::json;

constexpr std::string_view kInfo = "ptxas info    : ";
constexpr std::string_view kEntry = "Compiling entry function '";
constexpr std::string_view kProperties = "Function properties for ";
// More than any device has; sums of such amounts do not overflow.
constexpr int64_t kAmountMax = 1 << 30;

// Calls `take(number, what)` for each item such as "12 bytes smem" or "used 3 barriers" of a
// comma-separated list.
template <typename Take>
void for_each_amount(std::string_view list, const Take& take) {
  while (!list.empty()) {
    const size_t comma = list.find(',');
    std::string_view item = list.substr(0, comma);
    list = comma == std::string_view::npos ? "" : list.substr(comma + 1);
    const size_t digit = item.find_first_of("0123456789");
    if (digit == std::string_view::npos) continue;
    item.remove_prefix(digit);
    int64_t number = 0;
    const auto end = std::from_chars(item.data(), item.data() + item.size(), number).ptr;
    take(std::min(number, kAmountMax), item.substr(static_cast<size_t>(end - item.data())));
  }
}

void read_properties(std::string_view line, KernelResources& kernel) {
  for_each_amount(line, [&](int64_t number, std::string_view what) {
    if (what == " bytes stack frame") kernel.stack_bytes = number;
    if (what == " bytes spill stores") kernel.spill_store_bytes = number;
    if (what == " bytes spill loads") kernel.spill_load_bytes = number;
  });
}

void read_usage(std::string_view line, KernelResources& kernel) {
  for_each_amount(line, [&](int64_t number, std::string_view what) {
    if (what == " registers") kernel.registers = static_cast<int>(number);
    if (what == " bytes smem") kernel.shared_bytes = number;
    if (what.starts_with(" bytes cmem")) kernel.constant_bytes += number;
  });
}

}  // namespace

std::string to_json(const std::vector<KernelResources>& kernels) {
  return Json(kernels).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<std::vector<KernelResources>> kernels_from_json(std::string_view text) try {
  return Json::parse(text).get<std::vector<KernelResources>>();
} catch (const Json::exception& wrong) {
  return Error{ErrorCode::kInvalidInput, std::string("no kernels: ") + wrong.what()};
}

std::vector<KernelResources> parse_kernel_resources(std::string_view output) {
  std::vector<KernelResources> kernels;
  std::string described;  // The function that the next properties belong to.
  std::istringstream stream{std::string(output)};
  for (std::string line; std::getline(stream, line);) {
    std::string_view rest = line;
    if (rest.starts_with("    ") && !kernels.empty() && described == kernels.back().kernel) {
      read_properties(rest, kernels.back());
      described.clear();
    }
    if (!rest.starts_with(kInfo)) continue;
    rest.remove_prefix(kInfo.size());
    if (rest.starts_with(kEntry)) {
      if (kernels.size() == kKernelsMax) break;
      rest.remove_prefix(kEntry.size());
      KernelResources kernel;
      kernel.kernel = rest.substr(0, rest.find('\''));
      kernel.name = demangle(kernel.kernel);
      kernels.push_back(std::move(kernel));
    } else if (rest.starts_with(kProperties)) {
      described = rest.substr(kProperties.size());
    } else if (rest.starts_with("Used ") && !kernels.empty()) {
      read_usage(rest, kernels.back());
    }
  }
  return kernels;
}

}  // namespace mc::compile
