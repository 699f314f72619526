// SPDX-License-Identifier: Apache-2.0
#include "compile/build.h"

#include <algorithm>
#include <cmath>
#include <sstream>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/check.h"
#include "core/file.h"
#include "core/log.h"
#include "sandbox/run.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

constexpr int64_t kObjectBytesMax = int64_t{512} << 20;
constexpr size_t kCompilerOutputBytesMax = 4 << 20;

constexpr int kNiceness = 19;
constexpr double kWallFactor = 8;  // The wall-clock limit only stops a compiler that waits.

// Folders with compilers, their headers and libraries in distributions and images, and the links
// between them.  A compiled source can read any visible file by an #include, so no other folder is
// visible.
std::vector<std::string> toolchain_paths() {
  std::vector<std::string> paths = {"/etc/alternatives", "/etc/ld.so.cache", "/lib", "/lib64"};
  for (const std::string prefix : {"/usr/", "/usr/local/"}) {
    for (const char* name : {"bin", "include", "lib", "lib32", "lib64", "libexec", "libx32"}) {
      paths.push_back(prefix + name);
    }
  }
  for (const char* triple : {"x86_64-linux-gnu", "aarch64-linux-gnu"}) {
    paths.push_back(std::string("/usr/") + triple);
  }
  std::erase_if(paths, [](const std::string& path) {
    std::error_code failure;  // A link in the root folder is a link in the sandbox, too.
    return !fs::exists(path, failure) || fs::is_symlink(path, failure);
  });
  return paths;
}

std::string text_of(const Unit& unit) {
  std::string text;
  for (const SourceFile& piece : unit.pieces) {
    text += "#line 1 \"" + piece.name + "\"\n" + piece.text + "\n";
  }
  return text;
}

sandbox::Command sandboxed(const Build& build, std::vector<std::string> argv) {
  MC_CHECK(!argv.empty() && !build.directory.empty());
  MC_CHECK(build.limits.cpu_s > 0 && build.limits.memory_bytes > 0);
  sandbox::Command command;
  command.argv = std::move(argv);
  command.directory = build.directory;
  command.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp"};
  command.profile.writable = {build.directory.string()};
  command.profile.only_visible = true;
  command.profile.visible = toolchain_paths();
  command.profile.visible.insert(command.profile.visible.end(), build.visible.begin(),
                                 build.visible.end());
  const auto seconds = static_cast<int64_t>(std::ceil(build.limits.cpu_s));
  command.profile.limits.cpu = std::chrono::seconds(seconds);
  command.profile.limits.wall =
      std::chrono::milliseconds(std::llround(build.limits.cpu_s * kWallFactor * 1000));
  command.profile.limits.memory_bytes = static_cast<uint64_t>(build.limits.memory_bytes);
  command.profile.limits.file_bytes_max = kObjectBytesMax;
  if (build.stands_back) command.profile.limits.niceness = kNiceness;
  if (build.limits.allow_weak_sandbox) command.profile = sandbox::lenient(command.profile);
  command.output_bytes_max = kCompilerOutputBytesMax;
  return command;
}

// True where a name is too long, or uses another header's file as a folder.
bool is_bad_name(const std::error_code& failure) {
  return failure == std::errc::filename_too_long || failure == std::errc::not_a_directory ||
         failure == std::errc::file_exists;
}

}  // namespace

