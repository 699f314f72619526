// SPDX-License-Identifier: Apache-2.0
#include "service/stream.h"

#include <chrono>
#include <istream>
#include <memory>
#include <mutex>
#include <ostream>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <sodium.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "eval/prepared.h"
#include "reward/feedback.h"
#include "service/queue.h"
#include "task/provenance.h"
#include "task/verdict_json.h"

namespace mc::service {
namespace {

using Json = nlohmann::json;
using Clock = Queue::Clock;

std::string dump(const Json& json) {
  return json.dump(-1, ' ', false, Json::error_handler_t::replace);
}

std::string error_line(std::string_view id, std::string_view message, std::string_view kind = {}) {
  Json line = {{"id", id}, {"error", message}};
  if (!kind.empty()) line["kind"] = kind;
  return dump(line) + "\n";
}

// "infra" for a failure of this machine, "" for a fault of the request.
std::string_view kind_of(const Error& error) {
  const bool is_fault =
      error.code == ErrorCode::kInvalidInput || error.code == ErrorCode::kNotFound;
  return is_fault ? "" : "infra";
}

std::string base64(const std::string& bytes) {
  std::string text(sodium_base64_encoded_len(bytes.size(), sodium_base64_VARIANT_ORIGINAL), '\0');
  ::sodium_bin2base64(text.data(), text.size(),
                      reinterpret_cast<const unsigned char*>(bytes.data()), bytes.size(),
                      sodium_base64_VARIANT_ORIGINAL);
  text.pop_back();  // The terminating zero.
  return text;
}

class Stream {
 public:
  Stream(std::ostream& out, Verifier& verifier, const StreamOptions& options)
      : out_(out), verifier_(verifier), options_(options), queue_(options.jobs) {}

  void take(const std::string& line);
  void wait_until_at_most(size_t num) { queue_.wait_until_at_most(num); }

 private:
  using Seconds = std::chrono::duration<double>;
  // The data of an open request that its reply needs.
  struct Asked {
    std::string id;
    std::string candidate;
    Queue::Ticket ticket = 0;
  };
  void submit(Request request);
  void cancel(const std::string& id);
  void reply(const Asked& asked, const Queue::Reply& reply);
  std::string response_line(const Asked& asked, const Queue::Answer& answer, Seconds taken) const;
  std::string response_line(const Asked& asked, task::Verdict verdict, Seconds taken) const;
  void write(const std::string& line);

  std::ostream& out_;
  Verifier& verifier_;
  const StreamOptions& options_;
  std::mutex mutex_;  // Guards `out_` and `open_`.
  std::set<std::pair<std::string, Queue::Ticket>> open_;
  Queue queue_;  // Declared last: its threads use all members above.
};

void Stream::take(const std::string& line) {
  auto request = parse_request(line, options_.roots, options_.correctness);
  if (!request) return write(error_line(request_id(line), request.error().message));
  if (request->verb == Verb::kCancel) return cancel(request->id);
  if (request->verb == Verb::kAbout) {
    return write(dump({{"id", request->id}, {"about", options_.about}, {"jobs", options_.jobs}}) +
                 "\n");
  }
  submit(std::move(*request));
}

void Stream::submit(Request request) {
  const auto shared = std::make_shared<const Request>(std::move(request));
  const auto asked = std::make_shared<Asked>(shared->id, shared->candidate.id);
  Queue::Work work{content_key(*shared), shared->priority, std::nullopt,
                   [this, shared] { return verifier_.run(*shared); }};
  if (shared->deadline_s) {
    work.deadline =
        Clock::now() + std::chrono::duration_cast<Clock::duration>(Seconds(*shared->deadline_s));
  }
  // The reply may come before the ticket is stored here, so the lock is held until then.
  const std::lock_guard lock(mutex_);
  asked->ticket = queue_.submit(
      std::move(work), [this, asked](const Queue::Reply& answer) { reply(*asked, answer); });
  open_.emplace(asked->id, asked->ticket);
}

void Stream::cancel(const std::string& id) {
  std::vector<Queue::Ticket> tickets;
  {
    const std::lock_guard lock(mutex_);
    for (auto at = open_.lower_bound({id, 0}); at != open_.end() && at->first == id; ++at) {
      tickets.push_back(at->second);
    }
  }
  for (const Queue::Ticket ticket : tickets) queue_.cancel(ticket);
}

void Stream::reply(const Asked& asked, const Queue::Reply& reply) {
  {
    const std::lock_guard lock(mutex_);
    MC_CHECK(open_.erase({asked.id, asked.ticket}) == 1);
  }
  if (const auto* dropped = std::get_if<Queue::Dropped>(&reply)) {
    const bool is_late = *dropped == Queue::Dropped::kLate;
    return write(error_line(asked.id, is_late ? "its deadline has passed" : "cancelled",
                            is_late ? "late" : "cancelled"));
  }
  const auto& answered = std::get<Queue::Answered>(reply);
  write(response_line(asked, *answered.answer, answered.taken));
}

std::string Stream::response_line(const Asked& asked, const Queue::Answer& answer,
                                  Seconds taken) const {
  if (!answer) return error_line(asked.id, answer.error().message, kind_of(answer.error()));
  if (const auto* verdict = std::get_if<task::Verdict>(&*answer)) {
    return response_line(asked, *verdict, taken);
  }
  const auto bytes = eval::to_bytes(std::get<eval::PreparedCandidate>(*answer));
  if (!bytes) return error_line(asked.id, bytes.error().message, kind_of(bytes.error()));
  return fmt::format("{{\"id\":{},\"seconds\":{:.6f},\"prepared\":\"{}\"}}\n", dump(asked.id),
                     taken.count(), base64(*bytes));
}

// The verdict may be that of another request, whose candidate had another id.
std::string Stream::response_line(const Asked& asked, task::Verdict verdict, Seconds taken) const {
  if (!asked.candidate.empty()) verdict.candidate = asked.candidate;
  const auto score = reward::score(verdict, options_.score);
  return fmt::format(
      "{{\"id\":{},\"reward\":{},\"seconds\":{:.6f},\"feedback\":{},\"verdict\":{},\"provenance\":{"
      "}}}\n",
      dump(asked.id), dump(score ? Json(*score) : Json()), taken.count(),
      dump(reward::feedback(verdict, {.tokens_max = options_.feedback_tokens})),
      task::to_json(verdict, task::Indent::kCompact), task::provenance_json());
}

void Stream::write(const std::string& line) {
  const std::lock_guard lock(mutex_);
  out_ << line << std::flush;
}

}  // namespace

void serve_stream(std::istream& in, std::ostream& out, Verifier& verifier,
                  const StreamOptions& options) {
  Stream stream(out, verifier, options);
  for (std::string line; std::getline(in, line);) {
    if (line.empty()) continue;
    stream.take(line);
    stream.wait_until_at_most(options.open_max);
  }
  stream.wait_until_at_most(0);
}

}  // namespace mc::service
