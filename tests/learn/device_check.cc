// SPDX-License-Identifier: Apache-2.0
//
// A program that compares the native implementations of training and generation with the generic
// ones, on random weights and tokens, and prints a line of JSON for each figure:
//
//   build/dev/bin/learn_device_check --shape 135m --device cuda
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <memory>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include <ATen/Context.h>
#include <ATen/TensorOperators.h>
#include <ATen/ops/randn.h>
#include <ATen/ops/zeros.h>
#include <ATen/ops/zeros_like.h>
#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/learn/computing.h"
#include "cli/numbers.h"
#include "loop/policy.h"
#include "model/decoder.h"
#include "model/generate.h"
#include "train/loss.h"
#include "train/optimizer.h"

namespace mc::learn {
namespace {

using Json = nlohmann::ordered_json;

constexpr double kInitialSpread = 0.02;
// The maximum number of parameters for which the CPU's optimizer step takes about a second.
constexpr int64_t kCheckedTrainingMax = 300'000'000;

model::Config config_of(const std::string& shape) {
  model::Config c;
  c.positions_max = 8192;
  if (shape == "tiny") {
    c.vocab = 512, c.hidden = 64, c.ffn = 128, c.layers = 2;
    c.heads = 4, c.kv_heads = 2, c.head_dim = 16;
  } else if (shape == "135m") {
    c.vocab = 49152, c.hidden = 576, c.ffn = 1536, c.layers = 30;
    c.heads = 9, c.kv_heads = 3, c.head_dim = 64;
    c.rope_theta = 1e5;
  } else {
    c.family = model::Family::kQwen3;
    c.vocab = 151936, c.layers = 28, c.heads = 16, c.kv_heads = 8, c.head_dim = 128;
    c.hidden = shape == "0.6b" ? 1024 : 2048;
    c.ffn = 3 * c.hidden;
    c.rope_theta = 1e6;
  }
  return c;
}

// Random matrices, the same in every process; norms are 1.
at::Tensor random_weights(const model::Config& config, at::Device device) {
  at::Generator(at::globalContext().defaultGenerator(device)).set_current_seed(0);
  const model::Layout layout = model::layout_of(config);
  at::Tensor flat = at::randn({layout.total}, at::TensorOptions(at::kFloat).device(device));
  flat.mul_(kInitialSpread);
  flat.narrow(0, layout.matrices, layout.total - layout.matrices).fill_(1);
  return flat;
}

std::vector<int32_t> random_tokens(const model::Config& config, int64_t count, uint64_t seed) {
  std::mt19937_64 random(seed);
  std::vector<int32_t> tokens;
  for (int64_t i = 0; i < count; ++i) {
    tokens.push_back(static_cast<int32_t>(random() % static_cast<uint64_t>(config.vocab)));
  }
  return tokens;
}

class Check {
 public:
  Check(std::string shape, const Target& target)
      : shape_(std::move(shape)),
        target_(target),
        config_(config_of(shape_)),
        master_(random_weights(config_, target.device)),
        weights_(config_, master_.to(target.dtype)),
        rope_(model::rope_of(config_, config_.positions_max, target.device)) {}

  // Compares the loss and gradient in float32 with those in both forms of the dtype, and the
  // generator's draws with the trainer's log-probabilities and with the generic generator.
  void run() const {
    check_gradient("of several lengths", {60, 191, 322, 453});
    check_gradient("of one length", {1025, 1025});
    check_training();
    check_generator({.temperature = 0, .top_p = 1});
    check_generator({.temperature = 1, .top_p = 1});
    check_generator({.temperature = 1, .top_p = 0.9});
  }

 private:
  Json head(const std::string& what) const {
    Json line;
    line["check"] = what;
    line["shape"] = shape_;
    line["device"] = target_.device.str();
    line["dtype"] = c10::toString(target_.dtype);
    return line;
  }

  static void print(const Json& line) {
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }

  static std::vector<const train::Sample*> pointers(const std::vector<train::Sample>& samples) {
    std::vector<const train::Sample*> pack;
    for (const train::Sample& sample : samples) pack.push_back(&sample);
    return pack;
  }

  // Compares a training step by generic operators and the CPU's optimizer with the fast step.
  void check_training() const {
    if (master_.numel() > kCheckedTrainingMax) return;
    const std::vector<train::Sample> samples = {{random_tokens(config_, 700, 1), 1},
                                                {random_tokens(config_, 300, 2), 1}};
    Json line = head("training");
    const at::Tensor begin = master_.cpu();
    const auto train = [&](const at::Tensor& master, const model::Parameters& weights,
                           model::ops::Form form) {
      train::Optimizer optimizer(master, model::layout_of(config_).matrices, {},
                                 master.is_cpu() ? at::Tensor() : weights.flat);
      Json losses;
      for (int i = 0; i < 6; ++i) {
        model::Parameters gradients(config_, at::zeros_like(master_));
        losses.push_back(train::add_loss_gradient({weights, rope_, form}, pointers(samples),
                                                  1.0 / 998, gradients)
                             .item<double>() /
                         998);
        at::Tensor flat = gradients.flat.to(master.device());
        optimizer.step(flat, 1e-4);
        if (master.is_cpu()) at::Tensor(weights.flat).copy_(master);
      }
      return losses;
    };
    const model::Parameters plain(config_, weights_.flat.clone());
    line["losses_plain"] = train(begin.clone(), plain, model::ops::Form::kGeneric);
    const model::Parameters fast(config_, weights_.flat.clone());
    line["losses_fast"] = train(begin.to(target_.device).clone(), fast, model::ops::Form::kNative);
    print(line);
  }

