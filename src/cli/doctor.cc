// SPDX-License-Identifier: Apache-2.0
#include "cli/doctor.h"

#include <algorithm>
#include <cerrno>
#include <charconv>
#include <cstdlib>
#include <filesystem>
#include <iostream>
#include <iterator>
#include <optional>
#include <sstream>
#include <string_view>
#include <system_error>
#include <thread>

#include <fmt/format.h>
#include <sys/resource.h>
#include <sys/utsname.h>
#include <unistd.h>

#include "cli/commands.h"
#include "compile/pytorch.h"
#include "compile/tool.h"
#include "core/check.h"
#include "core/file.h"
#include "core/layout.h"
#include "sandbox/features.h"
#include "task/suite.h"
#include "task/text.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;

constexpr int kGxxMajorMin = 12;
constexpr double kMemoryGiBMin = 4;
constexpr double kCacheGiBMin = 2;  // A precompiled header alone takes about half a GiB.
constexpr double kGiB = 1 << 30;
constexpr const char* kSetUp = "./run.sh setup";
constexpr const char* kBuild = "./run.sh build";

using Facts = std::vector<Fact>;

bool is_there(const fs::path& path) {
  std::error_code ignored;
  return fs::exists(path, ignored);
}

// The value of `key` in a file with lines "key value" or "key=value".
std::string value_in_file(const char* path, std::string_view key) {
  const auto text = read_file(path, 1 << 20);
  if (!text) return "";
  std::istringstream lines(*text);
  for (std::string line; std::getline(lines, line);) {
    if (!line.starts_with(key)) continue;
    const size_t begin = line.find_first_not_of(" :=\"\t", key.size());
    const size_t end = line.find_last_not_of(" \"\t");
    return begin == std::string::npos ? "" : line.substr(begin, end - begin + 1);
  }
  return "";
}

// The first number in a text, or 0.
int64_t first_number(std::string_view text) {
  const size_t begin = text.find_first_of("0123456789");
  int64_t number = 0;
  if (begin != std::string_view::npos) {
    std::from_chars(text.data() + begin, text.data() + text.size(), number);
  }
  return number;
}

std::string first_line(const std::string& text) { return text.substr(0, text.find('\n')); }

// ---- Machine ------------------------------------------------------------------------------------

void probe_hardware(Facts& facts) {
  utsname system{};
  ::uname(&system);
  const std::string distribution = value_in_file("/etc/os-release", "PRETTY_NAME");
  facts.push_back({"machine", "system", State::kPresent,
                   fmt::format("{}, Linux {}, {}", distribution, system.release, system.machine),
                   ""});
  facts.push_back({"machine", "CPU cores", State::kPresent,
                   std::to_string(std::thread::hardware_concurrency()), ""});
  const double available =
      static_cast<double>(first_number(value_in_file("/proc/meminfo", "MemAvailable"))) / (1 << 20);
  const double total =
      static_cast<double>(first_number(value_in_file("/proc/meminfo", "MemTotal"))) / (1 << 20);
  const bool is_enough = available >= kMemoryGiBMin;
  facts.push_back({"machine", "memory", is_enough ? State::kPresent : State::kOptional,
                   fmt::format("{:.1f} GiB, {:.1f} GiB available", total, available),
                   is_enough ? "" : "close other programs, or judge with --jobs 1 --memory 2GiB"});
}

std::string limit_text(int resource) {
  rlimit limit{};
  ::getrlimit(static_cast<__rlimit_resource>(resource), &limit);
  return limit.rlim_cur == RLIM_INFINITY ? "unlimited" : std::to_string(limit.rlim_cur);
}

void probe_limits(Facts& facts) {
  // The kernel's default limit; PyTorch and its libraries create many mappings.
  constexpr int64_t kMapsMin = 65530;
  facts.push_back({"limits", "open files", State::kPresent, limit_text(RLIMIT_NOFILE), ""});
  facts.push_back({"limits", "processes", State::kPresent, limit_text(RLIMIT_NPROC), ""});
  const auto text = read_file("/proc/sys/vm/max_map_count", 100);
  const int64_t maps = text ? first_number(*text) : 0;
  const bool is_enough = maps >= kMapsMin;
  facts.push_back({"limits", "memory maps", is_enough ? State::kPresent : State::kOptional,
                   std::to_string(maps),
                   is_enough ? "" : fmt::format("sysctl -w vm.max_map_count={}", kMapsMin)});
}

// ---- Tools --------------------------------------------------------------------------------------

void probe_compiler(Facts& facts) {
  Fact fact{"compilers", "g++", State::kMissing, "", "apt-get install g++ binutils"};
  const auto version = compile::run_tool({"g++", "-dumpfullversion"});
  if (!version) {
    fact.detail = "not found";
  } else if (first_number(*version) < kGxxMajorMin) {
    fact.detail = fmt::format("{}, but {} or newer is needed", first_line(*version), kGxxMajorMin);
    fact.remedy = fmt::format("apt-get install g++-{}", kGxxMajorMin);
  } else {
    fact = {"compilers", "g++", State::kPresent, first_line(*version), ""};
  }
  facts.push_back(fact);
}

