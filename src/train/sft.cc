// SPDX-License-Identifier: Apache-2.0
#include "train/sft.h"

#include <chrono>
#include <cmath>
#include <numeric>
#include <string>
#include <utility>
#include <vector>

#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "model/decoder.h"
#include "model/model_folder.h"
#include "model/parallel.h"
#include "train/checkpoint.h"
#include "train/loss.h"
#include "train/packing.h"
#include "train/samples.h"

namespace mc::train {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;

constexpr double kCheckpointSeconds = 60;
constexpr int64_t kNoStepsLimit = INT64_MAX;

std::vector<int64_t> lengths_of(const std::vector<Sample>& samples) {
  std::vector<int64_t> lengths;
  for (const Sample& sample : samples) {
    lengths.push_back(static_cast<int64_t>(sample.tokens.size()));
  }
  return lengths;
}

// The number of steps in one pass over the data.
int64_t steps_of_epoch(const std::vector<int64_t>& lengths, const SftOptions& options) {
  Batches batches(lengths, options.seed, options.batch_tokens, {});
  int64_t steps = 0;
  int64_t taken = 0;
  while (taken < static_cast<int64_t>(lengths.size())) {
    taken += static_cast<int64_t>(batches.next().size());
    ++steps;
  }
  return steps;
}

// The settings in which a resumed run must equal the earlier run.
std::string settings_json(const SftOptions& o, const std::vector<int64_t>& lengths) {
  nlohmann::ordered_json json;
  json["model"] = fs::weakly_canonical(o.model).string();
  json["data"] = fs::weakly_canonical(o.data).string();
  json["conversations"] = lengths.size();
  if (o.steps) json["steps"] = *o.steps;
  if (o.minutes) json["minutes"] = *o.minutes;
  json["batch_tokens"] = o.batch_tokens;
  json["pack_tokens"] = *o.pack_tokens;
  json["length_max"] = *o.length_max;
  json["lr"] = o.optimizer.lr;
  json["lr_end"] = o.optimizer.lr_end;
  json["warmup"] = o.optimizer.warmup;
  json["weight_decay"] = o.optimizer.weight_decay;
  json["clip"] = o.optimizer.norm_max;
  json["seed"] = o.seed;
  json["dtype"] = c10::toString(o.dtype);
  return json.dump();
}

class Run {
 public:
  Run(const SftOptions& options, model::Model model, Samples samples, Ranks ranks)
      : options_(options),
        ranks_(std::move(ranks)),
        model_(std::move(model)),
        samples_(std::move(samples)),
        lengths_(lengths_of(samples_.kept)),
        master_(model_.flat.to(options.device)),
        weights_(model_.config, master_.to(options.dtype)),
        rope_(model::rope_of(model_.config, *options.length_max, options.device)),
        optimizer_(master_, model::layout_of(model_.config).matrices, options.optimizer,
                   weights_.flat),
        batches_(lengths_, options.seed, options.batch_tokens, {}) {
    MC_CHECK(options.workers > 0);
    for (size_t i = 0; i < options.workers; ++i) {
      gradients_.emplace_back(model_.config, at::zeros_like(master_));
    }
    if (!options.minutes) {
      steps_max_ = options.steps ? *options.steps : steps_of_epoch(lengths_, options);
    }
    MC_CHECK(steps_max_ > 0);
  }

  Result<SftResult> complete(const std::function<void(const Progress&)>& on_step) {
    MC_TRY_VOID(begin(), "train");
    std::optional<MetricsFile> files;
    if (ranks_.is_first()) {
      MC_TRY(files, MetricsFile::open(options_.run, state_.step), "train");
    }
    Clock::time_point saved = Clock::now();
    while (progress() < 1) {
      MC_TRY(const StepMetrics metrics, step(), "train");
      if (files) MC_TRY_VOID(files->add(metrics), "train");
      on_step({metrics, progress(), shown_steps()});
      if (!is_checkpoint_due(saved)) continue;
      MC_TRY_VOID(save(), "train");
      saved = Clock::now();
    }
    ranks_.finish();
    MC_TRY_VOID(save(), "train");
    model_.flat = master_.to(at::kCPU);
    if (ranks_.is_first()) {
      MC_TRY_VOID(model::save_model(options_.run / "model", model_), "train");
    }
    return SftResult{state_.step,       state_.tokens, static_cast<int64_t>(lengths_.size()),
                     samples_.too_long, last_loss_,    state_.elapsed_s};
  }

