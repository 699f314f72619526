// SPDX-License-Identifier: Apache-2.0
//
// How fast training and generation are, on random weights and tokens, and whether the fast paths
// compute what the plain ones do.  A line of JSON for each figure.
#include <algorithm>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <map>
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

#include "cli/learn/commands.h"
#include "cli/learn/in_ranks.h"
#include "cli/numbers.h"
#include "loop/policy.h"
#include "model/decoder.h"
#include "model/generate.h"
#include "model/gpu_module.h"
#include "train/loss.h"
#include "train/optimizer.h"
#include "train/packing.h"
#include "train/ranks.h"

namespace mc::learn {
namespace {

using Json = nlohmann::ordered_json;
using Clock = std::chrono::steady_clock;

// Dense products in bfloat16 on an H100 or H200, as measured on a large matrix.
constexpr double kPeakFlops = 790e12;
constexpr double kInitialSpread = 0.02;
// Parameters up to which the CPU's optimiser takes a step in a second.
constexpr int64_t kCheckedTrainingMax = 300'000'000;

struct Options {
  std::string shape = "135m";
  bool trains = false;
  bool generates = false;
  bool checks = false;
  bool recomputes = false;
  bool is_mixed = false;
  int64_t length = 2048;
  int64_t batch_tokens = 32768;
  int64_t pack_tokens = 16384;
  int64_t steps = 5;
  int64_t prompts = 64;
  int64_t samples = 1;
  int64_t prompt_tokens = 64;
  model::GenerateOptions generate{
      .sampling = {.temperature = 1, .top_p = 1}, .tokens_max = 256, .batch = 64};
};

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

// Random matrices, the same in every process, and norms of 1.
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

void wait_for(at::Device device) {
  if (device.is_cuda()) at::zeros({1}, at::TensorOptions(device)).item<float>();
}

double milliseconds(Clock::time_point begin) {
  return std::chrono::duration<double, std::milli>(Clock::now() - begin).count();
}

double median(std::vector<double> values) {
  std::ranges::sort(values);
  return values[values.size() / 2];
}

double gib(at::Device device) {
  return device.is_cuda() ? static_cast<double>(model::gpu::memory_used()) / (1 << 30) : 0;
}

// The operations of a token's forward and backward pass: six for each weight of a product, and
// those of causal attention.
double flops_of_token(const model::Config& c, int64_t length) {
  const model::Layout layout = model::layout_of(c);
  const int64_t looked_up = c.tied ? 0 : c.vocab * c.hidden;
  return 6.0 * static_cast<double>(layout.matrices - looked_up) +
         6.0 * static_cast<double>(c.layers * c.heads * c.head_dim * length);
}

class Bench {
 public:
  Bench(const Options& options, const Target& target, const train::RankPlace& place)
      : options_(options),
        target_(target),
        ranks_(train::Ranks::join(place, target.device)),
        config_(config_of(options.shape)),
        master_(random_weights(config_, target.device)),
        weights_(config_, master_.to(target.dtype)),
        rope_(model::rope_of(config_, config_.positions_max, target.device)) {}

  void train() {
    std::vector<train::Sample> samples;
    int64_t tokens = 0;
    for (int64_t i = 0; tokens + length_of(i) <= options_.batch_tokens; ++i) {
      samples.push_back({random_tokens(config_, length_of(i) + 1, static_cast<uint64_t>(i)), 1});
      tokens += length_of(i);
    }
    model::Parameters gradients(config_, at::zeros_like(master_));
    train::Optimizer optimizer(master_, model::layout_of(config_).matrices, {}, weights_.flat);
    std::map<std::string, std::vector<double>> times;
    double loss = 0;
    for (int64_t i = 0; i < options_.steps + 2; ++i) {
      if (i == 2) times.clear();
      loss = train_step(samples, gradients, optimizer, times);
    }
    ranks_.finish();
    if (!ranks_.is_first()) return;
    Json line = head("train");
    line["processes"] = ranks_.count();
    const double seconds = median(times["step"]) / 1000;
    const double rate = static_cast<double>(tokens) / seconds;
    line["mixed_lengths"] = options_.is_mixed;
    line["batch_tokens"] = tokens;
    line["pack_tokens"] = options_.pack_tokens;
    line["tokens_per_s"] = std::round(rate);
    if (!options_.is_mixed) {
      line["share_of_peak"] = rate * flops_of_token(config_, options_.length) / kPeakFlops;
    }
    for (const auto& [name, values] : times) line[name + "_ms"] = median(values);
    line["loss"] = loss;
    line["memory_gib"] = gib(target_.device);
    print(line);
  }

