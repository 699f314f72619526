// SPDX-License-Identifier: Apache-2.0
#include "cli/model_sampler.h"

#include <map>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/learner.h"
#include "core/check.h"
#include "core/file.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;
using bench::Request;
using store::Answer;

constexpr size_t kAnswersBytesMax = size_t{4} << 30;

// The rows for `musacoder-learn generate --prompts`, one for each request.
std::string rows_of(const std::vector<const Request*>& requests) {
  std::string out;
  for (const Request* request : requests) {
    Json prompt = Json::array();
    for (const sample::Message& message : request->messages) {
      prompt.push_back({{"role", message.role}, {"content", message.content}});
    }
    const Json row = {
        {"id", request->key.id}, {"sample", request->key.sample}, {"prompt", std::move(prompt)}};
    out += row.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  }
  return out;
}

}  // namespace

Result<std::vector<Result<Answer>>> ModelSampler::ask(std::span<const Request> requests) {
  std::map<int64_t, std::vector<const Request*>> turns;
  for (const Request& request : requests) turns[request.key.turn].push_back(&request);
  std::map<store::AnswerKey, Answer> answers;
  for (const auto& [turn, some] : turns) MC_TRY_VOID(generate(turn, some, answers), "generate");
  std::vector<Result<Answer>> out;
  for (const Request& request : requests) {
    const auto found = answers.find(request.key);
    if (found != answers.end()) {
      out.push_back(std::move(found->second));
    } else {
      out.push_back(invalid("the prompt is too long for the model"));
    }
  }
  MC_CHECK(out.size() == requests.size());
  return out;
}

Status ModelSampler::generate(int64_t turn, const std::vector<const Request*>& requests,
                              std::map<store::AnswerKey, Answer>& answers) {
  MC_CHECK(!requests.empty() && turn >= 0);
  const fs::path prompts = folder_ / fmt::format("prompts-{}.jsonl", turn);
  const fs::path out = folder_ / fmt::format("generated-{}.jsonl", turn);
  std::error_code failure;
  fs::create_directories(folder_, failure);  // An error is reported by the write that follows.
  MC_TRY_VOID(write_file_atomically(prompts, rows_of(requests)), "prompts");
  std::vector<std::string> words = {"generate",       "--model", options_.model, "--prompts",
                                    prompts.string(), "--out",   out.string(),   "--skip-long"};
  const sample::Sampling& sampling = options_.sampling;
  const std::pair<const char*, std::string> numbers[] = {
      {"--temperature", fmt::format("{}", sampling.temperature)},
      {"--top-p", fmt::format("{}", sampling.top_p)},
      {"--max-tokens", std::to_string(sampling.tokens_max)},
      {"--seed", std::to_string(options_.seed + static_cast<uint64_t>(turn))},
      {"--batch", std::to_string(options_.batch)},
      {"--device", options_.device}};
  for (const auto& [name, number] : numbers) words.insert(words.end(), {name, number});
  MC_TRY_VOID(run_learner(layout_, words), "bench");
  std::error_code ignored;
  if (!fs::exists(out, ignored)) return ok();  // Every prompt was too long.
  MC_TRY(const std::string text, read_file(out, kAnswersBytesMax), "answers");
  for (std::string_view rest = text; !rest.empty();) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    MC_TRY(Answer answer, store::answer_from_json(line), out.string());
    answer.key.turn = turn;
    answers[answer.key] = std::move(answer);
  }
  return ok();
}

}  // namespace mc::cli
