// SPDX-License-Identifier: Apache-2.0
#include "forge/rewrites.h"

#include <algorithm>
#include <map>

#include <nlohmann/json.hpp>

#include "forge/samples.h"
#include "reward/feedback.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;

struct Timed {
  const store::Judgement* judgement = nullptr;
  task::Estimate time_us;
};

bool beats(const Timed& fast, const Timed& slow) {
  return fast.time_us.high < slow.time_us.low &&
         slow.time_us.median >= kGainMin * fast.time_us.median;
}

std::string row_of(const store::TaskRecord& task, const std::string& slow_answer,
                   const std::string& fast_answer, const Timed& slow, const Timed& fast) {
  const std::string feedback = reward::feedback(slow.judgement->verdict, {});
  Json row;
  row["id"] = task.id + "-rewrite";
  row["kind"] = "rewrite";
  row["messages"] = {
      {{"role", "user"},
       {"content", "Write a CUDA kernel for this PyTorch module.\n" + fenced(task.code)}},
      {{"role", "assistant"}, {"content", slow_answer}},
      {{"role", "user"}, {"content", reward::speed_request(feedback)}},
      {{"role", "assistant"}, {"content", fast_answer}}};
  row["task"] = task.id;
  row["families"] = task.families;
  row["provenance"] = {{"before_us", slow.time_us.median},
                       {"after_us", fast.time_us.median},
                       {"before", store::to_string(slow.judgement->key)},
                       {"after", store::to_string(fast.judgement->key)}};
  return row.dump(-1, ' ', false, Json::error_handler_t::replace);
}

}  // namespace

Result<std::vector<std::string>> rewrites_of(const store::Run& run) {
  MC_TRY(const std::vector<store::TaskRecord> tasks, run.tasks(), "rewrites");
  MC_TRY(const std::vector<store::Answer> answers, run.answers(), "rewrites");
  MC_TRY(const std::vector<store::Judgement> judgements, run.judgements(), "rewrites");
  std::map<store::AnswerKey, std::string> texts;
  for (const store::Answer& answer : answers) texts[answer.key] = answer.completion;
  std::map<std::string, std::vector<Timed>> timed;
  for (const store::Judgement& one : judgements) {
    const auto* passed = std::get_if<task::Passed>(&one.verdict.outcome);
    if (passed == nullptr || !passed->performance || !texts.contains(one.key)) continue;
    timed[one.key.id].push_back({&one, passed->performance->time_us});
  }
  std::vector<std::string> rows;
  for (const store::TaskRecord& task : tasks) {
    std::vector<Timed>& all = timed[task.id];
    if (all.size() < 2) continue;
    std::ranges::stable_sort(all, {}, [](const Timed& one) { return one.time_us.median; });
    if (!beats(all.front(), all.back())) continue;
    rows.push_back(row_of(task, texts[all.back().judgement->key], texts[all.front().judgement->key],
                          all.back(), all.front()));
  }
  return rows;
}

}  // namespace mc::forge
