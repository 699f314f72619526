// SPDX-License-Identifier: Apache-2.0
#include "musify/tree.h"

#include <algorithm>
#include <array>
#include <map>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>

namespace mc::musify {
namespace {

namespace fs = std::filesystem;

constexpr std::array<std::string_view, 8> kCppSuffixes = {".cu",  ".cuh", ".mu", ".muh",
                                                          ".cpp", ".cc",  ".h",  ".hpp"};
constexpr const char* kExpected = "expected .py, .cu, .cuh, .mu, .muh, .cpp, .cc, .h or .hpp";

std::optional<Language> language_of(const fs::path& path) {
  const std::string suffix = path.extension();
  if (suffix == ".py") return Language::kPython;
  if (std::ranges::find(kCppSuffixes, suffix) != kCppSuffixes.end()) return Language::kCpp;
  return std::nullopt;
}

fs::path renamed(fs::path path, const Rules& rules) {
  for (const Pair& suffix : rules.suffixes) {
    if (path.extension() == suffix.from) return path.replace_extension(suffix.to);
  }
  return path;
}

bool is_hidden(const fs::path& path) { return path.filename().string().starts_with('.'); }

Result<std::vector<fs::path>> files_below(const fs::path& folder) {
  std::vector<fs::path> files;
  std::error_code problem;
  auto entry = fs::recursive_directory_iterator(folder, problem);
  for (; !problem && entry != fs::recursive_directory_iterator(); entry.increment(problem)) {
    if (is_hidden(entry->path())) {
      entry.disable_recursion_pending();
      continue;
    }
    if (entry->is_symlink() || !entry->is_regular_file() || !language_of(entry->path())) continue;
    files.push_back(entry->path());
    if (files.size() > kSourcesMax) {
      return invalid(folder.string() + ": more than " + std::to_string(kSourcesMax) + " sources");
    }
  }
  if (problem) return Error{ErrorCode::kIo, folder.string() + ": " + problem.message()};
  std::ranges::sort(files);
  return files;
}

Status add_folder(const fs::path& folder, const Rules& rules, std::vector<Source>& sources) {
  MC_TRY(const std::vector<fs::path> files, files_below(folder), "find sources");
  if (files.empty()) {
    return invalid(folder.string() + ": no sources in this folder: " + kExpected);
  }
  for (const fs::path& file : files) {
    sources.push_back({file, renamed(file.lexically_relative(folder), rules), *language_of(file)});
  }
  return ok();
}

Status add_path(const fs::path& path, const Rules& rules, std::vector<Source>& sources) {
  std::error_code ignored;
  if (fs::is_directory(path, ignored)) return add_folder(path, rules, sources);
  if (!fs::exists(path, ignored)) {
    return Error{ErrorCode::kNotFound, path.string() + ": no such file or folder"};
  }
  const std::optional<Language> language = language_of(path);
  if (!language || !fs::is_regular_file(path, ignored)) {
    return invalid(path.string() + ": not a source: " + kExpected);
  }
  sources.push_back({path, renamed(path.filename(), rules), *language});
  return ok();
}

}  // namespace

Result<std::vector<Source>> find_sources(const std::vector<std::string>& paths,
                                         const Rules& rules) {
  std::vector<Source> sources;
  for (const std::string& path : paths) {
    if (const Status added = add_path(path, rules, sources); !added) return added.error();
  }
  return sources;
}

std::vector<Source> take_ported(std::vector<Source>& sources) {
  std::set<fs::path> kept;
  for (const Source& source : sources) {
    if (source.path.filename() == source.relative.filename()) kept.insert(source.path);
  }
  std::vector<Source> ported;
  std::erase_if(sources, [&](const Source& source) {
    const fs::path port = source.path.parent_path() / source.relative.filename();
    const bool is_ported = port != source.path && kept.contains(port);
    if (is_ported) ported.push_back(source);
    return is_ported;
  });
  return ported;
}

Status check_outputs(const std::vector<Source>& sources, const fs::path& folder) {
  std::error_code ignored;
  std::set<fs::path> inputs;
  for (const Source& source : sources) inputs.insert(fs::weakly_canonical(source.path, ignored));
  std::map<fs::path, fs::path> sources_of;
  for (const Source& source : sources) {
    const fs::path output = fs::weakly_canonical(folder / source.relative, ignored);
    if (inputs.contains(output)) {
      return invalid("--out: " + output.string() + " is an input: name another folder");
    }
    const auto [other, is_new] = sources_of.emplace(output, source.path);
    if (!is_new) {
      return invalid("--out: " + other->second.string() + " and " + source.path.string() +
                     " would both become " + output.string());
    }
  }
  return ok();
}

}  // namespace mc::musify
