// SPDX-License-Identifier: Apache-2.0
#include "loop/rl.h"

#include <algorithm>
#include <chrono>
#include <optional>
#include <span>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/hash.h"
#include "loop/episode_source.h"
#include "loop/prompt_queue.h"
#include "loop/rl_metrics.h"
#include "loop/rl_settings.h"
#include "loop/update.h"
#include "reward/feedback.h"
#include "train/checkpoint.h"
#include "train/metrics.h"
#include "train/packing.h"

namespace mc::loop {
namespace {

using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;

constexpr double kCheckpointSeconds = 60;

double seconds_since(Clock::time_point begin) {
  return std::chrono::duration<double>(Clock::now() - begin).count();
}

// The episodes of a step, by group: first the groups of the first round, then the refills.
struct StepEpisodes {
  std::vector<Episode> episodes;
  size_t num_first = 0;     // The episodes of the first round.
  size_t num_refilled = 0;  // The groups of the refill rounds.
  // The groups left out of the update because all their rewards are equal.
  size_t num_no_spread = 0;
};

class Run {
 public:
  Run(const RlOptions& options, model::Model model, std::vector<Prompt> prompts,
      std::vector<Prompt> eval_prompts)
      : options_(options),
        model_(std::move(model)),
        eval_prompts_(std::move(eval_prompts)),
        policy_(model_, policy_options(options)),
        queue_(std::move(prompts),
               {.prompts = options.prompts,
                .seed = options.seed,
                .retry = options.retry,
                .replays_show_failure = options.replays_show_failure,
                .leaves_room = [this](const auto& messages) { return leaves_room(messages); }}),
        source_(options_, policy_, model_) {}

