// SPDX-License-Identifier: Apache-2.0
#include "runtime/module.h"

#include <cxxabi.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>

#include <algorithm>
#include <cstdlib>
#include <fstream>
#include <map>
#include <memory>
#include <mutex>
#include <string_view>

extern "C" {
struct McEmuTlsIndex {
  unsigned long module;
  unsigned long offset;
};
void* __tls_get_addr(McEmuTlsIndex*);  // NOLINT: the name is the ABI's.
}

namespace mc::emu {
namespace {

struct Found {
  uintptr_t code = 0;
  bool found = false;
  uintptr_t load_address = 0;
  size_t tls_id = 0;
  size_t tls_bytes = 0;
  uintptr_t data_begin = 0, data_end = 0;
  std::string path;
};

int match_module(dl_phdr_info* info, size_t, void* data) {
  Found& want = *static_cast<Found*>(data);
  size_t tls_bytes = 0;
  bool holds = false;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type == PT_TLS) tls_bytes = header.p_memsz;
    holds |=
        header.p_type == PT_LOAD && want.code - (info->dlpi_addr + header.p_vaddr) < header.p_memsz;
  }
  if (!holds) return 0;
  want.found = true;
  want.load_address = info->dlpi_addr;
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& header = info->dlpi_phdr[i];
    if (header.p_type != PT_LOAD || (header.p_flags & PF_W) == 0) continue;
    want.data_begin = (info->dlpi_addr + header.p_vaddr) / 4 * 4;
    want.data_end = info->dlpi_addr + header.p_vaddr + header.p_memsz;
  }
  want.tls_id = info->dlpi_tls_modid;
  want.tls_bytes = info->dlpi_tls_modid == 0 ? 0 : tls_bytes;
  want.path = info->dlpi_name[0] == '\0' ? "/proc/self/exe" : info->dlpi_name;
  return 1;
}

std::string demangle(const char* symbol) {
  int status = 0;
  char* text = abi::__cxa_demangle(symbol, nullptr, nullptr, &status);
  std::string result = status == 0 ? text : symbol;
  std::free(text);
  return result;
}