void probe_pytorch(const fs::path& python, const Result<compile::PyTorch>& found, Facts& facts) {
  if (!found) {
    facts.push_back(
        {"Python", "PyTorch", State::kMissing, found.error().message,
         fmt::format("{} (or: {} -m pip install torch==2.11.0)", kSetUp, python.string())});
    return;
  }
  facts.push_back({"Python", "interpreter", State::kPresent,
                   fmt::format("{}, {}", found->python_version, found->python.string()), ""});
  facts.push_back({"Python", "PyTorch", State::kPresent, found->version, ""});
  const bool has_headers = is_there(found->python_include / "Python.h");
  facts.push_back({"Python", "Python.h", has_headers ? State::kPresent : State::kMissing,
                   found->python_include.string(),
                   has_headers ? "" : "apt-get install python3-dev"});
  const bool has_torch_headers = is_there(found->root / "include/torch/extension.h");
  facts.push_back(
      {"Python", "PyTorch headers", has_torch_headers ? State::kPresent : State::kMissing,
       (found->root / "include").string(),
       has_torch_headers
           ? ""
           : fmt::format("{} -m pip install --force-reinstall torch=={}", python.string(),
                         found->version.substr(0, found->version.find('+')))});
}

// ---- Own parts ----------------------------------------------------------------------------------

void probe_installation(Facts& facts) {
  const auto layout = find_layout();
  if (!layout) {
    facts.push_back({"installation", "files", State::kMissing, layout.error().message, kBuild});
    return;
  }
  for (const char* library : {"libmc_ptx_executor.so", "libmc_sandbox.so"}) {
    const bool is_present = is_there(layout->library(library));
    facts.push_back({"installation", library, is_present ? State::kPresent : State::kMissing,
                     layout->library(library).string(), is_present ? "" : kBuild});
  }
  const auto tasks = task::load_suite(layout->share("data/tasks"), "own");
  facts.push_back({"installation", "tasks", tasks ? State::kPresent : State::kOptional,
                   tasks ? std::to_string(tasks->size()) : tasks.error().message,
                   tasks ? "" : kBuild});
}

// The nearest existing parent directory, because a missing cache directory will be created there.
fs::path existing_part(fs::path path) {
  while (!is_there(path) && path.has_relative_path()) path = path.parent_path();
  return path;
}

void probe_cache(Facts& facts) {
  constexpr const char* kElsewhere = "set MC_CACHE_DIR to a folder that you can write";
  const fs::path cache = cache_directory();
  if (cache.empty()) {
    facts.push_back({"installation", "cache", State::kMissing, "HOME is not set, nor MC_CACHE_DIR",
                     kElsewhere});
    return;
  }
  if (::access(existing_part(cache).c_str(), W_OK | X_OK) != 0) {
    facts.push_back(
        {"installation", "cache", State::kMissing,
         cache.string() + " cannot be written: " + std::generic_category().message(errno),
         kElsewhere});
    return;
  }
  std::error_code failure;
  const fs::space_info space = fs::space(existing_part(cache), failure);
  const double free_gib = failure ? 0 : static_cast<double>(space.available) / kGiB;
  const bool is_enough = free_gib >= kCacheGiBMin;
  facts.push_back({"installation", "cache", is_enough ? State::kPresent : State::kMissing,
                   fmt::format("{}, {:.1f} GiB free", cache.string(), free_gib),
                   is_enough ? "" : "set MC_CACHE_DIR to a directory on a larger disk"});
}

void probe_kernelbench(Facts& facts) {
  const char* path = std::getenv("MC_KERNELBENCH");
  if (path == nullptr) {
    facts.push_back({"installation", "KernelBench", State::kOptional, "MC_KERNELBENCH is not set",
                     "export MC_KERNELBENCH=<a checkout, or a directory of level*.jsonl>"});
    return;
  }
  const auto tasks = task::load_suite(path, "kernelbench");
  facts.push_back({"installation", "KernelBench", tasks ? State::kPresent : State::kOptional,
                   tasks ? fmt::format("{} tasks", tasks->size()) : tasks.error().message,
                   tasks ? "" : "correct MC_KERNELBENCH"});
}

// ---- Backends and sandbox -----------------------------------------------------------------------

bool needs_nothing(const Facts& facts) {
  return std::none_of(facts.begin(), facts.end(),
                      [](const Fact& fact) { return fact.state == State::kMissing; });
}

void probe_sandbox(Facts& facts) {
  for (const sandbox::Feature& feature : sandbox::probe()) {
    const State without = feature.is_needed ? State::kMissing : State::kOptional;
    facts.push_back({"sandbox", feature.name, feature.is_available ? State::kPresent : without,
                     feature.why_not, feature.remedy});
  }
}

// ---- Report -------------------------------------------------------------------------------------

