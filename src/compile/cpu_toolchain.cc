// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  make_units() gives what load_inline would write: main.cpp (declarations and
// the binding) and cuda.cu.  When main.cpp only declares, both are compiled as one unit, which
// halves the time; when that fails with an error that two units would not have (a default argument
// given twice, say), they are compiled apart.  g++ runs in the sandbox in a private directory
// beside the cache; a finished directory is renamed into the cache, so that readers see all or
// nothing.
#include "compile/cpu_toolchain.h"

#include <algorithm>
#include <cmath>
#include <sstream>

#include <unistd.h>
#include <nlohmann/json.hpp>

#include "compile/diagnostics.h"
#include "core/file.h"
#include "core/hash.h"
#include "lex/rewrite.h"
#include "sandbox/run.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr int64_t kObjectBytesMax = int64_t{512} << 20;
constexpr size_t kSymbolsMax = 20000;
constexpr size_t kCompilerOutputBytesMax = 4 << 20;

// Flags of the candidate that mean something to g++; the rest (-O3, --use_fast_math, -gencode …)
// tune nvcc and change nothing here.
std::vector<std::string> definitions_of(const Extension& extension) {
  std::vector<std::string> kept;
  for (const auto* flags : {&extension.extra_cflags, &extension.extra_cuda_cflags}) {
    for (const std::string& flag : *flags) {
      if (flag.starts_with("-D") && std::ranges::find(kept, flag) == kept.end())
        kept.push_back(flag);
    }
  }
  return kept;
}

std::string hash_of(const Extension& extension, const std::string& fingerprint) {
  Json json{{"key", extension.key},
            {"name", extension.name},
            {"cpp", extension.cpp_sources},
            {"cuda", extension.cuda_sources},
            {"functions", extension.functions},
            {"flags", definitions_of(extension)}};
  for (const SourceFile& file : extension.files) json["files"].push_back({file.name, file.text});
  return content_hash({fingerprint, json.dump(-1, ' ', false, Json::error_handler_t::replace)});
}

struct Rewriting {
  std::vector<Unit> units;
  std::vector<SourceFile> files;
  task::Unsupported unsupported;
};

Rewriting rewrite(const Extension& extension, const PlaceMapper& mapper) {
  Rewriting result;
  const auto rewrite_one = [&](SourceFile& piece) {
    lex::Rewritten rewritten = lex::rewrite_for_cpu(piece.text);
    for (const lex::Unsupported& found : rewritten.unsupported) {
      result.unsupported.constructs.push_back(
          {"cpu.unsupported", found.construct + " (" + found.spelling + ")",
           mapper.map(piece.name, static_cast<int>(found.line), static_cast<int>(found.column))});
    }
    piece.text = std::move(rewritten.text);
  };
  result.units = make_units(extension);
  result.files = extension.files;
  for (Unit& unit : result.units) std::ranges::for_each(unit.pieces, rewrite_one);
  std::ranges::for_each(result.files, rewrite_one);
  return result;
}

// True when the C++ side defines nothing, so that it can stand behind the CUDA side in one unit.
bool only_declares(const Extension& extension) {
  return !extension.functions.empty() &&
         std::ranges::none_of(extension.cpp_sources, [](const std::string& text) {
           return text.find('{') != std::string::npos;
         });
}

std::string text_of(const Unit& unit) {
  std::string text;
  for (const SourceFile& piece : unit.pieces) {
    text += "#line 1 \"" + piece.name + "\"\n" + piece.text + "\n";
  }
  return text;
}

std::vector<Unit> joined(std::vector<Unit> units) {
  Unit& cuda = units.back();
  for (SourceFile& piece : units.front().pieces) cuda.pieces.push_back(std::move(piece));
  units.erase(units.begin());
  return units;
}

bool is_artifact_of_joining(const std::vector<task::Diagnostic>& diagnostics) {
  return std::ranges::any_of(diagnostics, [](const task::Diagnostic& entry) {
    return entry.message.find("redefinition") != std::string::npos ||
           entry.message.find("redeclar") != std::string::npos ||
           entry.message.find("default argument") != std::string::npos ||
           entry.message.find("ambiguous") != std::string::npos ||
           entry.message.find("conflict") != std::string::npos;
  });
}

