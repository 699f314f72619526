// SPDX-License-Identifier: Apache-2.0
#include "runtime/report.h"

#include <dlfcn.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstring>

#include "runtime/mc_emu.h"

namespace mc::emu {
namespace {

constexpr size_t kLineMax = 2048;

// Copies `text` as the inside of a JSON string, cut off at the end of the buffer.
struct Escaped {
  explicit Escaped(const char* source) {
    size_t n = 0;
    for (; *source != '\0' && n + 8 < sizeof(text); ++source) {
      const unsigned char c = static_cast<unsigned char>(*source);
      if (c == '"' || c == '\\') {
        text[n++] = '\\';
        text[n++] = static_cast<char>(c);
      } else if (c < 0x20 || c >= 0x7F) {
        n += static_cast<size_t>(std::snprintf(text + n, 7, "\\u%04x", c));
      } else {
        text[n++] = static_cast<char>(c);
      }
    }
    text[n] = '\0';
  }
  char text[512];
};

}  // namespace

bool Report::open(int fd) {
  struct stat status{};
  if (fstat(fd, &status) != 0) return false;
  if (recv(fd, key_, sizeof key_, 0) != sizeof key_) {
    errno = EPROTO;
    return false;
  }
  fd_ = fd;
  inode_ = status.st_ino;
  num_lines_ = 0;
  num_seen_ = 0;
  return true;
}

void Report::add(const Finding& finding) {
  while (busy_.test_and_set(std::memory_order_acquire)) {
  }
  if (is_open() && num_lines_ < kMcEmuFindingsMax && !is_duplicate(finding)) {
    const CodePlace place = locate(finding.pc);
    const CodePlace other = locate(finding.other_pc);  // The same module: it is the same kernel.
    char line[kLineMax];
    const int n = std::snprintf(
        line, sizeof line,
        "\"kind\":\"%s\",\"kernel\":\"%s\",\"block\":[%u,%u,%u],\"thread\":[%u,%u,%u],"
        "\"pc\":%zu,\"module\":\"%s\",\"other_pc\":%zu,\"detail\":\"%s\"",
        finding.kind, Escaped(finding.kernel).text, finding.block[0], finding.block[1],
        finding.block[2], finding.thread[0], finding.thread[1], finding.thread[2],
        static_cast<size_t>(place.offset), Escaped(place.module).text,
        static_cast<size_t>(other.offset), Escaped(finding.detail).text);
    if (n > 0 && static_cast<size_t>(n) < sizeof line) {
      send(line, static_cast<size_t>(n));
      ++num_lines_;
    }
  }
  busy_.clear(std::memory_order_release);
}

void Report::add(const Call& call) {
  char line[kLineMax];
  const int n = call.describe(line, sizeof line);
  if (is_open() && n > 0) send(line, static_cast<size_t>(n));
  num_lines_ = 0;
  const auto is_lack = [](const Key& key) { return std::strcmp(key.kind, "unsupported") == 0; };
  num_seen_ = static_cast<int>(std::remove_if(seen_, seen_ + num_seen_, is_lack) - seen_);
}

// A process that closed, replaced or filled the socket hides something: it ends.
void Report::send(const char* body, size_t size) {
  char line[kLineMax + 64];
  const int lead = std::snprintf(line, sizeof line, "{\"key\":\"%016zx%016zx\",",
                                 static_cast<size_t>(key_[0]), static_cast<size_t>(key_[1]));
  std::memcpy(line + lead, body, size);
  line[static_cast<size_t>(lead) + size] = '}';
  const size_t length = static_cast<size_t>(lead) + size + 1;
  struct stat status{};
  if (fstat(fd_, &status) != 0 || status.st_ino != inode_ ||
      ::send(fd_, line, length, MSG_DONTWAIT | MSG_NOSIGNAL) != static_cast<ssize_t>(length)) {
    _exit(kMcEmuReportLost);
  }
}

bool Report::is_duplicate(const Finding& finding) {
  for (int i = 0; i < num_seen_; ++i) {
    if (seen_[i].pc == finding.pc && std::strcmp(seen_[i].kind, finding.kind) == 0) return true;
  }
  if (num_seen_ < 64) seen_[num_seen_++] = {finding.kind, finding.pc};
  return false;
}

CodePlace locate(uintptr_t pc) {
  Dl_info info{};
  if (pc == 0 || dladdr(reinterpret_cast<void*>(pc), &info) == 0 || info.dli_fname == nullptr) {
    return {};
  }
  const char* slash = std::strrchr(info.dli_fname, '/');
  return {slash == nullptr ? info.dli_fname : slash + 1,
          pc - reinterpret_cast<uintptr_t>(info.dli_fbase)};
}

}  // namespace mc::emu
