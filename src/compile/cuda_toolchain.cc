// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation.  As in load_inline, g++ compiles main.cpp and nvcc, or a quicker compiler
// (quick.h), compiles cuda.cu.  Most of the time goes into headers, so both run in parallel, each
// in a sandbox of its own over the same working directory.  The errors of both are reported.  Then
// g++ links the objects, and the directory is published (artifact_store.h).  Where the facade has
// all names, its headers are tried first; a failure that is not the candidate's own fault is
// followed by a compilation with PyTorch's headers.
#include "compile/cuda_toolchain.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <optional>
#include <string>
#include <system_error>
#include <variant>
#include <vector>

#include <fmt/format.h>

#include "compile/artifact_store.h"
#include "compile/build.h"
#include "compile/diagnostics.h"
#include "compile/tool.h"
#include "core/cancel.h"
#include "core/check.h"
#include "core/file.h"
#include "core/log.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

// The flags for one set of headers.
struct Way {
  const Flags& nvcc_flags;
  const Flags& cxx_flags;
  const Flags& link_flags;
  bool is_thin;  // True for the facade's headers.
};

struct Job {
  const CudaRuntime& runtime;
  const Way& way;
  const Extension& extension;
  const LocationMapper& mapper;
  Build build;
  const QuickCompiler* quick = nullptr;  // Null: nvcc compiles everything.
};

// One program to run.
struct Step {
  std::string tool;
  Flags argv;
};

// The output of the program, or the failure of the candidate.
using StepEnd = std::variant<std::string, task::CompileFailed, task::TimedOut, task::OutOfMemory>;

bool is_blank(const Unit& unit) {
  return std::ranges::all_of(unit.pieces, [](const SourceFile& piece) {
    return piece.text.find_first_not_of(" \t\r\n") == std::string::npos;
  });
}

bool is_cuda(const Unit& unit) { return unit.file.ends_with(".cu"); }

bool binds(const Unit& unit) {
  return std::ranges::any_of(unit.pieces, [](const SourceFile& piece) {
    return piece.text.find("PYBIND11_MODULE") != std::string::npos ||
           piece.text.find("py::") != std::string::npos ||
           piece.text.find("pybind11") != std::string::npos;
  });
}

// The text before the pieces of a unit: the text that load_inline adds; with the facade, also the
// standard headers that PyTorch's headers would have included.
std::string prelude_of(const Job& job, const Unit& unit) {
  if (!job.way.is_thin) {
    return is_cuda(unit) ? job.runtime.cuda_prelude : job.runtime.cxx_prelude;
  }
  std::vector<std::string> texts;
  for (const SourceFile& piece : unit.pieces) texts.push_back(piece.text);
  for (const SourceFile& file : job.extension.files) texts.push_back(file.text);
  return includes_for(texts) + (binds(unit) ? "#define MC_AT_BINDS 1\n" : "") +
         (is_cuda(unit) ? "#include <torch/types.h>\n" : "#include <torch/extension.h>\n");
}

// An empty main.cpp, as from cpp_sources="", is left out, because PyTorch's headers alone would
// take half a minute.
std::vector<Unit> units_of(const Job& job) {
  std::vector<Unit> units = make_units(job.extension);
  std::erase_if(units, is_blank);
  for (Unit& unit : units) {
    unit.pieces.insert(unit.pieces.begin(), SourceFile{"prelude", prelude_of(job, unit)});
  }
  return units;
}

bool gives_standard(const Flags& flags) {
  return std::ranges::any_of(flags, [](const std::string& flag) {
    return flag.starts_with("-std=") || flag.starts_with("--std=");
  });
}

std::string object_of(const Job& job, const Unit& unit) {
  return (job.build.directory / (unit.file + ".o")).string();
}

// Flags that include the precompiled header in a host object.
Flags header_flags(const Job& job) {
  if (!job.way.is_thin || !job.quick) return {};
  return {"-include", job.quick->header.string()};
}