// One run of g++ over the units in `directory`.
struct Job {
  const CpuRuntime& runtime;
  const Extension& extension;
  const PlaceMapper& mapper;
  const CompileLimits& limits;
  fs::path directory;
};

std::vector<std::string> compiler_arguments(const Job& job, const std::vector<Unit>& units) {
  std::vector<std::string> argv = {job.runtime.compiler.string(), "-shared",
                                   "-fdiagnostics-format=json",
                                   "-I" + job.runtime.directory.string()};
  argv.insert(argv.end(), job.runtime.flags.begin(), job.runtime.flags.end());
  argv.push_back("-I" + job.directory.string());
  argv.push_back("-DTORCH_EXTENSION_NAME=" + job.extension.name);
  for (const std::string& flag : definitions_of(job.extension)) argv.push_back(flag);
  argv.insert(argv.end(), {"-include", "mc_emu/prelude.h", "-x", "c++"});
  for (const Unit& unit : units) argv.push_back((job.directory / unit.file).string());
  argv.insert(argv.end(), {"-o", (job.directory / (job.extension.name + ".so")).string()});
  return argv;
}

sandbox::Command sandboxed(const Job& job, std::vector<std::string> argv) {
  sandbox::Command command;
  command.argv = std::move(argv);
  command.directory = job.directory;
  command.environment = {"PATH=/usr/local/bin:/usr/bin:/bin", "LC_ALL=C", "TMPDIR=/tmp"};
  command.profile.writable = {job.directory.string()};
  command.profile.visible = job.runtime.visible;
  const auto seconds = static_cast<int64_t>(std::ceil(job.limits.wall_s));
  command.profile.limits.cpu = std::chrono::seconds(seconds);
  command.profile.limits.wall = std::chrono::seconds(seconds);
  command.profile.limits.memory_bytes = static_cast<uint64_t>(job.limits.memory_bytes);
  command.profile.limits.file_bytes_max = kObjectBytesMax;
  if (job.limits.allow_weak_sandbox) command.profile = sandbox::lenient(command.profile);
  command.output_bytes_max = kCompilerOutputBytesMax;
  return command;
}

Status write_units(const Job& job, const std::vector<Unit>& units,
                   const std::vector<SourceFile>& files) {
  for (const SourceFile& file : files) {
    const fs::path path = job.directory / file.name;
    std::error_code failure;
    fs::create_directories(path.parent_path(), failure);
    MC_TRY_VOID(write_file_atomically(path, "#line 1 \"" + file.name + "\"\n" + file.text),
                "write a header of the extension");
  }
  for (const Unit& unit : units) {
    MC_TRY_VOID(write_file_atomically(job.directory / unit.file, text_of(unit)), "write a unit");
  }
  return ok();
}

std::vector<std::string> undefined_symbols(const Job& job) {
  auto listed =
      sandbox::run(sandboxed(job, {job.runtime.nm.string(), "-D", "--undefined-only",
                                   (job.directory / (job.extension.name + ".so")).string()}));
  std::vector<std::string> symbols;
  if (!listed) return symbols;
  std::istringstream stream(listed->out.text());
  for (std::string line; std::getline(stream, line) && symbols.size() < kSymbolsMax;) {
    const size_t name = line.find_first_not_of(" Uw");
    if (name != std::string::npos) symbols.push_back(line.substr(name, line.find('@') - name));
  }
  return symbols;
}

using Attempt = std::variant<Nothing, task::CompileFailed, task::TimedOut, task::OutOfMemory>;

// What g++ prints, and all that it tells, when the memory limit stops it.
bool ran_out_of_memory(const std::string& output) {
  return output.find("out of memory allocating") != std::string::npos ||
         output.find("virtual memory exhausted") != std::string::npos;
}

