// SPDX-License-Identifier: Apache-2.0
#include "timing/fakes/simulation.h"

#include <sys/mman.h>

#include <algorithm>
#include <atomic>
#include <optional>
#include <ratio>
#include <utility>
#include <variant>

#include "core/check.h"
#include "worker/protocol.h"

namespace mc::timing {
namespace {

using execute::Death;
using execute::JudgePlan;
using execute::Refusal;
using worker::FakeTime;
using worker::Hangs;
using worker::Later;
using worker::Reaction;
using Records = std::vector<Record>;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr size_t kPageBytes = 4096;
enum Word { kGate, kReady, kDone, kTraced, kLaunches, kOwnLaunches };  // As in device/gate.cc.

// One after the other; the last one stays.
class Values {
 public:
  explicit Values(std::vector<double> values) : values_(std::move(values)) {}
  double next() { return values_[std::min(num_++, values_.size() - 1)]; }

 private:
  std::vector<double> values_;
  size_t num_ = 0;
};

struct JudgeActor {
  JudgeBehavior behavior;
  FakeTime time;
  std::shared_ptr<Records> records;
  Values free_bytes{behavior.free_bytes};
  Values fill_gbs{behavior.fill_gbs};
  uint32_t copies = 0;
  int64_t late = 0;  // Of the last copies.

  void note(Record record) const {
    record.who = "judge";
    records->push_back(std::move(record));
  }
};

void play(FakeWorker& worker, std::shared_ptr<JudgeActor> actor) {
  const JudgeBehavior& behavior = actor->behavior;
  worker.on<worker::JudgeTimePlanQuestion>([=](const auto&, const Fd&) {
    actor->note({.what = "plan"});
    return worker::JudgeTimePlanAnswer{
        .inputs_bytes = static_cast<int64_t>(behavior.inputs_bytes),
        .outputs_bytes = static_cast<int64_t>(behavior.outputs_bytes),
        .operations = 1e6};
  });
  worker.on<worker::JudgeTimeRoomQuestion>([=](const auto&, const Fd&) {
    actor->note({.what = "room"});
    return worker::JudgeTimeRoomAnswer{static_cast<int64_t>(actor->free_bytes.next()),
                                       static_cast<int64_t>(behavior.total_bytes)};
  });
  worker.on<worker::JudgeTimeSpeedQuestion>([=](const auto&, const Fd&) {
    actor->note({.what = "speed"});
    return worker::JudgeTimeSpeedAnswer{3000, 50, 700, 2000};
  });
  worker.on<worker::JudgeTimeFillQuestion>([=](const auto& asked, const Fd&) {
    actor->note({.what = "fill", .nbytes = asked.bytes});
    const double seconds = static_cast<double>(asked.bytes) / (actor->fill_gbs.next() * 1e9);
    return worker::JudgeTimeFillAnswer{asked.bytes, seconds};
  });
  worker.on<worker::JudgeTimeInputsQuestion>([=](const auto& asked, const Fd&) {
    actor->note({.what = "inputs", .process = asked.process, .calls = asked.calls});
    return worker::JudgeTimeInputsAnswer{{}, 512, 512 * asked.calls, false};
  });
  worker.on<worker::JudgeTimeArenaQuestion>([=](const auto& asked, const Fd&) {
    actor->note({.what = "arena", .process = asked.process, .nbytes = asked.nbytes});
    return worker::JudgeTimeArenaAnswer{asked.nbytes};
  });
  worker.on<worker::JudgeTimeGenerateInputsQuestion>([=](const auto& asked, const Fd&) {
    actor->note({.what = "generate_inputs", .number = asked.number, .calls = asked.calls});
    return worker::JudgeTimeGenerateInputsAnswer();
  });
  worker.on<worker::JudgeTimePublishInputsQuestion>([=](const auto& asked, const Fd&) {
    actor->note({.what = "publish_inputs", .process = asked.process, .calls = asked.calls});
    return worker::JudgeTimePublishInputsAnswer();
  });
  worker.on<worker::JudgeTimeReplaceInputsQuestion>([=](const auto& asked, const Fd&) {
    actor->note({.what = "replace_inputs", .process = asked.process, .picks = asked.calls});
    actor->time.pass(Microseconds(behavior.replace_us));
    return worker::JudgeTimeReplaceInputsAnswer();
  });
  worker.on<worker::JudgeTimeSnapshotOutputsQuestion>([=](const auto& asked, const Fd&) {
    Record record{.what = "snapshot_outputs", .process = asked.process};
    for (const worker::Pick& pick : asked.picks) {
      record.picks.push_back(pick.call);
      record.late += pick.late ? 1 : 0;
    }
    actor->late = record.late;
    actor->copies += asked.process == "candidate" ? 1 : 0;
    actor->note(std::move(record));
    actor->time.pass(Microseconds(behavior.copy_us));
    return worker::JudgeTimeSnapshotOutputsAnswer();
  });
  worker.on<worker::JudgeTimeVerifyQuestion>([=](const auto& asked, const Fd&) {
    actor->note({.what = "verify", .process = asked.process});
    const std::string problem = behavior.wrong.has(actor->copies) ? "as the behavior says" : "";
    return worker::JudgeTimeVerifyAnswer{problem, actor->late, behavior.ignored ? actor->late : 0};
  });
  worker.on<worker::JudgeTimeCloseQuestion>([=](const auto&, const Fd&) {
    actor->note({.what = "close"});
    return worker::JudgeTimeCloseAnswer();
  });
}

class ProcessActor {
 public:
  ProcessActor(std::string name, ProcessBehavior behavior, FakeTime time, FakeWorker other,
               std::shared_ptr<Records> records)
      : name_(std::move(name)),
        script_(std::move(behavior)),
        time_(std::move(time)),
        other_(std::move(other)),
        records_(std::move(records)) {}
  ProcessActor(const ProcessActor&) = delete;
  ~ProcessActor() { unmap(); }

