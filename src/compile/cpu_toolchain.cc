// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  make_units() gives what load_inline would write: main.cpp (declarations and
// the binding) and cuda.cu.  When main.cpp only declares, both are compiled as one unit, which
// halves the time; when that fails with an error that two units would not have (a default argument
// given twice, say), they are compiled apart.  When the first error lies in a header that is not
// the candidate's, each header that it includes is compiled alone.  Where none fails, the
// candidate's text broke them.  Those that fail are taken out, since what is not needed is no
// offence; where what then fails in its own text did not fail before, it needs them, and this
// backend lacks what it wants.  A header of CUDA's that this backend does not have is taken out at
// once; cpu_lacks.h tells whether what then fails is its doing, or that of another name which CUDA
// has. g++ runs in the sandbox in a private directory beside the cache; a finished directory is
// renamed into the cache, so that readers see all or nothing.
#include "compile/cpu_toolchain.h"

#include <algorithm>
#include <cctype>
#include <chrono>

#include "compile/artifact_store.h"
#include "compile/build.h"
#include "compile/cpu_lacks.h"
#include "compile/device_code.h"
#include "compile/diagnostics.h"
#include "core/check.h"
#include "core/file.h"
#include "lex/rewrite.h"
#include "lex/token.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;
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

struct Rewriting {
  std::vector<Unit> units;
  std::vector<SourceFile> files;
  task::Unsupported unsupported;
};

bool is_blank(const SourceFile& piece) {
  return piece.text.find_first_not_of(" \t\r\n") == std::string::npos;
}

Rewriting rewrite(const Extension& extension, const LocationMapper& mapper) {
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
  // An empty main.cpp, as of cpp_sources="", would only cost time.
  if (result.units.size() == 2 && std::ranges::all_of(result.units.front().pieces, is_blank)) {
    result.units.erase(result.units.begin());
  }
  for (Unit& unit : result.units) {
    if (unit.file != "main.cpp") continue;
    unit.pieces.insert(unit.pieces.begin(), {"implicit", "#include <torch/extension.h>\n"});
  }
  result.files = extension.files;
  for (Unit& unit : result.units) std::ranges::for_each(unit.pieces, rewrite_one);
  std::ranges::for_each(result.files, rewrite_one);
  return result;
}

// True when the C++ side defines nothing and names nothing that it may lack an include for: then it
// can stand behind the CUDA side in one unit.
bool only_declares(const Extension& extension) {
  return !extension.functions.empty() &&
         std::ranges::none_of(extension.cpp_sources, [](const std::string& text) {
           return text.find('{') != std::string::npos || text.find("cuda::") != std::string::npos;
         });
}

std::vector<Unit> joined(std::vector<Unit> units) {
  MC_CHECK(units.size() == 2);
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

// One run of g++ over the units in the build's directory.
struct Job {
  const CpuRuntime& runtime;
  const Extension& extension;
  const LocationMapper& mapper;
  Build build;
  const std::vector<std::string>& way;  // Against which headers: the runtime's full or thin flags.
};

// The functions of each unit before inlining, from which device_code.h tells what kernels call.
constexpr const char* kDumpPrefix = "dump-";
constexpr size_t kDumpBytesMax = size_t{1} << 28;

std::vector<std::string> compiler_arguments(const Job& job, const std::vector<Unit>& units) {
  const fs::path& directory = job.build.directory;
  std::vector<std::string> argv = {job.runtime.compiler.string(), "-shared",
                                   // The emulator checks what these touch, too.
                                   "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset",
                                   "-fno-diagnostics-show-caret", "-fno-diagnostics-show-option",
                                   "-fdump-tree-gimple-lineno", "-dumpdir",
                                   (directory / kDumpPrefix).string()};
  argv.insert(argv.end(), job.way.begin(), job.way.end());
  argv.insert(argv.end(), job.runtime.flags.begin(), job.runtime.flags.end());
  argv.push_back("-I" + headers_in(job.build).string());
  argv.push_back("-DTORCH_EXTENSION_NAME=" + job.extension.name);
  for (const std::string& flag : definitions_of(job.extension)) argv.push_back(flag);
  argv.insert(argv.end(), {"-include", "mc_emu/prelude.h", "-x", "c++"});
  for (const Unit& unit : units) argv.push_back((directory / unit.file).string());
  argv.insert(argv.end(), {"-o", library_in(job.build.directory, job.extension.name).string()});
  return argv;
}

constexpr size_t kHeadersMax = 16;         // That are tried alone.
constexpr size_t kDiagnosticsKept = 2000;  // To tell whose they are.

// Takes the dumps of a compilation out of its directory, which is kept.
Result<std::vector<std::string>> take_dumps(const fs::path& directory) {
  std::vector<fs::path> paths;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(directory, failure)) {
    if (entry.path().filename().string().starts_with(kDumpPrefix)) paths.push_back(entry.path());
  }
  std::vector<std::string> dumps;
  for (const fs::path& path : paths) {
    MC_TRY(dumps.emplace_back(), read_file(path, kDumpBytesMax), "dump");
    fs::remove(path, failure);
  }
  return dumps;
}

