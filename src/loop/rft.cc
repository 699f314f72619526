// SPDX-License-Identifier: Apache-2.0
#include "loop/rft.h"

#include <algorithm>
#include <cmath>
#include <map>
#include <memory>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/hash.h"
#include "loop/episode.h"
#include "loop/judge.h"
#include "loop/rollout.h"
#include "loop/structure.h"
#include "model/publish.h"
#include "train/packing.h"

namespace mc::loop {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

Error wrong(const std::string& what) { return Error{ErrorCode::kInvalidInput, what}; }

std::vector<Prompt> choose_tasks(std::vector<Prompt> prompts, const RftOptions& options) {
  const auto count = static_cast<size_t>(options.limit);
  if (count == 0 || count >= prompts.size()) return prompts;
  std::vector<size_t> order = train::epoch_order(prompts.size(), options.seed, 0);
  order.resize(count);
  std::vector<Prompt> chosen;
  for (const size_t i : order) chosen.push_back(std::move(prompts[i]));
  return chosen;
}

std::string sft_row(const Prompt& prompt, const std::string& answer, const std::string& structure,
                    size_t number) {
  Json row;
  row["id"] = fmt::format("{}-rft{}", prompt.task.id, number);
  row["kind"] = "rft";
  row["messages"] = Json::array();
  for (const model::Message& message : prompt.messages) {
    row["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  row["messages"].push_back({{"role", "assistant"}, {"content", answer}});
  row["task"] = prompt.task.id;
  row["structure"] = structure;
  return row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

// One task's answers: adds its rows to `text`, and counts.
void add_task(const Prompt& prompt, std::span<const Episode> episodes, const RftOptions& options,
              std::string& text, RftSummary& summary) {
  std::vector<std::string> answers;
  std::vector<std::string> structures;
  for (const Episode& episode : episodes) {
    if (!episode.passed()) continue;
    answers.push_back(episode.turns.front().answer);
    structures.push_back(structure_of(answers.back()));
  }
  summary.tasks += 1;
  summary.answers += static_cast<int64_t>(episodes.size());
  if (answers.empty()) return;
  std::vector<std::string> drawn;
  for (const size_t i : draw_targets(answers, structures, options.targets,
                                     derive_seed(options.seed, prompt.task.id))) {
    text += sft_row(prompt, answers[i], structures[i], drawn.size());
    drawn.push_back(structures[i]);
  }
  summary.solved += 1;
  summary.passed += static_cast<int64_t>(answers.size());
  summary.targets += static_cast<int64_t>(drawn.size());
  summary.clusters +=
      static_cast<double>(std::set<std::string>(structures.begin(), structures.end()).size());
  summary.effective_before += effective_number(structures);
  summary.effective_after += effective_number(drawn);
}

std::string summary_json(const RftSummary& s) {
  Json json;
  json["tasks"] = s.tasks;
  json["solved"] = s.solved;
  json["answers"] = s.answers;
  json["passed"] = s.passed;
  json["targets"] = s.targets;
  json["clusters"] = s.clusters;
  json["effective_before"] = s.effective_before;
  json["effective_after"] = s.effective_after;
  return json.dump(2) + "\n";
}

Result<std::vector<Episode>> sample_all(const RftOptions& options, const model::Model& model,
                                        const std::vector<Prompt>& prompts) {
  PolicyOptions policy_options = options.policy;
  policy_options.keeps_reference = false;
  const Policy policy(model, policy_options);
  MC_TRY(const auto judge, Judge::start(options.judge, {}), "rft");
  std::vector<Slot> slots;
  for (const Prompt& prompt : prompts) slots.push_back({&prompt, prompt.messages, false});
  RolloutOptions rollout{.step = 0,
                         .samples = options.samples,
                         .turns = 1,
                         .generate = options.generate,
                         .positions_max = model.config.positions_max};
  rollout.generate.seed = derive_seed(options.seed, "rft");
  RolloutTimes times;
  return roll_out(policy, model.tokenizer, *judge, slots, rollout, times);
}

}  // namespace

std::vector<size_t> draw_targets(std::span<const std::string> answers,
                                 std::span<const std::string> structures, int64_t count,
                                 uint64_t seed) {
  std::map<uint64_t, std::map<uint64_t, size_t>> clusters;
  for (size_t i = 0; i < answers.size(); ++i) {
    clusters[derive_seed(seed, structures[i])].try_emplace(derive_seed(seed, answers[i]), i);
  }
  std::vector<size_t> drawn;
  for (bool is_more = true; is_more && static_cast<int64_t>(drawn.size()) < count;) {
    is_more = false;
    for (auto& [order, cluster] : clusters) {
      if (cluster.empty() || static_cast<int64_t>(drawn.size()) == count) continue;
      drawn.push_back(cluster.begin()->second);
      cluster.erase(cluster.begin());
      is_more = true;
    }
  }
  return drawn;
}

double effective_number(std::span<const std::string> texts) {
  std::map<std::string, double> counts;
  for (const std::string& text : texts) counts[text] += 1;
  double entropy = 0;
  for (const auto& [text, count] : counts) {
    const double p = count / static_cast<double>(texts.size());
    entropy -= p * std::log(p);
  }
  return texts.empty() ? 0 : std::exp(entropy);
}

Result<RftSummary> run_rft(const RftOptions& options) {
  std::error_code failure;
  if (fs::exists(options.out, failure)) return wrong(options.out.string() + " is there already");
  MC_TRY(const model::Model model, model::load_model(options.model), "rft");
  MC_TRY(std::vector<Prompt> all, read_prompts(options.data), "rft");
  const std::vector<Prompt> prompts = choose_tasks(std::move(all), options);
  MC_TRY(const auto episodes, sample_all(options, model, prompts), "rft");
  RftSummary summary;
  std::string lines;
  std::string targets;
  for (const Episode& episode : episodes) lines += json_line(episode);
  const auto samples = static_cast<size_t>(options.samples);
  for (size_t i = 0; i < prompts.size(); ++i) {
    add_task(prompts[i], std::span(episodes).subspan(i * samples, samples), options, targets,
             summary);
  }
  const double solved = static_cast<double>(std::max<int64_t>(1, summary.solved));
  summary.clusters /= solved;
  summary.effective_before /= solved;
  summary.effective_after /= solved;
  const auto write = [&](const fs::path& fresh) -> Status {
    MC_TRY_VOID(write_file_atomically(fresh / "episodes.jsonl", lines), "rft");
    MC_TRY_VOID(write_file_atomically(fresh / "sft.jsonl", targets), "rft");
    return write_file_atomically(fresh / "summary.json", summary_json(summary));
  };
  MC_TRY_VOID(model::publish_folder(options.out, write), "rft");
  return summary;
}

}  // namespace mc::loop
