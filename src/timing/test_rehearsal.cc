// SPDX-License-Identifier: Apache-2.0
#include "timing/test_rehearsal.h"

#include <fcntl.h>
#include <sys/mman.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/types.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <functional>
#include <memory>
#include <optional>
#include <ratio>
#include <sstream>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <nlohmann/json.hpp>

#include "worker/session_impl.h"

namespace mc::timing {
namespace {

using worker::Channel;
using worker::kOutputTailBytes;
using worker::OutputTail;
using worker::ReportSocket;
using execute::JudgePlan;

using Json = nlohmann::json;
using Microseconds = std::chrono::duration<double, std::micro>;

constexpr size_t kPageBytes = 4096;
enum Word { kGate, kReady, kDone, kTraced, kLaunches, kOwnLaunches };  // As in device/gate.cc.

struct Question {
  Json body;
  Fd region;
};

struct Reaction {
  Json body = Json::object();
  Fd region = {};
};

// The child's end of a channel.
class Wire {
 public:
  explicit Wire(int fd) : fd_(fd) {}

  // Nothing once the supervisor is gone.
  std::optional<Question> receive() const {
    Question question;
    uint32_t length = 0;
    if (!receive_bytes(&length, sizeof length, question.region)) return std::nullopt;
    std::string text(length, '\0');
    if (!receive_bytes(text.data(), length, question.region)) return std::nullopt;
    question.body = Json::parse(text);
    return question;
  }

  void send(const Reaction& reaction) const {
    const std::string text = reaction.body.dump();
    const auto length = static_cast<uint32_t>(text.size());
    std::string frame(sizeof length, '\0');
    std::memcpy(frame.data(), &length, sizeof length);
    frame += text;
    Parcel parcel(frame.data(), frame.size());
    if (reaction.region.is_open()) parcel.hold(reaction.region.get());
    ::sendmsg(fd_, &parcel.message, MSG_NOSIGNAL);  // All of it, since the socket blocks.
  }

 private:
  // Bytes, and at most one descriptor.
  struct Parcel {
    Parcel(void* data, size_t size) : part{data, size} {
      message.msg_iov = &part;
      message.msg_iovlen = 1;
      message.msg_control = control.data();
      message.msg_controllen = 0;
    }
    Parcel(const Parcel&) = delete;
    Parcel& operator=(const Parcel&) = delete;
    void hold(int fd) {
      message.msg_controllen = control.size();
      cmsghdr* header = CMSG_FIRSTHDR(&message);
      header->cmsg_level = SOL_SOCKET;
      header->cmsg_type = SCM_RIGHTS;
      header->cmsg_len = CMSG_LEN(sizeof fd);
      std::memcpy(CMSG_DATA(header), &fd, sizeof fd);
    }
    alignas(cmsghdr) std::array<char, CMSG_SPACE(sizeof(int))> control{};
    iovec part;
    msghdr message{};
  };

  bool receive_bytes(void* data, size_t size, Fd& region) const {
    Parcel parcel(data, size);
    parcel.message.msg_controllen = parcel.control.size();
    const ssize_t received = ::recvmsg(fd_, &parcel.message, MSG_WAITALL | MSG_CMSG_CLOEXEC);
    if (const cmsghdr* header = CMSG_FIRSTHDR(&parcel.message); header != nullptr) {
      int fd = -1;
      std::memcpy(&fd, CMSG_DATA(header), sizeof fd);
      region = Fd(fd);
    }
    return received == static_cast<ssize_t>(size);
  }

  int fd_;
};

// Appends scenes to what all processes share.
class Log {
 public:
  Log(int fd, std::string who) : fd_(fd), who_(std::move(who)) {}
  void note(Json scene) const {
    scene["who"] = who_;
    const std::string line = scene.dump() + "\n";
    if (::write(fd_, line.data(), line.size()) < 0) ::_exit(EXIT_FAILURE);
  }