  Reaction attach_gate(const Fd& region) {
    if (auto end = meet_ending("attach")) return *end;
    unmap();
    void* page = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, region.get(), 0);
    MC_CHECK(page != MAP_FAILED);
    words_ = static_cast<uint32_t*>(page);
    number_ = 0;
    return worker::ContestantTimeGateAnswer().to_json();
  }

  // What is enqueued runs once the gate is open, whether or not it came to its end by then.
  Reaction enqueue(const worker::ContestantTimeEnqueueQuestion& asked) {
    if (number_ != asked.number) begin(asked);
    if (auto end = meet_ending("enqueue")) return *end;
    worker::ContestantTimeEnqueueAnswer answer;
    if (!is_enqueued_) return answer.to_json();
    is_traced_ = word(kTraced) == number_;
    if (blocks() && !run()) return Later();
    answer.outputs = outputs();
    return answer.to_json();
  }

  Reaction finish() {
    if (auto end = meet_ending("finish")) return *end;
    is_traced_ = word(kTraced) == number_;
    if (word(kReady) != number_) is_early_ = word(kGate) >= number_;
    word(kReady) = number_;
    if (!has_run_ && !run()) return Later();
    const int64_t launches = script_.idle.has(number_) ? calls_ - 1 : calls_ * script_.launches;
    word(kLaunches) = word(kOwnLaunches) = static_cast<uint32_t>(launches);
    word(kDone) = number_;
    worker::ContestantTimeFinishAnswer answer{.events_us = script_.share_claimed * batch_us()};
    if (is_traced_) {
      answer.kernels = {kernel()};
      answer.busy_us = answer.kernels->front().us;
    }
    if (!is_enqueued_) answer.outputs = outputs();
    return answer.to_json();
  }

 private:
  void unmap() {
    if (words_ != nullptr) ::munmap(std::exchange(words_, nullptr), kPageBytes);
  }
  std::atomic_ref<uint32_t> word(Word word) const { return std::atomic_ref(words_[word]); }

  std::optional<Reaction> meet_ending(const std::string& at) const {
    const Ending& ending = script_.ending;
    if (number_ != ending.number || at != ending.at) return std::nullopt;
    switch (ending.kind) {
      case Ending::Kind::kNone:
        return std::nullopt;
      case Ending::Kind::kDies:
        return Death{0, Ending::kExitCode};
      case Ending::Kind::kHangs:
        return Hangs();
      case Ending::Kind::kRefuses:
        return Refusal{"exception", "forward", {"ScriptError", "as the behavior says", {}, {}}};
    }
    return std::nullopt;
  }

