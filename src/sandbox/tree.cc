// SPDX-License-Identifier: Apache-2.0
#include "sandbox/tree.h"

#include <algorithm>
#include <csignal>
#include <cstdlib>
#include <filesystem>
#include <string>
#include <string_view>

#include "core/check.h"
#include "core/file.h"

namespace mc::sandbox {
namespace {

constexpr size_t kProcFileBytesMax = 1 << 20;
constexpr size_t kDescendantsMax = 10'000;
constexpr int kSignalRoundsMax = 100;

std::string proc_text(const std::string& path) {
  auto text = read_file(path, kProcFileBytesMax);
  return text ? std::move(*text) : std::string();
}

void append_children(pid_t pid, std::vector<pid_t>& pids) {
  std::error_code error;
  const std::string tasks = "/proc/" + std::to_string(pid) + "/task";
  for (std::filesystem::directory_iterator task(tasks, error), end; !error && task != end;
       task.increment(error)) {
    const std::string text = proc_text(task->path() / "children");
    for (const char* at = text.c_str(); *at != '\0';) {
      char* next = nullptr;
      const long child = std::strtol(at, &next, 10);
      if (next == at) break;
      pids.push_back(static_cast<pid_t>(child));
      at = next + (*next == ' ' ? 1 : 0);
    }
  }
}

uint64_t field(std::string_view status, std::string_view name) {
  const size_t at = status.find(name);
  if (at == std::string_view::npos) return 0;
  return std::strtoull(status.data() + at + name.size(), nullptr, 10);
}

}  // namespace

std::vector<pid_t> descendants(pid_t root) {
  MC_CHECK(root > 0);
  std::vector<pid_t> pids;
  append_children(root, pids);
  for (size_t i = 0; i < pids.size() && pids.size() < kDescendantsMax; ++i) {
    append_children(pids[i], pids);
  }
  return pids;
}

std::vector<pid_t> signal_descendants(pid_t root, int signal) {
  std::vector<pid_t> seen;
  for (int round = 0; round < kSignalRoundsMax; ++round) {
    size_t num_new = 0;
    for (const pid_t pid : descendants(root)) {
      if (std::ranges::count(seen, pid) != 0) continue;
      kill(pid, signal);
      seen.push_back(pid);
      ++num_new;
    }
    if (num_new == 0) break;
  }
  return seen;
}

TreeUse use_of(pid_t root) {
  const std::string status = proc_text("/proc/" + std::to_string(root) + "/status");
  const uint64_t kib = field(status, "\nRssAnon:") + field(status, "\nRssShmem:");
  return {kib * 1024, field(status, "\nThreads:")};
}

TreeUse use_of_descendants(pid_t root) {
  TreeUse sum;
  for (const pid_t pid : descendants(root)) {
    const TreeUse use = use_of(pid);
    sum.memory_bytes += use.memory_bytes;
    sum.num_threads += use.num_threads;
  }
  return sum;
}

}  // namespace mc::sandbox
