// SPDX-License-Identifier: Apache-2.0
#include "eval/strict.h"

#include <filesystem>
#include <memory>
#include <utility>
#include <variant>

#include "core/check.h"
#include "core/hash.h"
#include "eval/machine.h"
#include "legality/policy.h"

namespace mc::eval {
namespace {

constexpr int kRepeats = 2;

// A fault of the kernel, whatever the values were, makes every trial fail.
task::Wrong wrong_by(const task::Passed& passed, std::vector<task::KernelFinding> findings) {
  task::Wrong wrong{0, false, passed.trials};
  for (task::Trial& trial : wrong.trials) trial.passed = false;
  if (!wrong.trials.empty()) wrong.trials[0].findings = std::move(findings);
  return wrong;
}

}  // namespace

Result<std::optional<task::Outcome>> Strict::run(const task::Passed& passed) {
  MC_CHECK(audits_.empty());  // Called once for each candidate.
  for (int number = 1; number <= kRepeats; ++number) {
    MC_TRY(EarlyOutcome decided, repeat(number), "other seeds");
    if (!decided) continue;
    audits_.push_back({"other_seeds", "findings", ""});
    return decided;
  }
  audits_.push_back({"other_seeds", "clean", ""});
  return audit(passed);
}

// Repeats correctness with nothing left of the earlier runs: another seed, judge and candidate
// process.
Result<Strict::EarlyOutcome> Strict::repeat(int number) {
  const std::string label = "strict " + std::to_string(number);
  const auto turn = context_.device.turn(subject_.use);
  using Acquire = execute::Executor::Acquire;
  MC_TRY(execute::Session fresh, context_.executor.judge(Acquire::kIfReady), "judge");
  MC_TRY(auto opened,
         context_.executor.open_judge(std::move(fresh), subject_.task_source, subject_.judge),
         "judge");
  if (auto* outcome = std::get_if<task::Outcome>(&opened)) return EarlyOutcome(std::move(*outcome));
  auto& judge = *std::get<std::unique_ptr<execute::Judge>>(opened);
  MC_TRY_VOID(
      judge.begin(derive_seed(subject_.seed, label + " judge"), context_.executor.limits().judge_s),
      "judge");
  MC_TRY(execute::CandidateProcess candidate, context_.executor.candidate(subject_.program),
         "measure");
  MC_TRY(
      execute::Measured measured,
      context_.executor.measure(std::move(candidate), subject_.program, judge, context_.run_policy,
                                derive_seed(subject_.seed, label + " schedule")),
      "measure");
  measured.candidate.reset();
  MC_TRY_VOID(context_.executor.give_back_device(std::move(measured.device)), "measure");
  if (measured.check_error && !context_.is_second) return *measured.check_error;
  if (std::holds_alternative<task::Passed>(measured.outcome)) return EarlyOutcome();
  return EarlyOutcome(std::move(measured.outcome));
}

// Runs the sanitizer's tools.  An audit that cannot run is noted and decides nothing.
Strict::EarlyOutcome Strict::audit(const task::Passed& passed) {
  if (context_.compute_device == nullptr) return std::nullopt;
  for (const execute::SanitizerTool tool : execute::kSanitizerTools) {
    if (passed.generality < 1) {  // An audit uses other sizes.
      audits_.push_back({execute::name_of(tool), "not_run", "right at the task's own sizes alone"});
      continue;
    }
    execute::AuditEnd end = audit_with(tool);
    audits_.push_back(std::move(end.audit));
    if (!end.findings.empty()) return wrong_by(passed, std::move(end.findings));
  }
  return std::nullopt;
}

execute::AuditEnd Strict::audit_with(execute::SanitizerTool tool) const {
  const Machine& machine = context_.machine;
  const std::string name = execute::name_of(tool);
  if (machine.sanitizer.empty()) {
    return {{name, "not_run", "compute-sanitizer is not installed"}, {}};
  }
  const execute::AuditOptions options{
      machine.sanitizer,
      machine.pytorch.python,
      std::filesystem::weakly_canonical(machine.layout.share("python/harness")),
      task::to_string(machine.backend),
      machine.aten,
      context_.compute_device->environment,
      context_.executor.limits().child};
  const execute::AuditSubject subject{subject_.task_source,
                                      subject_.program,
                                      subject_.kernels,
                                      derive_seed(subject_.seed, "audit"),
                                      subject_.judge.correctness.mode,
                                      subject_.judge.correctness.precision};
  const auto turn = context_.device.turn(subject_.use);
  auto end = execute::audit(tool, options, subject);
  if (!end) return {{name, "not_run", end.error().message}, {}};
  return std::move(end).value();
}

}  // namespace mc::eval
