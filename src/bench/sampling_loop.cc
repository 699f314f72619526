// SPDX-License-Identifier: Apache-2.0
#include "bench/sampling_loop.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <deque>
#include <mutex>
#include <optional>
#include <set>
#include <thread>
#include <utility>
#include <variant>

#include "core/check.h"
#include "core/hash.h"
#include "reward/feedback.h"
#include "reward/score.h"

namespace mc::bench {
namespace {

using sample::Item;
using store::Answer;
using store::AnswerKey;
using store::Judgement;

// One sample of a task, with its turns so far.
struct Sample {
  const Item* item = nullptr;
  std::map<int64_t, Answer> answers;  // The keys are turns.
  std::map<int64_t, Judgement> judgements;
  bool is_lost = false;  // True if a request for the sample got no answer in this run.

  bool passed() const {
    return std::ranges::any_of(judgements, [](const auto& entry) {
      return std::holds_alternative<task::Passed>(entry.second.verdict.outcome);
    });
  }
};

bool is_infra(const Judgement& judgement) {
  return std::holds_alternative<task::Infra>(judgement.verdict.outcome);
}

// The messages before `turn`: the task's prompt, and each earlier answer with the verifier's
// feedback.
sample::Messages messages_of(const Sample& sample, int64_t turn) {
  sample::Messages out = sample.item->prompt;
  for (int64_t i = 0; i < turn; ++i) {
    out.push_back({"assistant", sample.answers.at(i).completion});
    const Judgement& judgement = sample.judgements.at(i);
    const bool is_right = std::holds_alternative<task::Passed>(judgement.verdict.outcome);
    out.push_back({"user", is_right ? reward::speed_request(judgement.feedback)
                                    : reward::repair_request(judgement.feedback)});
  }
  return out;
}

}  // namespace

class SamplingLoop::State {
 public:
  State(const SamplingLoop& loop, Sampler* sampler) : loop_(loop), sampler_(sampler) {}

  // Reads the records of the run, and queues the remaining work.
  Status load() {
    std::map<std::string, const Item*> items;
    for (const Item& item : loop_.items_) items[item.task.id] = &item;
    for (const Item& item : loop_.items_) {
      if (sampler_ == nullptr) break;
      for (int64_t i = 0; i < loop_.options_.samples; ++i) samples_[{item.task.id, i}].item = &item;
    }
    MC_TRY(std::vector<Answer> answers, loop_.run_.answers(), "answers");
    MC_TRY(std::vector<Judgement> judgements, loop_.run_.judgements(), "verdicts");
    std::erase_if(answers, [&](const Answer& one) { return !items.contains(one.key.id); });
    for (Answer& answer : answers) {
      Sample& sample = samples_[{answer.key.id, answer.key.sample}];
      sample.item = items.at(answer.key.id);
      sample.answers[answer.key.turn] = std::move(answer);
      ++progress_.num_answers;
    }
    for (Judgement& judgement : judgements) {
      const auto found = samples_.find({judgement.key.id, judgement.key.sample});
      if (found == samples_.end() || is_infra(judgement)) continue;
      const auto answer = found->second.answers.find(judgement.key.turn);
      if (answer == found->second.answers.end()) continue;
      case_of(answer->second).judged = judgement.key;
      found->second.judgements[judgement.key.turn] = std::move(judgement);
      ++progress_.num_verdicts;
    }
    for (auto& [key, sample] : samples_) queue(key, sample);
    return ok();
  }

  SamplingPlan plan() const { return {to_ask_.size(), to_judge_.size(), progress_.num_verdicts}; }

  Result<SamplingEnd> run(const OpenEvaluator& open) {
    {
      std::vector<std::jthread> threads;
      const int concurrency = sampler_ == nullptr     ? 0
                              : sampler_->takes_all() ? 1
                                                      : loop_.options_.concurrency;
      for (int i = 0; i < concurrency; ++i) threads.emplace_back([this] { ask_all(); });
      for (int i = 0; i < loop_.options_.judges; ++i)
        threads.emplace_back([&] { judge_all(open); });
    }
    MC_TRY_VOID(status_, "bench");
    return SamplingEnd{failed_, last_failure_};
  }

 private:
  using SampleKey = std::pair<std::string, int64_t>;

  // Equal answers to one task, which are judged once: a model with low entropy often repeats
  // itself.
  struct Case {
    std::vector<AnswerKey> waiting;   // The answers with this text that wait for the verdict.
    std::optional<AnswerKey> judged;  // An answer with this text that already has its verdict.
  };

  // REQUIRES: as for queue().
  Case& case_of(const Answer& answer) {
    return cases_[content_hash({answer.key.id, answer.completion})];
  }

