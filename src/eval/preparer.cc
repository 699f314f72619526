// SPDX-License-Identifier: Apache-2.0
#include "eval/preparer.h"

#include <algorithm>
#include <iterator>
#include <optional>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "compile/extension.h"
#include "compile/toolchain.h"
#include "core/demangle.h"
#include "core/hash.h"
#include "eval/machine.h"
#include "eval/musa_dialect.h"
#include "eval/musa_warps.h"
#include "eval/steps.h"
#include "legality/extract.h"
#include "legality/flags.h"
#include "legality/static_rules.h"
#include "legality/symbols.h"
#include "task/musa_device.h"

namespace mc::eval {
namespace {

// All compilations of a candidate together have this multiple of the limit for one compilation.
constexpr double kCompilationsMax = 2;

constexpr size_t kInitialsMax = 64;  // The number of tasks whose constructor arguments are kept.

// The state of one candidate in the stages.
class Candidate {
 public:
  Candidate(Preparer& preparer, const task::Task& task, const task::Candidate& candidate,
            const task::Correctness& correctness, std::optional<task::Dialect> dialect);
  Preparation run();

 private:
  Stage extract();
  Stage port();
  Stage inspect();
  std::string python_rules() const;
  EarlyOutcome other_language(const std::vector<std::string>& found) const;
  Stage record();
  void widen_warps();
  Stage check_flags();
  std::vector<legality::NativeSource> native_sources() const;
  void set_locations(std::vector<task::RuleFinding>& findings) const;
  Stage check_sources();
  Stage compile();
  Stage check_symbols();
  bool is_musa() const { return prepared_.verdict.protocol.dialect == task::Dialect::kMusa; }
  // True if the legality rules see a port of the text that the toolchain compiles.
  bool is_compiled_unported() const { return is_musa() && preparer_.machine().compiles_musa; }

