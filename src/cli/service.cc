// SPDX-License-Identifier: Apache-2.0
#include "cli/service.h"

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <istream>
#include <limits>
#include <ostream>
#include <thread>
#include <type_traits>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/hash.h"
#include "core/utf8.h"
#include "reward/feedback.h"
#include "task/verdict_json.h"

namespace mc::cli {
namespace {

using Json = nlohmann::json;

constexpr size_t kTasksRemembered = 100'000;

Error wrong(const std::string& what) { return Error{ErrorCode::kInvalidInput, what}; }

bool has_text(const Json& object, const char* key) {
  return object.is_object() && object.contains(key) && object[key].is_string();
}

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Also where a text holds half of a UTF-16 pair.
Json parse_leniently(std::string_view text) {
  return Json::parse(without_lone_surrogates(text), nullptr, /*allow_exceptions=*/false);
}

Result<task::Task> parse_task(const Json& json, const task::Roots& roots) {
  if (json.is_string()) return task::load_task(json.get<std::string>(), roots);
  if (!has_text(json, "code")) return wrong("\"task\" is neither a name nor has \"code\"");
  task::Task task;
  task.code = json["code"].get<std::string>();
  task.id = has_text(json, "id") ? json["id"].get<std::string>() : content_hash({task.code});
  task.name = task.id;
  if (task.code.size() > task::kTaskBytesMax) return wrong("the task's code is too large");
  return task;
}

template <typename T>
Status read_option(const Json& value, const std::string& name, T& out) {
  const bool fits = std::is_same_v<T, std::string> ? value.is_string()
                    : std::is_same_v<T, bool>      ? value.is_boolean()
                    : std::is_same_v<T, int>       ? value.is_number_integer()
                                                   : value.is_number();
  if (!fits) return wrong("\"options\": " + name + " has the wrong type");
  if constexpr (std::is_same_v<T, int>) {  // A number that does not fit is not sound either.
    const auto wide = value.get<int64_t>();
    out = static_cast<int>(std::clamp<int64_t>(wide, -1, std::numeric_limits<int>::max()));
  } else {
    out = value.get<T>();
  }
  return ok();
}

Status read_options(const Json& options, task::Correctness& correctness) {
  if (!options.is_object()) return wrong("\"options\" is an object");
  for (const auto& [name, value] : options.items()) {
    Status read = ok();
    if (name == "trials") {
      read = read_option(value, name, correctness.trials);
    } else if (name == "inputs") {
      read = read_option(value, name, correctness.inputs);
    } else if (name == "shapes") {
      read = read_option(value, name, correctness.shapes);
    } else if (name == "require_general") {
      read = read_option(value, name, correctness.require_general);
    } else if (name == "mode") {
      read = read_option(value, name, correctness.mode);
    } else if (name == "precision") {
      read = read_option(value, name, correctness.precision);
    } else if (name == "tolerance") {
      read = read_option(value, name, correctness.tolerance_fp32);
    } else if (name == "tolerance_half") {
      read = read_option(value, name, correctness.tolerance_half);
    } else {
      read = wrong("\"options\" has no " + dump(name));
    }
    if (!read) return read;
  }
  const Status sound = check(correctness);
  return sound ? ok() : Status(wrong("\"options\": " + sound.error().message));
}

}  // namespace

Result<Question> parse_question(std::string_view text, const task::Roots& roots,
                                const task::Correctness& correctness) {
  if (text.size() > kQuestionBytesMax) {
    return wrong(fmt::format("a question has at most {} bytes", kQuestionBytesMax));
  }
  const Json json = Json::parse(text, nullptr, /*allow_exceptions=*/false);
  if (json.is_discarded() && parse_leniently(text).is_object()) return wrong(kLoneSurrogate);
  if (!json.is_object()) return wrong("a question is a JSON object");
  if (!has_text(json, "answer")) return wrong("a question needs \"answer\", a text");
  if (!json.contains("task")) return wrong("a question needs \"task\"");
  Question question;
  if (has_text(json, "id")) question.id = json["id"].get<std::string>();
  MC_TRY(question.task, parse_task(json["task"], roots), "task");
  question.correctness = correctness;
  if (json.contains("options")) {
    if (const Status read = read_options(json["options"], question.correctness); !read) {
      return read.error();
    }
  }
  question.candidate = {question.id.empty() ? question.task.id : question.id,
                        json["answer"].get<std::string>()};
  return question;
}

std::string question_id(std::string_view text) {
  const Json json = parse_leniently(text);
  return has_text(json, "id") ? json["id"].get<std::string>() : "";
}

std::string error_line(std::string_view id, std::string_view message) {
  return dump({{"id", id}, {"error", message}}) + "\n";
}

std::optional<std::string> Service::fault_of(const task::Task& task) {
  const std::string key = content_hash({task.code});
  {
    const std::lock_guard lock(mutex_);
    if (const auto found = seen_.find(key); found != seen_.end()) return found->second;
  }
  const Status status = pipeline_.check_task(task);
  // A machine's failure says nothing of the task, and shows again in the verdict.
  if (!status && status.error().code != ErrorCode::kInvalidInput) return std::nullopt;
  const auto fault = status ? std::nullopt : std::optional(status.error().message);
  const std::lock_guard lock(mutex_);
  if (seen_.size() >= kTasksRemembered) seen_.clear();
  seen_[key] = fault;
  return fault;
}

std::string Service::reply(const Question& question) {
  const auto start = std::chrono::steady_clock::now();
  if (const auto fault = fault_of(question.task)) return error_line(question.id, *fault);
  const task::Verdict verdict =
      pipeline_.evaluate(question.task, question.candidate, question.correctness);
  const auto score = reward::score(verdict, options_.score);
  const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
  return fmt::format(
      "{{\"id\":{},\"reward\":{},\"seconds\":{:.6f},\"feedback\":{},\"verdict\":{}}}\n",
      dump(question.id), dump(score ? Json(*score) : Json()), taken.count(),
      dump(reward::feedback(verdict, {.tokens_max = options_.feedback_tokens})),
      task::to_json(verdict, task::Indent::kCompact));
}

void serve_lines(std::istream& in, std::ostream& out, Service& service, const task::Roots& roots,
                 int jobs) {
  std::mutex in_mutex;
  std::mutex out_mutex;
  const auto answer_some = [&] {
    for (;;) {
      std::string line;
      {
        const std::lock_guard lock(in_mutex);
        if (!std::getline(in, line)) return;
      }
      if (line.empty()) continue;
      const auto question = parse_question(line, roots, service.correctness());
      const std::string reply = question ? service.reply(*question)
                                         : error_line(question_id(line), question.error().message);
      const std::lock_guard lock(out_mutex);
      out << reply << std::flush;
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 1; i < jobs; ++i) threads.emplace_back(answer_some);
  answer_some();
}

}  // namespace mc::cli
