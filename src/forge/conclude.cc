// SPDX-License-Identifier: Apache-2.0
#include "forge/conclude.h"

#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "execute/failure.h"
#include "execute/trials.h"

namespace mc::forge {
namespace {

using Json = nlohmann::json;
using execute::EarlyOutcome;

constexpr double kLimitS = 20;  // RUN_S of verify.py.

std::string text_of(const Json& lines) {
  std::string text;
  for (const Json& line : lines) text += line.get<std::string>() + "\n";
  return text;
}

class Run {
 public:
  Run(const Json& answer, const Json& run, const execute::JudgePlan& plan,
      const execute::RunPolicy& policy, const execute::Program& program)
      : answer_(answer),
        run_(run),
        plan_(plan),
        program_(program),
        limits_{.load_s = kLimitS, .forward_s = kLimitS},
        trials_(plan_, policy, limits_, program_) {}

  Result<task::Outcome> outcome() {
    for (const Json& event : run_.at("events")) {
      const std::string stage = event.at("at");
      MC_TRY(EarlyOutcome decided, stage == "forward" ? trial(event) : start(event, stage), stage);
      if (decided) return early(std::move(*decided), stage == "forward");
    }
    if (!run_.at("died").is_null()) {
      return early(death(run_["died"]), run_["events"].size() > plan_.shapes.size());
    }
    if (trials_.lacking()) return early(*trials_.lacking(), /*is_of_a_call=*/false);
    if (trials_.all().size() == plan_.trials.size()) return trials_.outcome();
    return Error{ErrorCode::kProtocol, "the run ended before its last trial"};
  }

 private:
  Result<EarlyOutcome> start(const Json& event, const std::string& stage) const {
    if (event.at("reply").at("ok").get<bool>()) return EarlyOutcome();
    MC_TRY(auto refusal, execute::decode_refusal(event["reply"].dump()), "reply");
    return EarlyOutcome(failure_in(stage, std::move(refusal)));
  }

  Result<EarlyOutcome> trial(const Json& event) {
    const auto index = event.at("index").get<size_t>();
    const std::string reply = event.at("reply").dump();
    MC_TRY(auto given, worker::JudgeTrialAnswer::from_json(answer_.at("given").at(index).dump()),
           "inputs");
    auto call = trials_.begin(plan_.trials.at(index), given, text_of(event.at("report")));
    if (!event["reply"].at("ok").get<bool>()) {
      MC_TRY(auto refusal, execute::decode_refusal(reply), "reply");
      return trials_.fail(call, std::move(refusal));
    }
    MC_TRY(auto run, worker::CandidateRunAnswer::from_json(reply), "reply");
    run = execute::bounded(std::move(run));
    if (EarlyOutcome decided = trials_.admit(call, run); decided || call.lacking) return decided;
    MC_TRY(auto checked, worker::JudgeCheckAnswer::from_json(event.at("check").dump()), "check");
    return trials_.add(std::move(call), run, std::move(checked));
  }

  // An outcome before the last trial.  Trials that may fail without a loss only fail, that of the
  // call and all behind it, since the process may be gone.
  task::Outcome early(task::Outcome decided, bool is_of_a_call) {
    const auto num_made = [&] { return trials_.all().size(); };
    if (!is_of_a_call || trials_.counts(plan_.trials.at(num_made())) ||
        std::holds_alternative<task::Illegal>(decided)) {
      return trials_.with_trials(std::move(decided));
    }
    while (num_made() < plan_.trials.size()) trials_.fail(plan_.trials[num_made()], &decided);
    return trials_.outcome();
  }

  // The stage after the last event.
  task::Outcome death(const Json& died) const {
    const size_t num_events = run_["events"].size();
    const char* later = num_events <= plan_.shapes.size() ? "init" : "forward";
    const char* stage = num_events == 0 ? "load" : later;
    if (died.at("is_late").get<bool>()) return failure_in(stage, execute::LimitExceeded{});
    return failure_in(stage, execute::ProcessEnd{died.at("signal"), died.at("exit_code")});
  }

  task::Outcome failure_in(const std::string& stage, const execute::Answer& answer) const {
    const auto findings = execute::decode_findings(text_of(run_.at("report")), program_.locate);
    return std::visit(execute::Failure{limits_, stage.c_str(), kLimitS, findings}, answer);
  }

  const Json& answer_;
  const Json& run_;
  const execute::JudgePlan& plan_;
  const execute::Program& program_;
  const execute::StageLimits limits_;
  execute::Trials trials_;
};

}  // namespace

Result<task::Outcome> conclude(std::string_view task_answer, std::string_view run,
                               const execute::RunPolicy& policy, const execute::Locate& locate) {
  try {
    const Json answer = Json::parse(task_answer), ran = Json::parse(run);
    MC_TRY(auto begun, worker::JudgeBeginAnswer::from_json(answer.at("begun").dump()), "plan");
    const execute::JudgePlan plan = execute::plan_of(std::move(begun.plan));
    const execute::Program program{"", {}, locate, /*is_emulated=*/true};
    return Run(answer, ran, plan, policy, program).outcome();
  } catch (const std::exception& exception) {
    return Error{ErrorCode::kProtocol,
                 std::string("the verifier's answer is not understood: ") + exception.what()};
  }
}

}  // namespace mc::forge
