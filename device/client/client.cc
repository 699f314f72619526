// SPDX-License-Identifier: Apache-2.0
#include "client/client.h"

#include <dlfcn.h>
#include <elf.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <utility>

#include "check.h"
#include "client/managed.h"

namespace mc::device {
namespace {

// The file offset of an address in a mapped library.
struct FileOffset {
  std::string path;
  uint64_t offset = 0;
};

struct Search {
  uintptr_t address;
  FileOffset file;
};

// The dynamic linker reports an empty name for the program itself.
std::string name_of(const dl_phdr_info& info) {
  if (*info.dlpi_name != '\0') return info.dlpi_name;
  std::array<char, 4096> path{};
  return readlink("/proc/self/exe", path.data(), path.size() - 1) < 0 ? "" : path.data();
}

int look_for(dl_phdr_info* info, size_t, void* data) {
  auto& search = *static_cast<Search*>(data);
  for (int i = 0; i < info->dlpi_phnum; ++i) {
    const ElfW(Phdr)& segment = info->dlpi_phdr[i];
    if (segment.p_type != PT_LOAD) continue;
    const uintptr_t start = info->dlpi_addr + segment.p_vaddr;
    if (search.address < start || search.address >= start + segment.p_filesz) continue;
    search.file = {name_of(*info), search.address - start + segment.p_offset};
    return 1;
  }
  return 0;
}

FileOffset file_offset_of(const void* address) {
  Search search{reinterpret_cast<uintptr_t>(address), {}};
  dl_iterate_phdr(look_for, &search);
  return search.file;
}

}  // namespace

Client& Client::get() {
  static auto* client = new Client;  // Libraries unregister after main().
  return *client;
}

bool Client::open(int descriptor) {
  const std::lock_guard lock(mutex_);
  if (!sender_.open(descriptor)) return false;
  const Page& page = sender_.page();
  arena_.open(page.arena, page.arena_bytes, page.memory_bytes_max, ArenaMap::Order::kOldest);
  // These addresses are the device's: the process must not map anything else there.  Existing
  // mappings stay.
  for (const auto& [address, bytes] :
       {std::pair(page.arena, page.arena_bytes), std::pair(page.regions, page.regions_bytes)}) {
    mmap(reinterpret_cast<void*>(address), bytes, PROT_NONE,
         MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE | MAP_FIXED_NOREPLACE, -1, 0);
  }
  return true;
}

Sender& Client::sender() {
  if (!sender_.is_open()) {
    std::fputs("the device was used before it was attached to this process\n", stderr);
    _exit(1);
  }
  return sender_;
}

void Client::note_location(const void* caller) const {
  if (is_checked_) Sender::location = reinterpret_cast<uint64_t>(caller) - _r_debug.r_map->l_addr;
}

// ---- What libraries register --------------------------------------------------------------------

Binary* Client::add_binary(const void* image) {
  const std::lock_guard lock(mutex_);
  auto binary = std::make_unique<Binary>();
  binary->image = image;
  binary->module = static_cast<uint32_t>(binaries_.size());
  binaries_.push_back(std::move(binary));
  return binaries_.back().get();
}

void Client::remove_binary(Binary* binary) {
  const std::lock_guard lock(mutex_);
  if (binary->is_loaded && sender_.is_open()) {
    sender_.send(Op::kUnloadModule, Handle{binary->module});
  }
  std::erase_if(functions_by_host_, [&](const auto& e) { return e.second->binary == binary; });
  std::erase_if(variables_, [&](const auto& e) { return e.second->binary == binary; });
  binary->is_loaded = false;
}

void Client::add_function(Binary* binary, const void* host, const char* name) {
  const std::lock_guard lock(mutex_);
  auto function = std::make_unique<Function>();
  function->binary = binary;
  function->name = name;
  function->handle = static_cast<uint32_t>(functions_.size());
  functions_by_host_[host] = function.get();
  functions_.push_back(std::move(function));
}

void Client::add_variable(Binary* binary, const void* host, const char* name, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  auto& variable = variables_[host];
  variable = std::make_unique<Variable>();
  variable->binary = binary;
  variable->name = name;
  variable->bytes = bytes;
}

void Client::add_managed(Binary* binary, void** host, const char* name, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  add_variable(binary, host, name, bytes);
  binary->managed.push_back(host);
}

cudaError_t Client::open_managed(Binary& binary) {
  const std::lock_guard lock(mutex_);
  for (void** const host : binary.managed) {
    Variable* variable = find_variable(host);
    MC_CHECK(variable != nullptr);
    if (const cudaError_t error = prepare(*variable)) return error;
    *host = reinterpret_cast<void*>(variable->address);
    if (!Managed::get().map(*host, variable->bytes)) return cudaErrorMemoryAllocation;
  }
  return cudaSuccess;
}

Function* Client::find_function(const void* host) {
  const std::lock_guard lock(mutex_);
  const auto found = functions_by_host_.find(host);
  if (found == functions_by_host_.end()) return nullptr;
  // A cudaKernel_t is the function's own address.
  functions_by_host_.emplace(found->second, found->second);
  return functions_by_host_.find(host)->second;
}

cudaError_t Client::add_text(std::string text, Binary** binary) {
  const std::lock_guard lock(mutex_);
  *binary = add_binary(nullptr);
  (*binary)->text = std::move(text);
  return load(**binary);
}

cudaError_t Client::add_function_of_text(Binary* binary, const char* name, Function** function) {
  const std::lock_guard lock(mutex_);
  auto made = std::make_unique<Function>();
  made->binary = binary;
  made->text_name = name;
  made->name = made->text_name.c_str();
  made->handle = static_cast<uint32_t>(functions_.size());
  *function = made.get();
  functions_by_host_[made.get()] = made.get();
  functions_.push_back(std::move(made));
  return prepare(**function);
}

cudaError_t Client::load_text(Binary& binary) {
  MC_CHECK(!binary.is_loaded);
  if (binary.text.empty()) return cudaErrorInvalidKernelImage;
  uint32_t status = 0;
  for (size_t at = 0; status == 0 && at < binary.text.size(); at += kTextPartMax) {
    const size_t bytes = std::min<size_t>(kTextPartMax, binary.text.size() - at);
    const LoadText command{binary.module, static_cast<uint32_t>(bytes),
                           at + bytes == binary.text.size() ? 1u : 0u};
    const Tail part{binary.text.data() + at, bytes};
    status = sender().call(Op::kLoadText, command, nullptr, 0, part);
  }
  binary.is_loaded = status == 0;
  return static_cast<cudaError_t>(status);
}

cudaError_t Client::load(Binary& binary) {
  if (binary.is_loaded) return cudaSuccess;
  if (binary.image == nullptr) return load_text(binary);
  const FileOffset file = file_offset_of(binary.image);
  if (file.path.empty()) return cudaErrorInvalidKernelImage;
  const LoadModule command{file.offset, binary.module};
  const Tail path{file.path.c_str(), file.path.size() + 1};
  const uint32_t status = sender().call(Op::kLoadModule, command, nullptr, 0, path);
  binary.is_loaded = status == 0;
  return static_cast<cudaError_t>(status);
}

cudaError_t Client::prepare(Function& function) {
  const std::lock_guard lock(mutex_);
  if (function.facts != nullptr) return cudaSuccess;
  if (const cudaError_t error = load(*function.binary)) return error;
  auto facts = std::make_unique<FunctionFacts>();
  const Find command{function.binary->module, function.handle};
  const Tail name{function.name, std::strlen(function.name) + 1};
  const uint32_t status =
      sender().call(Op::kFindFunction, command, facts.get(), sizeof *facts, name);
  if (status == 0) function.facts = std::move(facts);
  return static_cast<cudaError_t>(status);
}

Variable* Client::find_variable(const void* host) {
  const std::lock_guard lock(mutex_);
  const auto found = variables_.find(host);
  return found == variables_.end() ? nullptr : found->second.get();
}

cudaError_t Client::prepare(Variable& variable) {
  const std::lock_guard lock(mutex_);
  if (variable.address != 0) return cudaSuccess;
  if (const cudaError_t error = load(*variable.binary)) return error;
  VariableFacts facts{};
  const Find command{variable.binary->module, 0};
  const Tail name{variable.name, std::strlen(variable.name) + 1};
  const uint32_t status = sender().call(Op::kFindVariable, command, &facts, sizeof facts, name);
  if (status != 0) return static_cast<cudaError_t>(status);
  variable.address = facts.address;
  variable.bytes = facts.bytes;
  return cudaSuccess;
}

// ---- Memory -------------------------------------------------------------------------------------

cudaError_t Client::allocate(void** pointer, uint64_t bytes) {
  const std::lock_guard lock(mutex_);
  Sender& device = sender();
  std::optional<ArenaMap::Block> block = arena_.allocate(bytes);
  if (!block && !kept_.empty()) {
    drop_kept();
    block = arena_.allocate(bytes);
  }
  if (!block) return cudaErrorMemoryAllocation;
  // Other processes may hold the device's memory.
  const uint32_t status = device.call(Op::kMap, Map{block->address, std::max<uint64_t>(bytes, 1)});
  if (status != 0) {
    const bool is_released = arena_.release(block->address).has_value();
    MC_CHECK(is_released);
    return static_cast<cudaError_t>(status);
  }
  *pointer = reinterpret_cast<void*>(block->address);
  return cudaSuccess;
}

cudaError_t Client::release(void* pointer) {
  if (pointer == nullptr) return cudaSuccess;
  const std::lock_guard lock(mutex_);
  const auto block = arena_.release(reinterpret_cast<uint64_t>(pointer));
  if (!block) return cudaErrorInvalidValue;
  bytes_in_order_.erase(block->address);
  sender().send(Op::kUnmap, Map{block->address, block->bytes});
  return cudaSuccess;
}

cudaError_t Client::allocate_in_order(void** pointer, uint64_t bytes, cudaStream_t stream) {
  const std::lock_guard lock(mutex_);
  const auto [first, last] = kept_.equal_range(bytes);
  for (auto kept = first; kept != last; ++kept) {
    if (kept->second.stream != stream) continue;
    *pointer = reinterpret_cast<void*>(kept->second.address);
    kept_.erase(kept);
    return cudaSuccess;
  }
  const cudaError_t status = allocate(pointer, bytes);
  if (status == cudaSuccess) bytes_in_order_[reinterpret_cast<uint64_t>(*pointer)] = bytes;
  return status;
}

cudaError_t Client::release_in_order(void* pointer, cudaStream_t stream) {
  if (pointer == nullptr) return cudaSuccess;
  const std::lock_guard lock(mutex_);
  const auto block = arena_.block_of(reinterpret_cast<uint64_t>(pointer));
  if (!block || block->address != reinterpret_cast<uint64_t>(pointer)) return cudaErrorInvalidValue;
  const auto known = bytes_in_order_.find(block->address);
  if (known == bytes_in_order_.end()) return release(pointer);
  kept_.emplace(known->second, Kept{block->address, stream});
  return cudaSuccess;
}

void Client::drop_kept() {
  for (const auto& [bytes, kept] : kept_) release(reinterpret_cast<void*>(kept.address));
  kept_.clear();
}

bool Client::is_on_device(const void* pointer) {
  if (!sender_.is_open()) return false;
  const auto address = reinterpret_cast<uint64_t>(pointer);
  const Page& page = sender_.page();
  if (address >= page.arena && address < page.arena + page.arena_bytes) return true;
  if (address >= page.regions && address < page.regions + page.regions_bytes) return true;
  const std::lock_guard lock(mutex_);
  for (const auto& [host, variable] : variables_) {
    if (variable->address != 0 && address >= variable->address &&
        address < variable->address + variable->bytes) {
      return true;
    }
  }
  return false;
}

void* Client::allocate_host(uint64_t bytes) {
  void* memory = std::aligned_alloc(4096, (bytes + 4095) / 4096 * 4096 + 4096);
  const std::lock_guard lock(mutex_);
  if (memory != nullptr) host_blocks_[memory] = bytes;
  return memory;
}

bool Client::release_host(void* pointer) {
  const std::lock_guard lock(mutex_);
  if (host_blocks_.erase(pointer) == 0) return false;
  std::free(pointer);
  return true;
}

bool Client::is_allocated_host(const void* pointer) {
  const std::lock_guard lock(mutex_);
  auto next = host_blocks_.upper_bound(pointer);
  if (next == host_blocks_.begin()) return false;
  --next;
  return static_cast<const char*>(pointer) < static_cast<const char*>(next->first) + next->second;
}

uint64_t Client::bytes_used() {
  const std::lock_guard lock(mutex_);
  return arena_.bytes_used();
}

}  // namespace mc::device