  // The next turn of a sample; empty if the sample is complete or waits for a verdict.
  std::optional<int64_t> turn_to_ask(const SampleKey& key, const Sample& sample) const {
    const auto turn = static_cast<int64_t>(sample.answers.size());
    const bool is_wanted = sampler_ != nullptr && key.second < loop_.options_.samples &&
                           turn < loop_.options_.turns && !sample.is_lost &&
                           (loop_.options_.goes_on_after_pass || !sample.passed());
    if (!is_wanted) return std::nullopt;
    for (int64_t i = 0; i < turn; ++i) {
      const auto judged = sample.judgements.find(i);
      if (judged == sample.judgements.end() || is_infra(judged->second)) return std::nullopt;
    }
    return turn;
  }

  // REQUIRES: the mutex is held, or no thread runs yet.  This holds for all functions below except
  // the loops.
  void queue(const SampleKey& key, const Sample& sample) {
    for (const auto& [turn, answer] : sample.answers) {
      if (!sample.judgements.contains(turn)) to_judge_.push_back(answer.key);
    }
    if (turn_to_ask(key, sample)) to_ask_.push_back(key);
  }

  void notify_observer() {
    progress_.num_asked = static_cast<int64_t>(to_ask_.size()) + num_asked_;
    progress_.num_sampling = num_asked_;
    progress_.num_waiting = progress_.num_answers - progress_.num_verdicts;
    MC_CHECK(progress_.num_waiting >= 0);
    loop_.observer_(progress_);
  }

  // True if a request can be made and its answer is still wanted.
  bool has_request() const {
    const std::function<bool()>& is_enough = loop_.options_.is_enough;
    return !to_ask_.empty() && !(is_enough && is_enough());
  }

  bool is_over() const {
    const bool is_idle = to_judge_.empty() && num_asked_ == 0 && num_judged_ == 0 && !has_request();
    return !status_ || is_idle;
  }

  // ---- Asking -----------------------------------------------------------------------------------

