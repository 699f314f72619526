// SPDX-License-Identifier: Apache-2.0
#include "check/command.h"

#include <cstdlib>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/check.h"
#include "core/fd.h"
#include "core/file.h"
#include "core/process.h"

namespace mc::check {
namespace {

namespace fs = std::filesystem;

// Our script sets the flags for the architecture and the runtime; all other flags are the caller's.
constexpr std::string_view kNvcc = R"(#!/bin/sh
is_value=
for word do
  shift
  if [ -n "$is_value" ]; then is_value=; continue; fi
  case "$word" in
    -arch|-code|-gencode|-cudart|--gpu-architecture|--gpu-code|--generate-code|--cudart)
      is_value=1; continue ;;
    -arch=*|-code=*|-gencode=*|-cudart=*) continue ;;
    --gpu-architecture=*|--gpu-code=*|--generate-code=*|--cudart=*) continue ;;
    -lcudart|-lcudart_static) continue ;;
    @RELOCATABLE@)
      echo "musacoder check: $word: @REFUSAL@" >&2; exit 2 ;;
  esac
  set -- "$@" "$word"
done
exec @NVCC@ "$@"
)";

std::string in_quotes(std::string_view word) {
  std::string text = "'";
  for (const char c : word) text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  return text + "'";
}

std::string nvcc_script(const Tools& tools, const fs::path& folder) {
  std::string words = in_quotes(tools.runtime.nvcc.string());
  for (const std::string& flag : tools.runtime.code_flags) words += " " + in_quotes(flag);
  words += " " + std::string(kHostLines);
  words += " -cudart=none " + in_quotes("-L" + folder.string());
  std::string text(kNvcc);
  const auto put = [&](std::string_view mark, std::string_view value) {
    text.replace(text.find(mark), mark.size(), value);
  };
  put("@NVCC@", words);
  put("@RELOCATABLE@", fmt::format("{}", fmt::join(kRelocatable, "|")));
  put("@REFUSAL@", kRefusal);
  const std::string_view end = "\"$@\"\n";
  MC_CHECK(text.ends_with(end));
  text.insert(text.size() - 1, " " + in_quotes("-l:" + tools.client.filename().string()));
  return text;
}

Status link_to(const fs::path& target, const fs::path& link) {
  std::error_code failure;
  fs::create_symlink(target, link, failure);
  return failure ? Status(Error{ErrorCode::kUnavailable, link.string() + ": " + failure.message()})
                 : ok();
}

// Sets the variables in this process, too, because its PATH determines the nvcc that a command
// finds.
void set_environment(const fs::path& toolkit, const fs::path& reports) {
  std::error_code failure;
  const char* const path = std::getenv("PATH");
  const auto set = [](const char* name, const fs::path& value) {
    ::setenv(name, value.c_str(), /*replace=*/1);
  };
  set("PATH", (toolkit / "bin").string() + ":" + (path == nullptr ? "/usr/bin:/bin" : path));
  set("CUDA_HOME", toolkit);
  set("CUDA_PATH", toolkit);
  set("CUDACXX", toolkit / "bin/nvcc");
  const char* const libraries = std::getenv("LD_LIBRARY_PATH");
  set("LD_LIBRARY_PATH",
      (toolkit / "lib64").string() + (libraries == nullptr ? "" : std::string(":") + libraries));
  set(kProgramVariable, fs::read_symlink("/proc/self/exe", failure));
  set(kReportsVariable, reports);
}

}  // namespace

Status make_toolkit(const Tools& tools, const fs::path& folder) {
  std::error_code failure;
  fs::create_directories(folder / "bin", failure);
  for (const auto& entry : fs::directory_iterator(tools.runtime.nvcc.parent_path(), failure)) {
    const fs::path name = entry.path().filename();
    if (name != "nvcc") MC_TRY_VOID(link_to(entry.path(), folder / "bin" / name), "check");
  }
  const fs::path nvcc = folder / "bin/nvcc";
  MC_TRY_VOID(write_file_atomically(nvcc, nvcc_script(tools, folder / "lib64")), "check");
  fs::permissions(nvcc, fs::perms::owner_exec, fs::perm_options::add, failure);
  if (failure) return Error{ErrorCode::kUnavailable, nvcc.string() + ": " + failure.message()};
  MC_TRY_VOID(link_to(tools.runtime.root / "include", folder / "include"), "check");
  return link_libraries(tools, folder / "lib64");
}

Tools tools_of_command(const Layout& layout) {
  const char* const client = std::getenv(kClientVariable);
  return {{}, client == nullptr ? "" : client, layout.library(kExecutor)};
}

Result<int> run_command(const Tools& tools, const std::vector<std::string>& words,
                        const fs::path& toolkit, const fs::path& reports) {
  MC_CHECK(!words.empty());
  set_environment(toolkit, reports);
  ::setenv(kClientVariable, tools.client.c_str(), /*replace=*/1);
  const auto child = start_program({.argv = words});
  if (!child) return invalid(child.error().message);
  MC_TRY(const int status, wait_for_end(*child), words.front());
  return WIFEXITED(status) ? WEXITSTATUS(status) : 128 + WTERMSIG(status);
}

}  // namespace mc::check
