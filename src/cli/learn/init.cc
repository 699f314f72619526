// SPDX-License-Identifier: Apache-2.0
#include <filesystem>
#include <memory>
#include <string>
#include <utility>

#include <fmt/format.h>

#include "cli/learn/commands.h"
#include "cli/numbers.h"
#include "core/file.h"
#include "model/chat.h"
#include "model/model_folder.h"

namespace mc::learn {
namespace {

constexpr size_t kTokenizerBytesMax = 256 << 20;

model::Config small() {
  model::Config config;
  config.hidden = 192;
  config.layers = 4;
  config.heads = 6;
  config.positions_max = 2048;
  return config;
}

struct InitOptions {
  std::string out;
  std::string tokenizer;
  std::string family = "llama";
  model::Config config = small();
  bool untied = false;
  uint64_t seed = 0;
};

Result<model::Config> complete(const InitOptions& options, const model::Tokenizer& tokenizer) {
  model::Config config = options.config;
  config.family = options.family == "llama"   ? model::Family::kLlama
                  : options.family == "qwen2" ? model::Family::kQwen2
                                              : model::Family::kQwen3;
  config.is_from_scratch = true;
  config.vocab = tokenizer.size();
  config.tied = !options.untied;
  if (config.kv_heads == 0) config.kv_heads = config.heads;
  if (config.head_dim == 0) config.head_dim = config.hidden / config.heads;
  // The width is 8/3 of the hidden width, rounded up to a multiple of 32: SwiGLU has three
  // matrices, so this has as many parameters as two matrices of four times the width.
  if (config.ffn == 0) config.ffn = (config.hidden * 8 / 3 + 31) / 32 * 32;
  const auto end = tokenizer.id_of(model::kTurnEnd);
  if (!end || !tokenizer.id_of(model::kTurnStart)) {
    return invalid(options.tokenizer + " has no <|im_start|> and <|im_end|>; " +
                   "tools/make_tokenizer.py makes one that has");
  }
  config.ends = {*end};
  return model::parse_config(model::config_json(config));  // Parsing rejects invalid sizes.
}

Status init(const InitOptions& options) {
  std::error_code failure;
  if (std::filesystem::exists(options.out, failure)) {
    return invalid(options.out + " is there already");
  }
  MC_TRY(std::string json, read_file(options.tokenizer, kTokenizerBytesMax), "init");
  MC_TRY(model::Tokenizer tokenizer, model::Tokenizer::parse(json), options.tokenizer);
  MC_TRY(const model::Config config, complete(options, tokenizer), "init");
  const model::Model fresh{.config = config,
                           .flat = model::random_weights(config, options.seed),
                           .tokenizer = std::move(tokenizer),
                           .tokenizer_json = std::move(json),
                           .chat = {},
                           .kept_files = {}};
  MC_TRY_VOID(model::save_model(options.out, fresh), "init");
  fmt::print("{}: {} parameters, {} tokens\n", options.out, fresh.flat.numel(), config.vocab);
  return ok();
}

}  // namespace

void add_init(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<InitOptions>();
  CLI::App* command = app.add_subcommand("init", "Make a model with random weights");
  command->add_option("--out", options->out, "The folder to make")
      ->required()
      ->check(cli::kOutputFolder);
  command->add_option("--tokenizer", options->tokenizer, "A tokenizer.json")->required();
  command->add_option("--seed", options->seed, "Of the weights");
  command->option_defaults()->group("Shape of the model");
  command->add_option("--family", options->family, "llama, qwen2 or qwen3")
      ->check(cli::one_of({"llama", "qwen2", "qwen3"}));
  model::Config& config = options->config;
  command->add_option("--layers", config.layers, "Blocks");
  command->add_option("--width", config.hidden, "Of the residual stream");
  command->add_option("--heads", config.heads, "Query heads");
  command->add_option("--kv-heads", config.kv_heads, "Key heads (default: as many)");
  command->add_option("--head-dim", config.head_dim, "Width of a head (default: width / heads)");
  command->add_option("--ffn", config.ffn, "Width of the feed-forward (default: 8/3 of the width)");
  command->add_option("--positions", config.positions_max, "Longest text");
  command->add_flag("--untied", options->untied, "A head apart from the embedding");
  command->callback([options, &exit_code] { exit_code = code_of(init(*options)); });
}

}  // namespace mc::learn