// True when nvcc would be asked for C++20 or later.
bool asks_for_cpp20(const Extension& extension) {
  return std::ranges::any_of(extension.extra_cuda_cflags, [](const std::string& flag) {
    const size_t at = flag.find("std=");
    return flag.starts_with('-') && at != std::string::npos && flag.back() != '7' &&
           flag.find("++2", at) != std::string::npos;
  });
}

// Calls in device code that a CUDA compiler refuses, as errors.
std::vector<task::Diagnostic> refused_calls(const Job& job, const std::vector<Unit>& units,
                                            const std::vector<SourceFile>& files,
                                            const std::vector<std::string>& dumps) {
  std::vector<std::string_view> sources;
  for (const Unit& unit : units) {
    for (const SourceFile& piece : unit.pieces) sources.push_back(piece.text);
  }
  for (const SourceFile& file : files) sources.push_back(file.text);
  const DeviceCodeContext context{.own_folders = {job.build.directory.string()},
                                  .trusted_folders = job.runtime.visible,
                                  .has_constexpr_algorithms = asks_for_cpp20(job.extension)};
  std::string errors;
  for (const std::string& dump : dumps) errors += device_code_errors(dump, sources, context);
  return parse_diagnostics(errors, job.mapper);
}

using Attempt = std::variant<Nothing, task::CompileFailed, task::TimedOut, task::OutOfMemory,
                             task::Unsupported>;

Result<Attempt> build(const Job& job, const std::vector<Unit>& units,
                      const std::vector<SourceFile>& files) {
  MC_TRY_VOID(write_sources(job.build, units, files), "prepare a compilation");
  MC_TRY(const BuildRun run, run_in_sandbox(job.build, compiler_arguments(job, units)), "g++");
  if (const auto* late = std::get_if<task::TimedOut>(&run)) return Attempt(*late);
  if (const auto* large = std::get_if<task::OutOfMemory>(&run)) return Attempt(*large);
  const auto& done = std::get<ToolRun>(run);
  MC_TRY(const std::vector<std::string> dumps, take_dumps(job.build.directory), "dumps");
  if (done.succeeded) {
    std::vector<task::Diagnostic> refused = refused_calls(job, units, files, dumps);
    if (refused.empty()) return Attempt(Nothing{});
    return Attempt(task::CompileFailed{std::move(refused)});
  }
  task::CompileFailed failed{parse_diagnostics(done.err, job.mapper, kDiagnosticsKept)};
  if (failed.diagnostics.empty() && ran_out_of_memory(done.err)) {
    return Attempt(task::OutOfMemory{"compile", job.build.limits.memory_bytes});
  }
  if (failed.diagnostics.empty()) {
    MC_TRY(failed, unexplained("g++", done, free_bytes(job.build.directory)), "compile");
  }
  return Attempt(std::move(failed));
}

// Headers that the candidate includes and that do not compile on this backend.
Result<std::vector<std::string>> broken_headers(const Job& job) {
  const Extension bare{job.extension.name, {}, {}, {}, {}, {}, {}, {}, {}, {}};
  const Job alone{job.runtime, bare, job.mapper, job.build, job.way};
  std::vector<std::string> headers = headers_of(job.extension);
  if (headers.size() > kHeadersMax) headers.resize(kHeadersMax);
  std::vector<std::string> broken;
  for (const std::string& header : headers) {
    const Unit unit{"header.cpp", {{"header", "#include " + header + "\n"}}};
    MC_TRY(const Attempt attempt, build(alone, {unit}, {}), header);
    if (std::holds_alternative<task::CompileFailed>(attempt)) broken.push_back(header);
  }
  return broken;
}

