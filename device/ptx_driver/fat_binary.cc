// SPDX-License-Identifier: Apache-2.0
#include "ptx_driver/fat_binary.h"

#include <cstdint>
#include <cstring>
#include <optional>

namespace mc::ptx_driver {
namespace {

constexpr uint32_t kMagic = 0xBA55ED50;
constexpr uint16_t kPtx = 1, kMachineCode = 2;
constexpr uint64_t kCompressed = 0x2000 | 0x8000;  // The flags for LZ4 and for zstd.

struct Header {
  uint32_t magic;
  uint16_t version;
  uint16_t header_bytes;
  uint64_t bytes;  // The size of all entries.
};

struct Entry {
  uint16_t kind;
  uint16_t unknown;
  uint32_t header_bytes;
  uint64_t bytes;  // The size without the header.
  uint32_t compressed_bytes;
  uint32_t options_offset;
  uint16_t minor;
  uint16_t major;
  uint32_t architecture;
  uint32_t name_offset;
  uint32_t name_bytes;
  uint64_t flags;
};

struct Best {
  uint32_t architecture = 0;
  bool is_compressed = false;
  std::string_view bytes;
};

// Keeps the entry if its architecture is newer than the best entry's.
void take(const Entry& entry, std::string_view bytes, std::optional<Best>& best) {
  if (best && entry.architecture <= best->architecture) return;
  best = {entry.architecture, (entry.flags & kCompressed) != 0, bytes};
}

}  // namespace

Result<Code> code_in(const void* image, int architecture) {
  const char* const data = static_cast<const char*>(image);
  uint32_t magic = 0;
  std::memcpy(&magic, data, strnlen(data, sizeof magic));
  if (magic != kMagic) return Code{data, {}};
  Header header{};
  std::memcpy(&header, data, sizeof header);
  const char* at = data + header.header_bytes;
  const char* const end = at + header.bytes;
  std::optional<Best> ptx, machine_code;
  while (static_cast<size_t>(end - at) >= sizeof(Entry)) {
    Entry entry{};
    std::memcpy(&entry, at, sizeof entry);
    const auto left = static_cast<uint64_t>(end - at);
    if (entry.header_bytes < sizeof entry || entry.header_bytes > left ||
        entry.bytes > left - entry.header_bytes) {
      return Error{ErrorCode::kUnsupported, "the fat binary is malformed"};
    }
    const std::string_view bytes(at + entry.header_bytes, entry.bytes);
    const bool fits = entry.architecture <= static_cast<uint32_t>(architecture);
    if (fits && entry.kind == kPtx) take(entry, bytes, ptx);
    if (fits && entry.kind == kMachineCode) take(entry, bytes, machine_code);
    at += entry.header_bytes + entry.bytes;
  }
  if (!ptx) {
    return Error{ErrorCode::kUnsupported, "the binary has no PTX for compute capability " +
                                              std::to_string(architecture / 10) + "." +
                                              std::to_string(architecture % 10)};
  }
  if (ptx->is_compressed) return Error{ErrorCode::kUnsupported, "the PTX is compressed"};
  Code code{ptx->bytes.substr(0, ptx->bytes.find('\0')), {}};
  const bool is_readable = machine_code && !machine_code->is_compressed &&
                           machine_code->architecture == ptx->architecture;
  if (is_readable) code.machine_code = machine_code->bytes;
  return code;
}

}  // namespace mc::ptx_driver
