// SPDX-License-Identifier: Apache-2.0
#include "sample/bench_folder.h"

#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "task/verdict_json.h"

namespace mc::sample {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kSettingsBytesMax = 1 << 20;

Error invalid(std::string message) { return {ErrorCode::kInvalidInput, std::move(message)}; }

// Which setting differs, for the user.
std::string difference(const std::string& before, const std::string& now) {
  const Json a = Json::parse(before, nullptr, false);
  const Json b = Json::parse(now, nullptr, false);
  if (!a.is_object() || !b.is_object()) return "its bench.json cannot be read";
  for (const auto& [name, value] : b.items()) {
    const Json other = a.value(name, Json());
    if (other != value) return fmt::format("{} was {}, now {}", name, other.dump(), value.dump());
  }
  return "it has other settings";
}

Status claim(const fs::path& path, const std::string& settings) {
  std::error_code failure;
  fs::create_directories(path, failure);
  if (failure)
    return Error{ErrorCode::kIo, "cannot make " + path.string() + ": " + failure.message()};
  const fs::path file = path / "bench.json";
  if (!fs::exists(file, failure)) {
    if (fs::exists(path / "answers.jsonl", failure) || fs::exists(path / "forge.json", failure)) {
      return invalid(path.string() + " holds something else: give another --out");
    }
    return write_file_atomically(file, settings + '\n');
  }
  MC_TRY(const std::string before, read_file(file, kSettingsBytesMax), "resume");
  if (before == settings + '\n') return ok();
  return invalid(fmt::format("{} holds another benchmark ({}): give another --out, or remove it",
                             path.string(), difference(before, settings)));
}

Status keep(std::map<AnswerKey, Judgement>& judgements, std::string_view line) {
  MC_TRY(Judgement judgement, judgement_from_json(line), "verdict");
  judgements.insert_or_assign(judgement.key, std::move(judgement));
  return ok();
}

bool is_infra(const Judgement& judgement) {
  return std::holds_alternative<task::Infra>(judgement.verdict.outcome);
}

template <typename Map>
auto values_of(const Map& map) {
  std::vector<typename Map::mapped_type> out;
  for (const auto& [key, value] : map) out.push_back(value);
  return out;
}

}  // namespace

std::string json_line(const Judgement& judgement) {
  const Json id = judgement.key.id;
  const Json reward = judgement.reward ? Json(*judgement.reward) : Json();
  return fmt::format(
      "{{\"id\":{},\"sample\":{},\"turn\":{},\"reward\":{},\"seconds\":{:.6f},\"verdict\":{}}}\n",
      id.dump(-1, ' ', false, Json::error_handler_t::replace), judgement.key.sample,
      judgement.key.turn, reward.dump(), judgement.seconds,
      task::to_json(judgement.verdict, task::Indent::kCompact));
}

Result<Judgement> judgement_from_json(std::string_view line) {
  const Json json = Json::parse(line, nullptr, false);
  if (!json.is_object() || !json.contains("verdict")) return invalid("not a verdict");
  Judgement out;
  try {
    out.key = {json.at("id"), json.at("sample"), json.at("turn")};
    if (!json.at("reward").is_null()) out.reward = json.at("reward").get<double>();
    out.seconds = json.at("seconds");
  } catch (const Json::exception& wrong) {
    return invalid(wrong.what());
  }
  MC_TRY(out.verdict, task::verdict_from_json(json["verdict"].dump()), "verdict");
  return out;
}

Result<std::unique_ptr<BenchFolder>> BenchFolder::open(const fs::path& path,
                                                       const std::string& settings) {
  MC_TRY_VOID(claim(path, settings), "bench");
  std::unique_ptr<BenchFolder> folder(new BenchFolder(path));
  MC_TRY_VOID(folder->open_files(), "bench");
  return folder;
}

Status BenchFolder::open_files() {
  MC_TRY_VOID(reload_answers(), "answers");
  const auto read = [this](std::string_view line) { return keep(judgements_, line); };
  MC_TRY(LineFile file, LineFile::open(path_ / "verdicts.jsonl", read), "verdicts");
  std::erase_if(judgements_, [](const auto& entry) { return is_infra(entry.second); });
  judgements_file_ = std::move(file);
  return ok();
}

Status BenchFolder::reload_answers() {
  const std::lock_guard lock(mutex_);
  answers_.clear();
  const auto read = [this](std::string_view line) -> Status {
    MC_TRY(Answer answer, answer_from_json(line), "answer");
    answers_.insert_or_assign(answer.key, std::move(answer));
    return ok();
  };
  MC_TRY(LineFile file, LineFile::open(answers_path(), read), "answers");
  answers_file_ = std::move(file);
  return ok();
}

Result<std::vector<Judgement>> BenchFolder::load_judgements(const fs::path& path) {
  std::error_code ignored;
  const fs::path file = path / "verdicts.jsonl";
  if (!fs::exists(file, ignored)) {
    return Error{ErrorCode::kNotFound, path.string() + " is no folder of a benchmark"};
  }
  std::map<AnswerKey, Judgement> judgements;
  const auto read = [&](std::string_view line) { return keep(judgements, line); };
  MC_TRY_VOID(LineFile::read_lines(file, read), "verdicts");
  return values_of(judgements);
}

bool BenchFolder::is_answered(const AnswerKey& key) const {
  const std::lock_guard lock(mutex_);
  return answers_.contains(key);
}

bool BenchFolder::is_judged(const AnswerKey& key) const {
  const std::lock_guard lock(mutex_);
  return judgements_.contains(key);
}

std::vector<Answer> BenchFolder::answers() const {
  const std::lock_guard lock(mutex_);
  return values_of(answers_);
}

std::vector<Judgement> BenchFolder::judgements() const {
  const std::lock_guard lock(mutex_);
  return values_of(judgements_);
}

Status BenchFolder::add(Answer answer) {
  const std::lock_guard lock(mutex_);
  MC_TRY_VOID(answers_file_->append(json_line(answer)), "keep an answer");
  answers_.insert_or_assign(answer.key, std::move(answer));
  return ok();
}

Status BenchFolder::add(Judgement judgement) {
  const std::lock_guard lock(mutex_);
  MC_TRY_VOID(judgements_file_->append(json_line(judgement)), "keep a verdict");
  judgements_.insert_or_assign(judgement.key, std::move(judgement));
  return ok();
}

Status BenchFolder::write_summary(const std::string& json) const {
  return write_file_atomically(path_ / "summary.json", json);
}

}  // namespace mc::sample
