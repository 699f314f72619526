// SPDX-License-Identifier: Apache-2.0
#include "loop/rl.h"

#include <algorithm>
#include <chrono>
#include <fstream>
#include <map>
#include <memory>
#include <set>
#include <string_view>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "loop/update.h"
#include "rl/random.h"
#include "store/store.h"
#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/packing.h"

namespace mc::loop {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using Scalars = std::vector<train::Scalar>;

constexpr double kCheckpointSeconds = 60;

Error wrong(const std::string& what) { return Error{ErrorCode::kInvalidInput, what}; }

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// What a resumed run must have in common with the run before.
std::string settings_json(const RlOptions& o) {
  Json json;
  json["model"] = fs::weakly_canonical(o.model).string();
  json["data"] = fs::weakly_canonical(o.data).string();
  if (o.replay) json["replay"] = fs::weakly_canonical(*o.replay).string();
  if (!o.replay) json["judge"] = verifier_of(o.judge);
  json["steps"] = o.steps;
  json["prompts"] = o.prompts;
  json["samples"] = o.samples;
  json["turns"] = o.turns;
  json["updates"] = o.updates;
  if (o.mini_batches > 1) json["mini_batches"] = o.mini_batches;
  if (o.kl_stop) json["kl_stop"] = *o.kl_stop;
  json["temperature"] = o.generate.sampling.temperature;
  json["top_p"] = o.generate.sampling.top_p;
  json["max_tokens"] = o.generate.tokens_max;
  json["batch"] = o.generate.batch;
  json["lr"] = o.policy.optimizer.lr;
  json["warmup"] = o.policy.optimizer.warmup;
  json["weight_decay"] = o.policy.optimizer.weight_decay;
  json["clip"] = o.policy.optimizer.norm_max;
  json["eps"] = {o.step.clip.eps_low, o.step.clip.eps_high};
  if (o.step.clip.dual_clip) json["dual_clip"] = *o.step.clip.dual_clip;
  json["aggregation"] = o.step.aggregation.index();
  json["advantage"] = {static_cast<int>(o.step.advantage.scale), o.step.advantage.std_floor};
  json["score"] = {o.score.score.lambda, o.score.score.nu_max, o.score.speed.dead_zone,
                   o.score.speed.step};
  json["beta"] = o.step.beta;
  json["mirror_pop"] = !o.step.mirror_pop ? Json("off")
                       : o.delta_auto     ? Json("auto")
                                          : Json(o.step.mirror_pop->delta);
  if (o.step.mirror_pop && o.step.mirror_pop->token_veto) {
    json["token_veto"] = *o.step.mirror_pop->token_veto;
  }
  json["alpha"] = o.prime_echo.alpha;
  json["b_early"] = o.prime_echo.b_early;
  json["bdr"] = {o.retry.probability, o.retry.capacity, o.retry.replays_max};
  json["seed"] = o.seed;
  json["dtype"] = c10::toString(o.policy.dtype);
  return json.dump();
}

// ---- Metrics ------------------------------------------------------------------------------------

// "outcome/pass" and the like: texts that live as long as the program.
const std::map<std::string, std::string>& outcome_tags() {
  static const std::map<std::string, std::string> kTags = [] {
    std::map<std::string, std::string> tags;
    for (const std::string& name : task::outcome_names()) tags[name] = "outcome/" + name;
    return tags;
  }();
  return kTags;
}

double share(size_t part, size_t all) {
  return all == 0 ? 0 : static_cast<double>(part) / static_cast<double>(all);
}

// The share of first turns that are unsupported though no answer to their prompt passes.  They are
// left out of the group's mean, and so fare better than the failures that they probably are.
double unsupported_gains(std::span<const Episode> episodes) {
  std::set<int64_t> passed;
  for (const Episode& episode : episodes) {
    if (episode.passed()) passed.insert(episode.group);
  }
  const auto gains = std::ranges::count_if(episodes, [&](const Episode& episode) {
    return episode.turns.front().judgement.outcome == "unsupported" &&
           !passed.contains(episode.group);
  });
  return share(static_cast<size_t>(gains), episodes.size());
}

void add_episodes(std::span<const Episode> episodes, Scalars& scalars) {
  size_t num_scored = 0, num_first = 0, num_best = 0, num_cut = 0, num_turns = 0, num_tokens = 0;
  double s_first = 0;
  std::map<std::string, size_t> outcomes;
  for (const Episode& episode : episodes) {
    const Turn& first = episode.turns.front();
    ++outcomes[first.judgement.outcome];
    num_tokens += episode.tokens.size();
    num_cut += first.is_stopped ? 0 : 1;
    if (!first.judgement.s) continue;
    ++num_scored;
    s_first += *first.judgement.s;
    num_first += *first.judgement.s >= rl::kScorePassed ? 1 : 0;
    if (!episode.passed()) continue;
    ++num_best;
    num_turns += episode.turns.size();  // An episode ends with its pass.
  }
  scalars.emplace_back("s_first", num_scored == 0 ? 0 : s_first / static_cast<double>(num_scored));
  scalars.emplace_back("accuracy_first", share(num_first, num_scored));
  scalars.emplace_back("accuracy_best", share(num_best, num_scored));
  if (num_best > 0) scalars.emplace_back("turns_to_success", share(num_turns, num_best));
  scalars.emplace_back("answer_tokens", share(num_tokens, episodes.size()));
  scalars.emplace_back("cut_share", share(num_cut, episodes.size()));
  scalars.emplace_back("unsupported_gains", unsupported_gains(episodes));
  for (const auto& [name, tag] : outcome_tags()) {
    if (outcomes[name] > 0) scalars.emplace_back(tag, share(outcomes[name], episodes.size()));
  }
}

void add_update(const UpdateResult& update, Scalars& scalars) {
  const rl::StepPlan& plan = update.plan;
  double drift = 0, drift_signed = 0, drift_kept = 0;
  size_t num_kept = 0;
  for (size_t i = 0; i < update.drifts.size(); ++i) {
    drift += update.drifts[i].mean_abs;
    drift_signed += update.drifts[i].mean_signed;
    if (!plan.advantage[i]) continue;
    drift_kept += update.drifts[i].mean_abs;
    ++num_kept;
  }
  const auto count = static_cast<double>(std::max<size_t>(1, update.drifts.size()));
  const auto groups = [](size_t n) { return static_cast<double>(n); };
  scalars.emplace_back("reward", plan.reward_mean);
  scalars.emplace_back("reward_std", plan.std_mean);
  scalars.emplace_back("loss", update.loss);
  scalars.emplace_back("grad_norm", update.grad_norm);
  scalars.emplace_back("entropy", update.metrics.mean(update.metrics.sum_entropy));
  scalars.emplace_back("kl", update.metrics.mean(update.metrics.sum_k3));
  scalars.emplace_back("clip_share", update.metrics.clip_share());
  scalars.emplace_back("updates", static_cast<double>(update.num_updates));
  scalars.emplace_back("kl_old", update.kl_old);
  scalars.emplace_back("drift", drift / count);
  scalars.emplace_back("drift_signed", drift_signed / count);
  if (num_kept > 0) scalars.emplace_back("drift_kept", drift_kept / static_cast<double>(num_kept));
  scalars.emplace_back("rejected", groups(plan.num_rejected));
  scalars.emplace_back("unscored", groups(plan.num_unscored));
  scalars.emplace_back("groups_no_spread", groups(plan.num_groups_no_spread));
  scalars.emplace_back("groups_dropped", groups(plan.num_groups_dropped));
  if (plan.frac_positive_adv_on_failed_first_turn) {
    scalars.emplace_back("frac_positive_adv_on_failed_first_turn",
                         *plan.frac_positive_adv_on_failed_first_turn);
  }
}

double value_of(const Scalars& scalars, std::string_view name) {
  for (const auto& [tag, value] : scalars) {
    if (tag == name) return value;
  }
  return 0;
}

// ---- The run ------------------------------------------------------------------------------------

class Run {
 public:
  Run(const RlOptions& options, model::Model model, std::vector<Prompt> prompts)
      : options_(options),
        model_(std::move(model)),
        prompts_(std::move(prompts)),
        policy_(model_, policy_options(options)),
        retries_(options.retry) {
    for (const Prompt& prompt : prompts_) by_id_[prompt.task.id] = &prompt;
  }

