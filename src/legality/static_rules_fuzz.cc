// SPDX-License-Identifier: Apache-2.0
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <string>

#include "core/check.h"
#include "legality/static_rules.h"

// The default policy.  The fuzz target runs in the root of the source tree.
static const mc::legality::Policy& policy() {
  static const mc::legality::Policy kPolicy =
      mc::legality::load_policy("data/policy", "musacoder").value();
  return kPolicy;
}

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(reinterpret_cast<const char*>(data), size);
  MC_CHECK(mc::legality::check_sources(policy(), {{"a", text}}).size() <=
           mc::legality::kFindingsMax);
  return 0;
}
