// SPDX-License-Identifier: Apache-2.0
#include "forge/bulk.h"

#include <algorithm>
#include <charconv>
#include <fstream>
#include <map>
#include <optional>
#include <set>
#include <sstream>

#include <fmt/format.h>
#include <spdlog/spdlog.h>
#include <nlohmann/json.hpp>

#include "compile/cpu_runtime.h"
#include "compile/cpu_toolchain.h"
#include "compile/locator.h"
#include "compile/pytorch.h"
#include "compile/tool.h"
#include "core/check.h"
#include "core/file.h"
#include "core/layout.h"
#include "core/line_child.h"
#include "forge/conclude.h"
#include "forge/kernels.h"
#include "legality/policy.h"
#include "lex/rewrite.h"

namespace mc::forge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr const char* kSourceName = "cuda_sources[0]";
constexpr size_t kMessageBytes = size_t{1} << 20;  // Every error of a unit, not the last alone.

std::string without_includes(std::string text) {
  for (size_t at = 0; (at = text.find("#include", at)) != std::string::npos;) {
    const size_t end = text.find('\n', at);
    text.erase(at, end - at);  // The line stays, so that places are right.
  }
  return text;
}

std::string function_name(size_t number) { return fmt::format("s{}", number); }

// All attempts as one unit, the n-th in namespace sn, and in a file of that folder for messages.
std::string unit_of(const std::vector<const Attempt*>& attempts) {
  std::string text = "#include <torch/extension.h>\n";
  for (size_t i = 0; i < attempts.size(); ++i) {
    text += fmt::format("namespace {0} {{\n#line 1 \"{0}/{1}\"\n", function_name(i), kSourceName);
    text += lex::rewrite_for_cpu(without_includes(attempts[i]->cuda)).text + "\n}\n";
  }
  text += "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {\n";
  for (size_t i = 0; i < attempts.size(); ++i) {
    text += fmt::format("  m.def(\"{0}\", &{0}::f);\n", function_name(i));
  }
  return text + "}\n";
}

compile::Extension extension_of(const Attempt& attempt) {
  compile::Extension extension;
  extension.name = "e";
  extension.cuda_sources = {attempt.cuda};
  extension.cpp_sources = {signature_of(attempt.cuda) + ";"};
  extension.functions = {{"f", "f"}};
  extension.key = std::to_string(std::hash<std::string>{}(attempt.cuda));
  return extension;
}

// The attempt that a line of a compiler's message begins with.
std::optional<size_t> attempt_at(std::string_view line) {
  if (!line.starts_with('s')) return std::nullopt;
  size_t number = 0;
  const auto [end, error] = std::from_chars(line.data() + 1, line.data() + line.size(), number);
  if (error != std::errc() || end == line.data() + line.size() || *end != '/') return std::nullopt;
  return number;
}

// The attempts in whose text a compiler found an error, or whose use of a header was one: the
// lines before an error in a header say where it was asked for.
std::set<size_t> failing_in(const std::string& message) {
  std::set<size_t> failing;
  std::optional<size_t> asked_for;
  std::istringstream lines(message);
  for (std::string line; std::getline(lines, line);) {
    const auto number = attempt_at(line);
    if (line.find(" error: ") != std::string::npos) {
      if (number || asked_for) failing.insert(number ? *number : *asked_for);
      asked_for.reset();
    } else if (number && line.find("required from") != std::string::npos) {
      asked_for = number;
    }
  }
  return failing;
}

// The line of a compiler's message that names the error, or the first one.
std::string first_error(const std::string& message) {
  const size_t found = message.find("error:");
  const size_t begin = found == std::string::npos ? 0 : message.rfind('\n', found) + 1;
  return message.substr(begin, message.find('\n', begin) - begin);
}

// The place of an attempt's compiled function.
struct CompiledFunction {
  fs::path library;
  std::string module;
  std::string function;
};
using Compiled = std::variant<CompiledFunction, task::Outcome>;

}  // namespace

struct BatchVerifier::State {
  compile::CpuRuntime runtime;
  std::unique_ptr<compile::CpuToolchain> toolchain;
  std::unique_ptr<LineChild> worker;
  execute::RunPolicy policy;
  TemporaryDirectory directory;
  uint64_t num_units = 0;

  Result<std::vector<Compiled>> compile_all(const std::vector<const Attempt*>& attempts);
  Result<std::vector<Compiled>> compile_apart(const std::vector<const Attempt*>& attempts,
                                              const std::string& message);
  Result<std::vector<Compiled>> compile_each(const std::vector<const Attempt*>& attempts);
  Result<Compiled> compile_alone(const Attempt& attempt);
  Result<std::vector<TaskResult>> verify(const std::vector<TaskWork>& works);
  Result<TaskResult> verify_one(const TaskWork& work, const std::vector<Compiled>& compiled);
};

BatchVerifier::BatchVerifier(std::unique_ptr<State> state) : state_(std::move(state)) {}
BatchVerifier::~BatchVerifier() = default;