 private:
  int fd_;
  std::string who_;
};

using React = std::function<Reaction(Question&)>;

void serve(const Wire& wire, const Log& log, const React& react) {
  while (std::optional<Question> question = wire.receive()) {
    log.note(question->body);
    Reaction reaction = react(*question);
    if (!reaction.body.contains("ok")) reaction.body["ok"] = true;
    wire.send(reaction);
  }
}

class JudgeActor {
 public:
  explicit JudgeActor(JudgeScript script) : script_(std::move(script)) {}

  Reaction react(const Question& question) {
    const Json& asked = question.body;
    const auto what = asked.at("do").get<std::string>();
    if (what == "plan") return {plan()};
    if (what == "room") {
      return {{{"free_bytes", free_bytes()}, {"total_bytes", script_.total_bytes}}};
    }
    if (what == "speed") return {speed()};
    if (what == "fill") return {fill(asked.at("bytes").get<double>())};
    if (what == "inputs") return {{{"inputs", Json::object()}, {"stride", 512}}, memory()};
    if (what == "arena") return {{{"nbytes", asked.at("nbytes")}}, memory()};
    if (what == "snapshot_outputs") {
      std::this_thread::sleep_for(Microseconds(script_.copy_us));
      late_ = 0;
      for (const Json& pick : asked.at("picks")) late_ += pick.at("late").get<bool>() ? 1 : 0;
      if (asked.at("process") == "candidate") ++copies_;
    }
    if (what == "replace_inputs") std::this_thread::sleep_for(Microseconds(script_.replace_us));
    if (what == "verify") return {verdict()};
    return {};
  }

 private:
  Json plan() const {
    return {{"inputs_bytes", script_.inputs_bytes},
            {"outputs_bytes", script_.outputs_bytes},
            {"operations", 1e6},
            {"is_half", false}};
  }

  double free_bytes() { return script_.free_bytes[std::min(rooms_++, last(script_.free_bytes))]; }

  static Json speed() {
    return {{"bandwidth_gbs", 3000}, {"fp32_tflops", 50}, {"half_tflops", 700}, {"fill_gbs", 2000}};
  }

  Json fill(double bytes) {
    const double gbs = script_.fill_gbs[std::min(fills_++, last(script_.fill_gbs))];
    return {{"bytes", bytes}, {"seconds", bytes / (gbs * 1e9)}};
  }

  static size_t last(const std::vector<double>& values) { return values.size() - 1; }

  // Nobody reads what would lie there.
  static Fd memory() { return Fd(::memfd_create("test-memory", MFD_CLOEXEC)); }

  Json verdict() const {
    const bool passed = !script_.wrong.has(copies_);
    return {{"passed", passed},
            {"problem", passed ? "" : "as the script says"},
            {"late", late_},
            {"ignored", script_.ignored ? late_ : 0}};
  }

  JudgeScript script_;
  size_t rooms_ = 0;
  size_t fills_ = 0;
  uint32_t copies_ = 0;
  int64_t late_ = 0;  // Of the last copies.
};

class ProcessActor {
 public:
  ProcessActor(ProcessScript script, Log log) : script_(std::move(script)), log_(std::move(log)) {}

  Reaction react(const Question& question) {
    const Json& asked = question.body;
    const auto what = asked.at("do").get<std::string>();
    if (what == "enqueue") begin(asked);
    if (number_ == script_.ending.number && what == script_.ending.at) {
      if (auto end = meet_ending()) return *std::move(end);
    }
    if (what == "attach" && asked.at("what") == "gate") attach_gate(question.region);
    if (what == "enqueue") return {enqueue()};
    if (what == "finish") return {finish()};
    return {};
  }

 private:
  void attach_gate(const Fd& region) {
    void* page = ::mmap(nullptr, kPageBytes, PROT_READ | PROT_WRITE, MAP_SHARED, region.get(), 0);
    if (page == MAP_FAILED) ::_exit(EXIT_FAILURE);
    words_ = static_cast<uint32_t*>(page);
  }
  std::atomic_ref<uint32_t> word(Word word) const { return std::atomic_ref(words_[word]); }