Step cxx_step(const Job& job, const Unit& unit) {
  Flags argv = {job.runtime.compiler.string(), "-DTORCH_EXTENSION_NAME=" + job.extension.name,
                "-I" + headers_in(job.build).string()};
  append(argv, job.way.cxx_flags);
  append(argv, job.extension.extra_cflags);
  append(argv, {"-fno-diagnostics-show-caret", "-fno-diagnostics-show-option"});
  const bool has_header = !unit.pieces.empty() &&
                          unit.pieces.front().text.find("<torch/extension.h>") != std::string::npos;
  if (has_header) append(argv, header_flags(job));
  append(argv, {"-c", (job.build.directory / unit.file).string(), "-o", object_of(job, unit)});
  return {"g++", std::move(argv)};
}

Step nvcc_step(const Job& job, const Unit& unit) {
  Flags argv = {job.runtime.nvcc.string(), "-DTORCH_EXTENSION_NAME=" + job.extension.name,
                "-I" + headers_in(job.build).string()};
  append(argv, job.way.nvcc_flags);
  append(argv, job.extension.extra_cuda_cflags);
  append(argv, job.runtime.print_flags);
  if (!gives_standard(job.extension.extra_cuda_cflags)) argv.push_back("-std=c++17");
  append(argv, {"-c", (job.build.directory / unit.file).string(), "-o", object_of(job, unit)});
  return {job.runtime.nvcc_name, std::move(argv)};
}

// The names of a quick compilation's files in the build's directory.
fs::path quick_file(const Job& job, const char* name) { return job.build.directory / name; }
constexpr const char *kHostText = "host.cc", *kDeviceText = "device.cu", *kKernels = "kernels.txt",
                     *kTable = "kernels";

Step host_step(const Job& job, const Unit& unit, const QuickSource& source) {
  Flags argv = {job.runtime.compiler.string(), "-DTORCH_EXTENSION_NAME=" + job.extension.name};
  append(argv, job.way.cxx_flags);
  append(argv, source.flags.host);
  argv.push_back("-w");
  if (source.uses_header) append(argv, header_flags(job));
  append(argv, {"-c", quick_file(job, kHostText).string(), "-o", object_of(job, unit)});
  return {"g++", std::move(argv)};
}

Step device_step(const Job& job, const Unit& unit, const QuickSource& source) {
  Flags argv = {job.quick->program.string(),
                job.quick->compiler.string(),
                object_of(job, unit),
                quick_file(job, kDeviceText).string(),
                quick_file(job, kKernels).string(),
                quick_file(job, kTable).string(),
                "-DTORCH_EXTENSION_NAME=" + job.extension.name};
  append(argv, job.quick->device_flags);
  if (job.quick->is_nvcc()) {
    append(argv, job.extension.extra_cuda_cflags);
    append(argv, job.runtime.print_flags);
  } else {
    append(argv, source.flags.device);
  }
  if (!gives_standard(job.extension.extra_cuda_cflags)) argv.push_back("-std=c++17");
  return {job.quick->compiler.filename(), std::move(argv)};
}

Step link_step(const Job& job, const std::vector<Unit>& units) {
  Flags argv = {job.runtime.compiler.string()};
  for (const Unit& unit : units) argv.push_back(object_of(job, unit));
  std::error_code failure;
  const std::string table = quick_file(job, kTable).string() + ".s";
  if (fs::exists(table, failure)) argv.push_back(table);
  argv.push_back("-shared");
  append(argv, job.extension.extra_ldflags);
  append(argv, job.way.link_flags);
  append(argv, {"-o", library_in(job.build.directory, job.extension.name).string()});
  return {"the linker", std::move(argv)};
}

Result<StepEnd> run_step(const Job& job, const Step& step) {
  MC_TRY(BuildRun run, run_in_sandbox(job.build, step.argv), step.tool);
  if (const auto* late = std::get_if<task::TimedOut>(&run)) return StepEnd(*late);
  if (auto* large = std::get_if<task::OutOfMemory>(&run)) return StepEnd(*large);
  ToolRun& done = std::get<ToolRun>(run);
  const std::string printed = done.err + done.out;
  if (done.succeeded) return StepEnd(printed);
  task::CompileFailed failed{parse_diagnostics(printed, job.mapper)};
  const bool has_error = std::ranges::any_of(
      failed.diagnostics, [](const auto& entry) { return entry.severity == "error"; });
  if (has_error) return StepEnd(std::move(failed));
  if (ran_out_of_memory(printed)) {
    return StepEnd(task::OutOfMemory{"compile", job.build.limits.memory_bytes});
  }
  MC_TRY(failed, unexplained(step.tool.c_str(), done, free_bytes(job.build.directory)), "compile");
  return StepEnd(std::move(failed));
}