  void begin(const worker::ContestantTimeEnqueueQuestion& asked) {
    number_ = static_cast<uint32_t>(asked.number);
    calls_ = asked.calls;
    is_enqueued_ = asked.enqueued;
    is_early_ = has_run_ = false;
    if (is_enqueued_) time_.pass(calls_ * Microseconds(script_.enqueue_us));
  }

  bool blocks() const { return script_.blocks.has(number_) || calls_ > script_.calls_queued_max; }

  // Whether it could: once the gate is open.
  bool run() {
    if (word(kGate) < number_) return false;
    if (std::exchange(has_run_, true)) return true;
    records_->push_back({.who = name_,
                         .what = "run",
                         .number = number_,
                         .calls = calls_,
                         .enqueued = is_enqueued_,
                         .traced = is_traced_,
                         .early = is_early_,
                         .beside = other_.rests()});
    time_.pass(Microseconds(batch_us()));
    return true;
  }

  double batch_us() const {
    const double slow_us = script_.slow.has(number_) ? script_.slow_call_us : 0;
    return static_cast<double>(calls_) * (script_.call_us + slow_us);
  }

  // Where they lie means nothing to the judge of these tests.
  worker::BatchOutputs outputs() const {
    const int64_t told = calls_ + (script_.odd.has(number_) ? script_.odd_calls : 0);
    return {{"[]"}, std::vector<worker::Tree>(static_cast<size_t>(told))};
  }

  worker::Kernel kernel() const {
    const int64_t launches = calls_ * script_.launches;
    const double each_us = script_.call_us / script_.launches * script_.share_traced;
    return {.name = script_.kernel,
            .owner = script_.owner,
            .stream = 7,
            .launches = launches,
            .us = static_cast<double>(launches) * each_us,
            .early = script_.begins_early ? launches : 0,
            .grid = {1, 1, 1},
            .block = {32, 1, 1},
            .registers = 16};
  }

  // Constant after construction.
  std::string name_;
  ProcessBehavior script_;
  FakeTime time_;
  FakeWorker other_;
  std::shared_ptr<Records> records_;

  uint32_t* words_ = nullptr;
  // The batch on its way.
  uint32_t number_ = 0;
  int64_t calls_ = 0;
  bool is_enqueued_ = false;
  bool is_traced_ = false;
  bool is_early_ = false;
  bool has_run_ = false;
};

void play(FakeWorker& worker, const std::string& name, std::shared_ptr<ProcessActor> actor,
          std::shared_ptr<Records> records) {
  worker.on<worker::ContestantTimeGateQuestion>(
      [=](const auto&, const Fd& region) { return actor->attach_gate(region); });
  worker.say<worker::ContestantTimeInputsQuestion>({});
  worker.say<worker::ContestantTimeArenaQuestion>({});
  worker.on<worker::ContestantTimeEnqueueQuestion>([=](const auto& asked, const Fd&) {
    const Reaction reaction = actor->enqueue(asked);
    if (!std::holds_alternative<Later>(reaction)) {
      records->push_back({.who = name, .what = "enqueue", .number = asked.number});
    }
    return reaction;
  });
  worker.on<worker::ContestantTimeFinishQuestion>(
      [=](const auto&, const Fd&) { return actor->finish(); });
}

Judge judge_of(const FakeWorker& worker) {
  JudgePlan plan;
  plan.shapes.push_back({"native", {}, {}});
  return Judge(worker.session(), std::move(plan));
}

}  // namespace

Simulation::Simulation(const Behaviors& behaviors)
    : judge_(judge_of(judges_)),
      candidate_(candidates_.session()),
      baseline_(baselines_.session()) {
  const auto process = [&](const std::string& name, const ProcessBehavior& behavior,
                           FakeWorker& self, const FakeWorker& other) {
    play(self, name, std::make_shared<ProcessActor>(name, behavior, time_, other, records_),
         records_);
  };
  play(judges_, std::make_shared<JudgeActor>(JudgeActor{behaviors.judge, time_, records_}));
  process("candidate", behaviors.candidate, candidates_, baselines_);
  process("baseline", behaviors.baseline, baselines_, candidates_);
  process("compiled", behaviors.compiled, compiled_, baselines_);
}

std::vector<Record> Simulation::records(std::string_view who, std::string_view what) const {
  std::vector<Record> found = *records_;
  std::erase_if(found,
                [&](const Record& record) { return record.who != who || record.what != what; });
  return found;
}

}  // namespace mc::timing