  std::optional<Reaction> meet_ending() const {
    switch (script_.ending.kind) {
      case Ending::Kind::kNone:
        break;
      case Ending::Kind::kDies:
        ::_exit(Ending::kExitCode);
      case Ending::Kind::kHangs:
        for (;;) ::pause();
      case Ending::Kind::kRefuses:
        const Json error{{"kind", "exception"},
                         {"stage", "forward"},
                         {"type", "ScriptError"},
                         {"message", "as the script says"}};
        return Reaction{{{"ok", false}, {"error", error}}};
    }
    return std::nullopt;
  }

  void begin(const Json& asked) {
    number_ = asked.at("number").get<uint32_t>();
    calls_ = asked.at("calls").get<int64_t>();
    is_enqueued_ = asked.at("enqueued").get<bool>();
    is_early_ = has_run_ = false;
  }

  bool blocks() const { return script_.blocks.has(number_) || calls_ > script_.calls_queued_max; }

  // What is enqueued runs once the gate is open, whether or not it came to its end by then.
  Json enqueue() {
    if (!is_enqueued_) return Json::object();
    is_traced_ = word(kTraced) == number_;
    std::this_thread::sleep_for(calls_ * Microseconds(script_.enqueue_us));
    if (blocks()) run();
    return {{"outputs", outputs()}};
  }

  Json finish() {
    if (!is_enqueued_) is_traced_ = word(kTraced) == number_;
    is_early_ = word(kGate) >= number_;
    word(kReady) = number_;
    if (!has_run_) run();
    const double launches = script_.idle.has(number_) ? calls_ - 1 : calls_ * script_.launches;
    word(kLaunches) = word(kOwnLaunches) = static_cast<uint32_t>(launches);
    word(kDone) = number_;
    Json answer{{"events_us", script_.share_claimed * batch_us()}};
    if (is_traced_) answer["kernels"] = kernels();
    if (is_traced_) answer["busy_us"] = answer["kernels"][0]["us"];
    if (!is_enqueued_) answer["outputs"] = outputs();
    return answer;
  }

  void run() {
    while (word(kGate) < number_) {
    }
    const auto start = std::chrono::steady_clock::now();
    log_.note({{"do", "run"},
               {"number", number_},
               {"calls", calls_},
               {"enqueued", is_enqueued_},
               {"traced", is_traced_},
               {"early", is_early_}});
    std::this_thread::sleep_until(start + Microseconds(batch_us()));
    has_run_ = true;
  }

  double batch_us() const {
    const double slow_us = script_.slow.has(number_) ? script_.slow_call_us : 0;
    return static_cast<double>(calls_) * (script_.call_us + slow_us);
  }

  // Where they lie means nothing to the judge of these tests.
  Json outputs() const {
    return {{"forms", Json::array()}, {"places", std::vector<int>(static_cast<size_t>(calls_))}};
  }

  Json kernels() const {
    const double each_us = script_.call_us / script_.launches * script_.share_traced;
    const int64_t launches = calls_ * script_.launches;
    return Json::array({{{"name", "kernel"},
                         {"owner", "owner.so"},
                         {"stream", 7},
                         {"launches", launches},
                         {"us", static_cast<double>(launches) * each_us},
                         {"early", script_.begins_early ? launches : 0},
                         {"late", 0},
                         {"grid", {1, 1, 1}},
                         {"block", {32, 1, 1}},
                         {"registers", 16},
                         {"shared_bytes", 0}}});
  }

  // Constant after construction.
  ProcessScript script_;
  Log log_;