  Result<RlResult> complete(const std::function<void(const RlProgress&)>& on_step) {
    MC_TRY_VOID(check_prompts(), "rl");
    MC_TRY_VOID(begin(), "rl");
    MC_TRY(train::MetricsFiles files, train::MetricsFiles::open(options_.run, state_.step), "rl");
    result_.last = {state_.step, 0, 0, state_.elapsed_s};
    Clock::time_point saved = Clock::now();
    while (state_.step < options_.steps) {
      MC_TRY(const Scalars scalars, step(), fmt::format("step {}", state_.step + 1));
      MC_TRY_VOID(files.add(state_.step, scalars), "rl");
      result_.last = {state_.step, value_of(scalars, "reward"), value_of(scalars, "accuracy_first"),
                      state_.elapsed_s};
      on_step(result_.last);
      const bool is_due = options_.checkpoint_steps ? state_.step % *options_.checkpoint_steps == 0
                                                    : seconds_since(saved) > kCheckpointSeconds;
      if (!is_due) continue;
      MC_TRY_VOID(save(), "rl");
      saved = Clock::now();
    }
    MC_TRY_VOID(save(), "rl");
    model_.flat = policy_.master().to(at::kCPU);
    MC_TRY_VOID(model::save_model(options_.run / "model", model_), "rl");
    return result_;
  }

