// SPDX-License-Identifier: Apache-2.0
#include "compile/locator.h"

#include <charconv>
#include <sstream>

#include <fmt/format.h>

#include "sandbox/run.h"

namespace mc::compile {
namespace {

constexpr auto kLimit = std::chrono::seconds(20);

// The frames of an inlined call come innermost first, two lines each (function, file:line).  The
// first that lies in a piece of the candidate is the one to show.
task::SourceLocation first_own_place(const std::string& frames, const LocationMapper& mapper) {
  std::istringstream stream(frames);
  std::string function;
  std::string position;
  while (std::getline(stream, function) && std::getline(stream, position)) {
    const size_t colon = position.rfind(':');
    if (colon == std::string::npos) continue;
    int line = 0;
    std::from_chars(position.data() + colon + 1, position.data() + position.size(), line);
    const size_t slash = position.rfind('/', colon);
    const size_t begin = slash == std::string::npos ? 0 : slash + 1;
    task::SourceLocation location = mapper.map(position.substr(begin, colon - begin), line, 0);
    if (!location.excerpt.empty()) return location;
  }
  return {};
}

}  // namespace

task::SourceLocation Locator::locate(std::string_view module, uint64_t pc) {
  const auto key = std::pair(std::string(module), pc);
  if (const auto it = known_.find(key); it != known_.end()) return it->second;
  task::SourceLocation location;
  for (const Artifact& artifact : artifacts_) {
    if (artifact.library.filename() != module) continue;
    sandbox::Command command;
    command.argv = {runtime_.addr2line.string(), "-i", "-f", "-e", artifact.library.string(),
                    fmt::format("{:#x}", pc)};
    command.environment = {"LC_ALL=C"};
    command.profile.limits.wall = kLimit;
    command.profile.visible = {artifact.library.parent_path().string()};
    command.profile = sandbox::lenient(command.profile);
    if (const auto done = sandbox::run(command)) {
      location = first_own_place(done->out.text(), mapper_);
    }
  }
  known_[key] = location;
  return location;
}

}  // namespace mc::compile
