// SPDX-License-Identifier: Apache-2.0
//
// A thread writes, so that a child that is busy blocks no caller of ask(); another reads, and a
// third keeps in the store what was read: all that came while it waited for the disk together.  A
// verdict is told when it is kept.
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

const std::string kVerdict = "verdict ";  // The store's name of one begins so.

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
    if (json.contains("kind")) return infra;  // The request has no fault.
    return Error{ErrorCode::kInvalidInput, "the verifier refuses a question: " +
                                               (error.is_string() ? error.get<std::string>() : "")};
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
  std::set<std::string> kept;
  if (run != nullptr) {
    MC_TRY(const auto names, run->names(kVerdict), "what was kept");
    kept.insert(names.begin(), names.end());
  }
  MC_TRY(auto child, LineChild::start(command, LineChild::AtEnd::kTerminate), "the verifier");
  return std::unique_ptr<Judge>(new Judge(std::move(child), options, run, std::move(kept)));
}

Judge::Judge(std::unique_ptr<LineChild> child, const rl::TrainingScoreOptions& options,
             store::Run* run, std::set<std::string> kept)
    : child_(std::move(child)), options_(options), run_(run), kept_(std::move(kept)) {
  MC_CHECK(child_ != nullptr);
  writer_ = std::thread([this] { write_requests(); });
  reader_ = std::thread([this] { read_replies(); });
  keeper_ = std::thread([this] { keep_replies(); });
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
  keeper_.join();
}

// The verdict of a run that was killed.
std::optional<Result<Judgement>> Judge::kept(const std::string& key) const {
  if (!kept_.contains(kVerdict + key)) return std::nullopt;
  const auto line = run_->text(kVerdict + key);
  if (!line) return line.error();
  return *line ? std::optional(parse_reply(**line, options_)) : std::nullopt;
}

// The id is of the content, so a seeded verifier gives the same verdict in every run.
std::string Judge::ask(const task::Task& task, const std::string& answer) {
  const std::string key = content_hash({task.code, answer});
  const std::lock_guard lock(mutex_);
  const auto [found, is_new] = judgements_.try_emplace(key);
  if (!is_new || (found->second = kept(key))) return key;
  lines_.push_back("{\"id\":\"" + key +
                   "\",\"task\":" + dump({{"id", task.id}, {"code", task.code}}) +
                   ",\"answer\":" + dump(answer) + "}\n");
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
    if (!child_->send(line)) return;  // The reader sees the end too.
  }
}

void Judge::read_replies() {
  for (;;) {
    auto line = child_->receive();
    if (!line) break;
    Reply reply = reply_of(*std::move(line));
    const std::lock_guard lock(mutex_);
    replies_.push_back(std::move(reply));
    changed_.notify_all();
  }
  const std::lock_guard lock(mutex_);
  is_read_ = true;
  changed_.notify_all();
}

Judge::Reply Judge::reply_of(std::string line) const {
  const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
  const bool has_id = json.is_object() && json.contains("id") && json["id"].is_string();
  Result<Judgement> judgement = parse_reply(line, options_);
  return {has_id ? json["id"].get<std::string>() : "", std::move(line), std::move(judgement)};
}

Status Judge::keep(const std::vector<Reply>& replies) const {
  std::vector<std::pair<std::string, std::string>> texts;
  for (const Reply& reply : replies) {
    if (reply.judgement && reply.judgement->outcome != "infra") {
      texts.emplace_back(kVerdict + reply.key, reply.line);
    }
  }
  if (run_ == nullptr || texts.empty()) return ok();
  return run_->put(texts);
}

void Judge::keep_replies() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return !replies_.empty() || is_read_; });
    if (replies_.empty()) break;
    std::vector<Reply> replies = std::exchange(replies_, {});
    lock.unlock();
    const Status kept = keep(replies);
    lock.lock();
    for (Reply& reply : replies) {
      const auto found = judgements_.find(reply.key);
      if (found == judgements_.end()) {
        if (!ended_) ended_ = strange("is to no question: " + reply.line.substr(0, 100));
      } else if (!kept) {
        found->second = kept.error();
      } else {
        found->second = std::move(reply.judgement);
      }
    }
    changed_.notify_all();
  }
  if (!ended_) ended_ = Error{ErrorCode::kUnavailable, "the verifier ended before its time"};
  changed_.notify_all();
}

}  // namespace mc::loop