  Preparer& preparer_;
  PreparedCandidate prepared_;
  std::string inspected_;  // The module in the form that the rules know.
  bool is_ported_ = false;
  // Its kernels are in a language such as Triton, and compiled at run time.
  bool is_in_python_ = false;
  std::string written_;  // A MUSA candidate's module before its port.
  std::vector<compile::Extension> extensions_;
  std::unique_ptr<compile::LocationMapper> mapper_;
};

Candidate::Candidate(Preparer& preparer, const task::Task& task, const task::Candidate& candidate,
                     const task::Correctness& correctness, std::optional<task::Dialect> dialect)
    : preparer_(preparer) {
  prepared_.task = task;
  prepared_.candidate = candidate;
  prepared_.verdict.task = task.id;
  prepared_.verdict.candidate = candidate.id;
  prepared_.verdict.backend = preparer.machine().backend;
  // The device that will measure the candidate is not known yet; all devices are of one kind.
  const auto& devices = preparer.machine().devices;
  prepared_.verdict.protocol =
      protocol_of(preparer.options(), devices.empty() ? nullptr : &devices.front(),
                  preparer.policy().version, correctness);
  task::Protocol& protocol = prepared_.verdict.protocol;
  protocol.dialect = dialect.value_or(preparer.options().dialect);
  if (is_musa()) protocol.musa_architecture = preparer.options().musa_architecture;
}

Preparation Candidate::run() {
  static constexpr Step<Candidate> kSteps[] = {
      {"extract", &Candidate::extract},   {"dialect", &Candidate::port},
      {"inspect", &Candidate::inspect},   {"record", &Candidate::record},
      {"flags", &Candidate::check_flags}, {"rules", &Candidate::check_sources},
      {"compile", &Candidate::compile},   {"symbols", &Candidate::check_symbols}};
  Stage stage = run_steps<Candidate>(*this, kSteps, prepared_.verdict);
  if (stage && !*stage) {
    prepared_.target =
        target_of(preparer_.machine(), preparer_.policy().version, prepared_.artifacts);
    return std::move(prepared_);
  }
  prepared_.verdict.outcome =
      stage ? std::move(**stage) : task::Outcome(task::Infra{stage.error().message});
  if (is_ported_) preparer_.musa().restore(prepared_.verdict, prepared_.candidate);
  return std::move(prepared_.verdict);
}

Stage Candidate::extract() {
  legality::Extraction extraction = legality::extract(prepared_.candidate.answer);
  if (auto* failed = std::get_if<task::Unextractable>(&extraction)) {
    return EarlyOutcome(std::move(*failed));
  }
  prepared_.source = std::move(std::get<legality::Extracted>(extraction).module);
  prepared_.verdict.candidate_hash = content_hash({prepared_.source});
  return EarlyOutcome();
}

Stage Candidate::port() {
  inspected_ = prepared_.source;
  if (!is_musa()) return EarlyOutcome();
  auto ported = preparer_.musa().port(prepared_.source, preparer_.options().musa_architecture);
  if (auto* failed = std::get_if<task::Outcome>(&ported)) return EarlyOutcome(std::move(*failed));
  inspected_ = std::move(std::get<std::string>(ported));
  written_ = prepared_.source;
  if (!is_compiled_unported()) prepared_.source = inspected_;
  is_ported_ = true;
  return EarlyOutcome();
}

// The rules for Python, with the kernel languages that the backend supports.
std::string Candidate::python_rules() const {
  if (preparer_.machine().languages.empty()) return preparer_.policy().python_json;
  auto rules = nlohmann::json::parse(preparer_.policy().python_json, nullptr, false);
  if (rules.is_discarded()) return preparer_.policy().python_json;  // The inspector will report it.
  rules["python"]["judged_languages"] = preparer_.machine().languages;
  return rules.dump();
}

Stage Candidate::inspect() {
  MC_TRY(auto stage, preparer_.executor().inspect(inspected_, python_rules()), "inspect");
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return EarlyOutcome(std::move(*outcome));
  auto& inspection = std::get<execute::Inspection>(stage);
  if (!inspection.syntax_error.empty()) {
    return EarlyOutcome(
        task::Unextractable{"syntax_error", inspection.syntax_error, inspection.syntax_location});
  }
  if (std::ranges::find(inspection.classes, "ModelNew") == inspection.classes.end()) {
    return EarlyOutcome(
        task::Unextractable{"no_model_new", "the module defines no class ModelNew", {}});
  }
  if (!inspection.unsupported.empty()) {
    return EarlyOutcome(task::Unsupported{std::move(inspection.unsupported)});
  }
  if (preparer_.options().static_rules && !inspection.findings.empty()) {
    return EarlyOutcome(task::Illegal{"static", std::move(inspection.findings)});
  }
  is_in_python_ = !inspection.languages.empty() && !inspection.native;
  std::vector<std::string> found = std::move(inspection.languages);
  if (!is_in_python_) found.emplace_back(task::kNative);
  return other_language(found);
}

// The outcome of a candidate in another language than the one that the run is restricted to.
EarlyOutcome Candidate::other_language(const std::vector<std::string>& found) const {
  const std::string& wanted = preparer_.options().language;
  const auto other = std::ranges::find_if(found, [&](const auto& one) { return one != wanted; });
  if (wanted == task::kAnyLanguage || other == found.end()) return EarlyOutcome();
  return EarlyOutcome(task::Illegal{
      "static",
      {{"language.other",
        fmt::format("kernels in {} were asked for, and the answer has some in {}", wanted, *other),
        {}}}});
}

// Makes the candidate's own text call the functions for warps of 128 threads.
void Candidate::widen_warps() {
  const auto widen = [](std::string& source) { source = with_warps_of_128(source); };
  for (compile::Extension& extension : extensions_) {
    std::ranges::for_each(extension.cuda_sources, widen);
    for (compile::SourceFile& file : extension.files) widen(file.text);
  }
}

Stage Candidate::record() {
  if (is_in_python_) {
    prepared_.recorded = R"({"extensions":[]})";
    mapper_ = std::make_unique<compile::LocationMapper>(prepared_.source, extensions_);
    return EarlyOutcome();
  }
  MC_TRY(auto found, preparer_.initials_of(prepared_.task, prepared_.verdict.protocol.correctness),
         "initial arguments");
  if (auto* outcome = std::get_if<task::Outcome>(&found)) return EarlyOutcome(std::move(*outcome));
  const auto& initials = *std::get<Preparer::Initials>(found);
  MC_TRY(auto stage,
         preparer_.executor().record(prepared_.source, initials,
                                     task::described(prepared_.verdict.protocol.dialect,
                                                     preparer_.options().musa_architecture)),
         "record");
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return EarlyOutcome(std::move(*outcome));
  prepared_.recorded = std::move(std::get<std::string>(stage));
  auto extensions = compile::parse_extensions(prepared_.recorded);
  if (!extensions) {
    const task::Exception garbled{"ProtocolError", extensions.error().message, {}, {}};
    return EarlyOutcome(task::Crashed{"record", garbled, 0, 0, {}, {}});
  }
  extensions_ = std::move(extensions).value();
  if (extensions_.empty()) {
    return EarlyOutcome(task::Illegal{
        "static",
        {{"native.none",
          "the module compiles no native source: call load_inline or load when the module is "
          "imported or ModelNew is constructed, not later",
          {}}}});
  }
  if (is_musa() && !is_compiled_unported()) {
    const std::string prelude =
        musa_prelude(preparer_.options().musa_architecture) + preparer_.machine().warps_prelude;
    for (compile::Extension& extension : extensions_) extension.prelude = prelude;
  }
  mapper_ = std::make_unique<compile::LocationMapper>(prepared_.source, extensions_);
  if (!is_musa()) return EarlyOutcome();
  if (!is_compiled_unported()) preparer_.musa().undo_port(extensions_, written_);
  std::vector<compile::Extension> ported = extensions_;
  auto refused = preparer_.musa().port_sources(ported, written_, *mapper_,
                                               preparer_.options().musa_architecture);
  is_ported_ = !refused;  // A rejection is about the candidate's own text.
  if (is_compiled_unported()) return refused;
  extensions_ = std::move(ported);
  if (!preparer_.machine().warps_prelude.empty()) widen_warps();
  for (compile::Extension& extension : extensions_) {
    std::vector<std::string> flags = flags_of_mcc();
    std::ranges::move(nvcc_flags(extension.extra_cuda_cflags), std::back_inserter(flags));
    extension.extra_cuda_cflags = std::move(flags);
  }
  return refused;
}

// Keeps only allowed flags: the toolchains pass these on unchanged.
Stage Candidate::check_flags() {
  std::vector<task::RuleFinding> findings;
  for (compile::Extension& extension : extensions_) {
    legality::CompilerFlags given{extension.extra_cflags, extension.extra_cuda_cflags,
                                  extension.extra_ldflags};
    if (is_compiled_unported()) {
      given.cuda = nvcc_flags(given.cuda);
      std::ranges::transform(given.link, given.link.begin(), cuda_link_flag);
    }
    legality::CheckedFlags checked = legality::check_flags(preparer_.policy(), given);
    std::ranges::move(checked.findings, std::back_inserter(findings));
    if (is_compiled_unported()) {
      checked.passed.cuda = mcc_flags(checked.passed.cuda, extension.extra_cuda_cflags);
    }
    extension.extra_cflags = std::move(checked.passed.cxx);
    extension.extra_cuda_cflags = std::move(checked.passed.cuda);
    extension.extra_ldflags = std::move(checked.passed.link);
  }
  if (findings.empty()) return EarlyOutcome();
  return EarlyOutcome(task::Illegal{"static", std::move(findings)});
}

// The outcome of a candidate whose compilations together exceeded their limit.
task::Outcome too_long_compilations(double limit_s) {
  const std::string message = fmt::format(
      "the candidate's compilations take more than {} s of processor time together", limit_s);
  return task::CompileFailed{{{"error", message, {}}}};
}

std::vector<legality::NativeSource> Candidate::native_sources() const {
  std::vector<legality::NativeSource> sources;
  for (const compile::Extension& extension : extensions_) {
    for (const compile::Unit& unit : compile::make_units(extension)) {
      for (const compile::SourceFile& piece : unit.pieces)
        sources.push_back({piece.name, piece.text});
    }
    for (const compile::SourceFile& file : extension.files)
      sources.push_back({file.name, file.text});
  }
  if (is_compiled_unported()) {
    for (auto& source : sources) source.text = preparer_.musa().to_cuda(source.text);
  }
  return sources;
}

void Candidate::set_locations(std::vector<task::RuleFinding>& findings) const {
  for (task::RuleFinding& found : findings) {
    if (found.location.line == 0) continue;
    found.location =
        mapper_->map(found.location.source, found.location.line, found.location.column);
  }
}

Stage Candidate::check_sources() {
  if (!preparer_.options().static_rules) return EarlyOutcome();
  std::vector<task::RuleFinding> findings =
      legality::check_sources(preparer_.policy(), native_sources());
  if (findings.empty()) return EarlyOutcome();
  set_locations(findings);
  return EarlyOutcome(task::Illegal{"static", std::move(findings)});
}

Stage Candidate::compile() {
  const Limits& limits = preparer_.options().limits;
  const double all_s_max = limits.compile_s * kCompilationsMax;
  double& all_s = prepared_.verdict.telemetry.compile_cpu_s;
  prepared_.verdict.telemetry.compile_cached = true;
  for (size_t number = 0; number < extensions_.size(); ++number) {
    const double rest_s = all_s_max - all_s;
    if (rest_s <= 0) return EarlyOutcome(too_long_compilations(all_s_max));
    const compile::CompileLimits limits_of_one{std::min(limits.compile_s, rest_s),
                                               limits.memory_bytes,
                                               preparer_.options().allow_weak_sandbox};
    MC_TRY(compile::Compilation compilation,
           preparer_.machine().toolchain->compile(extensions_[number], mapper_->of(number),
                                                  limits_of_one),
           "compile");
    all_s += compilation.cpu_s;
    if (all_s > all_s_max) return EarlyOutcome(too_long_compilations(all_s_max));
    if (!compilation.full_headers.empty()) {
      prepared_.verdict.telemetry.full_headers.push_back(compilation.full_headers);
    }
    compile::Compiled& compiled = compilation.outcome;
    if (auto* failed = std::get_if<task::CompileFailed>(&compiled))
      return EarlyOutcome(std::move(*failed));
    if (auto* lacking = std::get_if<task::Unsupported>(&compiled))
      return EarlyOutcome(std::move(*lacking));
    if (auto* late = std::get_if<task::TimedOut>(&compiled)) {
      if (rest_s < limits.compile_s) return EarlyOutcome(too_long_compilations(all_s_max));
      return EarlyOutcome(std::move(*late));
    }
    if (auto* large = std::get_if<task::OutOfMemory>(&compiled))
      return EarlyOutcome(std::move(*large));
    prepared_.artifacts.push_back(std::move(std::get<compile::Artifact>(compiled)));
    prepared_.verdict.telemetry.compile_cached &= prepared_.artifacts.back().cached;
  }
  return EarlyOutcome();
}

Stage Candidate::check_symbols() {
  std::vector<task::RuleFinding> findings;
  const std::vector<legality::NativeSource> sources = native_sources();
  for (const compile::Artifact& artifact : prepared_.artifacts) {
    if (!artifact.undefined_symbols) {
      findings.push_back({"link.unreadable",
                          "what " + artifact.name + " wants from other libraries cannot be read",
                          {}});
      continue;
    }
    std::vector<std::string> symbols = *artifact.undefined_symbols;
    if (is_compiled_unported()) {
      for (std::string& symbol : symbols) {
        const std::string name = demangle(symbol);
        if (name.find("mu") != std::string::npos) symbol = preparer_.musa().to_cuda(name);
      }
    }
    std::ranges::move(legality::check_symbols(preparer_.policy(), symbols, sources),
                      std::back_inserter(findings));
  }
  if (findings.empty()) return EarlyOutcome();
  set_locations(findings);
  return EarlyOutcome(task::Illegal{"link", std::move(findings)});
}

}  // namespace

Preparation Preparer::prepare(const task::Task& task, const task::Candidate& candidate,
                              const task::Correctness& correctness,
                              std::optional<task::Dialect> dialect) {
  return Candidate(*this, task, candidate, correctness, dialect).run();
}

execute::Stage<Preparer::Initials> Preparer::initials_of(const task::Task& task,
                                                         const task::Correctness& correctness) {
  using Found = std::variant<Initials, task::Outcome>;
  const std::string key = content_hash({task.code, to_string(correctness)});
  {
    const std::lock_guard lock(mutex_);
    const auto known = std::ranges::find(initials_, key, &std::pair<std::string, Initials>::first);
    if (known != initials_.end()) {
      initials_.splice(initials_.begin(), initials_, known);
      return Found(known->second);
    }
  }
  MC_TRY(auto stage, executor_.initials(task.code, judge_options(correctness, machine_, options_)),
         "task");
  if (auto* outcome = std::get_if<task::Outcome>(&stage)) return Found(std::move(*outcome));
  auto found =
      std::make_shared<const execute::Initials>(std::move(std::get<execute::Initials>(stage)));
  const std::lock_guard lock(mutex_);
  initials_.emplace_front(key, found);
  if (initials_.size() > kInitialsMax) initials_.pop_back();
  return Found(std::move(found));
}

}  // namespace mc::eval