// True if an error in the candidate's own text is there with and without the broken headers.
bool share_own_error(const task::CompileFailed& with, const task::CompileFailed& without,
                     const LocationMapper& mapper) {
  return std::ranges::any_of(without.diagnostics, [&](const task::Diagnostic& entry) {
    return entry.severity == "error" && mapper.owns(entry.location.source) &&
           std::ranges::find(with.diagnostics, entry) != with.diagnostics.end();
  });
}

void take_out(Rewriting& source, const std::vector<std::string>& headers) {
  const auto take_from = [&](SourceFile& file) {
    file.text = without_includes(std::move(file.text), headers);
  };
  for (Unit& unit : source.units) std::ranges::for_each(unit.pieces, take_from);
  std::ranges::for_each(source.files, take_from);
}

// The outcome of a candidate whose first error lies in a header of others.
Result<Attempt> build_without_broken_headers(const Job& job, Rewriting source,
                                             task::CompileFailed failed) {
  MC_CHECK(!failed.diagnostics.empty());
  MC_TRY(const std::vector<std::string> broken, broken_headers(job), "headers");
  if (broken.empty()) return Attempt(std::move(failed));
  take_out(source, broken);
  MC_TRY(Attempt attempt, build(job, source.units, source.files), "without broken headers");
  const auto* still = std::get_if<task::CompileFailed>(&attempt);
  if (still == nullptr || starts_outside(still->diagnostics, job.mapper) ||
      share_own_error(failed, *still, job.mapper)) {
    return attempt;
  }
  return Attempt(outside(failed.diagnostics.front()));
}

// One unit where the C++ side only declares; both apart where that fails.
Result<Attempt> build_units(const Job& job, const Rewriting& source) {
  const bool join = source.units.size() == 2 && only_declares(job.extension);
  MC_TRY(Attempt attempt, build(job, join ? joined(source.units) : source.units, source.files),
         "compile");
  if (auto* failed = std::get_if<task::CompileFailed>(&attempt);
      failed != nullptr && join && is_artifact_of_joining(failed->diagnostics)) {
    MC_TRY(attempt, build(job, source.units, source.files), "compile");
  }
  return attempt;
}

// The same, without the headers of CUDA's that this backend does not have; they go to `missing`.
Result<Attempt> build_known(const Job& job, Rewriting source, std::vector<std::string>& missing) {
  for (;;) {
    MC_TRY(Attempt attempt, build_units(job, source), "compile");
    const auto* failed = std::get_if<task::CompileFailed>(&attempt);
    if (failed == nullptr || missing.size() >= kHeadersMax) return attempt;
    std::vector<std::string> headers = missing_headers(failed->diagnostics, job.runtime.names);
    std::erase_if(headers, [&](const std::string& header) {
      return std::ranges::find(missing, header) != missing.end();
    });
    if (headers.empty()) return attempt;
    for (const std::string& header : headers) {
      missing.push_back(header);
      take_out(source, {"<" + header + ">", "\"" + header + "\""});
    }
  }
}

Result<Attempt> build_fully(const Job& job, const Rewriting& source,
                            std::vector<std::string>& missing) {
  MC_TRY(Attempt attempt, build_known(job, source, missing), "compile");
  if (auto* failed = std::get_if<task::CompileFailed>(&attempt);
      failed != nullptr && starts_outside(failed->diagnostics, job.mapper)) {
    return build_without_broken_headers(job, source, *failed);
  }
  return attempt;
}

// True if a source names a namespace inside of torch, such as torch::nn.
bool names_inner_scope(std::string_view text) {
  std::vector<lex::Token> tokens = lex::tokenize(text);
  std::erase_if(tokens, lex::is_trivia);
  const auto word = [&](size_t i) {
    return i < tokens.size() ? lex::text_of(text, tokens[i]) : std::string_view();
  };
  for (size_t i = 0; i + 3 < tokens.size(); ++i) {
    const bool is_scope = word(i + 3) == "::" || word(i + 3) == ";";
    if (word(i) == "torch" && word(i + 1) == "::" && is_scope && word(i + 2) != "cuda" &&
        std::islower(static_cast<unsigned char>(word(i + 2).front())) != 0) {
      return true;
    }
  }
  return false;
}

