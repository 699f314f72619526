// SPDX-License-Identifier: Apache-2.0
//
// The vendors' libraries are loaded with PyTorch, and whoever has their address can call them.  But
// they do nothing without their device code, which CUDA reads out of these sections when a kernel
// is used for the first time.  The pages are replaced by inaccessible ones, so that no later
// mprotect brings them back.  Who needs the code dies by SIGSEGV at one of these addresses; the
// handler tells the supervisor before, in the place of the answer that it waits for.
#include <algorithm>
#include <cerrno>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include <elf.h>
#include <fcntl.h>
#include <link.h>
#include <sys/mman.h>
#include <unistd.h>
#include <csignal>

#include "mc_device.h"

namespace {

constexpr uintptr_t kPageBytes = 4096;
constexpr size_t kSectionsMax = 4096;
// The last two are of cuFFT and NCCL; the others have the first alone.
constexpr std::string_view kDeviceCode[] = {".nv_fatbin", ".ldata", "__nv_relfatbin"};
// Of libraries that compile device code, or load more libraries that hold some.
constexpr std::string_view kHostCode[] = {".text"};
constexpr std::string_view kToolmakers[] = {"libnvrtc", "libcudnn"};
// Whose device code fills, copies and draws random numbers.
constexpr std::string_view kKept[] = {"libtorch", "libc10"};

struct Pages {
  uintptr_t begin = 0;
  uintptr_t end = 0;
  std::string answer;  // To the question that the process dies of, as wire.py frames it.
};

struct Vendors {
  int channel = -1;
  std::vector<Pages> removed;
};

Vendors& vendors() {
  static Vendors* const instance = new Vendors;
  return *instance;
}

class File {
 public:
  explicit File(const char* path) : fd_(open(path, O_RDONLY | O_CLOEXEC)) {}
  File(const File&) = delete;
  File& operator=(const File&) = delete;
  ~File() {
    if (fd_ >= 0) close(fd_);
  }

  bool read(void* target, size_t nbytes, uint64_t offset) const {
    return pread(fd_, target, nbytes, static_cast<off_t>(offset)) == static_cast<ssize_t>(nbytes);
  }

 private:
  int fd_;
};

bool starts_with_one_of(std::span<const std::string_view> beginnings, std::string_view name) {
  return std::ranges::any_of(beginnings,
                             [&](auto beginning) { return name.starts_with(beginning); });
}

// The sections of a file with these names; none where it cannot be read as ELF.
std::vector<Elf64_Shdr> sections_of(const char* path, std::span<const std::string_view> wanted) {
  const File file(path);
  Elf64_Ehdr header;
  if (!file.read(&header, sizeof header, 0) || header.e_shnum > kSectionsMax ||
      header.e_shstrndx >= header.e_shnum) {
    return {};
  }
  std::vector<Elf64_Shdr> sections(header.e_shnum);
  if (!file.read(sections.data(), sections.size() * sizeof(Elf64_Shdr), header.e_shoff)) return {};
  const Elf64_Shdr& strings = sections[header.e_shstrndx];
  std::string names(strings.sh_size, '\0');
  if (!file.read(names.data(), names.size(), strings.sh_offset)) return {};
  std::erase_if(sections, [&](const Elf64_Shdr& section) {
    const std::string_view name =
        section.sh_name < names.size() ? names.c_str() + section.sh_name : "";
    return (section.sh_flags & SHF_ALLOC) == 0 || std::ranges::count(wanted, name) == 0;
  });
  return sections;
}

std::string framed(const std::string& message) {
  const auto size = static_cast<uint32_t>(message.size());
  std::string frame(sizeof size, '\0');
  std::memcpy(frame.data(), &size, sizeof size);
  return frame + message;
}

std::string refusal_of(const std::string& library) {
  return framed(
      R"({"ok": false, "error": {"kind": "library", "type": "VendorLibrary", "message": ")" +
      library + R"( is not available to a candidate", "frames": []}})");
}

std::string file_name(const char* path) {
  const std::string_view whole(path);
  return std::string(whole.substr(whole.rfind('/') + 1));
}

// What remains at both ends is less than a page.
bool remove(uintptr_t address, uint64_t nbytes, const std::string& library) {
  const uintptr_t begin = (address + kPageBytes - 1) / kPageBytes * kPageBytes;
  const uintptr_t end = (address + nbytes) / kPageBytes * kPageBytes;
  if (begin >= end) return true;
  void* const pages = reinterpret_cast<void*>(begin);
  const int flags = MAP_PRIVATE | MAP_ANONYMOUS | MAP_FIXED | MAP_NORESERVE;
  if (mmap(pages, end - begin, PROT_NONE, flags, -1, 0) == MAP_FAILED) return false;
  vendors().removed.push_back({begin, end, refusal_of(library)});
  return true;
}

int remove_from(dl_phdr_info* object, size_t, void* failed) {
  const std::string name = file_name(object->dlpi_name);
  if (name.empty() || starts_with_one_of(kKept, name)) return 0;
  using Names = std::span<const std::string_view>;
  const auto wanted = starts_with_one_of(kToolmakers, name) ? Names(kHostCode) : Names(kDeviceCode);
  for (const Elf64_Shdr& section : sections_of(object->dlpi_name, wanted)) {
    if (!remove(object->dlpi_addr + section.sh_addr, section.sh_size, name)) {
      *static_cast<int*>(failed) = errno;
    }
  }
  return 0;
}

// The fault comes again after the return, and then ends the process.
void on_fault(int number, siginfo_t* fault, void*) {
  const auto address = reinterpret_cast<uintptr_t>(fault->si_addr);
  for (const Pages& pages : vendors().removed) {
    if (address < pages.begin || address >= pages.end) continue;
    [[maybe_unused]] const ssize_t told =
        write(vendors().channel, pages.answer.data(), pages.answer.size());
    _exit(1);
  }
  std::signal(number, SIG_DFL);
}

}  // namespace

int mc_vendors_remove(int channel) {
  if (!vendors().removed.empty()) return 0;
  vendors().channel = channel;
  int failed = 0;
  dl_iterate_phdr(remove_from, &failed);
  if (failed != 0) return failed;
  struct sigaction action{};
  action.sa_sigaction = on_fault;
  action.sa_flags = SA_SIGINFO | SA_ONSTACK;
  return sigaction(SIGSEGV, &action, nullptr) == 0 ? 0 : errno;
}
