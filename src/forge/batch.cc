// SPDX-License-Identifier: Apache-2.0
#include "forge/batch.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <optional>
#include <regex>
#include <span>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "compile/cuda_runtime.h"
#include "compile/extension.h"
#include "compile/facade.h"
#include "compile/pytorch.h"
#include "compile/tool.h"
#include "core/check.h"
#include "core/file.h"
#include "core/layout.h"
#include "core/line_child.h"
#include "core/log.h"
#include "forge/kernels.h"
#include "task/verdict_json.h"

namespace mc::forge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The architecture of the software device (device/ptx_driver/description.h).
constexpr const char* kArchitecture = "90";
constexpr const char* kSourceName = "cuda_sources[0]";
// The prefix of namespaces and module names; a number follows.
constexpr const char* kNamespace = "mc_forge_";
// The maximum number of kernels in a unit: ptxas fails on units with somewhat more than a hundred.
constexpr size_t kUnitMax = 64;

using Attempts = std::span<const Attempt* const>;

std::string module_name(size_t number) { return kNamespace + std::to_string(number); }

// All attempts as one unit, each with its own module.
std::string unit_of(Attempts attempts) {
  compile::Extension all;
  for (const Attempt* attempt : attempts) all.cuda_sources.push_back(attempt->cuda);
  const std::vector<std::string> headers = compile::headers_of(all);
  std::string text = compile::includes_for(all.cuda_sources);
  for (const std::string& header : headers) text += "#include " + header + "\n";
  text += "#define MC_AT_BINDS 1\n#include <torch/extension.h>\n";
  for (size_t i = 0; i < attempts.size(); ++i) {
    text += fmt::format(
        "namespace {0} {{\n#line 1 \"{1}\"\n{2}\n"
        "PYBIND11_MODULE({0}, m) {{ m.def(\"{3}\", &{3}); }}\n}}\n",
        module_name(i), kSourceName, compile::without_includes(attempts[i]->cuda, headers),
        function_of(attempts[i]->cuda));
  }
  return text;
}

// A compiled attempt; empty if its unit does not compile.
struct CompiledModule {
  fs::path library;
  std::string name;
};
using Compiled = std::vector<std::optional<CompiledModule>>;

// The response of the gate's process for one task (python/harness/forge/prepare.py).
struct GateResult {
  TaskResult result;
  std::vector<std::string> recorded;  // The record of each attempt, as in eval::PreparedCandidate.
};

}  // namespace

task::Outcome without_namespaces(const task::Verdict& verdict) {
  static const std::regex kOwn("\\b" + std::string(kNamespace) + "\\d+::");
  const auto plain = task::verdict_from_json(
      std::regex_replace(task::to_json(verdict, task::Indent::kCompact), kOwn, ""));
  MC_CHECK(plain.has_value());
  return plain->outcome;
}

struct BatchVerifier::State {
  eval::Pipeline& pipeline;
  compile::CudaRuntime runtime;
  std::unique_ptr<LineChild> gate;
  std::shared_ptr<const TemporaryDirectory> directory;
  uint64_t num_units = 0;

  Result<GateResult> pass_gate(const TaskWork& work);
  Result<Compiled> compile(Attempts attempts);
  Result<fs::path> compile_unit(Attempts attempts);
  task::Verdict measure(const TaskWork& work, const Attempt& attempt, const std::string& recorded,
                        const CompiledModule& module);
  Result<task::Outcome> judge(const TaskWork& work, const Attempt& attempt,
                              const std::string& recorded, const CompiledModule* module);
  Result<std::vector<TaskResult>> verify(const std::vector<TaskWork>& works);
};

BatchVerifier::BatchVerifier(std::unique_ptr<State> state) : state_(std::move(state)) {}
BatchVerifier::~BatchVerifier() = default;

Result<std::unique_ptr<BatchVerifier>> BatchVerifier::create(eval::Pipeline& pipeline,
                                                             const Progress& progress) {
  MC_TRY(const Layout layout, find_layout(), "forge");
  MC_TRY(const compile::PyTorch pytorch, compile::find_pytorch(compile::default_python()), "forge");
  MC_TRY(compile::CudaRuntime runtime,
         compile::find_cuda_runtime(pytorch, kArchitecture, compile::CodeKind::kPtx), "forge");
  MC_TRY_VOID(compile::add_facade(runtime, pytorch, layout, progress), "forge");
  MC_TRY(auto gate,
         LineChild::start({pytorch.python.string(), "-I",
                           (layout.share("python/harness") / "forge/prepare.py").string()},
                          LineChild::AtEnd::kWait),
         "forge");
  // The libraries are in the cache directory, because each device process has its own /tmp.
  MC_TRY(TemporaryDirectory made, TemporaryDirectory::create_in(cache_directory(), "forge"),
         "forge");
  return std::unique_ptr<BatchVerifier>(new BatchVerifier(std::unique_ptr<State>(
      new State{pipeline, std::move(runtime), std::move(gate),
                std::make_shared<const TemporaryDirectory>(std::move(made))})));
}

Result<std::vector<TaskResult>> BatchVerifier::verify(const std::vector<TaskWork>& works) {
  return state_->verify(works);
}

// ---- Compiling ----------------------------------------------------------------------------------