Result<Attempt> build(const Job& job, const std::vector<Unit>& units,
                      const std::vector<SourceFile>& files) {
  MC_TRY_VOID(write_units(job, units, files), "prepare a compilation");
  MC_TRY(const sandbox::Completed done,
         sandbox::run(sandboxed(job, compiler_arguments(job, units))), "run g++");
  if (std::holds_alternative<sandbox::TimedOut>(done.ending) ||
      std::holds_alternative<sandbox::CpuExceeded>(done.ending)) {
    return Attempt(task::TimedOut{"compile", job.limits.wall_s, {}});
  }
  if (std::holds_alternative<sandbox::MemoryExceeded>(done.ending)) {
    return Attempt(task::OutOfMemory{"compile", job.limits.memory_bytes});
  }
  if (sandbox::succeeded(done)) return Attempt(Nothing{});
  task::CompileFailed failed{parse_gcc_diagnostics(done.err.text(), job.mapper)};
  if (failed.diagnostics.empty() && ran_out_of_memory(done.err.text())) {
    return Attempt(task::OutOfMemory{"compile", job.limits.memory_bytes});
  }
  if (failed.diagnostics.empty()) {
    return Error{ErrorCode::kUnavailable, "g++ failed without a diagnostic (" +
                                              sandbox::describe(done.ending) +
                                              "): " + done.err.text().substr(0, 500)};
  }
  return Attempt(std::move(failed));
}

Status publish(const Job& job, const fs::path& home, const std::vector<std::string>& symbols) {
  const Json manifest{{"schema", "musacoder-artifact/1"},
                      {"name", job.extension.name},
                      {"key", job.extension.key},
                      {"toolchain", job.runtime.fingerprint},
                      {"undefined_symbols", symbols}};
  MC_TRY_VOID(write_file_atomically(job.directory / "manifest.json", manifest.dump(1)), "manifest");
  std::error_code failure;
  fs::rename(job.directory, home, failure);  // Fails when another process was first: as good.
  if (!fs::exists(home / "manifest.json")) {
    return Error{ErrorCode::kIo, "cannot publish " + home.string() + ": " + failure.message()};
  }
  return ok();
}

Result<std::vector<std::string>> symbols_in_manifest(const fs::path& home) {
  constexpr size_t kManifestBytesMax = 16 << 20;
  MC_TRY(const std::string text, read_file(home / "manifest.json", kManifestBytesMax), "artifact");
  const Json manifest = Json::parse(text, nullptr, false);
  if (!manifest.is_object()) return Error{ErrorCode::kIo, "damaged " + home.string()};
  return manifest.value("undefined_symbols", std::vector<std::string>{});
}

}  // namespace

Result<Compiled> CpuToolchain::compile(const Extension& extension, const PlaceMapper& mapper,
                                       const CompileLimits& limits) {
  const fs::path home = artifacts_ / hash_of(extension, runtime_.fingerprint);
  const auto artifact = [&](std::vector<std::string> symbols, bool cached) {
    return Artifact{extension.key, extension.name, home / (extension.name + ".so"),
                    std::move(symbols), cached};
  };
  if (auto symbols = symbols_in_manifest(home)) {
    return Compiled(artifact(std::move(symbols).value(), true));
  }
  Rewriting source = rewrite(extension, mapper);
  if (!source.unsupported.constructs.empty()) return Compiled(std::move(source.unsupported));

  MC_TRY(TemporaryDirectory work, TemporaryDirectory::create_in(artifacts_, "work"), "artifacts");
  const Job job{runtime_, extension, mapper, limits, work.path()};
  const bool join = source.units.size() == 2 && only_declares(extension);
  MC_TRY(Attempt attempt, build(job, join ? joined(source.units) : source.units, source.files),
         "compile");
  if (auto* failed = std::get_if<task::CompileFailed>(&attempt);
      failed != nullptr && join && is_artifact_of_joining(failed->diagnostics)) {
    MC_TRY(attempt, build(job, source.units, source.files), "compile");
  }
  if (auto* failed = std::get_if<task::CompileFailed>(&attempt))
    return Compiled(std::move(*failed));
  if (auto* late = std::get_if<task::TimedOut>(&attempt)) return Compiled(std::move(*late));
  if (auto* large = std::get_if<task::OutOfMemory>(&attempt)) return Compiled(std::move(*large));
  std::vector<std::string> symbols = undefined_symbols(job);
  MC_TRY_VOID(publish(job, home, symbols), "cache");
  return Compiled(artifact(std::move(symbols), false));
}

}  // namespace mc::compile