  // The next requests; empty at the end of the loop.  A sampler that takes all requests at once
  // waits until no answer is being judged, so that the next turns are included.
  std::vector<Request> next_requests() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] {
      const bool is_wave = !sampler_->takes_all() || (to_judge_.empty() && num_judged_ == 0);
      return is_over() || (is_wave && has_request());
    });
    std::vector<Request> requests;
    if (is_over()) {
      changed_.notify_all();  // Other threads may have checked before is_enough() became true.
      return requests;
    }
    do {
      const SampleKey key = to_ask_.front();
      to_ask_.pop_front();
      const Sample& sample = samples_.at(key);
      const auto turn = static_cast<int64_t>(sample.answers.size());
      requests.push_back({{key.first, key.second, turn}, messages_of(sample, turn)});
    } while (sampler_->takes_all() && !to_ask_.empty());
    num_asked_ += static_cast<int64_t>(requests.size());
    notify_observer();
    return requests;
  }

  void ask_all() {
    for (;;) {
      const std::vector<Request> requests = next_requests();
      if (requests.empty()) return;
      auto answers = sampler_->ask(requests);
      const std::lock_guard lock(mutex_);
      num_asked_ -= static_cast<int64_t>(requests.size());
      MC_CHECK(num_asked_ >= 0);
      if (!answers) {
        if (status_) status_ = answers.error();
      } else {
        MC_CHECK(answers->size() == requests.size());
        for (size_t i = 0; i < requests.size(); ++i) take(requests[i].key, (*answers)[i]);
      }
      notify_observer();
      changed_.notify_all();
    }
  }

  void take(const AnswerKey& key, const Result<Answer>& answer) {
    Sample& sample = samples_.at({key.id, key.sample});
    if (!answer) {
      sample.is_lost = true;
      ++failed_[answer.error().message];
      last_failure_ = answer.error();
      ++progress_.num_failed;
      const int64_t most = loop_.options_.failures_max;
      if (most > 0 && progress_.num_failed >= most && status_) {
        status_ = with_context(answer.error(), "--fail-on-error");
      }
      return;
    }
    MC_CHECK(answer->key == key);
    if (const Status kept = loop_.run_.add(*answer); !kept) {
      if (status_) status_ = kept;
      return;
    }
    sample.answers[key.turn] = *answer;
    ++progress_.num_answers;
    to_judge_.push_back(key);
  }

  // ---- Judging ----------------------------------------------------------------------------------

  struct Job {
    AnswerKey key;
    const Item* item;
    std::string completion;
  };

  void judge_all(const OpenEvaluator& open) {
    while (const auto job = next_job()) {
      const Result<task::Evaluator*> evaluator = open();
      const std::optional<Judgement> judgement =
          evaluator ? std::optional(judge(**evaluator, *job)) : std::nullopt;
      const std::lock_guard lock(mutex_);
      if (!judgement) {
        if (status_) status_ = evaluator.error();
        end_judging();
        return;
      }
      Case& one = case_of(samples_.at({job->key.id, job->key.sample}).answers.at(job->key.turn));
      MC_CHECK(!one.judged && !one.waiting.empty());  // Only this thread judges the text.
      if (!is_infra(*judgement)) one.judged = job->key;
      for (const AnswerKey& waiting : std::exchange(one.waiting, {})) keep(waiting, *judgement);
      end_judging();
    }
  }

  void end_judging() {
    MC_CHECK(num_judged_ > 0);
    --num_judged_;
    changed_.notify_all();
  }

  // An answer whose text neither has a verdict nor is being judged.
  std::optional<Job> next_job() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return is_over() || !to_judge_.empty(); });
      if (is_over()) {
        changed_.notify_all();
        return std::nullopt;
      }
      const AnswerKey key = to_judge_.front();
      to_judge_.pop_front();
      const Sample& sample = samples_.at({key.id, key.sample});
      const Answer& answer = sample.answers.at(key.turn);
      Case& one = case_of(answer);
      if (one.judged) {
        keep(key,
             samples_.at({one.judged->id, one.judged->sample}).judgements.at(one.judged->turn));
        changed_.notify_all();  // The sample's next turn can now be requested.
        continue;
      }
      one.waiting.push_back(key);
      if (one.waiting.size() == 1) {
        ++num_judged_;
        return Job{key, sample.item, answer.completion};
      }
    }
  }

  Judgement judge(task::Evaluator& evaluator, const Job& job) const {
    const auto start = std::chrono::steady_clock::now();
    Judgement out;
    out.key = job.key;
    // The name of a candidate influences its random inputs.  So all samples with this text use the
    // same name, independent of which is judged first.
    out.verdict = evaluator.evaluate(job.item->task, {job.item->task.id, job.completion});
    out.reward = reward::score(out.verdict, {});
    const auto tokens = static_cast<size_t>(loop_.options_.feedback_tokens);
    out.feedback = reward::feedback(out.verdict, {.tokens_max = tokens});
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    out.seconds = taken.count();
    return out;
  }

  void keep(const AnswerKey& key, const Judgement& judgement) {
    Judgement mine = judgement;
    mine.key = key;
    mine.verdict.candidate = store::to_string(key);
    if (const Status kept = loop_.run_.add(mine); !kept) {
      if (status_) status_ = kept;
      return;
    }
    const SampleKey sample_key{key.id, key.sample};
    Sample& sample = samples_.at(sample_key);
    MC_CHECK(sample.answers.contains(key.turn));
    sample.judgements[key.turn] = std::move(mine);
    ++progress_.num_verdicts;
    if (turn_to_ask(sample_key, sample)) to_ask_.push_back(sample_key);
    progress_.judgement = &sample.judgements.at(key.turn);
    notify_observer();
    progress_.judgement = nullptr;
  }

  // Constant after construction.
  const SamplingLoop& loop_;
  Sampler* const sampler_;

  std::mutex mutex_;  // The mutex guards the members below.  References to samples_ remain valid.
  std::condition_variable changed_;
  std::map<SampleKey, Sample> samples_;
  std::map<std::string, Case> cases_;  // The key is a hash of the task's id and the answer.
  std::deque<SampleKey> to_ask_;
  std::deque<AnswerKey> to_judge_;
  int64_t num_asked_ = 0;   // Open requests.
  int64_t num_judged_ = 0;  // Answers that are being judged.
  std::map<std::string, int64_t> failed_;
  std::optional<Error> last_failure_;
  SamplingProgress progress_;
  Status status_ = ok();
};

SamplingLoop::SamplingLoop(store::Run& run, const std::vector<Item>& items,
                           const SamplingOptions& options, Observer observer)
    : run_(run), items_(items), options_(options), observer_(std::move(observer)) {}

Result<SamplingPlan> SamplingLoop::plan(Sampler* sampler) const {
  State state(*this, sampler);
  MC_TRY_VOID(state.load(), "bench");
  return state.plan();
}

Result<SamplingEnd> SamplingLoop::run(Sampler* sampler, const OpenEvaluator& open) const {
  State state(*this, sampler);
  MC_TRY_VOID(state.load(), "bench");
  return state.run(open);
}

Result<SamplingEnd> SamplingLoop::run(Sampler* sampler, task::Evaluator& evaluator) const {
  return run(sampler, [&] { return Result<task::Evaluator*>(&evaluator); });
}

}  // namespace mc::bench
