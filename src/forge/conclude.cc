// SPDX-License-Identifier: Apache-2.0
#include "forge/conclude.h"

#include <algorithm>
#include <charconv>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "execute/children.h"

namespace mc::forge {
namespace {

using Json = nlohmann::json;
using EarlyOutcome = std::optional<task::Outcome>;

constexpr double kLimitS = 20;  // RUN_S of verify.py.

class OutcomeOfRun {
 public:
  OutcomeOfRun(const Json& answer, const Json& run, const execute::Locate& locate)
      : run_(run), locate_(locate) {
    for (const Json& shape : answer.at("shapes")) shapes_.push_back(shape);
  }

  Result<task::Outcome> outcome() {
    if (run_.contains("load")) {
      MC_TRY(EarlyOutcome failed, refused(run_["load"], "load"), "load");
      if (failed) return std::move(*failed);
    }
    for (const Json& build : run_.at("builds")) {
      MC_TRY(EarlyOutcome failed, refused(build, "init"), "build");
      if (failed) return std::move(*failed);
    }
    for (const Json& event : run_.at("trials")) {
      MC_TRY(EarlyOutcome decided, trial(event), "trial");
      if (decided) return std::move(*decided);
    }
    if (run_.contains("died")) return death();
    return conclusion();
  }

 private:
  Result<EarlyOutcome> refused(const Json& event, const char* stage) {
    if (event.at("error").is_null()) return EarlyOutcome();
    MC_TRY(execute::ErrorReply refusal, execute::decode_refusal(event["error"].dump()), stage);
    if (refusal.kind == "operator") {
      return EarlyOutcome(task::Illegal{"run", {{"run.aten", refusal.exception.message, {}}}});
    }
    const std::string where = refusal.stage.empty() ? stage : refusal.stage;
    return EarlyOutcome(
        task::Crashed{where, std::move(refusal.exception), 0, 0, findings_of(event), trials_});
  }

  std::vector<task::KernelFinding> findings_of(const Json& event) const {
    std::string report;
    for (const Json& line : event.at("report")) report += line.get<std::string>() + "\n";
    return execute::decode_findings(report, locate_);
  }

  Result<EarlyOutcome> trial(const Json& event) {
    const auto shape = event.at("shape").get<size_t>();
    task::Trial trial{event.at("index").get<int>(),
                      shapes_.at(shape).at("label").get<std::string>(),
                      event.at("distribution").get<std::string>(),
                      shapes_.at(shape).at("constants").get<std::map<std::string, int64_t>>(),
                      "",
                      false,
                      {},
                      findings_of(event),
                      ""};
    MC_TRY(EarlyOutcome failed, refused(event, "forward"), "forward");
    if (failed) {
      auto* crashed = std::get_if<task::Crashed>(&*failed);
      if (crashed == nullptr || shape == 0 || execute::has_fatal_one(trial.findings)) return failed;
      trial.checks.push_back(exception_check(*crashed));
      trials_.push_back(std::move(trial));
      return EarlyOutcome();
    }
    if (const std::string sticky = event.at("sticky"); !sticky.empty()) {
      return EarlyOutcome(task::Crashed{"forward", task::Exception{"CudaError", sticky, {}, {}}, 0,
                                        0, trial.findings, trials_});
    }
    MC_TRY(auto checked, worker::JudgeCheckAnswer::from_json(event.at("check").dump()), "check");
    execute::take_check(std::move(checked), trial);
    if (EarlyOutcome illegal = made_by_host(event, trial)) return illegal;
    MC_CHECK(shape < shapes_.size());
    trial.passed = trial.passed && trial.findings.empty() && trial.inputs_mutated.empty();
    trials_.push_back(std::move(trial));
    return EarlyOutcome();
  }

  static task::OutputCheck exception_check(const task::Crashed& crashed) {
    task::OutputCheck check;
    check.path = "output";
    check.problem = "exception";
    if (crashed.exception) {
      check.detail = crashed.exception->type + ": " + crashed.exception->message;
    }
    return check;
  }

  // Right values without a launch, or that no kernel wrote; wrong ones say more than that.
  EarlyOutcome made_by_host(const Json& event, const task::Trial& trial) const {
    std::string report;
    for (const Json& line : event.at("report")) report += line.get<std::string>() + "\n";
    const std::vector<execute::CallRecord> calls = execute::decode_calls(report);
    const auto illegal = [](const char* rule, const char* why) {
      return task::Illegal{"run", {{rule, why, {}}}};
    };
    if (calls.size() != 1) return illegal("run.no_record", "the emulator did not report");
    if (!trial.passed) return std::nullopt;
    if (calls[0].launches < 1) return illegal("run.own_launch", "forward launched no kernel");
    const bool foreign = calls[0].from_host + calls[0].from_nowhere > 0 ||
                         calls[0].from_kernels + calls[0].from_inputs == 0 ||
                         calls[0].unknown_reads > 0;
    if (foreign) return illegal("run.host_output", "no kernel wrote the outputs");
    return std::nullopt;
  }

  Result<task::Outcome> death() const {
    const std::string died = run_["died"];
    if (died == "timeout") return task::Outcome(task::TimedOut{"forward", kLimitS, {}});
    task::Crashed crashed{"forward", std::nullopt, 0, 0, {}, trials_};
    const size_t space = died.rfind(' ');
    int number = 0;
    std::from_chars(died.data() + space + 1, died.data() + died.size(), number);
    (died.starts_with("signal") ? crashed.signal : crashed.exit_code) = number;
    if (run_.contains("last_report")) {
      crashed.findings = findings_of(Json{{"report", run_["last_report"]}});
    }
    return task::Outcome(std::move(crashed));
  }

  Result<task::Outcome> conclusion() {
    if (trials_.empty()) return Error{ErrorCode::kProtocol, "no trial was made"};
    const auto has_findings = [](const task::Trial& trial) { return !trial.findings.empty(); };
    if (std::ranges::any_of(trials_, has_findings)) {
      for (task::Trial& trial : trials_) trial.passed = false;
    }
    const auto num_passed = std::ranges::count_if(trials_, &task::Trial::passed);
    if (num_passed == std::ssize(trials_)) {
      return task::Outcome(task::Passed{trials_, std::nullopt, 1});
    }
    const bool specialised = std::ranges::all_of(
        trials_, [](const task::Trial& t) { return t.shape != "native" || t.passed; });
    const double q = static_cast<double>(num_passed) / static_cast<double>(trials_.size());
    return task::Outcome(task::Wrong{q, specialised, trials_});
  }

  const Json& run_;
  const execute::Locate& locate_;
  std::vector<Json> shapes_;
  std::vector<task::Trial> trials_;
};

}  // namespace

Result<task::Outcome> conclude(std::string_view task_answer, std::string_view run,
                               const execute::Locate& locate) {
  try {
    const Json answer = Json::parse(task_answer), ran = Json::parse(run);
    return OutcomeOfRun(answer, ran, locate).outcome();
  } catch (const Json::exception& exception) {
    return Error{ErrorCode::kProtocol,
                 std::string("the verifier's answer is not understood: ") + exception.what()};
  }
}

}  // namespace mc::forge