  void generate() {
    std::vector<model::Request> requests;
    for (int64_t i = 0; i < options_.prompts; ++i) {
      for (int64_t sample = 0; sample < options_.samples; ++sample) {
        requests.push_back(
            {std::to_string(i), sample,
             random_tokens(config_, options_.prompt_tokens, static_cast<uint64_t>(1000 + i))});
      }
    }
    std::vector<double> times;
    int64_t tokens = 0;
    for (int i = 0; i < 3; ++i) {
      const Clock::time_point begin = Clock::now();
      tokens = 0;
      model::generate({weights_, rope_}, requests, options_.generate,
                      [&](size_t, const model::Answer& answer) {
                        tokens += static_cast<int64_t>(answer.log_probs.size());
                        return true;
                      });
      times.push_back(milliseconds(begin));
    }
    Json line = head("generate");
    line["batch"] = options_.generate.batch;
    line["answers"] = requests.size();
    line["temperature"] = options_.generate.sampling.temperature;
    line["top_p"] = options_.generate.sampling.top_p;
    line["tokens"] = tokens;
    line["first_ms"] = times[0];
    line["ms"] = std::min(times[1], times[2]);
    line["tokens_per_s"] = std::round(static_cast<double>(tokens) / line["ms"].get<double>() * 1e3);
    line["memory_gib"] = gib(target_.device);
    print(line);
  }

  // Loss and gradient in float32, and in the fast and the plain form of the dtype; what the
  // generator drew against the trainer's log-probabilities and against the plain generator.
  void check() {
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
    line["bench"] = what;
    line["shape"] = options_.shape;
    line["device"] = target_.device.str();
    line["dtype"] = c10::toString(target_.dtype);
    line["length"] = options_.length;
    return line;
  }

  static void print(const Json& line) {
    fmt::print("{}\n", line.dump());
    std::fflush(stdout);
  }

  double train_step(const std::vector<train::Sample>& samples, model::Parameters& gradients,
                    train::Optimizer& optimizer,
                    std::map<std::string, std::vector<double>>& times) {
    const Clock::time_point begin = Clock::now();
    gradients.flat.zero_();
    at::Tensor sum = at::zeros({}, at::TensorOptions(at::kDouble).device(target_.device));
    std::vector<int64_t> lengths, own_lengths;
    int64_t tokens = 0;
    for (const train::Sample& sample : samples) {
      lengths.push_back(train::num_learned(sample));
      tokens += lengths.back();
    }
    const double weight = 1.0 / static_cast<double>(tokens);
    const auto parts = train::deal(lengths, static_cast<size_t>(ranks_.count()));
    const std::vector<size_t>& own = parts[static_cast<size_t>(ranks_.rank())];
    for (const size_t i : own) own_lengths.push_back(lengths[i]);
    for (const auto& numbers : train::first_fit(own_lengths, options_.pack_tokens)) {
      std::vector<const train::Sample*> pack;
      for (const size_t i : numbers) pack.push_back(&samples[own[i]]);
      sum.add_(train::add_loss_gradient(passage(), pack, weight, gradients));
    }
    times["enqueue"].push_back(milliseconds(begin));
    wait_for(target_.device);
    times["gradient"].push_back(milliseconds(begin));
    ranks_.sum(gradients.flat);
    times["gradient_sum"].push_back(milliseconds(begin));
    optimizer.step(gradients.flat, 1e-4);
    times["step"].push_back(milliseconds(begin));
    return ranks_.sum(sum.item<double>()) * weight;
  }

  // The lengths of mixed sequences are seven, six, five and eight eighths of the length in turn.
  int64_t length_of(int64_t sample) const {
    const int64_t eighths = options_.is_mixed ? 8 - (sample + 1) % 4 : 8;
    return options_.length * eighths / 8;
  }

  model::Passage passage() const {
    return {weights_, rope_, model::ops::Form::kFast,
            options_.recomputes ? model::Keep::kInputs : model::Keep::kAll};
  }

  static std::vector<const train::Sample*> pointers(const std::vector<train::Sample>& samples) {
    std::vector<const train::Sample*> pack;
    for (const train::Sample& sample : samples) pack.push_back(&sample);
    return pack;
  }

  // A step of training by the plain operators and the optimiser of the CPU, beside the fast one.
  void check_training() {
    if (master_.numel() > kCheckedTrainingMax) return;
    const std::vector<train::Sample> samples = {{random_tokens(config_, 700, 1), 1},
                                                {random_tokens(config_, 300, 2), 1}};
    Json line = head("check training");
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
    line["losses_fast"] = train(begin.to(target_.device).clone(), fast, model::ops::Form::kFast);
    print(line);
  }

