// SPDX-License-Identifier: Apache-2.0
#include "sandbox/memory.h"

#include <sys/mman.h>

#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <fstream>
#include <optional>
#include <string>
#include <string_view>

namespace mc::sandbox {
namespace {

constexpr uintptr_t kHugePageBytes = 2 << 20;
constexpr uintptr_t kLargeBytes = 1 << 20;  // A smaller mapping may contain data of the C library.
constexpr int kAdviceCollapse = 25;         // MADV_COLLAPSE, newer than some headers.

struct Range {
  uintptr_t first = 0;
  uintptr_t last = 0;
  bool contains(const void* address) const {
    const auto number = reinterpret_cast<uintptr_t>(address);
    return first <= number && number < last;
  }
};

// Kept on the stack, because the heap may be released during the iteration.
struct Ranges {
  std::array<Range, 4096> items;
  size_t size = 0;
};

// Parses a line of /proc/self/maps, if it is the heap or another large, writable, private,
// anonymous mapping.
std::optional<Range> parse_large(const std::string& line) {
  Range range;
  unsigned long inode = 0;
  char name[32] = "";
  const int num_fields = std::sscanf(line.c_str(), "%lx-%lx rw-p %*s %*s %lu %31s", &range.first,
                                     &range.last, &inode, name);
  const std::string_view kind = name;
  const bool is_plain = num_fields >= 3 && inode == 0 && (kind.empty() || kind == "[heap]");
  if (!is_plain || range.last - range.first < kLargeBytes) return std::nullopt;
  return range;
}

void list_large(Ranges& ranges) {
  std::ifstream maps("/proc/self/maps");
  for (std::string line; ranges.size < ranges.items.size() && std::getline(maps, line);) {
    if (const auto range = parse_large(line)) ranges.items[ranges.size++] = *range;
  }
}

bool is_in_use(uintptr_t page) {
  std::array<unsigned char, kHugePageBytes / 4096> resident;
  if (mincore(reinterpret_cast<void*>(page), kHugePageBytes, resident.data()) != 0) return false;
  for (const unsigned char byte : resident) {
    if ((byte & 1) != 0) return true;
  }
  return false;
}

bool collapse(uintptr_t page) {
  return is_in_use(page) &&
         madvise(reinterpret_cast<void*>(page), kHugePageBytes, kAdviceCollapse) == 0;
}

}  // namespace

size_t compact_memory() {
  if (kIsSanitized) return 0;
  Ranges ranges;
  list_large(ranges);
  size_t num_made = 0;
  for (size_t i = 0; i < ranges.size; ++i) {
    const Range& range = ranges.items[i];
    uintptr_t page = (range.first + kHugePageBytes - 1) & ~(kHugePageBytes - 1);
    for (; page + kHugePageBytes <= range.last; page += kHugePageBytes) {
      if (collapse(page)) ++num_made;
    }
  }
  return num_made;
}

void forget_memory() {
  if (kIsSanitized) return;
  Ranges ranges;
  list_large(ranges);
  for (size_t i = 0; i < ranges.size; ++i) {
    const Range& range = ranges.items[i];
    if (range.contains(&errno) || range.contains(&ranges)) continue;
    madvise(reinterpret_cast<void*>(range.first), range.last - range.first, MADV_DONTNEED);
  }
}

}  // namespace mc::sandbox