 private:
  static PolicyOptions policy_options(const RlOptions& options) {
    PolicyOptions policy = options.policy;
    policy.temperature = options.generate.sampling.temperature;
    policy.keeps_reference = options.step.beta > 0;
    return policy;
  }

  Result<int64_t> length_of(const std::vector<model::Message>& messages) const {
    MC_TRY(const auto tokens, model::tokens_of(model_, messages, model::ChatEnd::kPrompt), "");
    return static_cast<int64_t>(tokens.size());
  }

  // False also for messages that the chat template refuses.
  bool leaves_room(const std::vector<model::Message>& messages) const {
    const auto length = length_of(messages);
    return length && *length + options_.generate.tokens_max <= model_.config.positions_max;
  }

  Status check_prompts() const {
    for (const Prompt& prompt : prompts_) {
      MC_TRY(const int64_t length, length_of(prompt.messages), prompt.task.id);
      if (leaves_room(prompt.messages)) continue;
      return wrong(fmt::format(
          "the prompt of {} has {} tokens; with --max-tokens {} that is beyond the model's {}",
          prompt.task.id, length, options_.generate.tokens_max, model_.config.positions_max));
    }
    return ok();
  }

  // A fresh run folder, or the state of the run that is there.
  Status begin() {
    if (options_.replay) {
      MC_TRY(replay_, store::open_run_to_read(*options_.replay), "--replay");
    }
    MC_TRY(store_,
           train::open_run(options_.run, "rl", settings_json(options_),
                           options_.resume ? train::Existing::kResume : train::Existing::kRefuse),
           "--out");
    episodes_file_.open(options_.run / "episodes.jsonl", std::ios::binary);
    auto found = train::load_checkpoint(options_.run, policy_.tensors());
    if (!found) return found.error().code == ErrorCode::kNotFound ? ok() : Status(found.error());
    MC_TRY_VOID(repeat_choices(found->step), "the steps before");
    MC_TRY_VOID(read_more(found->more), "the checkpoint");
    state_ = *std::move(found);
    return ok();
  }

  // The retry buffer as it was behind the steps before `step_end`: their slots are chosen again,
  // and their episodes remembered.
  Status repeat_choices(int64_t step_end) {
    for (; state_.step < step_end; ++state_.step) {
      MC_TRY(const std::vector<Episode> episodes, episodes_of(choose_slots()), "episodes");
      Scalars unused;
      remember(episodes, unused);
    }
    return ok();
  }

  // A checkpoint's own words: MirrorPop's window, and steps of the optimiser, which are fewer than
  // the run's where updates were skipped.
  std::string more_text() const {
    return Json{{"optimizer_steps", policy_.optimizer_steps()}, {"drifts", window_.mean_abs}}
        .dump();
  }

  Status read_more(const std::string& text) {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    try {
      policy_.restored(json.at("optimizer_steps").get<int64_t>());
      json.at("drifts").get_to(window_.mean_abs);
    } catch (const Json::exception& failure) {
      return wrong(std::string("is no state of a run: ") + failure.what());
    }
    return ok();
  }