Result<std::unique_ptr<BatchVerifier>> BatchVerifier::create(const Progress& progress) {
  MC_TRY(const Layout layout, find_layout(), "forge");
  MC_TRY(const compile::PyTorch pytorch, compile::find_pytorch(compile::default_python()), "forge");
  MC_TRY(compile::CpuRuntime runtime, compile::prepare_cpu_runtime(pytorch, layout, progress),
         "forge");
  MC_TRY(auto worker,
         LineChild::start(
             {pytorch.python.string(), "-I", (layout.share("harness") / "forge/verify.py").string(),
              "--emu-lib", runtime.emulator.string(), "--shim", runtime.shim.string(), "--policy",
              (layout.share("policy") / "musacoder.json").string(), "--sandbox-lib",
              layout.library("libmc_sandbox.so").string()},
             LineChild::AtEnd::kWait),
         "forge");
  MC_TRY(const legality::Policy policy, legality::load_policy(layout.share("policy"), "musacoder"),
         "forge");
  MC_TRY(TemporaryDirectory directory, TemporaryDirectory::create("mc-forge"), "forge");
  MC_TRY(const uint64_t bytes_max, compile::artifact_bytes_max(), "forge");
  auto toolchain =
      std::make_unique<compile::CpuToolchain>(runtime, cache_directory() / "artifacts", bytes_max);
  return std::unique_ptr<BatchVerifier>(new BatchVerifier(std::unique_ptr<State>(
      new State{std::move(runtime), std::move(toolchain), std::move(worker),
                execute::RunPolicy{policy.name(), policy.operators, policy.own_launches_min,
                                   policy.init_operators},
                std::move(directory)})));
}

Result<std::vector<TaskResult>> BatchVerifier::verify(const std::vector<TaskWork>& works) {
  return state_->verify(works);
}

// ---- Compiling ----------------------------------------------------------------------------------

Result<std::vector<Compiled>> BatchVerifier::State::compile_all(
    const std::vector<const Attempt*>& attempts) {
  if (attempts.empty()) return std::vector<Compiled>();
  const std::string name = fmt::format("unit{}", num_units++);
  const fs::path source = directory.path() / (name + ".cc");
  const fs::path library = directory.path() / (name + ".so");
  std::vector<std::string> argv = {runtime.compiler.string(), "-shared",
                                   "-Wl,--wrap=memcpy,--wrap=memmove,--wrap=memset",
                                   "-fno-diagnostics-show-caret", "-w"};
  // The running code gives its places as it does when it was compiled alone.
  for (size_t i = 0; i < attempts.size(); ++i) {
    argv.push_back(fmt::format("-ffile-prefix-map={}/=", function_name(i)));
  }
  argv.insert(argv.end(), runtime.thin_flags.begin(), runtime.thin_flags.end());
  argv.insert(argv.end(), runtime.flags.begin(), runtime.flags.end());
  argv.insert(argv.end(), {"-DTORCH_EXTENSION_NAME=" + name, "-include", "mc_emu/prelude.h", "-x",
                           "c++", source.string(), "-o", library.string()});
  MC_TRY_VOID(write_file_atomically(source, unit_of(attempts)), "unit");
  const auto done = compile::run_tool(argv, kMessageBytes);
  if (!done) return compile_apart(attempts, done.error().message);
  std::vector<Compiled> compiled;
  for (size_t i = 0; i < attempts.size(); ++i) {
    compiled.emplace_back(CompiledFunction{library, name, function_name(i)});
  }
  return compiled;
}

// Those that do not compile one by one, the others as a unit again.
Result<std::vector<Compiled>> BatchVerifier::State::compile_apart(
    const std::vector<const Attempt*>& attempts, const std::string& message) {
  const auto failing = failing_in(message.substr(message.find(": ") + 2));  // Behind "g++ failed".
  if (failing.empty()) {
    spdlog::warn("a batch of {} solutions is compiled one by one: {}", attempts.size(),
                 first_error(message));
    return compile_each(attempts);
  }
  std::vector<const Attempt*> good;
  for (size_t i = 0; i < attempts.size(); ++i) {
    if (!failing.contains(i)) good.push_back(attempts[i]);
  }
  MC_TRY(std::vector<Compiled> rest, compile_all(good), "compile");
  MC_CHECK(rest.size() == good.size());
  std::vector<Compiled> compiled;
  for (size_t i = 0, next = 0; i < attempts.size(); ++i) {
    if (!failing.contains(i)) {
      compiled.push_back(std::move(rest[next++]));
      continue;
    }
    MC_TRY(Compiled one, compile_alone(*attempts[i]), "compile");
    compiled.push_back(std::move(one));
  }
  return compiled;
}

