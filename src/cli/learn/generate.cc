// SPDX-License-Identifier: Apache-2.0
//
// Each answer is appended to the file when it ends, as one line in one write.  Answers that are
// already in the file are not generated again.
#include <chrono>
#include <cstdio>
#include <filesystem>
#include <fstream>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "cli/learn/commands.h"
#include "cli/learn/computing.h"
#include "cli/numbers.h"
#include "core/fd.h"
#include "core/file.h"
#include "model/chat.h"
#include "model/generate.h"
#include "model/model_folder.h"

namespace mc::learn {
namespace {

using Json = nlohmann::ordered_json;

constexpr size_t kAnswersBytesMax = size_t{4} << 30;

struct Options {
  std::string model;
  std::string prompts;
  std::string out;
  int64_t samples = 1;
  bool skips_long = false;
  bool log_probs = false;
  model::GenerateOptions generate{.sampling = {.temperature = 1, .top_p = 1}};
};

struct Row {
  std::string id;
  // The index of the only wanted sample; if absent, 0, 1, … up to --samples.
  std::optional<int64_t> sample;
  std::vector<int32_t> prompt;
};

Result<Row> parse_row(const std::string& line, const model::Model& model) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return invalid("not a JSON object");
  if (!json.contains("id") || !json["id"].is_string()) {
    return invalid("\"id\" is missing, or is no text");
  }
  if (!json.contains("prompt") || !json["prompt"].is_array()) {
    return invalid("\"prompt\" is missing, or is no list of messages");
  }
  std::vector<model::Message> messages;
  for (const Json& entry : json["prompt"]) {
    if (!entry.is_object() || !entry.contains("role") || !entry["role"].is_string() ||
        !entry.contains("content") || !entry["content"].is_string()) {
      return invalid("a message's \"role\" or \"content\" is missing, or is no text");
    }
    messages.push_back({entry["role"].get<std::string>(), entry["content"].get<std::string>()});
  }
  Row row{json["id"].get<std::string>(), {}, {}};
  MC_TRY(row.prompt, model::tokens_of(model, messages, model::ChatEnd::kPrompt), "");
  if (json.contains("sample")) {
    if (!json["sample"].is_number_unsigned()) return invalid("\"sample\" is no number from 0 on");
    row.sample = json["sample"].get<int64_t>();
  }
  return row;
}

Result<std::vector<Row>> read_rows(const std::string& path, const model::Model& model,
                                   const Options& options) {
  std::ifstream stream(path);
  if (!stream) return system_error(ErrorCode::kNotFound, "cannot read " + path);
  std::vector<Row> rows;
  std::string line;
  for (int64_t number = 1; std::getline(stream, line); ++number) {
    if (line.empty()) continue;
    MC_TRY(Row row, parse_row(line, model), path + ": line " + std::to_string(number));
    if (static_cast<int64_t>(row.prompt.size()) >= model.config.positions_max) {
      if (options.skips_long) continue;
      return invalid(fmt::format("{}: line {}: the prompt has {} tokens; the model reads {}", path,
                                 number, row.prompt.size(), model.config.positions_max));
    }
    rows.push_back(std::move(row));
  }
  if (rows.empty() && !options.skips_long) return invalid(path + " holds no prompt");
  return rows;
}

// The keys of the answers in the file.  Removes a last line that is incomplete.
Result<std::set<std::pair<std::string, int64_t>>> read_answered(const std::string& path) {
  std::set<std::pair<std::string, int64_t>> answered;
  std::error_code failure;
  if (!std::filesystem::is_regular_file(path, failure)) return answered;
  MC_TRY(const std::string text, read_file(path, kAnswersBytesMax), "read the answers");
  const size_t complete = text.rfind('\n') == std::string::npos ? 0 : text.rfind('\n') + 1;
  for (size_t start = 0; start < complete;) {
    const size_t end = text.find('\n', start);
    const Json json = Json::parse(text.begin() + static_cast<std::ptrdiff_t>(start),
                                  text.begin() + static_cast<std::ptrdiff_t>(end), nullptr, false);
    start = end + 1;
    if (!json.is_object() || !json.contains("id") || !json["id"].is_string() ||
        !json.contains("sample") || !json["sample"].is_number_integer()) {
      return invalid(path + " is there and holds something other than answers");
    }
    answered.emplace(json["id"].get<std::string>(), json["sample"].get<int64_t>());
  }
  std::filesystem::resize_file(path, complete, failure);
  return answered;
}

std::string answer_line(const model::Request& request, const model::Answer& answer,
                        const model::Tokenizer& tokenizer, bool log_probs) {
  Json json;
  json["id"] = request.id;
  json["sample"] = request.sample;
  json["completion"] = model::valid_utf8(tokenizer.decode(answer.tokens));
  json["num_tokens"] = answer.tokens.size();
  json["finish"] = answer.is_stopped ? "stop" : "length";
  if (log_probs) {
    json["tokens"] = answer.tokens;
    json["logprobs"] = answer.log_probs;
  }
  return json.dump() + "\n";
}

// Generates the answers, and returns the number of their tokens.
Result<int64_t> answer_all(const Options& options, const model::Model& model, const Target& target,
                           const std::vector<model::Request>& requests) {
  const Fd out(::open(options.out.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!out.is_open()) return system_error(ErrorCode::kIo, "cannot write " + options.out);
  const model::Parameters weights(model.config, model.flat.to(target.device, target.dtype));
  const model::ops::RopeTable rope =
      model::rope_of(model.config, model.config.positions_max, target.device);
  const bool is_terminal = ::isatty(STDERR_FILENO) == 1;
  size_t num_done = 0;
  int64_t tokens = 0;
  Status status = ok();
  model::GenerateOptions generate = options.generate;
  generate.workers = target.workers;
  model::generate({weights, rope}, requests, generate,
                  [&](size_t number, const model::Answer& answer) {
                    const std::string line =
                        answer_line(requests[number], answer, model.tokenizer, options.log_probs);
                    const ssize_t written = ::write(out.get(), line.data(), line.size());
                    if (status && written != static_cast<ssize_t>(line.size())) {
                      status = system_error(ErrorCode::kIo, "cannot write " + options.out);
                    }
                    ++num_done;
                    tokens += static_cast<int64_t>(answer.tokens.size());
                    if (!is_terminal) return bool{status};
                    fmt::print(stderr, "\r\033[Kanswers {}/{}", num_done, requests.size());
                    std::fflush(stderr);
                    return bool{status};
                  });
  if (is_terminal && num_done > 0) std::fputs("\n", stderr);
  if (!status) return status.error();
  return tokens;
}

Status run(const Options& options, const Computing& computing) {
  MC_TRY(const Target target, prepare(computing), "generate");
  MC_TRY(const model::Model model, model::load_model(options.model), "generate");
  MC_TRY(const std::vector<Row> rows, read_rows(options.prompts, model, options), "generate");
  MC_TRY(const auto answered, read_answered(options.out), "generate");
  std::vector<model::Request> requests;
  for (const Row& row : rows) {
    const int64_t first = row.sample.value_or(0);
    const int64_t end = row.sample ? first + 1 : options.samples;
    for (int64_t sample = first; sample < end; ++sample) {
      if (!answered.contains({row.id, sample})) requests.push_back({row.id, sample, row.prompt});
    }
  }
  const auto begin = std::chrono::steady_clock::now();
  MC_TRY(const int64_t tokens, answer_all(options, model, target, requests), "generate");
  const std::chrono::duration<double> seconds = std::chrono::steady_clock::now() - begin;
  fmt::print("{} answers made, {} were there: {} ({:.0f} tokens/s)\n", requests.size(),
             answered.size(), options.out, static_cast<double>(tokens) / seconds.count());
  return ok();
}

}  // namespace

void add_generate(CLI::App& app, int& exit_code) {
  auto options = std::make_shared<Options>();
  auto computing = std::make_shared<Computing>();
  CLI::App* command = app.add_subcommand("generate", "Answer prompts with a model");
  command->add_option("--model", options->model, "A model folder")->required();
  command
      ->add_option("--prompts", options->prompts,
                   "Rows with id, prompt and perhaps sample, as JSON Lines")
      ->required();
  command->add_option("--out", options->out, "Where answers are added, as JSON Lines")
      ->required()
      ->check(cli::kOutputFile);
  model::GenerateOptions& generate = options->generate;
  command->add_option("--samples", options->samples, "Answers to each prompt")
      ->check(cli::kPositive);
  command->add_flag("--skip-long", options->skips_long,
                    "Pass over prompts that the model cannot read, in place of ending there");
  command->add_flag("--logprobs", options->log_probs, "Tokens and their log-probabilities too");
  command->option_defaults()->group("Sampling");
  command->add_option("--temperature", generate.sampling.temperature, "0: the likeliest token")
      ->check(cli::kNotNegative);
  command->add_option("--top-p", generate.sampling.top_p, "Probability of the tokens to draw from")
      ->check(cli::number_range(1e-6, 1.0));
  command->add_option("--max-tokens", generate.tokens_max, "Longest answer")->check(cli::kPositive);
  command->add_option("--seed", generate.seed, "Of the draws");
  command->add_option("--batch", generate.batch, "Answers at a time")->check(cli::kPositive);
  add_computing(*command, *computing);
  command->callback(
      [options, computing, &exit_code] { exit_code = code_of(run(*options, *computing)); });
}

}  // namespace mc::learn