Result<BuildRun> run_in_sandbox(const Build& build, std::vector<std::string> argv) {
  log_debug(fmt::format("compile in {}: {}", build.directory.string(), fmt::join(argv, " ")));
  MC_TRY(const sandbox::Completed done, sandbox::run(sandboxed(build, std::move(argv))),
         "run a compiler");
  build.cpu_us += done.usage.cpu.count();
  log_debug(fmt::format("compile in {}: {} after {:.1f} CPU seconds", build.directory.string(),
                        sandbox::describe(done.ending),
                        static_cast<double>(done.usage.cpu.count()) / 1e6));
  if (std::holds_alternative<sandbox::TimedOut>(done.ending) ||
      std::holds_alternative<sandbox::CpuExceeded>(done.ending)) {
    return BuildRun(task::TimedOut{"compile", build.limits.cpu_s, {}});
  }
  if (std::holds_alternative<sandbox::MemoryExceeded>(done.ending)) {
    return BuildRun(task::OutOfMemory{"compile", build.limits.memory_bytes});
  }
  return BuildRun(ToolRun{sandbox::succeeded(done), done.out.text(), done.err.text(),
                          sandbox::describe(done.ending)});
}

fs::path headers_in(const Build& build) { return build.directory / "headers"; }

Status write_sources(const Build& build, const std::vector<Unit>& units,
                     const std::vector<SourceFile>& files) {
  for (const SourceFile& file : files) {
    // Names in a recording are checked when it is parsed.
    MC_CHECK(!file.name.starts_with('/') && file.name.find("..") == std::string::npos);
    const fs::path path = headers_in(build) / file.name;
    std::error_code failure;
    fs::create_directories(path.parent_path(), failure);
    if (is_bad_name(failure) || fs::is_directory(path, failure) || is_bad_name(failure)) continue;
    MC_TRY_VOID(write_file_atomically(path, "#line 1 \"" + file.name + "\"\n" + file.text),
                "write a header of the extension");
  }
  for (const Unit& unit : units) {
    MC_TRY_VOID(write_file_atomically(build.directory / unit.file, text_of(unit)), "write a unit");
  }
  return ok();
}

Result<Symbols> undefined_symbols(const Build& build, const fs::path& nm, const fs::path& library) {
  MC_TRY(const sandbox::Completed listed,
         sandbox::run(sandboxed(
             build, {nm.string(), "-D", "--undefined-only", "--format=posix", library.string()})),
         "run nm");
  if (!sandbox::succeeded(listed) || listed.out.is_truncated()) return Symbols();
  std::vector<std::string> symbols;
  std::istringstream stream(listed.out.text());
  for (std::string line; std::getline(stream, line);) {
    if (symbols.size() == kSymbolsMax) return Symbols();
    symbols.push_back(line.substr(0, line.find_first_of("@ ")));
  }
  return Symbols(std::move(symbols));
}

uintmax_t free_bytes(const fs::path& directory) {
  std::error_code failure;
  const fs::space_info space = fs::space(directory, failure);
  return failure ? 0 : space.available;
}

Result<task::CompileFailed> unexplained(const char* tool, const ToolRun& run, uintmax_t free) {
  MC_CHECK(!run.succeeded);
  constexpr size_t kShownBytes = 500;
  constexpr uintmax_t kFreeBytesMin = 64 << 20;
  const std::string printed = run.err + run.out;
  const std::string message =
      std::string(tool) + " failed (" + run.ending + "): " + printed.substr(0, kShownBytes);
  // A compiler's temporary files are in a memory file system of its own, which a source can fill.
  if (free < kFreeBytesMin && printed.find("No space left on device") != std::string::npos) {
    return Error{ErrorCode::kUnavailable, message};
  }
  return task::CompileFailed{{{"error", message, {}}}};
}

bool ran_out_of_memory(std::string_view output) {
  // The first two are messages of g++; the third is nvcc's about a program that the kernel killed;
  // the others are from nvcc's programs.
  constexpr std::string_view kPhrases[] = {"out of memory allocating",
                                           "virtual memory exhausted",
                                           "died due to signal 9",
                                           "std::bad_alloc",
                                           "LLVM ERROR: out of memory",
                                           "Memory allocation failure",
                                           "catastrophic error: out of memory"};
  return std::ranges::any_of(kPhrases, [&](std::string_view phrase) {
    return output.find(phrase) != std::string_view::npos;
  });
}

}  // namespace mc::compile