// The output of the compilers; nothing where nvcc has to decide.
Result<std::optional<std::string>> run_quickly(const Job& job, const Unit& unit) {
  constexpr size_t kShownBytes = 400;
  if (!job.way.is_thin || !job.quick) return std::optional<std::string>();
  const auto source = quick_source(*job.quick, unit, job.extension);
  if (!source) return std::optional<std::string>();
  MC_TRY_VOID(write_file_atomically(quick_file(job, kHostText), source->host), "quick");
  MC_TRY_VOID(write_file_atomically(quick_file(job, kDeviceText), source->device), "quick");
  MC_TRY_VOID(write_file_atomically(quick_file(job, kKernels), source->kernels), "quick");
  std::string printed;
  for (const Step& step : {host_step(job, unit, *source), device_step(job, unit, *source)}) {
    MC_TRY(BuildRun run, run_in_sandbox(job.build, step.argv), step.tool);
    const auto* done = std::get_if<ToolRun>(&run);
    if (done == nullptr || !done->succeeded) {
      log_debug(fmt::format("compile: nvcc, since {} does not: {}", step.tool,
                            done == nullptr ? "a limit" : done->err.substr(0, kShownBytes)));
      return std::optional<std::string>();
    }
    printed += done->out;
  }
  return std::optional<std::string>(std::move(printed));
}

Result<StepEnd> compile_unit(const Job& job, const Unit& unit) {
  if (!is_cuda(unit)) return run_step(job, cxx_step(job, unit));
  MC_TRY(std::optional<std::string> printed, run_quickly(job, unit), "quick");
  if (printed) return StepEnd(std::move(*printed));
  std::error_code ignored;  // The table may be left from an attempt with other headers.
  fs::remove(quick_file(job, kTable).string() + ".s", ignored);
  return run_step(job, nvcc_step(job, unit));
}

// Compiles all units in parallel.  Returns their whole output, or the failures of all.  Limits take
// precedence over errors, since a stopped compiler has not reported all of its errors.
Result<StepEnd> compile_all(const Job& job, const std::vector<Unit>& units) {
  MC_CHECK(!units.empty());
  std::vector<std::future<Result<StepEnd>>> running;
  for (const Unit& unit : units) {
    running.push_back(std::async(std::launch::async, [&job, &unit, stop = this_cancellation()] {
      const CancelScope scope(stop);
      return compile_unit(job, unit);
    }));
  }
  std::vector<Result<StepEnd>> ends;
  for (auto& future : running) ends.push_back(future.get());
  std::string printed;
  task::CompileFailed failed;
  std::optional<StepEnd> stopped;
  for (Result<StepEnd>& result : ends) {
    MC_TRY(StepEnd end, std::move(result), "compile");
    if (auto* text = std::get_if<std::string>(&end)) {
      printed += *text + "\n";
    } else if (auto* own = std::get_if<task::CompileFailed>(&end)) {
      std::ranges::move(own->diagnostics, std::back_inserter(failed.diagnostics));
    } else if (!stopped) {
      stopped = std::move(end);
    }
  }
  if (stopped) return std::move(*stopped);
  if (failed.diagnostics.empty()) return StepEnd(std::move(printed));
  return StepEnd(task::CompileFailed{errors_first(std::move(failed.diagnostics))});
}

// The flags that determine the outcome, beside the sources and the toolchain.
Flags flags_of(const Extension& extension) {
  Flags flags = {"cxx"};
  append(flags, extension.extra_cflags);
  flags.push_back("cuda");
  append(flags, extension.extra_cuda_cflags);
  flags.push_back("link");
  append(flags, extension.extra_ldflags);
  return flags;
}

