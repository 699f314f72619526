// SPDX-License-Identifier: Apache-2.0
#include "cuda/offload_bundle.h"

#include <cstdint>
#include <cstring>
#include <string>

namespace mc::device {
namespace {

constexpr std::string_view kMagic = "__CLANG_OFFLOAD_BUNDLE__";
constexpr std::string_view kKind = "musa-";
constexpr uint64_t kEntriesOfBundleMax = 64;  // One for each architecture, and the host's.

// Reads numbers and texts in order; a value beyond the end is 0 or empty.
class Reader {
 public:
  explicit Reader(std::string_view bytes) : rest_(bytes) {}

  uint64_t number() {
    uint64_t value = 0;
    const std::string_view bytes = text(sizeof value);
    if (bytes.size() == sizeof value) std::memcpy(&value, bytes.data(), sizeof value);
    return value;
  }
  std::string_view text(uint64_t size) {
    if (size > rest_.size()) rest_ = {};
    const std::string_view found = rest_.substr(0, size);
    rest_.remove_prefix(found.size());
    return found;
  }

 private:
  std::string_view rest_;
};

}  // namespace

bool is_offload_bundle(std::string_view bytes) { return bytes.starts_with(kMagic); }

std::string_view code_in_bundle(std::string_view bytes, std::string_view architecture) {
  if (!is_offload_bundle(bytes)) return {};
  Reader reader(bytes.substr(kMagic.size()));
  const uint64_t entries = reader.number();
  const std::string end = "-" + std::string(architecture);
  for (uint64_t i = 0; i < entries && i < kEntriesOfBundleMax; ++i) {
    const uint64_t offset = reader.number();
    const uint64_t size = reader.number();
    const std::string_view name = reader.text(reader.number());
    if (!name.starts_with(kKind) || !name.ends_with(end)) continue;
    const bool is_whole = offset <= bytes.size() && size <= bytes.size() - offset;
    return is_whole ? bytes.substr(offset, size) : std::string_view();
  }
  return {};
}

}  // namespace mc::device
