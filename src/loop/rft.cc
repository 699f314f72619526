// SPDX-License-Identifier: Apache-2.0
#include "loop/rft.h"

#include <algorithm>
#include <cmath>
#include <iterator>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <sstream>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"
#include "loop/episode.h"
#include "loop/judge.h"
#include "loop/rollout.h"
#include "loop/structure.h"
#include "rl/bdr.h"
#include "store/store.h"
#include "train/packing.h"

namespace mc::loop {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// A chunk is large enough for many cores, because it waits for its last answer.
constexpr int64_t kChunkAnswers = 512;

std::vector<Prompt> choose_tasks(std::vector<Prompt> prompts, const RftOptions& options) {
  const auto count = static_cast<size_t>(options.limit);
  if (count == 0 || count >= prompts.size()) return prompts;
  std::vector<size_t> order = train::epoch_order(prompts.size(), options.seed, 0);
  order.resize(count);
  std::vector<Prompt> chosen;
  for (const size_t i : order) chosen.push_back(std::move(prompts[i]));
  return chosen;
}

std::string sft_row(const Prompt& prompt, const std::vector<model::Message>& messages,
                    const std::string& kind, const std::string& answer,
                    const std::string& structure, size_t number) {
  Json row;
  row["id"] = fmt::format("{}-{}{}", prompt.task.id, kind, number);
  row["kind"] = kind;
  row["messages"] = Json::array();
  for (const model::Message& message : messages) {
    row["messages"].push_back({{"role", message.role}, {"content", message.content}});
  }
  row["messages"].push_back({{"role", "assistant"}, {"content", answer}});
  row["task"] = prompt.task.id;
  row["structure"] = structure;
  return row.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

void count_lines(const std::string& text, int64_t each, std::map<std::string, int64_t>& counts) {
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) counts[line] += each;
}

// Repair rows from failed answers, each text used once.  The target is the passing answer that
// changes the fewest lines.  Each failed answer gives two rows: one shows it as the previous turn,
// the other within the prompt.
std::string repair_rows(const Prompt& prompt, std::span<const Episode> episodes,
                        std::span<const std::string> passing, int64_t count, RftSummary& summary) {
  std::string text;
  std::set<std::string> seen;
  for (const Episode& episode : episodes) {
    const Turn& turn = episode.turns.front();
    if (static_cast<int64_t>(seen.size()) == count) break;
    if (!turn.judgement.s || episode.passed() || !seen.insert(turn.answer).second) continue;
    const size_t number = seen.size() - 1;
    const std::string& target = passing[nearest_answer(turn.answer, passing)];
    std::vector<model::Message> messages = prompt.messages;
    add_repair_turn(turn, messages);
    const std::string structure = structure_of(target);
    text += sft_row(prompt, messages, "rft-repair", target, structure, number);
    text +=
        sft_row(prompt, replay_messages(prompt, rl::code_of(turn.answer), turn.judgement.feedback),
                "rft-retry", target, structure, number);
    summary.repairs += 2;
  }
  return text;
}

// Adds the rows of one task's answers to `text`, and updates the counts.
void add_task(const Prompt& prompt, std::span<const Episode> episodes, const RftOptions& options,
              std::string& text, RftSummary& summary) {
  std::vector<std::string> answers;
  std::vector<std::string> structures;
  for (const Episode& episode : episodes) {
    if (!episode.passed()) continue;
    answers.push_back(episode.turns.back().answer);  // An episode ends at its first pass.
    structures.push_back(structure_of(answers.back()));
  }
  summary.tasks += 1;
  summary.answers += static_cast<int64_t>(episodes.size());
  if (answers.empty()) return;
  std::vector<std::string> drawn;
  for (const size_t i : draw_targets(answers, structures, options.targets,
                                     derive_seed(options.seed, prompt.task.id))) {
    text += sft_row(prompt, prompt.messages, "rft", answers[i], structures[i], drawn.size());
    drawn.push_back(structures[i]);
  }
  text += repair_rows(prompt, episodes, answers, options.repairs, summary);
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
  json["repairs"] = s.repairs;
  json["clusters"] = s.clusters;
  json["effective_before"] = s.effective_before;
  json["effective_after"] = s.effective_after;
  return json.dump(2) + "\n";
}

// The sampling of all tasks in chunks of whole tasks.  Each chunk of answers with verdicts is
// stored as soon as it is complete.
class Sampling {
 public:
  Sampling(const RftOptions& options, const model::Model& model, const std::vector<Prompt>& prompts)
      : options_(options),
        model_(model),
        prompts_(prompts),
        chunk_(static_cast<size_t>(std::max<int64_t>(1, kChunkAnswers / options.samples))) {}