  Result<Scalars> step() {
    const Clock::time_point begin = Clock::now();
    times_ = {};
    MC_TRY(const std::vector<Episode> episodes, episodes_of(choose_slots()), "episodes");
    const Clock::time_point update_begin = Clock::now();
    const double lr =
        train::learning_rate(options_.policy.optimizer, static_cast<double>(state_.step + 1) /
                                                            static_cast<double>(options_.steps));
    MC_TRY(const UpdateResult update, update_policy(policy_, episodes, update_options(lr)), "rl");
    rl::observe(window_, update.drifts);
    const double update_s = seconds_since(update_begin);
    Scalars scalars;
    add_update(update, scalars);
    add_episodes(episodes, scalars);
    remember(episodes, scalars);
    for (const Episode& episode : episodes) {
      state_.tokens += static_cast<int64_t>(episode.prompt.size() + episode.tokens.size());
    }
    state_.step += 1;
    state_.elapsed_s += seconds_since(begin);
    scalars.emplace_back("lr", lr);
    scalars.emplace_back("epoch", static_cast<double>(state_.place.epoch));
    scalars.emplace_back("tokens", static_cast<double>(state_.tokens));
    scalars.emplace_back("generate_s", times_.generate_s);
    scalars.emplace_back("verdict_wait_s", times_.wait_s);
    scalars.emplace_back("update_s", update_s);
    scalars.emplace_back("elapsed_s", state_.elapsed_s);
    return scalars;
  }

  // Replays of failed answers, and the next prompts of the epoch's order.
  std::vector<Slot> choose_slots() {
    const auto now = static_cast<uint64_t>(state_.step);
    std::vector<Slot> slots;
    for (uint64_t slot = 0; slot < static_cast<uint64_t>(options_.prompts); ++slot) {
      const auto failed = retries_.draw(rl::uniform({options_.seed, now, slot}), now);
      if (failed && by_id_.contains(failed->prompt)) {
        const Prompt& prompt = *by_id_[failed->prompt];
        slots.push_back({&prompt, replay_messages(prompt, failed->code, failed->feedback), true});
        continue;
      }
      const Prompt& prompt = next_prompt();
      slots.push_back({&prompt, prompt.messages, false});
    }
    return slots;
  }

  const Prompt& next_prompt() {
    train::Place& place = state_.place;
    if (place.next == static_cast<int64_t>(prompts_.size())) place = {place.epoch + 1, 0};
    const auto order = train::epoch_order(prompts_.size(), options_.seed, place.epoch);
    return prompts_[order[static_cast<size_t>(place.next++)]];
  }

  // The episodes of this step: those that the store has, or those of --replay, or new ones.
  Result<std::vector<Episode>> episodes_of(const std::vector<Slot>& slots) {
    const std::string name = fmt::format("episodes {:06}", state_.step);
    MC_TRY(const auto kept, store_->run.text(name), "the store");
    MC_TRY(auto episodes, kept ? episodes_from_lines(*kept) : new_episodes(slots, name), name);
    const std::string lines = json_lines(episodes);
    if (!kept) MC_TRY_VOID(store_->run.put(name, lines), "the store");
    if (!(episodes_file_ << lines << std::flush)) {
      return system_error(ErrorCode::kIo, "cannot write episodes.jsonl");
    }
    result_.episodes += static_cast<int64_t>(episodes.size());
    return episodes;
  }

  Result<std::vector<Episode>> new_episodes(const std::vector<Slot>& slots,
                                            const std::string& name) {
    if (replay_) {
      MC_TRY(const auto found, replay_->run.text(name), "--replay");
      if (found) return episodes_from_lines(*found);
      return wrong(fmt::format("{} has no episodes of this step", options_.replay->string()));
    }
    if (judge_ == nullptr) {
      MC_TRY(judge_, Judge::start(options_.judge, options_.score, &store_->run), "rl");
    }
    RolloutOptions rollout{.step = state_.step,
                           .samples = options_.samples,
                           .turns = options_.turns,
                           .generate = options_.generate,
                           .positions_max = model_.config.positions_max};
    rollout.generate.seed = derive_seed(options_.seed, "step " + std::to_string(state_.step));
    return roll_out(policy_, model_, *judge_, slots, rollout, times_);
  }

  UpdateOptions update_options(double lr) const {
    UpdateOptions update{.step = options_.step,
                         .prime_echo = options_.prime_echo,
                         .updates = options_.updates,
                         .mini_batches = options_.mini_batches,
                         .kl_stop = options_.kl_stop,
                         .lr = lr};
    if (options_.turns == 1) update.prime_echo.b_early.clear();
    if (update.step.mirror_pop && options_.delta_auto) {
      update.step.mirror_pop->delta = rl::delta_auto(window_);
    }
    return update;
  }