Result<std::vector<Compiled>> BatchVerifier::State::compile_each(
    const std::vector<const Attempt*>& attempts) {
  std::vector<Compiled> compiled;
  for (const Attempt* attempt : attempts) {
    MC_TRY(Compiled one, compile_alone(*attempt), "compile");
    compiled.push_back(std::move(one));
  }
  return compiled;
}

Result<Compiled> BatchVerifier::State::compile_alone(const Attempt& attempt) {
  const compile::Extension extension = extension_of(attempt);
  const compile::LocationMapper mapper(attempt.module, {extension});
  MC_TRY(compile::Compilation compilation, toolchain->compile(extension, mapper, {}), "compile");
  compile::Compiled& done = compilation.outcome;
  if (auto* artifact = std::get_if<compile::Artifact>(&done)) {
    return Compiled(CompiledFunction{artifact->library, artifact->module, "f"});
  }
  return std::visit(
      [](auto& other) -> Result<Compiled> {
        if constexpr (std::is_same_v<std::decay_t<decltype(other)>, compile::Artifact>) {
          return Error{ErrorCode::kProtocol, "unreachable"};
        } else {
          return Compiled(task::Outcome(std::move(other)));
        }
      },
      done);
}

// ---- Running
// --------------------------------------------------------------------------------------

Result<std::vector<TaskResult>> BatchVerifier::State::verify(const std::vector<TaskWork>& works) {
  std::vector<const Attempt*> attempts;
  for (const TaskWork& work : works) {
    for (const Attempt& attempt : work.attempts) attempts.push_back(&attempt);
  }
  MC_TRY(std::vector<Compiled> compiled, compile_all(attempts), "compile");
  std::vector<TaskResult> results;
  size_t at = 0;
  for (const TaskWork& work : works) {
    const auto begin = compiled.begin() + static_cast<ptrdiff_t>(at);
    at += work.attempts.size();
    MC_CHECK(at <= compiled.size());
    std::vector<Compiled> own(begin, compiled.begin() + static_cast<ptrdiff_t>(at));
    for (const Attempt& attempt : work.may_not_compile) {
      MC_TRY(Compiled one, compile_alone(attempt), "compile");
      own.push_back(std::move(one));
    }
    MC_TRY(TaskResult result, verify_one(work, own), "verify");
    results.push_back(std::move(result));
  }
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(directory.path(), failure)) {
    fs::remove(entry.path(), failure);
  }
  return results;
}

Result<TaskResult> BatchVerifier::State::verify_one(const TaskWork& work,
                                                    const std::vector<Compiled>& compiled) {
  std::vector<const Attempt*> attempts;
  for (const Attempt& attempt : work.attempts) attempts.push_back(&attempt);
  for (const Attempt& attempt : work.may_not_compile) attempts.push_back(&attempt);
  MC_CHECK(compiled.size() == attempts.size());
  Json question{{"source", work.source}, {"seed", work.seed >> 1}, {"explains", work.explains}};
  question["probe"] = work.probe.empty() ? Json() : Json::parse(work.probe);
  question["tests"] = Json::array();
  for (const std::string& test : work.tests) question["tests"].push_back(Json::parse(test));
  question["solutions"] = Json::array();
  for (size_t i = 0; i < attempts.size(); ++i) {
    const auto* home = std::get_if<CompiledFunction>(&compiled[i]);
    if (home == nullptr) continue;
    question["solutions"].push_back(
        {{"source", attempts[i]->module},
         {"cuda", attempts[i]->cuda},
         {"function", home->function},
         {"library", {{"path", home->library.string()}, {"module", home->module}}}});
  }
  MC_TRY(const std::string text, worker->ask(question.dump()), "verify");
  try {
    const Json answer = Json::parse(text);
    TaskResult result;
    result.gate = answer.at("gate").get<std::vector<std::string>>();
    if (!result.gate.empty()) return result;
    result.tests = answer.at("tests").get<std::vector<bool>>();
    MC_CHECK(result.tests.size() == work.tests.size());
    size_t ran = 0;
    for (size_t i = 0; i < attempts.size(); ++i) {
      const auto* home = std::get_if<CompiledFunction>(&compiled[i]);
      if (home == nullptr) {
        result.outcomes.push_back(std::get<task::Outcome>(compiled[i]));
        continue;
      }
      const compile::LocationMapper mapper(attempts[i]->module, {extension_of(*attempts[i])});
      compile::Artifact artifact;
      artifact.module = home->module;
      artifact.library = home->library;
      compile::Locator locator(runtime, {artifact}, mapper);
      MC_TRY(task::Outcome outcome,
             conclude(
                 text, answer.at("runs").at(ran++).dump(), policy,
                 [&](std::string_view module, uint64_t pc) { return locator.locate(module, pc); }),
             "conclude");
      result.outcomes.push_back(std::move(outcome));
    }
    return result;
  } catch (const Json::exception& exception) {
    return Error{ErrorCode::kProtocol,
                 std::string("the verifier's answer is not understood: ") + exception.what()};
  }
}

}  // namespace mc::forge
