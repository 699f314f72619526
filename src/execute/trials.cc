// SPDX-License-Identifier: Apache-2.0
#include "execute/trials.h"

#include <algorithm>
#include <span>
#include <utility>

#include <fmt/format.h>

#include "core/check.h"
#include "execute/failure.h"
#include "task/text.h"

namespace mc::execute {
namespace {

constexpr size_t kFaultBytesMax = 400;
constexpr int64_t kMovedPercentMax = 50;  // The bound in percent of the outputs' bytes.

// True for a trial with values that the task's own inputs do not contain
// (python/harness/judge/specials.py).
bool is_special(const TrialPlan& plan) {
  return plan.distribution == "nan" || plan.distribution == "nonfinite";
}

bool is_main(const TrialPlan& plan) { return plan.shape == kMainShape && !is_special(plan); }

task::Outcome illegal(const char* rule, std::string message) {
  return task::Illegal{"run", {{rule, std::move(message), {}}}};
}

constexpr std::string_view kLateWork = "late_work";
constexpr std::string_view kRace = "shared_race";

// Illegal where the device worked after the call: it may restore an input, or write an output,
// before the judge reads it.
EarlyOutcome late_work_in(const std::vector<task::KernelFinding>& findings) {
  const auto late = std::ranges::find(findings, kLateWork, &task::KernelFinding::kind);
  if (late == findings.end()) return std::nullopt;
  return illegal("run.late_work", late->detail);
}

// True for a failed trial that is no evidence about the candidate: the device lacks a feature.
bool is_lacking(const task::Trial& trial) {
  static const std::string kUnsupported = task::outcome_name(task::Unsupported{});
  return !trial.checks.empty() && trial.checks.front().problem == kUnsupported;
}

// Findings behind the first construct that the device lacks may follow from it, but for those of
// what the candidate may not do. A kernel's race in shared memory does not follow from a library
// that computed nothing.
void take_lack(Trials::Call& call) {
  std::vector<task::KernelFinding> lacks;
  bool is_in_kernel = false;
  std::erase_if(call.trial.findings, [&](const task::KernelFinding& finding) {
    if (finding.kind == "unsupported") {
      is_in_kernel = is_in_kernel || !finding.kernel.empty();
      lacks.push_back(finding);
      return true;
    }
    const bool stays = finding.kind == kLateWork || (finding.kind == kRace && !is_in_kernel);
    return !lacks.empty() && !stays;
  });
  if (!call.trial.findings.empty()) return;
  (is_in_kernel ? call.lacking : call.limitation) = unsupported_in(lacks);
}

// The check result of a call whose end only makes its trial fail.
task::OutputCheck check_of(const task::Outcome& outcome) {
  task::OutputCheck check;
  check.path = "output";
  check.problem = task::outcome_name(outcome);
  if (const auto* uncompiled = std::get_if<task::CompileFailed>(&outcome)) {
    if (!uncompiled->diagnostics.empty()) check.detail = uncompiled->diagnostics.front().message;
    return check;
  }
  const auto* crashed = std::get_if<task::Crashed>(&outcome);
  if (crashed == nullptr) return check;
  check.problem = "exception";
  if (!crashed->exception) {
    check.detail = "the process ended by signal " + std::to_string(crashed->signal) +
                   ", exit code " + std::to_string(crashed->exit_code);
    return check;
  }
  const task::Exception& exception = *crashed->exception;
  check.detail = exception.type;
  if (!exception.message.empty()) check.detail += ": " + exception.message;
  if (const std::string where = task::location_name(exception.location); !where.empty()) {
    check.detail += " (" + where + ")";
  }
  return check;
}

std::vector<task::KernelFinding> findings_of(const task::Outcome& outcome) {
  if (const auto* crashed = std::get_if<task::Crashed>(&outcome)) return crashed->findings;
  if (const auto* late = std::get_if<task::TimedOut>(&outcome)) return late->findings;
  return {};
}

// Illegal where the right values were not computed by kernels.
EarlyOutcome host_made(const CallRecord& record) {
  if (const int64_t others = record.from_host + record.from_nowhere; others > 0) {
    return illegal(task::kHostOutput, "no kernel of the candidate wrote " + std::to_string(others) +
                                          " bytes of the outputs: the host made them");
  }
  // The reference may return only numbers; then no output comes from the device.
  if (record.from_kernels + record.from_inputs == 0 && record.from_fills > 0) {
    return illegal(task::kHostOutput,
                   "no kernel of the candidate wrote the outputs: they were filled");
  }
  if (record.unknown_reads == 0) return std::nullopt;
  return illegal(task::kHostOutput, "a kernel read " + std::to_string(record.unknown_reads) +
                                        " bytes that no kernel, copy or fill had written");
}

bool has_failed_launch(const task::Trial& trial) {
  return std::ranges::any_of(trial.findings, [](const task::KernelFinding& finding) {
    return finding.kind == "launch_error";
  });
}

// The share of trials that passed.  The device reports each location once, in the first trial that
// reaches it.  But a race or an uninitialised read is a fault of the kernel, whatever the values
// are, so it makes all given trials fail (those that count, or those that do not).
double share_passed(std::span<task::Trial> trials) {
  if (trials.empty()) return 1;
  const auto has_findings = [](const task::Trial& trial) { return !trial.findings.empty(); };
  if (std::ranges::any_of(trials, has_findings)) {
    for (task::Trial& trial : trials) trial.passed = false;
  }
  const auto num = std::ranges::count_if(trials, &task::Trial::passed);
  return static_cast<double>(num) / static_cast<double>(trials.size());
}

}  // namespace

void Trials::repeat(int64_t configuration, int64_t num_configurations) {
  MC_CHECK(trials_.size() == plan_.trials.size());
  MC_CHECK(0 < configuration && configuration < num_configurations);
  repetition_ = {configuration, num_configurations};
}

void Trials::put(task::Trial trial, const std::string& taken) {
  if (!repetition_) {
    MC_CHECK(trials_.size() < plan_.trials.size());
    trials_.push_back(std::move(trial));
    return;
  }
  const auto before = std::ranges::find(trials_, trial.index, &task::Trial::index);
  MC_CHECK(before != trials_.end());
  if (trial.passed || !before->passed) return;
  trial.findings.push_back(configuration_finding(taken));
  *before = std::move(trial);
}

task::KernelFinding Trials::configuration_finding(const std::string& taken) const {
  MC_CHECK(repetition_.has_value());
  task::KernelFinding finding;
  finding.kind = "configuration";
  finding.detail = fmt::format(
      "configuration {} of {}, counted from 0, that the autotuner may take{}{}; with "
      "configuration 0 the trial passed",
      repetition_->configuration, repetition_->num_configurations, taken.empty() ? "" : " ",
      taken.empty() ? "" : "(" + taken + ")");
  return finding;
}

Trials::Call Trials::begin(const TrialPlan& plan, const worker::JudgeTrialResponse& given,
                           std::string_view report) {
  Call call{plan, trial_of(plan), std::nullopt, given.returns_inputs};
  call.trial.inputs_digest = given.digest;
  call.trial.findings = decode_findings(report, program_.locate);
  take_lack(call);
  const std::vector<CallRecord> records = decode_calls(report);
  if (records.size() == 1 && records[0].number == last_number_ + 1) call.record = records[0];
  if (call.record) call.trial.sectors = call.record->sectors;
  if (!records.empty()) last_number_ = records.back().number;
  return call;
}

EarlyOutcome Trials::fail(const Call& call, const CallResult& result) {
  const std::vector<task::KernelFinding>& findings = call.trial.findings;
  task::Outcome failure =
      std::visit(Failure{limits_, "forward", limits_.forward_s, findings}, result);
  if (call.lack() && !std::holds_alternative<task::Illegal>(failure)) {
    fail(call.plan, &*call.lack());
    return std::nullopt;
  }
  // A candidate may reject sizes other than the task's.
  const bool is_exception = std::holds_alternative<ErrorReply>(result) &&
                            (std::holds_alternative<task::Crashed>(failure) ||
                             std::holds_alternative<task::CompileFailed>(failure));
  if (!is_exception || is_main(call.plan) || std::ranges::any_of(findings, task::ends_kernel)) {
    return failure;
  }
  fail(call.plan, &failure);
  return std::nullopt;
}

EarlyOutcome Trials::admit(Call& call, const worker::CandidateRunResponse& run) {
  if (EarlyOutcome forbidden = note_aten(run.aten)) return forbidden;
  if (run.triton) call.taken = run.triton->taken;
  // A fault leaves nothing to compare.
  if (call.limitation && !run.sticky.empty())
    call.lacking = std::exchange(call.limitation, std::nullopt);
  if (call.lacking) {
    fail(call.plan, &*call.lacking);
    return std::nullopt;
  }
  if (!run.sticky.empty()) {
    const task::Exception fault{"CudaError", run.sticky.substr(0, kFaultBytesMax), {}, {}};
    return task::Crashed{"forward", fault, 0, 0, call.trial.findings, {}};
  }
  return std::nullopt;
}

EarlyOutcome Trials::add(Call call, const worker::CandidateRunResponse& run,
                         worker::JudgeCheckResponse checked) {
  task::Trial& trial = call.trial;
  take_check(std::move(checked), trial);
  if (trial.passed) {  // Wrong values say more of a candidate than that no kernel made them.
    if (EarlyOutcome idle = made_without_kernel(call, run)) {
      if (counts(call.plan)) return idle;
      fail(call.plan, &*idle);  // Sizes that nobody asks for may be left to PyTorch.
      return std::nullopt;
    }
  }
  trial.passed = trial.passed && trial.findings.empty() && trial.inputs_mutated.empty();
  if (!trial.passed && trial.findings.empty() && call.limitation) {
    fail(call.plan, &*call.limitation);
    return std::nullopt;
  }
  put(std::move(trial), call.taken);
  return std::nullopt;
}

task::Outcome Trials::reject(Call call, std::string detail) {
  task::OutputCheck malformed;
  malformed.path = "output";
  malformed.problem = "malformed";
  malformed.detail = std::move(detail);
  call.trial.checks.push_back(std::move(malformed));
  trials_.push_back(std::move(call.trial));
  for (task::Trial& each : trials_) each.passed = false;
  return task::Wrong{0, false, trials_};
}

EarlyOutcome Trials::check_idle(std::string_view report) const {
  return late_work_in(decode_findings(report, program_.locate));
}

void Trials::fail(const TrialPlan& plan, const task::Outcome* why) {
  task::Trial trial = trial_of(plan);
  if (why != nullptr) {
    trial.checks.push_back(check_of(*why));
    trial.findings = findings_of(*why);
    const bool is_lack = std::holds_alternative<task::Unsupported>(*why);
    if (is_lack && counts(plan) && !lacking_) lacking_ = *why;
  }
  put(std::move(trial), "");
}

task::Outcome Trials::outcome() {
  MC_CHECK(trials_.size() == plan_.trials.size());
  if (lacking_ && !has_failed()) return *lacking_;
  const auto trials = std::span(trials_);
  const auto num_main = static_cast<size_t>(std::ranges::count_if(plan_.trials, is_main));
  const size_t num_counted = plan_.needs_general ? trials.size() : num_main;
  const double q = share_passed(trials.first(num_counted));
  const double generality = share_passed(trials.subspan(num_counted));
  if (q == 1) return task::Passed{trials_, std::nullopt, generality};
  bool fails_elsewhere = false;
  for (size_t i = num_main; i < trials.size(); ++i) {
    fails_elsewhere |= !trials[i].passed && plan_.trials.at(i).shape != kMainShape;
  }
  const bool is_specialised =
      fails_elsewhere && std::ranges::all_of(trials.first(num_main), &task::Trial::passed);
  return task::Wrong{q, is_specialised, trials_};
}

task::Outcome Trials::with_trials(task::Outcome early) {
  if (auto* crashed = std::get_if<task::Crashed>(&early)) {
    crashed->trials = trials_;
    if (repetition_) crashed->findings.push_back(configuration_finding(""));
  }
  if (!std::holds_alternative<task::Unsupported>(early) || !has_failed()) return early;
  while (trials_.size() < plan_.trials.size()) fail(plan_.trials[trials_.size()], &early);
  return outcome();
}

bool Trials::has_failed() const {
  return std::ranges::any_of(trials_, [this](const task::Trial& trial) {
    return !trial.passed && !is_lacking(trial) && counts(plan_.trials.at(trial.index));
  });
}

bool Trials::counts(const TrialPlan& plan) const { return is_main(plan) || plan_.needs_general; }

bool Trials::is_pointless(const TrialPlan& plan) const {
  return is_special(plan) && std::ranges::none_of(trials_, &task::Trial::passed);
}

task::Trial Trials::trial_of(const TrialPlan& plan) const {
  const ShapePlan& shape = plan_.shapes.at(static_cast<size_t>(plan.shape));
  return {plan.index, shape.label, plan.distribution, shape.constants, "", false, {}, {}, ""};
}

// Operators within an allowed operator are also allowed, so the caller does not matter.
EarlyOutcome Trials::note_aten(const std::map<std::string, int64_t>& calls) {
  constexpr std::string_view kAten = "aten::";
  task::Illegal illegal{"run", {}};
  for (const auto& [name, count] : calls) {
    aten_ops_[name] += count;
    const bool is_known = name.starts_with(kAten);
    if (may_use_all() || (is_known && policy_.operators.contains(name.substr(kAten.size())))) {
      continue;
    }
    illegal.findings.push_back({"run.aten",
                                "forward called " + name + " (" + std::to_string(count) +
                                    (count == 1 ? " time" : " times") + "), which the policy " +
                                    policy_.name + " does not allow",
                                {}});
  }
  if (illegal.findings.empty()) return std::nullopt;
  return illegal;
}

EarlyOutcome Trials::made_without_kernel(const Call& call,
                                         const worker::CandidateRunResponse& run) const {
  // A refused launch is the candidate's fault, and its finding decides.
  if (has_failed_launch(call.trial) || std::ranges::any_of(trials_, has_failed_launch)) {
    return std::nullopt;
  }
  const int64_t launches = run.launches.value_or(0);
  if (!call.returns_inputs && launches < policy_.own_launches_min) {
    const bool is_in_eval = plan_.mode == "eval";
    return illegal("run.own_launch",
                   fmt::format("forward launched no kernel of the candidate's own in {} mode, in "
                               "which the task is judged; {} mode was not tried",
                               is_in_eval ? "eval" : "training", is_in_eval ? "training" : "eval"));
  }
  if (may_use_all()) return std::nullopt;
  // The task consists of moving data, so kernels must do it.
  if (plan_.only_moves && !call.returns_inputs && run.moved_percent > kMovedPercentMax) {
    return illegal(
        "run.torch_moves",
        fmt::format("copies and views of PyTorch and copies of the runtime put {} % of the "
                    "outputs' bytes in place, and to move them is all that the task asks for",
                    run.moved_percent));
  }
  if (!call.record) return std::nullopt;
  if (EarlyOutcome made = host_made(*call.record)) return made;
  // A device in software can distinguish a constant from a right output where the comparison
  // cannot.
  if (call.returns_inputs || call.record->reads_given || !plan_.grade.is_trivial()) {
    return std::nullopt;
  }
  return illegal(
      task::kConstantAnswer,
      "no kernel read anything of what it was given: the outputs are the same for all inputs");
}

}  // namespace mc::execute