  // The whole run: steps until the last one, with a checkpoint from time to time.
  Result<RlResult> complete(const std::function<void(const RlProgress&)>& on_step) {
    MC_TRY_VOID(check_prompts(), "rl");
    MC_TRY_VOID(source_.open(), "rl");
    MC_TRY_VOID(resume(), "rl");
    // The evaluation before the first step writes the line of step 0, so a fresh run removes an old
    // one.
    const int64_t last_line = state_.step > 0 ? state_.step : -1;
    MC_TRY(files_, train::MetricsFile::open(options_.run, last_line), "rl");
    result_.last = {state_.step, 0, 0, state_.elapsed_s};
    if (state_.step == 0) MC_TRY_VOID(evaluate_first(), "before the first step");
    Clock::time_point saved = Clock::now();
    while (!is_complete()) {
      MC_TRY(const Scalars scalars, step(), fmt::format("step {}", state_.step + 1));
      MC_TRY_VOID(files_->add(state_.step, scalars), "rl");
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
  bool is_complete() const { return state_.step >= options_.steps || !result_.ended.empty(); }

  // One step: the generator takes the trainer's weights if they are due; groups of answers to
  // prompts are drawn and judged; the policy learns from them; the queue remembers what failed; the
  // policy is evaluated if that is due.
  Result<Scalars> step() {
    MC_CHECK(!is_complete());
    const Clock::time_point begin = Clock::now();
    times_ = {};
    // The age of the generator's weights, in steps.
    const int64_t age = state_.step % (options_.stale + 1);
    if (age == 0) policy_.refresh_generator();
    MC_TRY(const StepEpisodes drawn, draw(), "episodes");

    const Clock::time_point update_begin = Clock::now();
    const double progress =
        static_cast<double>(state_.step + 1) / static_cast<double>(options_.steps);
    const double lr = train::learning_rate(options_.policy.optimizer, progress);
    const UpdateOptions update = update_options(options_, state_.step, lr);
    Scalars scalars;
    MC_TRY_VOID(learn(drawn, update, scalars), "rl");
    const double update_s = seconds_since(update_begin);

    add_episodes(std::span(drawn.episodes).first(drawn.num_first), update, scalars);
    add_retries(queue_.remember(state_.step, drawn.episodes), scalars);
    for (const Episode& episode : drawn.episodes) {
      state_.tokens += static_cast<int64_t>(episode.prompt.size() + episode.tokens.size());
    }
    state_.step += 1;
    state_.position = queue_.position();
    if (is_evaluation_due()) MC_TRY_VOID(evaluate(scalars), "evaluation");
    state_.elapsed_s += seconds_since(begin);
    if (options_.refills_max) {
      scalars.emplace_back("groups_refilled", static_cast<double>(drawn.num_refilled));
    }
    if (options_.stale > 0) scalars.emplace_back("stale", static_cast<double>(age));
    scalars.emplace_back("lr", lr);
    scalars.emplace_back("epoch", static_cast<double>(state_.position.epoch));
    scalars.emplace_back("tokens", static_cast<double>(state_.tokens));
    scalars.emplace_back("generate_s", times_.generate_s);
    scalars.emplace_back("verdict_wait_s", times_.wait_s);
    scalars.emplace_back("update_s", update_s);
    scalars.emplace_back("elapsed_s", state_.elapsed_s);
    return scalars;
  }

  // The groups of a step.  Each refill round has a new prompt for each group without spread in the
  // round before.
  Result<StepEpisodes> draw() {
    StepEpisodes drawn;
    MC_TRY(drawn.episodes, episodes_of("", queue_.choose(state_.step), 0), "first draw");
    drawn.num_first = drawn.episodes.size();
    if (!options_.refills_max) return drawn;
    const UpdateOptions update = update_options(options_, state_.step, /*lr=*/0);
    drawn.num_no_spread = num_without_spread(drawn.episodes, update);
    size_t num_missing = drawn.num_no_spread;
    for (int64_t round = 1; round <= *options_.refills_max && num_missing > 0; ++round) {
      const std::string part = fmt::format(" refill {}", round);
      const auto group = options_.prompts + static_cast<int64_t>(drawn.num_refilled);
      drawn.num_refilled += num_missing;
      MC_TRY(const auto more, episodes_of(part, queue_.refill(num_missing), group), "refills");
      num_missing = num_without_spread(more, update);
      drawn.num_no_spread += num_missing;
      drawn.episodes.insert(drawn.episodes.end(), more.begin(), more.end());
    }
    return drawn;
  }

  Result<std::vector<Episode>> episodes_of(const std::string& part,
                                           const std::vector<PromptGroup>& prompt_groups,
                                           int64_t group_first) {
    RolloutOptions rollout = rollout_options();
    rollout.generate.seed = derive_seed(options_.seed, fmt::format("step {}{}", state_.step, part));
    const std::string name = fmt::format("episodes {:06}{}", state_.step, part);
    MC_TRY(const auto episodes, source_.get(name, prompt_groups, rollout, group_first, times_),
           name);
    MC_TRY_VOID(source_.list(episodes), "rl");
    result_.episodes += static_cast<int64_t>(episodes.size());
    return episodes;
  }

  // Dynamic sampling leaves groups without spread out of the update.
  Status learn(const StepEpisodes& drawn, const UpdateOptions& options, Scalars& scalars) {
    std::vector<Episode> kept;
    if (options_.refills_max) kept = with_spread(drawn.episodes, options);
    MC_TRY(const UpdateResult update,
           update_policy(policy_, options_.refills_max ? kept : drawn.episodes, options), "update");
    add_update(update, drawn.num_no_spread, scalars);
    const double kl = value_of(scalars, "kl");
    if (options_.kl_end && kl > *options_.kl_end) {
      result_.ended = fmt::format("step {}: the KL to the first weights is {:.4g}, beyond {}",
                                  state_.step + 1, kl, *options_.kl_end);
    }
    return ok();
  }

  RolloutOptions rollout_options() const {
    return {.step = state_.step,
            .samples = options_.samples,
            .turns = options_.turns,
            .generate = options_.generate,
            .positions_max = model_.config.positions_max};
  }

  // ---- Evaluation ----

  bool is_evaluation_due() const {
    return options_.eval && (state_.step % options_.eval->steps == 0 || is_complete());
  }

  Status evaluate_first() {
    if (!options_.eval) return ok();
    const Clock::time_point begin = Clock::now();
    Scalars scalars;
    MC_TRY_VOID(evaluate(scalars), "rl");
    state_.elapsed_s += seconds_since(begin);
    return files_->add(0, scalars);
  }

  // Evaluates the trainer's greedy answers to the held-out prompts.
  Status evaluate(Scalars& scalars) {
    const Clock::time_point begin = Clock::now();
    std::vector<PromptGroup> prompt_groups;
    for (const Prompt& prompt : eval_prompts_)
      prompt_groups.push_back({&prompt, prompt.messages, false});
    RolloutOptions rollout = rollout_options();
    rollout.samples = 1;
    rollout.turns = 1;
    rollout.writer = Writer::kTrainer;
    rollout.generate.sampling = {.temperature = 0, .top_p = 1};
    const std::string name = fmt::format("eval {:06}", state_.step);
    RolloutTimes times;  // The times of an evaluation are not added to those of the step.
    MC_TRY(const auto episodes, source_.get(name, prompt_groups, rollout, 0, times), name);
    add_eval(episodes, scalars);
    scalars.emplace_back("eval_s", seconds_since(begin));
    return ok();
  }

  // ---- The room for prompts in the model's positions ----

  Result<int64_t> length_of(const std::vector<model::Message>& messages) const {
    MC_TRY(const auto tokens, model::tokens_of(model_, messages, model::ChatEnd::kPrompt), "");
    return static_cast<int64_t>(tokens.size());
  }

  // The result is false also for messages that the chat template rejects.
  bool leaves_room(const std::vector<model::Message>& messages) const {
    const auto length = length_of(messages);
    return length && *length + options_.generate.tokens_max <= model_.config.positions_max;
  }

  // The check also sets the number of concurrent answers, which depends on the prompts' lengths.
  Status check_prompts() {
    int64_t longest = 0;
    for (const std::vector<Prompt>* prompts : {&queue_.prompts(), &eval_prompts_}) {
      for (const Prompt& prompt : *prompts) {
        MC_TRY(const int64_t length, length_of(prompt.messages), prompt.task.id);
        longest = std::max(longest, length);
        if (leaves_room(prompt.messages)) continue;
        return invalid(fmt::format(
            "the prompt of {} has {} tokens; with --max-tokens {} that is beyond the model's {}",
            prompt.task.id, length, options_.generate.tokens_max, model_.config.positions_max));
      }
    }
    const int64_t num_repairs =
        std::max<int64_t>(options_.turns - 1, options_.retry.probability > 0);
    const int64_t repair =
        options_.generate.tokens_max + static_cast<int64_t>(reward::kRepairFeedbackTokens);
    const int64_t length_max = std::min(
        longest + num_repairs * repair + options_.generate.tokens_max, model_.config.positions_max);
    if (!options_.batch) options_.batch = default_batch(options_, model_.config, length_max);
    options_.generate.batch = *options_.batch;
    return ok();
  }

  // ---- Checkpoints ----

  // Loads the last checkpoint of the run folder, if it has one.
  Status resume() {
    auto found = train::load_checkpoint(options_.run, policy_.tensors());
    if (!found) return found.error().code == ErrorCode::kNotFound ? ok() : Status(found.error());
    MC_TRY_VOID(repeat_choices(found->step), "the steps before");
    if (queue_.position() != found->position) return invalid("--data has other tasks than before");
    MC_TRY_VOID(read_more(found->more), "the checkpoint");
    state_ = *std::move(found);
    return ok();
  }

  // Restores the prompt queue and its retry buffer for step `step_end`, by repeating the choices of
  // all earlier steps with their stored episodes.
  Status repeat_choices(int64_t step_end) {
    MC_CHECK(state_.step == 0);  // The queue and its buffer are in their initial state.
    for (; state_.step < step_end; ++state_.step) {
      MC_TRY(const StepEpisodes drawn, draw(), "episodes");
      queue_.remember(state_.step, drawn.episodes);
    }
    return ok();
  }

  Status save() {
    state_.more = more_text();
    return train::save_checkpoint(options_.run, state_, policy_.tensors());
  }

  // The part of a checkpoint that only RL has: the number of optimizer steps, which is smaller than
  // the run's if updates were skipped, and why the run ended early.
  std::string more_text() const {
    Json json = {{"optimizer_steps", policy_.optimizer_steps()}};
    if (!result_.ended.empty()) json["ended"] = result_.ended;
    return json.dump();
  }

  Status read_more(const std::string& text) {
    const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
    try {
      policy_.restored(json.at("optimizer_steps").get<int64_t>());
      if (json.contains("ended")) json["ended"].get_to(result_.ended);
    } catch (const Json::exception& failure) {
      return invalid(std::string("is no state of a run: ") + failure.what());
    }
    return ok();
  }

  RlOptions options_;
  model::Model model_;
  const std::vector<Prompt> eval_prompts_;
  Policy policy_;
  PromptQueue queue_;
  EpisodeSource source_;
  std::optional<train::MetricsFile> files_;
  // The times of generating this step's answers; 0 if the store already had them.
  RolloutTimes times_;
  train::RunState state_;
  RlResult result_;
};

// The held-out tasks that the seed chooses.
Result<std::vector<Prompt>> eval_prompts_of(const RlOptions& options) {
  if (!options.eval) return std::vector<Prompt>();
  MC_TRY(const std::vector<Prompt> all, read_prompts(options.eval->data), "--eval-data");
  std::vector<Prompt> chosen;
  for (const size_t i : train::epoch_order(all.size(), options.seed, 0)) {
    if (static_cast<int64_t>(chosen.size()) < options.eval->tasks) chosen.push_back(all[i]);
  }
  return chosen;
}

}  // namespace

Result<RlResult> run_rl(const RlOptions& options,
                        const std::function<void(const RlProgress&)>& on_step) {
  MC_TRY(model::Model model, model::load_model(options.model), "rl");
  MC_TRY(std::vector<Prompt> prompts, read_prompts(options.data), "rl");
  MC_TRY(std::vector<Prompt> eval_prompts, eval_prompts_of(options), "rl");
  return Run(options, std::move(model), std::move(prompts), std::move(eval_prompts))
      .complete(on_step);
}

}  // namespace mc::loop