bool names_inner_scope(const Rewriting& source) {
  const auto in_file = [](const SourceFile& file) { return names_inner_scope(file.text); };
  return std::ranges::any_of(source.files, in_file) ||
         std::ranges::any_of(source.units, [&](const Unit& unit) {
           return std::ranges::any_of(unit.pieces, in_file);
         });
}

// Against PyTorch's headers for tensors and the binding; then against its whole C++ interface where
// the source names the rest of it, which takes a compiler half a minute.
Result<Attempt> build_by_full_headers(const Job& job, const Rewriting& source,
                                      std::vector<std::string>& missing) {
  MC_TRY(Attempt attempt, build_fully(job, source, missing), "compile");
  if (!std::holds_alternative<task::CompileFailed>(attempt) || !names_inner_scope(source)) {
    return attempt;
  }
  std::vector<std::string> way = job.way;
  way.push_back("-DMC_EMU_WHOLE");
  missing.clear();
  return build_fully({job.runtime, job.extension, job.mapper, job.build, way}, source, missing);
}

}  // namespace

Result<Compilation> CpuToolchain::compile(const Extension& extension, const LocationMapper& mapper,
                                          const CompileLimits& limits) {
  std::atomic<int64_t> cpu_us = 0;
  Result<Compilation> compilation = find_or_build(extension, mapper, limits, cpu_us);
  if (compilation) compilation->cpu_s = static_cast<double>(cpu_us) * 1e-6;
  return compilation;
}

Result<Compilation> CpuToolchain::find_or_build(const Extension& given,
                                                const LocationMapper& mapper,
                                                const CompileLimits& limits,
                                                std::atomic<int64_t>& cpu_us) {
  const ArtifactStore::Slot slot = store_.slot_of(given, definitions_of(given));
  const ArtifactStore::Turn turn =
      store_.take_turn(slot, std::chrono::duration<double>(limits.cpu_s));
  if (auto artifact = store_.find(slot, given)) {
    std::string full_headers = artifact->full_headers;
    return Compilation{std::move(*artifact), std::move(full_headers)};
  }
  Extension extension = given;
  extension.name = slot.module;
  Rewriting source = rewrite(extension, mapper);

  MC_TRY(const ArtifactStore::Work work, store_.begin(), "cache");
  const Build place{work.path(), runtime_.visible, limits, cpu_us};
  std::vector<std::string> missing;  // Headers.
  const auto build = [&](Headers headers) {
    missing.clear();
    const bool is_thin = headers == Headers::kFacade;
    MC_CHECK(!is_thin || runtime_.facade.has_value());
    const auto& way = is_thin ? runtime_.thin_flags : runtime_.full_flags;
    const Job job{runtime_, extension, mapper, place, way};
    return is_thin ? build_known(job, source, missing)
                   : build_by_full_headers(job, source, missing);
  };
  const Facade* facade = runtime_.facade ? &*runtime_.facade : nullptr;
  MC_TRY(auto built, build_with_fallback<Attempt>(facade, extension, mapper, build), "compile");
  auto& [attempt, full_headers] = built;
  if (auto* failed = std::get_if<task::CompileFailed>(&attempt)) {
    task::Unsupported lacks = lacks_of(
        failed->diagnostics, {extension, source.unsupported.constructs, missing}, runtime_.names);
    if (!lacks.constructs.empty()) return Compilation{std::move(lacks), full_headers};
    return Compilation{task::CompileFailed{errors_first(std::move(failed->diagnostics))},
                       full_headers};
  }
  if (auto* lacks = std::get_if<task::Unsupported>(&attempt)) {
    return Compilation{std::move(*lacks), full_headers};
  }
  if (auto* late = std::get_if<task::TimedOut>(&attempt)) {
    return Compilation{std::move(*late), full_headers};
  }
  if (auto* large = std::get_if<task::OutOfMemory>(&attempt)) {
    return Compilation{std::move(*large), full_headers};
  }
  Artifact artifact{.key = given.key,
                    .name = given.name,
                    .module = slot.module,
                    .library = library_in(slot.home, slot.module),
                    .full_headers = full_headers};
  MC_TRY(artifact.undefined_symbols,
         undefined_symbols(place, runtime_.nm, library_in(work.path(), slot.module)), "symbols");
  MC_TRY(artifact, store_.publish(work, slot, given, artifact), "cache");
  return Compilation{std::move(artifact), full_headers};
}

}  // namespace mc::compile