// A unit that does not compile is halved until the faulty kernels are alone, so that one of them
// does not reject the others.
Result<Compiled> BatchVerifier::State::compile(Attempts attempts) {
  if (attempts.empty()) return Compiled();
  const auto library = attempts.size() > kUnitMax
                           ? Error{ErrorCode::kUnavailable, "it is too large"}
                           : compile_unit(attempts);
  if (library) {
    Compiled compiled;
    for (size_t i = 0; i < attempts.size(); ++i) {
      compiled.emplace_back(CompiledModule{*library, module_name(i)});
    }
    return compiled;
  }
  if (attempts.size() == 1) return Compiled{std::nullopt};
  log_debug(fmt::format("a unit of {} kernels is cut in half: {}", attempts.size(),
                        library.error().message));
  const size_t half = attempts.size() / 2;
  MC_TRY(Compiled compiled, compile(attempts.first(half)), "compile");
  MC_TRY(Compiled rest, compile(attempts.subspan(half)), "compile");
  std::ranges::move(rest, std::back_inserter(compiled));
  return compiled;
}

Result<fs::path> BatchVerifier::State::compile_unit(Attempts attempts) {
  MC_CHECK(runtime.facade.has_value());
  const fs::path base = directory->path() / fmt::format("unit{}", num_units++);
  const std::string source = base.string() + ".cu", object = base.string() + ".o";
  const std::string library = base.string() + ".so";
  MC_TRY_VOID(write_file_atomically(source, unit_of(attempts)), "unit");
  std::vector<std::string> compiler = {runtime.nvcc.string(), "-std=c++17", "-w"};
  std::ranges::copy(runtime.facade->nvcc_flags, std::back_inserter(compiler));
  std::ranges::copy(std::vector<std::string>{"-c", source, "-o", object},
                    std::back_inserter(compiler));
  MC_TRY_VOID(compile::run_tool(compiler), "unit");
  std::vector<std::string> linker = {runtime.compiler.string(), "-shared", object, "-o", library};
  std::ranges::copy(runtime.facade->link_flags, std::back_inserter(linker));
  MC_TRY_VOID(compile::run_tool(linker), "unit");
  return fs::path(library);
}

// ---- Judging ------------------------------------------------------------------------------------

Result<GateResult> BatchVerifier::State::pass_gate(const TaskWork& work) {
  Json question{{"source", work.task.code}, {"seed", work.seed >> 1}};
  question["probe"] = work.probe.empty() ? Json() : Json::parse(work.probe);
  question["tests"] = question["modules"] = Json::array();
  for (const std::string& test : work.tests) question["tests"].push_back(Json::parse(test));
  for (const Attempt& attempt : work.attempts) question["modules"].push_back(attempt.module);
  MC_TRY(const std::string text, gate->call(question.dump()), "gate");
  try {
    const Json answer = Json::parse(text);
    GateResult gated;
    answer.at("gate").get_to(gated.result.gate);
    if (!gated.result.gate.empty()) return gated;
    gated.result.tests = answer.at("tests").get<std::vector<bool>>();
    MC_CHECK(gated.result.tests.size() == work.tests.size());
    for (const Json& one : answer.at("recorded")) gated.recorded.push_back(one.dump());
    MC_CHECK(gated.recorded.size() == work.attempts.size());
    return gated;
  } catch (const Json::exception& exception) {
    return Error{ErrorCode::kProtocol,
                 std::string("the gate's answer is not understood: ") + exception.what()};
  }
}

task::Verdict BatchVerifier::State::measure(const TaskWork& work, const Attempt& attempt,
                                            const std::string& recorded,
                                            const CompiledModule& module) {
  const auto extensions = compile::parse_extensions(recorded);
  MC_CHECK(extensions.has_value() && extensions->size() == 1);
  const compile::Artifact artifact{.key = extensions->front().key,
                                   .name = extensions->front().name,
                                   .module = module.name,
                                   .library = module.library,
                                   .lease = directory};
  return pipeline.measure(
      pipeline.trusted(work.task, attempt.candidate, attempt.module, recorded, {artifact}));
}

Result<task::Outcome> BatchVerifier::State::judge(const TaskWork& work, const Attempt& attempt,
                                                  const std::string& recorded,
                                                  const CompiledModule* module) {
  const task::Verdict verdict = module != nullptr ? measure(work, attempt, recorded, *module)
                                                  : pipeline.evaluate(work.task, attempt.candidate);
  if (const auto* failed = std::get_if<task::Infra>(&verdict.outcome)) {
    return Error{ErrorCode::kUnavailable, attempt.candidate.id + ": " + failed->message};
  }
  return without_namespaces(verdict);
}

Result<std::vector<TaskResult>> BatchVerifier::State::verify(const std::vector<TaskWork>& works) {
  std::vector<GateResult> gated;
  std::vector<const Attempt*> attempts;
  for (const TaskWork& work : works) {
    MC_TRY(gated.emplace_back(), pass_gate(work), work.task.id);
    if (!gated.back().result.gate.empty()) continue;
    for (const Attempt& attempt : work.attempts) attempts.push_back(&attempt);
  }
  MC_TRY(const Compiled compiled, compile(attempts), "compile");
  std::vector<TaskResult> results;
  size_t at = 0;
  for (size_t i = 0; i < works.size(); ++i) {
    TaskResult& result = results.emplace_back(std::move(gated[i].result));
    if (!result.gate.empty()) continue;
    for (size_t n = 0; n < works[i].attempts.size(); ++n, ++at) {
      const CompiledModule* module = compiled.at(at) ? &*compiled[at] : nullptr;
      MC_TRY(result.outcomes.emplace_back(),
             judge(works[i], works[i].attempts[n], gated[i].recorded[n], module), "verify");
    }
    for (const Attempt& attempt : works[i].may_not_compile) {
      MC_TRY(result.outcomes.emplace_back(), judge(works[i], attempt, "", nullptr), "verify");
    }
  }
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(directory->path(), failure)) {
    fs::remove(entry.path(), failure);
  }
  return results;
}

}  // namespace mc::forge
