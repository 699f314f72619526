// SPDX-License-Identifier: Apache-2.0
#include "task/musa_device.h"

#include "core/check.h"

namespace mc::task {
namespace {

constexpr int64_t kKiB = 1 << 10;

// Attributes from real hardware: an MTT S4000 (mp_22), and an MTT S70 and S3000 (mp_21).
void add_known(std::string_view architecture, std::map<std::string, int64_t>& device) {
  if (architecture == "mp_21") device["shared_memory_per_block"] = 28 * kKiB;
  if (architecture != "mp_22") return;
  device["shared_memory_per_block"] = 72 * kKiB;
  device["max_threads_per_multi_processor"] = 6144;
  device["multi_processor_count"] = 56;
}

}  // namespace

int warp_threads(Dialect dialect, std::string_view musa_architecture) {
  const bool is_wide = musa_architecture == "mp_21" || musa_architecture == "mp_22";
  return dialect == Dialect::kMusa && is_wide ? 128 : 32;
}

int architecture_number(std::string_view musa_architecture) {
  const std::string_view digits = musa_architecture.substr(musa_architecture.find('_') + 1);
  MC_CHECK(digits.size() == 2);  // The command line accepts no other names.
  return (digits[0] - '0') * 100 + (digits[1] - '0') * 10;
}

std::map<std::string, int64_t> described(Dialect dialect, std::string_view musa_architecture) {
  std::map<std::string, int64_t> device;
  if (dialect != Dialect::kMusa) return device;
  const int number = architecture_number(musa_architecture);
  device["major"] = number / 100;
  device["minor"] = number / 10 % 10;
  add_known(musa_architecture, device);
  return device;
}

}  // namespace mc::task