  // Tasks that were solved leave the retry buffer, tasks on which all failed enter it.
  void remember(const std::vector<Episode>& episodes, Scalars& scalars) {
    std::vector<rl::FailedCandidate> failures;
    size_t num_replays = 0, num_solved = 0, num_all_failed = 0, num_groups = 0;
    for (size_t begin = 0; begin < episodes.size();) {
      size_t end = begin;
      while (end < episodes.size() && episodes[end].group == episodes[begin].group) ++end;
      const std::span<const Episode> group(episodes.data() + begin, end - begin);
      ++num_groups;
      std::vector<std::vector<std::optional<double>>> scores;
      for (const Episode& episode : group) scores.push_back(episode.scores());
      const bool passed = std::any_of(group.begin(), group.end(),
                                      [](const Episode& episode) { return episode.passed(); });
      num_replays += group[0].is_replay ? 1 : 0;
      if (passed) retries_.solved(group[0].task);  // A fresh prompt may have solved it too.
      num_solved += group[0].is_replay && passed ? 1 : 0;
      if (rl::is_all_failed(scores)) {
        ++num_all_failed;
        if (auto failure = failure_of(group)) failures.push_back(std::move(*failure));
      }
      begin = end;
    }
    retries_.insert(std::move(failures));
    scalars.emplace_back("all_failed_share", share(num_all_failed, num_groups));
    scalars.emplace_back("bdr/size", static_cast<double>(retries_.size()));
    scalars.emplace_back("bdr/age", retries_.age_mean(static_cast<uint64_t>(state_.step)));
    scalars.emplace_back("bdr/replays", static_cast<double>(num_replays));
    scalars.emplace_back("bdr/solved", static_cast<double>(num_solved));
    if (num_replays > 0) scalars.emplace_back("bdr/solve_rate", share(num_solved, num_replays));
  }

  // The failed answer of a group to come back to, among those whose replay leaves room.
  std::optional<rl::FailedCandidate> failure_of(std::span<const Episode> group) const {
    const auto prompt = by_id_.find(group[0].task);
    if (prompt == by_id_.end()) return std::nullopt;
    std::vector<rl::FailedCandidate> candidates;
    std::set<std::string> seen;
    for (const Episode& episode : group) {
      for (const Turn& turn : episode.turns) {
        const Judgement& judgement = turn.judgement;
        if (!judgement.s || !judgement.stage || !seen.insert(turn.answer).second) continue;
        if (!leaves_room(replay_messages(*prompt->second, turn.answer, judgement.feedback))) {
          continue;
        }
        candidates.push_back({.task = episode.task,
                              .prompt = episode.task,
                              .code = turn.answer,
                              .outcome = judgement.outcome,
                              .stage = *judgement.stage,
                              .feedback = judgement.feedback,
                              .s = *judgement.s,
                              .q = judgement.q,
                              .step = static_cast<uint64_t>(episode.step),
                              .group = static_cast<uint64_t>(episode.group)});
      }
    }
    if (candidates.empty()) return std::nullopt;
    return candidates[rl::choose_failure(candidates)];
  }

  Status save() {
    state_.more = more_text();
    return train::save_checkpoint(options_.run, state_, policy_.tensors());
  }

  const RlOptions& options_;
  model::Model model_;
  const std::vector<Prompt> prompts_;
  std::map<std::string, const Prompt*> by_id_;
  Policy policy_;
  rl::RetryBuffer retries_;
  rl::DriftWindow window_;
  std::optional<store::RunFolder> store_;
  std::optional<store::RunFolder> replay_;
  std::unique_ptr<Judge> judge_;  // Started with the first answers.
  RolloutTimes times_;            // Of this step's answers; 0 where they were there.
  std::ofstream episodes_file_;
  train::RunState state_;
  RlResult result_;
};

}  // namespace

Result<RlResult> run_rl(const RlOptions& options,
                        const std::function<void(const RlProgress&)>& on_step) {
  MC_TRY(model::Model model, model::load_model(options.model), "rl");
  MC_TRY(std::vector<Prompt> prompts, read_prompts(options.data), "rl");
  return Run(options, std::move(model), std::move(prompts)).complete(on_step);
}

}  // namespace mc::loop