std::string read_file(const std::string& path) {
  std::ifstream in(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

template <class T>
const T* view_at(const std::string& bytes, size_t offset, size_t count = 1) {
  if (offset > bytes.size() || (bytes.size() - offset) / sizeof(T) < count) return nullptr;
  return reinterpret_cast<const T*>(bytes.data() + offset);
}

// The section header of the full symbol table, else of the dynamic one.
const Elf64_Shdr* symbol_section(const Elf64_Shdr* sections, size_t count) {
  const Elf64_Shdr* best = nullptr;
  for (size_t i = 0; i < count; ++i) {
    if (sections[i].sh_type == SHT_SYMTAB) return &sections[i];
    if (sections[i].sh_type == SHT_DYNSYM) best = &sections[i];
  }
  return best;
}

SharedArray shared_array(const Elf64_Sym& symbol, const char* mangled) {
  const bool is_guard = std::string_view(mangled).starts_with("_ZGV");
  SharedArray array{symbol.st_value, symbol.st_size, "", demangle(mangled), is_guard};
  const size_t scope = array.name.rfind("::");
  if (scope != std::string::npos) {
    array.owner = array.name.substr(0, scope);
    array.name.erase(0, scope + 2);
  }
  return array;
}

bool is_identifier(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
}

}  // namespace

namespace {
std::mutex mutex;
std::map<uintptr_t, std::unique_ptr<Module>> modules;  // Keys: load addresses.  Guarded by mutex.
}  // namespace

void Module::clear_shadows() {
  const std::lock_guard lock(mutex);
  for (const auto& [address, module] : modules) {
    if (module->data_shadow_ == nullptr) continue;
    madvise(module->data_shadow_, (module->data_end_ - module->data_begin_) * 2, MADV_REMOVE);
  }
}

void Module::make_shadow() {
  if (data_end_ == data_begin_) return;
  void* shadow = mmap(nullptr, (data_end_ - data_begin_) * 2 + sizeof(uint64_t),
                      PROT_READ | PROT_WRITE, MAP_SHARED | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
  data_shadow_ = shadow == MAP_FAILED ? nullptr : static_cast<uint64_t*>(shadow);
}

const Module* Module::containing(const void* code) {
  const std::lock_guard lock(mutex);
  Found found;
  found.code = reinterpret_cast<uintptr_t>(code);
  dl_iterate_phdr(match_module, &found);
  if (!found.found) return nullptr;
  std::unique_ptr<Module>& module = modules[found.load_address];
  if (module == nullptr) {
    module = std::make_unique<Module>();
    module->load_address_ = found.load_address;
    module->tls_id_ = found.tls_id;
    module->tls_bytes_ = found.tls_bytes;
    module->data_begin_ = found.data_begin;
    module->data_end_ = found.data_end;
    module->make_shadow();
    module->read_symbols(found.path.c_str());
  }
  return module.get();
}

char* Module::shared_begin() const {
  if (tls_bytes_ == 0) return nullptr;
  McEmuTlsIndex index{tls_id_, 0};
  return static_cast<char*>(__tls_get_addr(&index));
}

const SharedArray* Module::array_at(size_t offset) const {
  const auto after =
      std::upper_bound(arrays_.begin(), arrays_.end(), offset,
                       [](size_t value, const SharedArray& array) { return value < array.offset; });
  return after == arrays_.begin() ? nullptr : &*(after - 1);
}

Module::SharedBytes Module::shared_bytes_of(const std::string& base_name) const {
  // Instances of a template are told apart by their signatures.
  std::map<std::string, size_t> bytes_of_owner;
  for (const SharedArray& array : arrays_) {
    if (array.is_guard || kernel_base_name(array.owner) != base_name) continue;
    bytes_of_owner[array.owner] += array.size;
  }
  if (bytes_of_owner.empty()) return {};
  SharedBytes bytes{bytes_of_owner.begin()->second, 0};
  for (const auto& [owner, size] : bytes_of_owner) {
    bytes.least = std::min(bytes.least, size);
    bytes.most = std::max(bytes.most, size);
  }
  return bytes;
}

std::string Module::function_at(uintptr_t address) const {
  for (const FunctionSymbol& function : functions_) {
    if (function.address == address) return kernel_base_name(demangle(function.name.c_str()));
  }
  return "";
}

bool Module::has_function(const std::string& base_name) const {
  return std::any_of(functions_.begin(), functions_.end(), [&](const FunctionSymbol& function) {
    return function.name.find(base_name) != std::string::npos &&
           kernel_base_name(demangle(function.name.c_str())) == base_name;
  });
}

void Module::read_symbols(const char* path) {
  const std::string bytes = read_file(path);
  const auto* header = view_at<Elf64_Ehdr>(bytes, 0);
  if (header == nullptr || bytes.compare(0, SELFMAG, ELFMAG) != 0) return;
  const auto* sections = view_at<Elf64_Shdr>(bytes, header->e_shoff, header->e_shnum);
  if (sections == nullptr) return;
  const Elf64_Shdr* table = symbol_section(sections, header->e_shnum);
  if (table == nullptr || table->sh_link >= header->e_shnum) return;
  const size_t count = table->sh_size / sizeof(Elf64_Sym);
  const auto* symbols = view_at<Elf64_Sym>(bytes, table->sh_offset, count);
  const Elf64_Shdr& strings = sections[table->sh_link];
  if (symbols == nullptr || view_at<char>(bytes, strings.sh_offset, strings.sh_size) == nullptr) {
    return;
  }
  for (size_t i = 0; i < count; ++i) {
    if (symbols[i].st_shndx == SHN_UNDEF || symbols[i].st_name >= strings.sh_size) continue;
    const char* name = bytes.data() + strings.sh_offset + symbols[i].st_name;
    const int type = ELF64_ST_TYPE(symbols[i].st_info);
    if (type == STT_TLS) arrays_.push_back(shared_array(symbols[i], name));
    if (type == STT_FUNC) {
      functions_.push_back({load_address_ + symbols[i].st_value, name});
    }
  }
  std::sort(arrays_.begin(), arrays_.end(),
            [](const SharedArray& a, const SharedArray& b) { return a.offset < b.offset; });
}

std::string kernel_base_name(const std::string& text) {
  std::string callee = text;
  const std::string anonymous = "(anonymous namespace)::";
  for (size_t at = callee.find(anonymous); at != std::string::npos; at = callee.find(anonymous)) {
    callee.erase(at, anonymous.size());
  }
  // The name ends before the first template argument list or parameter list, except for the word
  // "operator" and parenthesised callees, which have no base name.
  size_t start = 0;
  const size_t angle = callee.find('<');
  const size_t paren = callee.find('(');
  size_t end = std::min(std::min(angle, paren), callee.size());
  while (end > 0 && callee[end - 1] == ' ') --end;
  start = end;
  while (start > 0 && is_identifier(callee[start - 1])) --start;
  return callee.substr(start, end - start);
}

}  // namespace mc::emu