 private:
  // Creates the run folder, or loads the state of the existing run.
  Status begin() {
    if (ranks_.is_first()) {
      MC_TRY(store_,
             open_run(options_.run, "sft", settings_json(options_, lengths_),
                      options_.resume ? Existing::kResume : Existing::kRefuse),
             "--out");
    }
    auto found = load_checkpoint(options_.run,
                                 {master_, optimizer_.first_moment(), optimizer_.second_moment()});
    if (!found) return found.error().code == ErrorCode::kNotFound ? ok() : Status(found.error());
    state_ = *found;
    optimizer_.set_steps(state_.step);
    batches_ = Batches(lengths_, options_.seed, options_.batch_tokens, state_.position);
    if (!weights_.flat.is_same(master_)) weights_.flat.copy_(master_);
    return ok();
  }

  double progress() const {
    if (options_.minutes) return std::min(1.0, state_.elapsed_s / (60 * *options_.minutes));
    return static_cast<double>(state_.step) / static_cast<double>(steps_max_);
  }

  std::optional<int64_t> shown_steps() const {
    return options_.minutes ? std::nullopt : std::optional(steps_max_);
  }

  bool is_checkpoint_due(Clock::time_point saved) const {
    if (options_.checkpoint_steps) return state_.step % *options_.checkpoint_steps == 0;
    return Clock::now() - saved > std::chrono::duration<double>(kCheckpointSeconds);
  }

  Result<StepMetrics> step() {
    const Clock::time_point begin = Clock::now();
    const std::vector<size_t> batch = batches_.next();
    const double loss = gradient_of(batch);
    // The first step has a rate above 0, and the last step has the final rate of the schedule.
    const double lr = learning_rate(options_.optimizer, rate_progress());
    const double norm = optimizer_.step(gradients_[0].flat, lr);
    if (!std::isfinite(norm)) {
      return invalid("the loss is no longer a finite number at step " +
                     std::to_string(state_.step + 1) + "; a smaller --lr may help");
    }
    return account(batch, begin, {.loss = loss, .grad_norm = norm, .lr = lr});
  }

  double rate_progress() const {
    if (options_.minutes) return std::max(progress(), 1e-3);
    return static_cast<double>(state_.step + 1) / static_cast<double>(steps_max_);
  }

  // Computes the sum of the gradients over all ranks in gradients_[0] and returns the mean loss.
  double gradient_of(const std::vector<size_t>& batch) {
    std::vector<const Sample*> samples;
    std::vector<int64_t> lengths;
    int64_t learned = 0;
    for (const size_t number : batch) {
      samples.push_back(&samples_.kept[number]);
      lengths.push_back(lengths_[number]);
      learned += num_learned(*samples.back());
    }
    MC_CHECK(learned > 0);  // Every sample has an answer.
    const size_t workers = gradients_.size();
    const auto parts = balance_by_length(lengths, workers * static_cast<size_t>(ranks_.count()));
    const size_t first = workers * static_cast<size_t>(ranks_.rank());
    MC_CHECK(first + workers <= parts.size());
    std::vector<double> sums(workers);
    model::in_parallel(workers, [&](size_t worker) {
      std::vector<const Sample*> part;
      for (const size_t i : parts[first + worker]) part.push_back(samples[i]);
      sums[worker] = add_part(part, 1 / static_cast<double>(learned), gradients_[worker]);
    });
    for (size_t i = 1; i < gradients_.size(); ++i) gradients_[0].flat.add_(gradients_[i].flat);
    ranks_.sum(gradients_[0].flat);
    const double sum = ranks_.sum(std::accumulate(sums.begin(), sums.end(), 0.0));
    return sum / static_cast<double>(learned);
  }

