// SPDX-License-Identifier: Apache-2.0
#include "eval/prepared.h"

#include <algorithm>
#include <memory>
#include <utility>

#include <nlohmann/json.hpp>

#include "compile/extension.h"
#include "compile/kernel_resources.h"
#include "core/file.h"
#include "core/hash.h"
#include "eval/machine.h"
#include "execute/children.h"
#include "task/verdict_json.h"

namespace mc::eval {

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Target, backend, architecture, pytorch, python, policy)

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Json json_of(const compile::Artifact& artifact, std::string_view library) {
  return {{"key", artifact.key},
          {"name", artifact.name},
          {"module", artifact.module},
          {"file", artifact.library.filename().string()},
          {"kernels", Json::parse(compile::to_json(artifact.kernels))},
          {"full_headers", artifact.full_headers},
          {"bytes", library.size()},
          {"hash", content_hash({library})}};
}

Error no_prepared(const std::string& why) {
  return {ErrorCode::kInvalidInput, "no prepared candidate: " + why};
}

// Removes the first line from `bytes` and returns it without its line break.
std::string_view take_line(std::string_view& bytes) {
  const size_t end = bytes.find('\n');
  const std::string_view line = bytes.substr(0, end);
  bytes.remove_prefix(end == std::string_view::npos ? bytes.size() : end + 1);
  return line;
}

// Reads an artifact from `json` and removes its library from the beginning of `bytes`.  Throws
// nlohmann's exceptions.
Result<compile::Artifact> take_artifact(const Json& json, std::string_view& bytes,
                                        const fs::path& directory) {
  compile::Artifact artifact{.key = json.at("key"),
                             .name = json.at("name"),
                             .module = json.at("module"),
                             .full_headers = json.at("full_headers")};
  MC_TRY(artifact.kernels, compile::kernels_from_json(json.at("kernels").dump()), "kernels");
  const fs::path file = json.at("file").get<std::string>();
  const auto size = json.at("bytes").get<size_t>();
  if (file.empty() || file != file.filename() || file == ".." || file == ".") {
    return no_prepared("a library's name is a path");
  }
  if (size > bytes.size() || json.at("hash") != content_hash({bytes.substr(0, size)})) {
    return no_prepared("a library is cut short or was changed");
  }
  artifact.library = directory / file;
  MC_TRY_VOID(write_file_atomically(artifact.library, bytes.substr(0, size)), "prepared");
  bytes.remove_prefix(size);
  return artifact;
}

// Throws nlohmann's exceptions.
Result<PreparedCandidate> prepared_from(const Json& json, std::string_view libraries,
                                        const fs::path& folder) {
  PreparedCandidate prepared{
      .task = {json.at("task").at("id"), json.at("task").at("name"), json.at("task").at("code")},
      .candidate = {json.at("candidate").at("id"), json.at("candidate").at("answer")},
      .target = json.at("target"),
      .source = json.at("source"),
      .recorded = json.at("recorded"),
      .artifacts = {},
      .verdict = {}};
  if (const auto read = compile::parse_extensions(prepared.recorded); !read) {
    return no_prepared(read.error().message);
  }
  MC_TRY(prepared.verdict, task::verdict_from_json(json.at("verdict").dump()), "verdict");
  MC_TRY(auto made, TemporaryDirectory::create_in(folder, "prepared"), "prepared");
  const auto directory = std::make_shared<TemporaryDirectory>(std::move(made));
  for (const Json& artifact : json.at("artifacts")) {
    const fs::path subfolder = directory->path() / std::to_string(prepared.artifacts.size());
    fs::create_directory(subfolder);
    MC_TRY(prepared.artifacts.emplace_back(), take_artifact(artifact, libraries, subfolder),
           "prepared");
    prepared.artifacts.back().lease = directory;
  }
  if (!libraries.empty()) return no_prepared("something follows its libraries");
  return prepared;
}

}  // namespace

std::string to_string(const Target& target) {
  std::string text = "backend " + target.backend;
  if (!target.architecture.empty()) text += " (" + target.architecture + ")";
  text += ", PyTorch " + target.pytorch + ", policy " + target.policy;
  return target.python.empty() ? text : text + ", Python " + target.python;
}

Target target_of(const Machine& machine, const std::string& policy,
                 const std::vector<compile::Artifact>& artifacts) {
  const bool needs_python =
      std::ranges::any_of(artifacts, [](const auto& one) { return !one.full_headers.empty(); });
  const std::string& python = machine.pytorch.python_version;
  return {task::to_string(machine.backend), machine.architecture, machine.pytorch.version,
          needs_python ? python.substr(0, python.rfind('.')) : "", policy};
}

Result<std::string> to_bytes(const PreparedCandidate& prepared) {
  std::string libraries;
  Json artifacts = Json::array();
  for (const compile::Artifact& artifact : prepared.artifacts) {
    MC_TRY(const std::string library, read_file(artifact.library, kPreparedBytesMax), "library");
    artifacts.push_back(json_of(artifact, library));
    libraries += library;
  }
  const task::Task& task = prepared.task;
  const task::Candidate& candidate = prepared.candidate;
  const Json json{
      {"task", {{"id", task.id}, {"name", task.name}, {"code", task.code}}},
      {"candidate", {{"id", candidate.id}, {"answer", candidate.answer}}},
      {"target", prepared.target},
      {"source", prepared.source},
      {"recorded", prepared.recorded},
      {"artifacts", std::move(artifacts)},
      {"verdict", Json::parse(task::to_json(prepared.verdict, task::Indent::kCompact))}};
  return std::string(kPreparedSchema) + "\n" +
         json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n" + libraries;
}

Result<PreparedCandidate> prepared_from_bytes(std::string_view bytes, const fs::path& folder) {
  if (take_line(bytes) != kPreparedSchema) {
    return no_prepared("its first line is not " + std::string(kPreparedSchema));
  }
  const std::string_view header = take_line(bytes);
  if (execute::nests_too_deeply(header)) return no_prepared("its JSON nests too deeply");
  try {
    return prepared_from(Json::parse(header), bytes, folder);
  } catch (const Json::exception&) {
    return no_prepared("its second line is not of the form");
  } catch (const fs::filesystem_error& failure) {
    return Error{ErrorCode::kIo, failure.what()};
  }
}

}  // namespace mc::eval
