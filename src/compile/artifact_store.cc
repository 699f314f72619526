// SPDX-License-Identifier: Apache-2.0
#include "compile/artifact_store.h"

#include <system_error>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kManifestBytesMax = 16 << 20;
constexpr const char* kSchema = "musacoder-artifact/4";  // Another one is compiled anew.

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json json_of(const KernelResources& kernel) {
  return {{"kernel", kernel.kernel},
          {"name", kernel.name},
          {"registers", kernel.registers},
          {"spill_store_bytes", kernel.spill_store_bytes},
          {"spill_load_bytes", kernel.spill_load_bytes},
          {"stack_bytes", kernel.stack_bytes},
          {"shared_bytes", kernel.shared_bytes},
          {"constant_bytes", kernel.constant_bytes}};
}

// Throws nlohmann's exceptions.
KernelResources kernel_of(const Json& json) {
  return {json.at("kernel"),           json.at("name"),
          json.at("registers"),        json.at("spill_store_bytes"),
          json.at("spill_load_bytes"), json.at("stack_bytes"),
          json.at("shared_bytes"),     json.at("constant_bytes")};
}

Json manifest_of(const Artifact& artifact, const std::string& fingerprint) {
  Json kernels = Json::array();
  for (const KernelResources& kernel : artifact.kernels) kernels.push_back(json_of(kernel));
  return {{"schema", kSchema},
          {"name", artifact.module},
          {"key", artifact.key},
          {"toolchain", fingerprint},
          {"undefined_symbols",
           artifact.undefined_symbols ? Json(*artifact.undefined_symbols) : Json()},
          {"kernels", kernels},
          {"full_headers", artifact.full_headers}};
}

}  // namespace

fs::path library_in(const fs::path& directory, const Extension& extension) {
  return directory / (extension.name + ".so");
}

fs::path ArtifactStore::home_of(const Extension& extension,
                                const std::vector<std::string>& flags) const {
  Json json{{"key", extension.key},
            {"name", extension.name},
            {"cpp", extension.cpp_sources},
            {"cuda", extension.cuda_sources},
            {"functions", extension.functions},
            {"flags", flags}};
  for (const SourceFile& file : extension.files) json["files"].push_back({file.name, file.text});
  return root / content_hash({fingerprint, dump(json, -1)});
}

std::optional<Artifact> ArtifactStore::find(const fs::path& home,
                                            const Extension& extension) const {
  const auto text = read_file(home / "manifest.json", kManifestBytesMax);
  if (!text) return std::nullopt;
  try {
    const Json manifest = Json::parse(*text);
    Artifact artifact{extension.key, extension.name, library_in(home, extension), {}, {}, {}, true};
    if (manifest.at("schema") != kSchema) return std::nullopt;
    const Json& symbols = manifest.at("undefined_symbols");
    if (!symbols.is_null()) artifact.undefined_symbols = symbols.get<std::vector<std::string>>();
    for (const Json& kernel : manifest.at("kernels")) {
      artifact.kernels.push_back(kernel_of(kernel));
    }
    artifact.full_headers = manifest.at("full_headers");
    return artifact;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

Result<Artifact> ArtifactStore::publish(const fs::path& work, const fs::path& home,
                                        const Extension& extension,
                                        const Artifact& artifact) const {
  MC_TRY_VOID(
      write_file_atomically(work / "manifest.json", dump(manifest_of(artifact, fingerprint), 1)),
      "manifest");
  std::error_code failure;
  fs::rename(work, home, failure);
  if (!failure) return artifact;
  if (auto theirs = find(home, extension)) return std::move(*theirs);
  std::error_code ignored;
  fs::remove_all(home, ignored);  // Damaged.
  fs::rename(work, home, failure);
  if (failure) {
    return Error{ErrorCode::kIo, "cannot publish " + home.string() + ": " + failure.message()};
  }
  return artifact;
}

}  // namespace mc::compile
