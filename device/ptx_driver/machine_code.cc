// SPDX-License-Identifier: Apache-2.0
#include "ptx_driver/machine_code.h"

#include <elf.h>

#include <cstdint>
#include <cstring>
#include <optional>
#include <vector>

namespace mc::ptx_driver {
namespace {

// An entry of ".nv.info" is a format, an attribute and two bytes: a value, or the number of bytes
// that follow.
constexpr uint8_t kBytesFollow = 4, kRegisterCount = 0x2F;
constexpr uint32_t kSymbolMask = 0xFFFFFF;
constexpr int kRegistersShift = 24;
constexpr uint32_t kRegistersMax = 255;
constexpr std::string_view kText = ".text.";

template <class T>
std::optional<T> read(std::string_view bytes, uint64_t at) {
  if (at > bytes.size() || bytes.size() - at < sizeof(T)) return std::nullopt;
  T value;
  std::memcpy(&value, bytes.data() + at, sizeof value);
  return value;
}

std::string_view contents(std::string_view elf, const Elf64_Shdr& section) {
  const uint64_t at = section.sh_offset;
  if (at > elf.size() || elf.size() - at < section.sh_size) return {};
  return elf.substr(at, section.sh_size);
}

std::string_view text_at(std::string_view names, uint64_t at) {
  if (at >= names.size()) return {};
  return names.substr(at, names.find('\0', at) - at);
}

// Empty if a section is beyond the end.
std::vector<Elf64_Shdr> sections_of(std::string_view elf, const Elf64_Ehdr& header) {
  std::vector<Elf64_Shdr> sections;
  if (header.e_shoff > elf.size()) return sections;
  elf.remove_prefix(header.e_shoff);
  for (uint64_t k = 0; k < header.e_shnum; ++k) {
    const auto section = read<Elf64_Shdr>(elf, k * sizeof(Elf64_Shdr));
    if (!section) return {};
    sections.push_back(*section);
  }
  return sections;
}

// The registers by symbol in ".nv.info".
std::map<uint32_t, uint32_t> counts_in(std::string_view info) {
  struct Entry {
    uint8_t format, attribute;
    uint16_t bytes;
  };
  std::map<uint32_t, uint32_t> counts;
  while (const auto entry = read<Entry>(info, 0)) {
    info.remove_prefix(sizeof(Entry));
    if (entry->format != kBytesFollow) continue;
    if (entry->bytes > info.size()) break;
    const auto symbol = read<uint32_t>(info, 0), count = read<uint32_t>(info, 4);
    if (entry->attribute == kRegisterCount && entry->bytes == 8) counts[*symbol] = *count;
    info.remove_prefix(entry->bytes);
  }
  return counts;
}

}  // namespace

std::map<std::string, int, std::less<>> registers_in(std::string_view elf) {
  std::map<std::string, int, std::less<>> registers;
  const auto header = read<Elf64_Ehdr>(elf, 0);
  if (!header || std::memcmp(header->e_ident, ELFMAG, SELFMAG) != 0 ||
      header->e_ident[EI_CLASS] != ELFCLASS64 || header->e_shentsize != sizeof(Elf64_Shdr)) {
    return registers;
  }
  const std::vector<Elf64_Shdr> sections = sections_of(elf, *header);
  if (header->e_shstrndx >= sections.size()) return registers;
  const std::string_view names = contents(elf, sections[header->e_shstrndx]);
  std::map<uint32_t, uint32_t> counts;
  for (const Elf64_Shdr& section : sections) {
    if (text_at(names, section.sh_name) == ".nv.info") counts = counts_in(contents(elf, section));
  }
  for (const Elf64_Shdr& section : sections) {
    const std::string_view name = text_at(names, section.sh_name);
    const auto count = counts.find(section.sh_info & kSymbolMask);
    if (!name.starts_with(kText) || count == counts.end() || count->second > kRegistersMax)
      continue;
    const uint32_t again = section.sh_info >> kRegistersShift;
    if (again != 0 && again != count->second) continue;
    registers[std::string(name.substr(kText.size()))] = static_cast<int>(count->second);
  }
  return registers;
}

}  // namespace mc::ptx_driver