// Builds the library in the build's directory.  Returns the output of the compilers, or the
// failure.
Result<StepEnd> build(const Job& job) {
  const std::vector<Unit> units = units_of(job);
  if (units.empty()) {
    return StepEnd(task::CompileFailed{{{"error", "the extension has no source", {}}}});
  }
  MC_TRY_VOID(write_sources(job.build, units, job.extension.files), "prepare a compilation");
  MC_TRY(StepEnd compiled, compile_all(job, units), "CUDA");
  if (!std::holds_alternative<std::string>(compiled)) return compiled;
  MC_TRY(StepEnd linked, run_step(job, link_step(job, units)), "CUDA");
  if (!std::holds_alternative<std::string>(linked)) return linked;
  std::error_code ignored;
  for (const Unit& unit : units) fs::remove(object_of(job, unit), ignored);
  const std::string table = quick_file(job, kTable).string();
  for (const std::string& file :
       {quick_file(job, kHostText).string(), quick_file(job, kDeviceText).string(),
        quick_file(job, kKernels).string(), table + ".s", table + ".fatbin"}) {
    fs::remove(file, ignored);
  }
  return compiled;
}

}  // namespace

Result<Compilation> CudaToolchain::compile(const Extension& extension, const LocationMapper& mapper,
                                           const CompileLimits& limits) {
  std::atomic<int64_t> cpu_us = 0;
  Result<Compilation> compilation = find_or_build(extension, mapper, limits, cpu_us);
  if (compilation) compilation->cpu_s = static_cast<double>(cpu_us) * 1e-6;
  return compilation;
}

Result<Compilation> CudaToolchain::find_or_build(const Extension& given,
                                                 const LocationMapper& mapper,
                                                 const CompileLimits& limits,
                                                 std::atomic<int64_t>& cpu_us) {
  const ArtifactStore::Slot slot = store_.slot_of(given, flags_of(given));
  const ArtifactStore::Turn turn =
      store_.take_turn(slot, std::chrono::duration<double>(limits.cpu_s));
  if (auto artifact = store_.find(slot, given)) {
    std::string full_headers = artifact->full_headers;
    return Compilation{std::move(*artifact), std::move(full_headers)};
  }
  Extension extension = given;
  extension.name = slot.module;
  MC_TRY(const ArtifactStore::Work work, store_.begin(), "cache");
  const Build base{work.path(), runtime_.visible, limits, cpu_us, true};
  const auto& facade = runtime_.facade;
  const auto build_with = [&](Headers headers) {
    if (headers == Headers::kFacade) {
      MC_CHECK(facade.has_value());
      const Way thin{facade->nvcc_flags, facade->cxx_flags, facade->link_flags, true};
      const QuickCompiler* quick = facade->quick ? &*facade->quick : nullptr;
      return build({runtime_, thin, extension, mapper, base, quick});
    }
    const Way full{runtime_.nvcc_flags, runtime_.cxx_flags, runtime_.link_flags, false};
    return build({runtime_, full, extension, mapper, base});
  };
  const Facade* names = facade ? &facade->names : nullptr;
  MC_TRY(auto built, build_with_fallback<StepEnd>(names, extension, mapper, build_with), "CUDA");
  auto& [end, full_headers] = built;
  if (auto* failed = std::get_if<task::CompileFailed>(&end)) {
    return Compilation{std::move(*failed), full_headers};
  }
  if (auto* late = std::get_if<task::TimedOut>(&end)) {
    return Compilation{std::move(*late), full_headers};
  }
  if (auto* large = std::get_if<task::OutOfMemory>(&end)) {
    return Compilation{std::move(*large), full_headers};
  }
  Artifact artifact{.key = given.key,
                    .name = given.name,
                    .module = slot.module,
                    .library = library_in(slot.home, slot.module),
                    .full_headers = full_headers};
  MC_TRY(artifact.undefined_symbols,
         undefined_symbols(base, runtime_.nm, library_in(work.path(), slot.module)), "symbols");
  MC_CHECK(std::holds_alternative<std::string>(end));
  artifact.kernels = parse_kernel_resources(std::get<std::string>(end));
  MC_TRY(artifact, store_.publish(work, slot, given, artifact), "cache");
  return Compilation{std::move(artifact), full_headers};
}

}  // namespace mc::compile
