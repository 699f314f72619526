// SPDX-License-Identifier: Apache-2.0
#include "sample/answers.h"

#include <algorithm>
#include <regex>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "task/suite.h"
#include "task/task.h"

namespace mc::sample {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

Error invalid(std::string message) { return {ErrorCode::kInvalidInput, std::move(message)}; }

Result<std::string> text_of(const Json& json, const char* name, const char* other_name) {
  auto found = json.find(name);
  if (found == json.end()) found = json.find(other_name);
  if (found == json.end() || !found->is_string()) {
    return invalid(fmt::format("\"{}\" is missing", name));
  }
  return found->get<std::string>();
}

Result<int64_t> count_of(const Json& json, const char* name, int64_t otherwise) {
  constexpr uint64_t kCountMax = 1'000'000'000;
  const auto found = json.find(name);
  if (found == json.end()) return otherwise;
  if (!found->is_number_unsigned() || found->get<uint64_t>() > kCountMax) {
    return invalid(fmt::format("\"{}\" is not a number from 0 to 10^9", name));
  }
  return found->get<int64_t>();
}

std::set<std::string> ids_of(std::span<const Item> items) {
  std::set<std::string> out;
  for (const Item& item : items) out.insert(item.task.id);
  return out;
}

// Ordered, each once.
Result<std::vector<Answer>> in_order(std::vector<Answer> answers, const fs::path& path) {
  const auto by_key = [](const Answer& a, const Answer& b) { return a.key < b.key; };
  std::sort(answers.begin(), answers.end(), by_key);
  const auto same = [](const Answer& a, const Answer& b) { return a.key == b.key; };
  const auto twice = std::adjacent_find(answers.begin(), answers.end(), same);
  if (twice != answers.end()) {
    return invalid(fmt::format("{}: a second answer {}", path.string(), to_string(twice->key)));
  }
  if (answers.empty()) return invalid(path.string() + " holds no answer to a task of the suite");
  return answers;
}

}  // namespace

std::string to_string(const AnswerKey& key) {
  const std::string name = fmt::format("{}#{}", key.id, key.sample);
  return key.turn == 0 ? name : fmt::format("{}.{}", name, key.turn);
}

std::string json_line(const Answer& answer) {
  Json json = {{"id", answer.key.id},
               {"sample", answer.key.sample},
               {"completion", answer.completion},
               {"num_tokens", answer.num_tokens},
               {"finish", answer.finish}};
  if (answer.key.turn > 0) json["turn"] = answer.key.turn;
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
}

Result<Answer> answer_from_json(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object()) return invalid("not a JSON object");
  Answer out;
  MC_TRY(out.key.id, text_of(json, "id", "task"), "answer");
  MC_TRY(out.key.sample, count_of(json, "sample", 0), "answer");
  MC_TRY(out.key.turn, count_of(json, "turn", 0), "answer");
  MC_TRY(out.completion, text_of(json, "completion", "response"), "answer");
  if (out.completion.size() > task::kAnswerBytesMax) return invalid("the answer is above 16 MiB");
  MC_TRY(out.num_tokens, count_of(json, "num_tokens", 0), "answer");
  out.finish = json.contains("finish") && json["finish"].is_string() ? json["finish"] : Json("");
  return out;
}

Result<std::vector<Answer>> load_answers(const fs::path& path, std::span<const Item> items) {
  MC_TRY(const std::string text, read_file(path, task::kSubmissionsBytesMax), "answers");
  const std::set<std::string> ids = ids_of(items);
  std::vector<Answer> out;
  std::string_view rest = text;
  for (size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}: line {}", path.string(), number);
    MC_TRY(Answer answer, answer_from_json(line), place);
    if (!ids.contains(answer.key.id)) {
      return invalid(fmt::format("{}: the suite has no task {}", place, answer.key.id));
    }
    out.push_back(std::move(answer));
  }
  return in_order(std::move(out), path);
}

Result<std::vector<Answer>> load_run_folder(const fs::path& folder, std::span<const Item> items) {
  static const std::regex kName(R"(level_(\d{1,9})_problem_(\d{1,9})_sample_(\d{1,9})_kernel\.py)");
  const std::set<std::string> ids = ids_of(items);
  std::error_code failure;
  std::vector<Answer> out;
  for (fs::directory_iterator entry(folder, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    const std::string name = entry->path().filename().string();
    std::smatch parts;
    if (!std::regex_match(name, parts, kName)) continue;
    const std::string id = fmt::format("kernelbench:{}/{}", parts.str(1), parts.str(2));
    if (!ids.contains(id)) {
      return invalid(fmt::format("{}: the suite has no task {}", entry->path().string(), id));
    }
    MC_TRY(std::string text, read_file(entry->path(), task::kAnswerBytesMax), "answer");
    out.push_back({{id, std::stoll(parts.str(3)), 0}, std::move(text), 0, ""});
  }
  if (failure) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("cannot list {}: {}", folder.string(), failure.message())};
  }
  return in_order(std::move(out), folder);
}

}  // namespace mc::sample