  // Computes one worker's part of a step, pack by pack.
  double add_part(const std::vector<const Sample*>& samples, double weight,
                  model::Parameters& gradients) const {
    gradients.flat.zero_();
    at::Tensor sum = at::zeros({}, at::TensorOptions(at::kDouble).device(options_.device));
    std::vector<int64_t> lengths;
    for (const Sample* sample : samples) {
      lengths.push_back(static_cast<int64_t>(sample->tokens.size()));
    }
    for (const auto& numbers : first_fit(lengths, *options_.pack_tokens)) {
      std::vector<const Sample*> pack;
      for (const size_t i : numbers) pack.push_back(samples[i]);
      const model::ForwardContext context{
          weights_, rope_, model::ops::Form::kNative,
          options_.recomputes ? model::Keep::kInputs : model::Keep::kAll};
      sum.add_(add_loss_gradient(context, pack, weight, gradients));
    }
    return sum.item<double>();
  }

  StepMetrics account(const std::vector<size_t>& batch, Clock::time_point begin,
                      StepMetrics metrics) {
    int64_t tokens = 0;
    for (const size_t number : batch) tokens += lengths_[number];
    // All ranks use the same time, because it determines the learning rate and the end of the run.
    const double seconds =
        ranks_.of_first(std::chrono::duration<double>(Clock::now() - begin).count());
    state_.step += 1;
    state_.tokens += tokens;
    state_.elapsed_s += seconds;
    state_.position = batches_.position();
    last_loss_ = metrics.loss;
    metrics.step = state_.step;
    metrics.tokens = state_.tokens;
    metrics.epoch = state_.position.epoch;
    metrics.elapsed_s = state_.elapsed_s;
    metrics.tokens_per_s = static_cast<double>(tokens) / seconds;
    return metrics;
  }

  Status save() {
    if (!ranks_.is_first()) return ok();
    return save_checkpoint(options_.run, state_,
                           {master_, optimizer_.first_moment(), optimizer_.second_moment()});
  }

  const SftOptions& options_;
  Ranks ranks_;
  model::Model model_;
  const Samples samples_;
  const std::vector<int64_t> lengths_;
  // The parameters in float32; the decoder's own tensor if it computes in float32.
  at::Tensor master_;
  model::Parameters weights_;
  std::vector<model::Parameters> gradients_;  // One for each worker.
  model::ops::RopeTable rope_;
  Optimizer optimizer_;
  Batches batches_;
  int64_t steps_max_ = kNoStepsLimit;
  // The store stays open, so that no other process can write to the folder.
  std::optional<store::RunFolder> store_;
  RunState state_;
  double last_loss_ = 0;
};

SftOptions with_defaults(SftOptions options, const model::Config& config) {
  const SftDefaults& defaults = config.is_from_scratch ? kFromScratchDefaults : kPretrainedDefaults;
  options.length_max =
      std::min(options.length_max.value_or(defaults.length_max), config.positions_max);
  options.pack_tokens =
      options.pack_tokens.value_or(options.device.is_cuda() ? kPackTokensGpu : kPackTokens);
  options.optimizer.lr = options.lr.value_or(defaults.lr);
  options.optimizer.weight_decay = options.weight_decay.value_or(defaults.weight_decay);
  return options;
}

}  // namespace

Result<SftResult> run_sft(const SftOptions& given,
                          const std::function<void(const Progress&)>& on_step) {
  MC_TRY(model::Model model, model::load_model(given.model), "train");
  const SftOptions options = with_defaults(given, model.config);
  MC_TRY(Samples samples, read_samples(options.data, model, *options.length_max), "train");
  Ranks ranks = Ranks::join(options.rank, options.device);
  return Run(options, std::move(model), std::move(samples), std::move(ranks)).complete(on_step);
}

}  // namespace mc::train
