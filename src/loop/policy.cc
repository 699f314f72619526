// SPDX-License-Identifier: Apache-2.0
#include "loop/policy.h"

#include <algorithm>
#include <utility>

#include <ATen/ops/tensor.h>
#include <ATen/ops/zeros_like.h>

#include "core/check.h"
#include "model/parallel.h"
#include "train/packing.h"

namespace mc::loop {
namespace {

// The hidden states that predict trained tokens, and these tokens.
struct Targets {
  std::vector<int64_t> rows;
  std::vector<int64_t> tokens;
  std::vector<size_t> ends;  // For each sequence, the index after its last target.
};

Targets targets_of(std::span<const train::Sample* const> sequences) {
  Targets targets;
  int64_t start = 0;
  for (const train::Sample* sample : sequences) {
    MC_CHECK(sample->answer > 0 && sample->answer < static_cast<int64_t>(sample->tokens.size()));
    for (auto i = static_cast<size_t>(sample->answer); i < sample->tokens.size(); ++i) {
      targets.rows.push_back(start + static_cast<int64_t>(i) - 1);
      targets.tokens.push_back(sample->tokens[i]);
    }
    // The last token is a target only, never an input.
    start += static_cast<int64_t>(sample->tokens.size()) - 1;
    targets.ends.push_back(targets.rows.size());
  }
  return targets;
}

std::vector<Scores> split(const model::ops::TokenLogProbs& all, const std::vector<size_t>& ends) {
  const double* log_probs = all.log_prob_N.const_data_ptr<double>();
  const double* entropy = all.entropy_N.const_data_ptr<double>();
  MC_CHECK(!ends.empty() && static_cast<int64_t>(ends.back()) == all.log_prob_N.numel());
  std::vector<Scores> scores;
  size_t begin = 0;
  for (const size_t end : ends) {
    scores.push_back({{log_probs + begin, log_probs + end}, {entropy + begin, entropy + end}});
    begin = end;
  }
  return scores;
}

std::vector<int64_t> lengths_of(std::span<const train::Sample> sequences) {
  std::vector<int64_t> lengths;
  for (const train::Sample& one : sequences) {
    lengths.push_back(static_cast<int64_t>(one.tokens.size()));
  }
  return lengths;
}

}  // namespace

std::vector<Scores> score_sequences(const model::ForwardContext& context,
                                    std::span<const train::Sample* const> sequences,
                                    double temperature, const GradientOf& gradient_of,
                                    model::Parameters* gradients) {
  std::vector<std::vector<int32_t>> inputs;
  for (const train::Sample* sample : sequences) {
    inputs.emplace_back(sample->tokens.begin(), sample->tokens.end() - 1);
  }
  const Targets targets = targets_of(sequences);
  const at::Device device = context.weights.flat.device();
  const model::Batch batch = model::make_batch(inputs, device);
  const at::Tensor rows_N = model::ops::on_device(targets.rows, device);
  const at::Tensor targets_N = model::ops::on_device(targets.tokens, device);
  model::Tape tape;
  const at::Tensor hidden = model::forward(context, batch, gradients != nullptr ? &tape : nullptr);
  const at::Tensor h_Nh = hidden.index_select(0, rows_N);
  std::vector<Scores> scores =
      split(model::ops::token_log_probs(h_Nh, context.weights.head, targets_N, temperature),
            targets.ends);
  if (gradients == nullptr) return scores;
  std::vector<double> g;
  for (size_t i = 0; i < scores.size(); ++i) {
    const std::vector<double> one = gradient_of(i, scores[i]);
    g.insert(g.end(), one.begin(), one.end());
  }
  MC_CHECK(g.size() == targets.rows.size());
  at::Tensor d_hidden = at::zeros_like(hidden);
  d_hidden.index_copy_(
      0, rows_N,
      model::ops::token_log_probs_backward(at::tensor(g, at::kDouble), h_Nh, context.weights.head,
                                           targets_N, temperature, gradients->head));
  model::backward(context, batch, tape, d_hidden, *gradients);
  return scores;
}

Policy::Policy(const model::Model& model, const PolicyOptions& options)
    : options_(options),
      master_(model.flat.to(options.device).clone()),
      weights_(model.config, master_.to(options.dtype)),
      rope_(model::rope_of(model.config, model.config.positions_max, options.device)),
      optimizer_(master_, model::layout_of(model.config).matrices, options.optimizer,
                 weights_.flat) {
  MC_CHECK(options.workers > 0 && options.pack_tokens > 0);
  if (options.generate_dtype) {
    generator_.emplace(model.config, master_.to(*options.generate_dtype, false, /*copy=*/true));
  }
  if (options.keeps_reference) reference_.emplace(model.config, weights_.flat.clone());
  for (size_t i = 0; i < options.workers; ++i) {
    gradients_.emplace_back(model.config, at::zeros_like(master_));
  }
}

void Policy::generate(std::span<const model::Request> requests,
                      const model::GenerateOptions& options,
                      const std::function<void(size_t, const model::Answer&)>& done,
                      Writer writer) const {
  const bool is_own = generator_ && writer == Writer::kGenerator;
  const model::Parameters& weights = is_own ? *generator_ : weights_;
  const size_t workers = std::max<size_t>(1, std::min(options_.workers, requests.size()));
  std::vector<std::vector<model::Request>> parts(workers);
  for (size_t i = 0; i < requests.size(); ++i) parts[i % workers].push_back(requests[i]);
  model::GenerateOptions one = options;
  one.workers = 1;
  one.batch = std::max<int64_t>(1, options.batch / static_cast<int64_t>(workers));
  model::in_parallel(workers, [&](size_t worker) {
    model::generate({weights, rope_}, parts[worker], one,
                    [&](size_t i, const model::Answer& answer) {
                      done(i * workers + worker, answer);
                      return true;
                    });
  });
}

void Policy::refresh_generator() {
  if (generator_) generator_->flat.copy_(master_);
}

std::vector<Scores> Policy::score(std::span<const train::Sample> sequences) const {
  return run(weights_, sequences, nullptr, nullptr);
}

std::vector<Scores> Policy::score_by_reference(std::span<const train::Sample> sequences) const {
  MC_CHECK(reference_.has_value());
  return run(*reference_, sequences, nullptr, nullptr);
}

double Policy::update(std::span<const train::Sample> sequences, const GradientOf& gradient_of,
                      double lr) {
  for (model::Parameters& gradients : gradients_) gradients.flat.zero_();
  run(weights_, sequences, gradient_of, &gradients_);
  for (size_t i = 1; i < gradients_.size(); ++i) gradients_[0].flat.add_(gradients_[i].flat);
  return optimizer_.step(gradients_[0].flat, lr);
}

// The longest sequences are distributed first, and packs are filled by first fit, so the same batch
// always has the same packs.
std::vector<Scores> Policy::run(const model::Parameters& weights,
                                std::span<const train::Sample> sequences,
                                const GradientOf& gradient_of,
                                std::vector<model::Parameters>* gradients) const {
  MC_CHECK(gradients == nullptr || (gradient_of && gradients->size() == options_.workers));
  const std::vector<int64_t> lengths = lengths_of(sequences);
  const auto parts = train::balance_by_length(lengths, options_.workers);
  MC_CHECK(parts.size() == options_.workers);  // Each worker has gradients of its own.
  std::vector<Scores> scores(sequences.size());
  model::in_parallel(parts.size(), [&](size_t worker) {
    std::vector<int64_t> own;
    for (const size_t i : parts[worker]) own.push_back(lengths[i]);
    for (const auto& numbers : train::first_fit(own, options_.pack_tokens)) {
      std::vector<size_t> pack;
      std::vector<const train::Sample*> samples;
      for (const size_t n : numbers) {
        pack.push_back(parts[worker][n]);
        samples.push_back(&sequences[pack.back()]);
      }
      std::vector<Scores> some = score_sequences(
          {weights, rope_}, samples, options_.temperature,
          [&](size_t i, const Scores& now) { return gradient_of(pack[i], now); },
          gradients == nullptr ? nullptr : &(*gradients)[worker]);
      for (size_t i = 0; i < pack.size(); ++i) scores[pack[i]] = std::move(some[i]);
    }
  });
  return scores;
}

train::RunTensors Policy::tensors() {
  return {master_, optimizer_.first_moment(), optimizer_.second_moment(),
          generator_ ? generator_->flat : at::Tensor()};
}

void Policy::restored(int64_t optimizer_steps) {
  optimizer_.set_steps(optimizer_steps);
  if (!weights_.flat.is_same(master_)) weights_.flat.copy_(master_);
}

}  // namespace mc::loop
