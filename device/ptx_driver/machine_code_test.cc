// SPDX-License-Identifier: Apache-2.0
#include "ptx_driver/machine_code.h"

#include <elf.h>
#include <gmock/gmock.h>

#include <cstdint>
#include <cstring>
#include <random>
#include <string>
#include <vector>

namespace mc::ptx_driver {
namespace {

using testing::ElementsAre;
using testing::IsEmpty;
using testing::Pair;

struct Kernel {
  std::string name;
  uint32_t symbol = 0, in_section = 0, in_info = 0;
};

void append(std::string& bytes, const void* data, size_t size) {
  bytes.append(static_cast<const char*>(data), size);
}

// A file with a header, the names, ".nv.info" and the sections of kernels.
std::string elf_of(const std::vector<Kernel>& kernels) {
  std::string names = std::string(1, '\0') + ".nv.info" + '\0', info;
  const uint32_t other[] = {0x0003'1203};  // An attribute whose value is in the entry.
  append(info, other, sizeof other);
  std::vector<Elf64_Shdr> sections(3);
  for (const Kernel& one : kernels) {
    Elf64_Shdr section{};
    section.sh_name = static_cast<uint32_t>(names.size());
    section.sh_info = one.in_section << 24 | one.symbol;
    sections.push_back(section);
    names += ".text." + one.name + '\0';
    const uint32_t entry[] = {0x0008'2F04, one.symbol, one.in_info};
    append(info, entry, sizeof entry);
  }
  Elf64_Ehdr header{};
  std::memcpy(header.e_ident, ELFMAG, SELFMAG);
  header.e_ident[EI_CLASS] = ELFCLASS64;
  header.e_shoff = sizeof header + names.size() + info.size();
  header.e_shentsize = sizeof(Elf64_Shdr);
  header.e_shnum = static_cast<uint16_t>(sections.size());
  header.e_shstrndx = 1;
  sections[1].sh_offset = sizeof header;
  sections[1].sh_size = names.size();
  sections[2].sh_name = 1;
  sections[2].sh_offset = sizeof header + names.size();
  sections[2].sh_size = info.size();
  std::string elf;
  append(elf, &header, sizeof header);
  elf += names + info;
  append(elf, sections.data(), sections.size() * sizeof(Elf64_Shdr));
  return elf;
}

TEST(RegistersInMachineCode, AreThoseOfEachKernel) {
  const std::string elf = elf_of({{"many", 12, 0, 168}, {"few", 13, 8, 8}});
  EXPECT_THAT(registers_in(elf), ElementsAre(Pair("few", 8), Pair("many", 168)));
}

TEST(RegistersInMachineCode, AreLeftOutWhereBothPlacesDifferOrNoneIsPossible) {
  const std::string elf = elf_of({{"many", 12, 8, 168}, {"most", 14, 0, 256}, {"few", 13, 8, 8}});
  EXPECT_THAT(registers_in(elf), ElementsAre(Pair("few", 8)));
}

TEST(RegistersInMachineCode, AreNoneInOtherBytes) {
  EXPECT_THAT(registers_in(""), IsEmpty());
  EXPECT_THAT(registers_in(std::string(1000, '\xFF')), IsEmpty());
  std::string elf = elf_of({{"few", 13, 8, 8}});
  elf[EI_CLASS] = ELFCLASS32;
  EXPECT_THAT(registers_in(elf), IsEmpty());
}

// Each read is from its own heap copy, so that AddressSanitizer detects a read past the end.
TEST(RegistersInMachineCode, OfHostileFilesAreReadWithinTheirBytes) {
  const std::string whole = elf_of({{"many", 12, 168, 168}, {"few", 13, 8, 8}});
  for (size_t size = 0; size < whole.size(); ++size) {
    const std::vector<char> cut(whole.begin(), whole.begin() + static_cast<std::ptrdiff_t>(size));
    EXPECT_THAT(registers_in({cut.data(), cut.size()}), IsEmpty()) << size;
  }
  constexpr unsigned char kEdges[] = {0, 1, 0x7F, 0x80, 0xFF};
  std::mt19937 random(1);
  for (int k = 0; k < 20'000; ++k) {
    std::vector<char> bytes(whole.begin(), whole.end());
    for (int changes = 0; changes < 1 + k % 4; ++changes) {
      bytes[random() % bytes.size()] = static_cast<char>(kEdges[random() % std::size(kEdges)]);
    }
    for (const auto& [name, count] : registers_in({bytes.data(), bytes.size()})) {
      EXPECT_LE(count, 255);
      EXPECT_LE(name.size(), bytes.size());
    }
  }
}

}  // namespace
}  // namespace mc::ptx_driver