  void check_gradient(const std::string& what, const std::vector<int64_t>& lengths) {
    std::vector<train::Sample> samples;
    for (const int64_t length : lengths) {
      samples.push_back({random_tokens(config_, length, static_cast<uint64_t>(length)), 5});
    }
    const std::vector<const train::Sample*> pack = pointers(samples);
    Json line = head("check gradient, sequences " + what);
    const model::Parameters exact(config_, weights_.flat.to(at::kFloat));
    model::Parameters expected(config_, at::zeros_like(master_));
    line["loss_float32"] =
        train::add_loss_gradient({exact, rope_}, pack, 1e-3, expected).item<double>();
    const std::vector<std::pair<std::string, model::Passage>> forms = {
        {"plain", {weights_, rope_, model::ops::Form::kGeneric}},
        {"fast", {weights_, rope_}},
        {"recomputed", {weights_, rope_, model::ops::Form::kFast, model::Keep::kInputs}}};
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

  void check_generator(const model::Sampling& sampling) {
    std::vector<model::Request> requests;
    for (int64_t i = 0; i < 13; ++i) {
      requests.push_back({std::to_string(i), i,
                          random_tokens(config_, 5 + i / 2 * 37, static_cast<uint64_t>(i / 2))});
    }
    model::GenerateOptions options{.sampling = sampling, .tokens_max = 40, .batch = 6, .seed = 3};
    const auto fast = answers_of(requests, options, model::ops::Form::kFast);
    const auto plain = answers_of(requests, options, model::ops::Form::kGeneric);
    Json line = head("check generator");
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

  // The mean |log-probability of the generator - that of the trainer's float32 pass|.
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

  const Options& options_;
  const Target& target_;
  train::Ranks ranks_;
  const model::Config config_;
  at::Tensor master_;
  model::Parameters weights_;
  model::ops::RopeTable rope_;
};

Status run(const Options& options, const Computing& computing, const train::RankPlace& place) {
  if (place.count > 1 && (options.checks || options.generates)) {
    return invalid("bench: several processes measure --train alone");
  }
  MC_TRY(const Target target, prepare(computing, place), "bench");
  Bench bench(options, target, place);
  if (options.checks) bench.check();
  if (options.generates) bench.generate();
  if (options.trains) bench.train();
  return ok();
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  auto computing = std::make_shared<Computing>();
  CLI::App* command =
      app.add_subcommand("bench", "Measure training and generation on random weights");
  command->add_option("--shape", options->shape, "SmolLM2 135M, Qwen3 0.6B or 1.7B, or a tiny one")
      ->check(CLI::IsMember({"tiny", "135m", "0.6b", "1.7b"}))
      ->capture_default_str();
  command->add_flag("--train", options->trains, "Steps of training");
  command->add_flag("--generate", options->generates, "Answers");
  command->add_flag("--check", options->checks, "The fast paths against the plain ones");
  command->option_defaults()->group("Training");
  command->add_option("--length", options->length, "Tokens of a sequence")
      ->check(cli::kPositive)
      ->capture_default_str();
  command->add_option("--batch-tokens", options->batch_tokens, "Tokens of a step")
      ->check(cli::kPositive)
      ->capture_default_str();
  command->add_option("--pack-tokens", options->pack_tokens, "Tokens of a pass through the model")
      ->check(cli::kPositive)
      ->capture_default_str();
  command->add_option("--steps", options->steps, "Steps that are timed")
      ->check(cli::kPositive)
      ->capture_default_str();
  command->add_flag("--mixed", options->is_mixed, "Sequences of several lengths up to that one");
  command->add_flag("--recompute", options->recomputes, "As for sft");
  model::GenerateOptions& generate = options->generate;
  command->option_defaults()->group("Generation");
  command->add_option("--prompts", options->prompts, "Prompts")
      ->check(cli::kPositive)
      ->capture_default_str();
  command->add_option("--samples", options->samples, "Answers to each")
      ->check(cli::kPositive)
      ->capture_default_str();
  command->add_option("--prompt-tokens", options->prompt_tokens, "Tokens of a prompt")
      ->check(cli::kPositive)
      ->capture_default_str();
  command->add_option("--batch", generate.batch, "Answers at a time")
      ->check(cli::kPositive)
      ->capture_default_str();
  command->add_option("--max-tokens", generate.tokens_max, "Tokens of an answer")
      ->check(cli::kPositive)
      ->capture_default_str();
  command->add_option("--top-p", generate.sampling.top_p, "As for generate")->capture_default_str();
  command->add_option("--temperature", generate.sampling.temperature, "As for generate")
      ->capture_default_str();
  add_computing(*command, *computing);
  auto processes = std::make_shared<int>(1);
  add_processes(*command, *processes);
  command->callback([options, computing, processes, &exit_code] {
    exit_code = run_in_ranks(*processes, [&](const train::RankPlace& place) {
      return run(*options, *computing, place);
    });
  });
}

}  // namespace mc::learn