  void check_gradient(const std::string& what, const std::vector<int64_t>& lengths) const {
    std::vector<train::Sample> samples;
    for (const int64_t length : lengths) {
      samples.push_back({random_tokens(config_, length, static_cast<uint64_t>(length)), 5});
    }
    const std::vector<const train::Sample*> pack = pointers(samples);
    Json line = head("gradient, sequences " + what);
    const model::Parameters exact(config_, weights_.flat.to(at::kFloat));
    model::Parameters expected(config_, at::zeros_like(master_));
    line["loss_float32"] =
        train::add_loss_gradient({exact, rope_}, pack, 1e-3, expected).item<double>();
    const std::vector<std::pair<std::string, model::ForwardContext>> forms = {
        {"plain", {weights_, rope_, model::ops::Form::kGeneric}},
        {"fast", {weights_, rope_}},
        {"recomputed", {weights_, rope_, model::ops::Form::kNative, model::Keep::kInputs}}};
    for (const auto& [name, form] : forms) {
      model::Parameters got(config_, at::zeros_like(master_));
      line["loss_" + name] = train::add_loss_gradient(form, pack, 1e-3, got).item<double>();
      line["gradient_error_" + name] =
          ((got.flat - expected.flat).norm() / expected.flat.norm()).item<double>();
      line["worst_tensor_" + name] = worst_tensor(got.flat, expected.flat);
    }
    print(line);
  }

  Json worst_tensor(const at::Tensor& got, const at::Tensor& expected) const {
    Json worst;
    double largest = -1;
    for (const model::Slice& slice : model::layout_of(config_).slices) {
      const at::Tensor want = expected.narrow(0, slice.offset, slice.count);
      const double error =
          ((got.narrow(0, slice.offset, slice.count) - want).norm() / want.norm()).item<double>();
      if (!(error > largest)) continue;
      largest = error;
      worst = {{"name", slice.name}, {"error", error}};
    }
    return worst;
  }

  std::vector<model::Answer> answers_of(const std::vector<model::Request>& requests,
                                        const model::GenerateOptions& options,
                                        model::ops::Form form) const {
    std::vector<model::Answer> answers(requests.size());
    model::generate({weights_, rope_, form}, requests, options,
                    [&](size_t i, const model::Answer& answer) {
                      answers[i] = answer;
                      return true;
                    });
    return answers;
  }

  void check_generator(const model::Sampling& sampling) const {
    std::vector<model::Request> requests;
    for (int64_t i = 0; i < 13; ++i) {
      requests.push_back({std::to_string(i), i,
                          random_tokens(config_, 5 + i / 2 * 37, static_cast<uint64_t>(i / 2))});
    }
    model::GenerateOptions options{.sampling = sampling, .tokens_max = 40, .batch = 6, .seed = 3};
    const auto fast = answers_of(requests, options, model::ops::Form::kNative);
    const auto plain = answers_of(requests, options, model::ops::Form::kGeneric);
    Json line = head("generator");
    line["temperature"] = sampling.temperature;
    line["top_p"] = sampling.top_p;
    int64_t num_same = 0, num_first = 0, num_tokens = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      num_tokens += static_cast<int64_t>(fast[i].tokens.size());
      num_first += fast[i].tokens.at(0) == plain[i].tokens.at(0);
      for (size_t t = 0; t < std::min(fast[i].tokens.size(), plain[i].tokens.size()); ++t) {
        if (fast[i].tokens[t] != plain[i].tokens[t]) break;
        ++num_same;
      }
    }
    line["tokens"] = num_tokens;
    line["first_tokens_as_plain"] = num_first;
    line["tokens_as_plain_before_first_difference"] = num_same;
    line["drift_fast"] = drift(requests, fast, sampling);
    line["drift_plain"] = drift(requests, plain, sampling);
    print(line);
  }

  // The mean absolute difference between the generator's log-probabilities and those of the trainer
  // in float32.
  double drift(const std::vector<model::Request>& requests,
               const std::vector<model::Answer>& answers, const model::Sampling& sampling) const {
    const model::Parameters exact(config_, weights_.flat.to(at::kFloat));
    double sum = 0;
    int64_t count = 0;
    for (size_t i = 0; i < requests.size(); ++i) {
      train::Sample sample{requests[i].prompt, static_cast<int64_t>(requests[i].prompt.size())};
      sample.tokens.insert(sample.tokens.end(), answers[i].tokens.begin(), answers[i].tokens.end());
      const train::Sample* pointer = &sample;
      const auto scores =
          loop::score_sequences({exact, rope_}, {&pointer, 1},
                                sampling.temperature > 0 ? sampling.temperature : 1, {}, nullptr);
      for (size_t t = 0; t < answers[i].tokens.size(); ++t) {
        sum += std::abs(scores[0].log_probs[t] - answers[i].log_probs[t]);
        ++count;
      }
    }
    return sum / static_cast<double>(count);
  }

  const std::string shape_;
  const Target& target_;
  const model::Config config_;
  at::Tensor master_;
  model::Parameters weights_;
  model::ops::RopeTable rope_;
};

}  // namespace
}  // namespace mc::learn

int main(int argc, char** argv) {
  CLI::App app{"Compares the native forms with the generic ones on random weights"};
  std::string shape = "135m";
  mc::learn::Computing computing;
  app.add_option("--shape", shape, "SmolLM2 135M, Qwen3 0.6B or 1.7B, or a tiny one")
      ->check(mc::cli::one_of({"tiny", "135m", "0.6b", "1.7b"}));
  mc::learn::add_computing(app, computing);
  CLI11_PARSE(app, argc, argv);
  const mc::Result<mc::learn::Target> target = mc::learn::prepare(computing);
  if (!target) {
    fmt::print(stderr, "{}\n", target.error().message);
    return 1;
  }
  mc::learn::Check(shape, *target).run();
  return 0;
}
