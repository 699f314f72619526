// SPDX-License-Identifier: Apache-2.0
#include "sample/answers.h"

#include <algorithm>
#include <regex>
#include <set>
#include <system_error>
#include <utility>

#include <fmt/format.h>

#include "core/file.h"
#include "task/suite.h"
#include "task/task.h"

namespace mc::sample {
namespace {

namespace fs = std::filesystem;
using store::Answer;

std::set<std::string> ids_of(std::span<const Item> items) {
  std::set<std::string> out;
  for (const Item& item : items) out.insert(item.task.id);
  return out;
}

// The answers ordered by key; a duplicate key is an error.
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
    MC_TRY(Answer answer, store::answer_from_json(line), place);
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
    out.push_back({.key = {id, std::stoll(parts.str(3)), 0}, .completion = std::move(text)});
  }
  if (failure) {
    return Error{ErrorCode::kNotFound,
                 fmt::format("cannot list {}: {}", folder.string(), failure.message())};
  }
  return in_order(std::move(out), folder);
}

}  // namespace mc::sample
