// SPDX-License-Identifier: Apache-2.0
//
// One thread writes to the child and another reads from it, so that a busy child does not block the
// callers of submit().
#include "loop/judge.h"

#include <filesystem>
#include <utility>
#include <variant>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/hash.h"
#include "task/verdict_json.h"

namespace mc::loop {
namespace {

using Json = nlohmann::json;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Error strange(const std::string& what) {
  return Error{ErrorCode::kProtocol, "the verifier's reply " + what};
}

}  // namespace

Result<Judgement> parse_reply(const std::string& line, const rl::TrainingScoreOptions& options) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  if (!json.is_object()) return strange("is no JSON object");
  if (json.contains("error")) {
    const Json& error = json["error"];
    Judgement infra;
    infra.outcome = "infra";
    // An error with a "kind" is not a fault of the request.
    if (json.contains("kind")) return infra;
    return invalid("the verifier refuses a request: " +
                   (error.is_string() ? error.get<std::string>() : ""));
  }
  if (!json.contains("verdict") || !json.contains("feedback") || !json["feedback"].is_string()) {
    return strange("has no verdict or no feedback");
  }
  MC_TRY(const task::Verdict verdict, task::verdict_from_json(dump(json["verdict"])), "a reply");
  Judgement judgement;
  judgement.outcome = task::outcome_name(verdict.outcome);
  judgement.s = rl::training_score(verdict, options);
  judgement.stage = rl::failed_stage(verdict.outcome);
  if (const auto* wrong = std::get_if<task::Wrong>(&verdict.outcome)) judgement.q = wrong->q;
  if (const auto* passed = std::get_if<task::Passed>(&verdict.outcome)) {
    judgement.q = 1;
    if (passed->performance) judgement.nu = passed->performance->speedup_eager.low;
  }
  judgement.feedback = json["feedback"].get<std::string>();
  return judgement;
}

std::vector<std::string> verifier_of(const std::vector<std::string>& command) {
  std::vector<std::string> words;
  for (size_t i = 0; i < command.size(); ++i) {
    if (command[i] == "--jobs") {
      ++i;
    } else {
      words.push_back(i == 0 ? std::filesystem::path(command[0]).filename().string() : command[i]);
    }
  }
  return words;
}

Result<std::unique_ptr<Judge>> Judge::start(const std::vector<std::string>& command,
                                            const rl::TrainingScoreOptions& options,
                                            store::Run* run) {
  MC_TRY(auto child, LineChild::start(command, LineChild::AtEnd::kTerminate), "the verifier");
  return std::unique_ptr<Judge>(new Judge(std::move(child), options, run));
}

Judge::Judge(std::unique_ptr<LineChild> child, const rl::TrainingScoreOptions& options,
             store::Run* run)
    : child_(std::move(child)), options_(options), run_(run) {
  MC_CHECK(child_ != nullptr);
  writer_ = std::thread([this] { write_requests(); });
  reader_ = std::thread([this] { read_replies(); });
}

Judge::~Judge() {
  {
    const std::lock_guard lock(mutex_);
    if (!ended_) ended_ = Error{ErrorCode::kUnavailable, "the verifier was stopped"};
  }
  changed_.notify_all();
  child_->hang_up();
  writer_.join();
  reader_.join();
}

// A verdict that an earlier, interrupted part of the run stored.
std::optional<Result<Judgement>> Judge::kept(const std::string& key) const {
  if (run_ == nullptr) return std::nullopt;
  const auto line = run_->text("verdict " + key);
  if (!line) return line.error();
  return *line ? std::optional(parse_reply(**line, options_)) : std::nullopt;
}

// The id is a hash of the content, so a seeded verifier gives the same verdict in every run.
std::string Judge::submit(const task::Task& task, const std::string& answer,
                          std::optional<task::Dialect> dialect) {
  std::string options;
  if (dialect) options = R"(,"options":{"dialect":")" + std::string(to_string(*dialect)) + R"("})";
  const std::string key =
      dialect ? content_hash({task.code, answer, options}) : content_hash({task.code, answer});
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = judgements_.try_emplace(key);
  if (!is_new || (found->second = kept(key))) return key;
  lines_.push_back("{\"id\":\"" + key +
                   "\",\"task\":" + dump({{"id", task.id}, {"code", task.code}}) +
                   ",\"answer\":" + dump(answer) + options + "}\n");
  changed_.notify_all();
  return key;
}

Result<Judgement> Judge::wait(const std::string& key) {
  std::unique_lock lock(mutex_);
  const auto found = judgements_.find(key);
  MC_CHECK(found != judgements_.end());
  changed_.wait(lock, [&] { return found->second || ended_; });
  if (found->second) return *found->second;
  return *ended_;
}

void Judge::write_requests() {
  for (;;) {
    std::string line;
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return !lines_.empty() || ended_; });
      if (ended_) return;
      line = std::move(lines_.front());
      lines_.pop_front();
    }
    // No error is set here: the reader thread notices the end of the child too.
    if (!child_->send(line)) return;
  }
}

void Judge::read_replies() {
  for (;;) {
    const auto line = child_->receive();
    if (!line) break;
    take(*line);
  }
  const std::lock_guard lock(mutex_);
  if (!ended_) ended_ = Error{ErrorCode::kUnavailable, "the verifier ended before its time"};
  changed_.notify_all();
}

void Judge::take(const std::string& line) {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool has_id = json.is_object() && json.contains("id") && json["id"].is_string();
  const std::string key = has_id ? json["id"].get<std::string>() : "";
  Result<Judgement> judgement = parse_reply(line, options_);
  if (run_ != nullptr && judgement && judgement->outcome != "infra") {
    if (const Status put = run_->put("verdict " + key, line); !put) judgement = put.error();
  }
  const std::lock_guard lock(mutex_);
  const auto found = judgements_.find(key);
  if (found == judgements_.end()) {
    if (!ended_) ended_ = strange("is to no request: " + line.substr(0, 100));
  } else {
    found->second = std::move(judgement);
  }
  changed_.notify_all();
}

}  // namespace mc::loop