const char* state_text(State state) {
  switch (state) {
    case State::kPresent:
      return "ok";
    case State::kOptional:
      return "none";
    case State::kMissing:
      return "MISSING";
  }
  MC_CHECK(false);
}

std::string fact_line(const Fact& fact) {
  constexpr size_t kDetailBytesMax =
      300;  // The maximum bytes of a tool's message, which may have many lines.
  std::string line = fmt::format("  {:<8}{:<20}{}", state_text(fact.state), fact.name,
                                 task::plain_line(fact.detail, kDetailBytesMax));
  line.erase(line.find_last_not_of(' ') + 1);
  return line + '\n';
}

// The lines of a section.  If consecutive facts have the same remedy, it follows the last of them.
std::string section_lines(const Facts& facts, const std::string& section) {
  std::string text;
  std::string remedy;
  const auto add_remedy = [&] {
    if (!remedy.empty()) text += fmt::format("  {:<28}to add: {}\n", "", remedy);
  };
  for (const Fact& fact : facts) {
    if (fact.section != section) continue;
    if (fact.remedy != remedy) add_remedy();
    remedy = fact.remedy;
    text += fact_line(fact);
  }
  add_remedy();
  return text;
}

std::string conclusion(const Facts& facts) {
  std::vector<std::string> backends;
  for (const Fact& fact : facts) {
    const bool is_here = fact.section == "backends" && fact.state == State::kPresent;
    if (is_here) backends.push_back(fact.name);
  }
  if (can_judge(facts)) {
    return fmt::format("This machine can judge candidates with the {} {}.\n",
                       fmt::join(backends, " and "), backends.size() > 1 ? "backends" : "backend");
  }
  std::vector<std::string> remedies;
  for (const Fact& fact : facts) {
    const bool is_new = std::find(remedies.begin(), remedies.end(), fact.remedy) == remedies.end();
    if (fact.state == State::kMissing && !fact.remedy.empty() && is_new) {
      remedies.push_back(fact.remedy);
    }
  }
  std::string text = "This machine cannot judge candidates yet. First:\n";
  for (const std::string& remedy : remedies) text += "  " + remedy + '\n';
  const bool lacks_protection = std::any_of(facts.begin(), facts.end(), [](const Fact& fact) {
    return fact.section == "sandbox" && fact.state == State::kMissing;
  });
  if (lacks_protection) {
    text += "or judge without the missing protections: musacoder eval --allow-weak-sandbox\n";
  }
  return text;
}

}  // namespace

Facts backend_facts(std::span<const eval::Backend* const> backends, const compile::PyTorch* pytorch,
                    const Facts& common) {
  Facts facts;
  Facts answers;
  for (const eval::Backend* backend : backends) {
    Facts own = backend->look(pytorch);
    const bool is_here = needs_nothing(common) && needs_nothing(own);
    Fact answer{"backends", task::to_string(backend->name), State::kPresent, backend->summary, ""};
    if (!is_here) {
      answer.state = own.empty() ? State::kMissing : State::kOptional;
      answer.detail =
          "needs what " + (own.empty() ? "is missing above" : own[0].section + " lists");
    }
    answers.push_back(std::move(answer));
    for (Fact& fact : own) {
      if (fact.state == State::kMissing) fact.state = State::kOptional;
      facts.push_back(std::move(fact));
    }
  }
  std::ranges::move(answers, std::back_inserter(facts));
  return facts;
}

bool can_judge(const Facts& facts) { return needs_nothing(facts); }

std::string doctor_report(const Facts& facts) {
  std::vector<std::string> sections;
  for (const Fact& fact : facts) {
    if (std::find(sections.begin(), sections.end(), fact.section) == sections.end()) {
      sections.push_back(fact.section);
    }
  }
  std::string text;
  for (const std::string& section : sections) {
    text += section + '\n';
    text += section_lines(facts, section);
  }
  return text + '\n' + conclusion(facts);
}

Facts probe_machine() {
  const fs::path python = compile::default_python();
  const auto pytorch = compile::find_pytorch(python);
  Facts facts;
  probe_hardware(facts);
  probe_limits(facts);
  probe_compiler(facts);
  probe_pytorch(python, pytorch, facts);
  probe_installation(facts);
  probe_cache(facts);
  probe_kernelbench(facts);
  std::ranges::move(backend_facts(eval::backends(), pytorch ? &*pytorch : nullptr, facts),
                    std::back_inserter(facts));
  probe_sandbox(facts);
  return facts;
}

void add_doctor(CLI::App& app, int& exit_code) {
  CLI::App* command =
      app.add_subcommand("doctor", "Say what this machine can do, and how to get the rest");
  command->footer(
      "Example:\n"
      "  musacoder doctor");
  command->callback([&exit_code] {
    const Facts facts = probe_machine();
    std::cout << doctor_report(facts);
    exit_code = can_judge(facts) ? kExitDone : kExitMachine;
  });
}

}  // namespace mc::cli