  uint32_t* words_ = nullptr;  // Mapped until the process ends.
  // The batch on its way.
  uint32_t number_ = 0;
  int64_t calls_ = 0;
  bool is_enqueued_ = false;
  bool is_traced_ = false;
  bool is_early_ = false;
  bool has_run_ = false;
};

// `play` is called in the child, and serves until the supervisor is gone.
Result<Session> start(const Fd& log, const std::function<void(const Wire&)>& play) {
  MC_TRY(auto output, OutputTail::create(kOutputTailBytes), "rehearsal");
  MC_TRY(auto ends, Channel::create_pair(), "rehearsal");
  MC_TRY(auto report, ReportSocket::create(), "rehearsal");
  const int socket = ends.second.get();
  MC_TRY(sandbox::Child child,
         sandbox::Child::start(sandbox::lenient({}), std::array{socket, log.get()},
                               [&](const auto&) {
                                 ::prctl(PR_SET_TIMERSLACK, 1UL);  // Sleeps are no longer.
                                 play(Wire(socket));
                                 return 0;
                               }),
         "rehearsal");
  return Session(std::unique_ptr<Session::Impl>(new Session::Impl{
      std::move(output.first), std::move(report.first), std::move(ends.first), std::move(child)}));
}

Result<Session> start_judge(const Fd& fd, const JudgeScript& script) {
  return start(fd, [&](const Wire& wire) {
    JudgeActor actor(script);
    serve(wire, {fd.get(), "judge"}, [&](Question& question) { return actor.react(question); });
  });
}

[[noreturn]] void stir_for_ever(const Log& log) {
  for (;;) {
    log.note({{"do", "stir"}});
    std::this_thread::sleep_for(Microseconds(500));
  }
}

Result<Session> start_process(const Fd& fd, const std::string& name, const ProcessScript& script) {
  return start(fd, [&](const Wire& wire) {
    const Log log(fd.get(), name);
    ProcessActor actor(script, log);
    if (script.stirs) std::thread(stir_for_ever, std::cref(log)).detach();
    serve(wire, log, [&](Question& question) { return actor.react(question); });
  });
}

Scene scene_of(const Json& json) {
  Scene scene{json.at("who"), json.at("do"), json.value("process", "")};
  scene.number = json.value("number", int64_t{0});
  if (const Json calls = json.value("calls", Json()); calls.is_number()) scene.calls = calls;
  scene.nbytes = json.value("nbytes", json.value("bytes", int64_t{0}));
  for (const Json& pick : json.value("picks", Json::array())) {
    scene.picks.push_back(pick.at("call"));
    scene.late += pick.at("late").get<bool>() ? 1 : 0;
  }
  if (scene.what == "replace_inputs") scene.picks = json.at("calls").get<std::vector<int64_t>>();
  scene.enqueued = json.value("enqueued", false);
  scene.traced = json.value("traced", false);
  scene.early = json.value("early", false);
  return scene;
}

std::string text_of(const Fd& fd) {
  std::string text;
  std::array<char, kPageBytes> block{};
  for (;;) {
    const auto end = static_cast<off_t>(text.size());
    const ssize_t size = ::pread(fd.get(), block.data(), block.size(), end);
    if (size <= 0) return text;
    text.append(block.data(), static_cast<size_t>(size));
  }
}

}  // namespace

Result<Rehearsal> Rehearsal::create(const Scripts& scripts) {
  MC_TRY(Fd log, make_growing_memfd("test-log"), "rehearsal");
  if (::fcntl(log.get(), F_SETFL, O_APPEND) != 0) {
    return system_error(ErrorCode::kUnavailable, "append to a log");
  }
  MC_TRY(Session judge, start_judge(log, scripts.judge), "judge");
  MC_TRY(Session candidate, start_process(log, "candidate", scripts.candidate), "candidate");
  MC_TRY(Session baseline, start_process(log, "baseline", scripts.baseline), "baseline");
  JudgePlan plan;
  plan.shapes.push_back({"native", {}, {}});
  return Rehearsal(std::move(log), Judge(std::move(judge), std::move(plan)), std::move(candidate),
                   std::move(baseline));
}

std::vector<Scene> Rehearsal::scenes() const {
  std::vector<Scene> scenes;
  std::istringstream lines(text_of(log_));
  for (std::string line; std::getline(lines, line);) scenes.push_back(scene_of(Json::parse(line)));
  return scenes;
}

std::vector<Scene> Rehearsal::scenes(std::string_view who, std::string_view what) const {
  std::vector<Scene> found = scenes();
  std::erase_if(found, [&](const Scene& scene) { return scene.who != who || scene.what != what; });
  return found;
}

}  // namespace mc::timing