  // All episodes, ordered by task and sample.
  Result<std::vector<Episode>> complete() {
    MC_TRY(folder_,
           store::open_run(options_.out, {.name = "rft", .kind = "rft", .settings = settings()}),
           "--out");
    std::vector<Episode> episodes;
    for (size_t begin = 0; begin < prompts_.size(); begin += chunk_) {
      MC_TRY(auto more, chunk(begin), "rft");
      std::move(more.begin(), more.end(), std::back_inserter(episodes));
    }
    return episodes;
  }

 private:
  std::string settings() const {
    std::string suite;
    for (const Prompt& prompt : prompts_) {
      suite += prompt.task.id + prompt.task.code +
               model::render_chatml(prompt.messages, model::ChatEnd::kPrompt);
    }
    Json json;
    json["model"] = fs::weakly_canonical(options_.model).string();
    json["tasks"] = content_hash({suite});
    json["judge"] = verifier_of(options_.judge);
    json["samples"] = options_.samples;
    json["turns"] = options_.turns;
    json["temperature"] = options_.generate.sampling.temperature;
    json["max_tokens"] = options_.generate.tokens_max;
    json["batch"] = options_.generate.batch;
    json["seed"] = options_.seed;
    return json.dump();
  }

  Result<std::vector<Episode>> chunk(size_t begin) {
    const std::string name = fmt::format("episodes {:06}", begin);
    MC_TRY(const auto kept, folder_->run.text(name), "what was kept");
    if (kept) return episodes_from_lines(*kept);
    MC_TRY(std::vector<Episode> episodes, sample(begin), "rft");
    MC_TRY_VOID(folder_->run.put(name, json_lines(episodes)), "keep episodes");
    return episodes;
  }

  Result<std::vector<Episode>> sample(size_t begin) {
    if (judge_ == nullptr) {
      PolicyOptions policy_options = options_.policy;
      policy_options.keeps_reference = false;
      policy_.emplace(model_, policy_options);
      MC_TRY(judge_, Judge::start(options_.judge, {}, &folder_->run), "rft");
    }
    const size_t end = std::min(begin + chunk_, prompts_.size());
    std::vector<PromptGroup> prompt_groups;
    for (size_t i = begin; i < end; ++i) {
      prompt_groups.push_back({&prompts_[i], prompts_[i].messages, false});
    }
    RolloutOptions rollout{.step = 0,
                           .samples = options_.samples,
                           .turns = options_.turns,
                           .generate = options_.generate,
                           .positions_max = model_.config.positions_max};
    rollout.generate.seed = derive_seed(options_.seed, "rft " + std::to_string(begin));
    RolloutTimes times;
    MC_TRY(auto episodes, roll_out(*policy_, model_, *judge_, prompt_groups, rollout, times),
           "rft");
    for (Episode& episode : episodes) episode.group += static_cast<int64_t>(begin);
    return episodes;
  }

  const RftOptions& options_;
  const model::Model& model_;
  const std::vector<Prompt>& prompts_;
  const size_t chunk_;  // The number of tasks in a chunk.
  std::optional<store::RunFolder> folder_;
  // Created, like the judge, for the first chunk that the store lacks.
  std::optional<Policy> policy_;
  std::unique_ptr<Judge> judge_;
};

}  // namespace

std::vector<size_t> draw_targets(std::span<const std::string> answers,
                                 std::span<const std::string> structures, int64_t count,
                                 uint64_t seed) {
  MC_CHECK(answers.size() == structures.size());
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

size_t nearest_answer(const std::string& failed, std::span<const std::string> passing) {
  MC_CHECK(!passing.empty());
  const auto changes = [&](const std::string& answer) {
    std::map<std::string, int64_t> counts;
    count_lines(failed, 1, counts);
    count_lines(answer, -1, counts);
    int64_t sum = 0;
    for (const auto& [line, count] : counts) sum += std::abs(count);
    return sum;
  };
  return static_cast<size_t>(std::ranges::min_element(passing, {}, changes) - passing.begin());
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
  MC_TRY(const model::Model model, model::load_model(options.model), "rft");
  MC_TRY(std::vector<Prompt> all, read_prompts(options.data), "rft");
  const std::vector<Prompt> prompts = choose_tasks(std::move(all), options);
  MC_TRY(const auto episodes, Sampling(options, model, prompts).complete(), "rft");
  RftSummary summary;
  std::string targets;
  const auto samples = static_cast<size_t>(options.samples);
  for (size_t i = 0; i < prompts.size(); ++i) {
    add_task(prompts[i], std::span(episodes).subspan(i * samples, samples), options, targets,
             summary);
  }
  const double solved = static_cast<double>(std::max<int64_t>(1, summary.solved));
  summary.clusters /= solved;
  summary.effective_before /= solved;
  summary.effective_after /= solved;
  MC_TRY_VOID(write_file_atomically(options.out / "episodes.jsonl", json_lines(episodes)), "rft");
  MC_TRY_VOID(write_file_atomically(options.out / "sft.jsonl", targets), "rft");
  MC_TRY_VOID(write_file_atomically(options.out / "summary.json", summary_json(summary)), "rft");
  return summary;
}

}  // namespace mc::loop
