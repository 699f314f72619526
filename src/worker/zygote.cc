// SPDX-License-Identifier: Apache-2.0
#include "worker/zygote.h"

#include <algorithm>
#include <chrono>
#include <iterator>
#include <mutex>
#include <optional>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <poll.h>
#include <signal.h>
#include <sys/wait.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/log.h"
#include "core/process.h"
#include "worker/session_impl.h"

namespace mc::worker {
namespace {

using Json = nlohmann::json;

// Includes the import of torch from a cold disk.
constexpr auto kStartLimit = std::chrono::seconds(120);
constexpr auto kRoleLimit = std::chrono::seconds(30);
constexpr size_t kErrorTailBytes = 4 << 10;

const char* name_of(Role role) {
  // The names in the order of the enumerators.
  constexpr const char* kNames[] = {"inspector", "judge",    "baseline",
                                    "device",    "recorder", "candidate"};
  const auto index = static_cast<size_t>(role);
  MC_CHECK(index < std::size(kNames));
  return kNames[index];
}

// Waits on a socket until a deadline.
Channel::Wait wait_until(TimePoint deadline) {
  return [deadline](int fd, short events) -> Status {
    const auto left = std::chrono::duration_cast<std::chrono::milliseconds>(
        deadline - std::chrono::steady_clock::now());
    pollfd poller{fd, events, 0};
    if (left.count() > 0 && ::poll(&poller, 1, static_cast<int>(left.count())) > 0) return ok();
    return Error{ErrorCode::kTimeout, "the PyTorch process does not answer"};
  };
}

constexpr uint64_t kFilesMaxWithDevices = 1024;  // The CUDA driver opens about fifty.
// The bound on this user's descriptors in flight in sockets, when a trusted role sends one:
// candidates' descriptors there must not block a judge.
constexpr uint64_t kFilesMaxOfTrusted = 1 << 16;

// The address space of a device in software and its shadow memory, most of which is never touched.
constexpr uint64_t kReservedByDevice = uint64_t{12} << 40;

bool has_device(Role role, const ChildLimits& limits) {
  return role != Role::kInspector && role != Role::kRecorder &&
         (role != Role::kCandidate || limits.device_channel < 0);
}

// `files` are the only files that a process with candidate code sees; `artifacts` is the mount of
// its compiled libraries.
sandbox::Profile profile_for(Role role, const ChildLimits& limits,
                             const std::vector<std::string>& files, const std::string& artifacts) {
  sandbox::Profile profile;
  if (!limits.devices.empty() && has_device(role, limits)) {
    profile.devices = limits.devices;
    profile.limits.files_max = kFilesMaxWithDevices;
  }
  if (kind_of(role) == Roles::kTrusted) profile.limits.files_max = kFilesMaxOfTrusted;
  profile.limits.cpu = std::chrono::seconds(static_cast<int64_t>(limits.cpu_s));
  profile.limits.memory_bytes = static_cast<uint64_t>(limits.memory_bytes);
  if (role == Role::kDevice) profile.limits.reserved_bytes = kReservedByDevice;
  profile.limits.tmp_bytes = static_cast<uint64_t>(limits.tmp_bytes);
  profile.limits.threads_max = static_cast<uint64_t>(limits.threads_max);
  profile.only_visible = kind_of(role) == Roles::kCandidates;
  profile.visible = profile.only_visible ? files : limits.visible;
  profile.artifacts = artifacts;
  profile.allow_exec = limits.runs_programs;
  // A judge diagnoses wrong outputs in a fork, which may crash (python/harness/judge/forked.py).
  profile.allow_fork = limits.runs_programs || role == Role::kJudge;
  return limits.weak_sandbox ? sandbox::lenient(std::move(profile)) : profile;
}

std::string bytecode_argument(const ZygoteOptions& options) {
  return "pycache_prefix" + (options.bytecode.empty() ? "" : "=" + options.bytecode.string());
}

std::vector<std::string> arguments_for(const ZygoteOptions& options, int channel) {
  const bool is_trusted = options.roles == Roles::kTrusted;
  std::vector<std::string> argv = {options.python.string(),
                                   "-P",
                                   "-X",
                                   bytecode_argument(options),
                                   (options.harness / "worker/zygote.py").string(),
                                   "--roles",
                                   is_trusted ? "judge" : "candidate",
                                   "--channel",
                                   std::to_string(channel),
                                   "--sandbox-lib",
                                   options.sandbox_lib.string()};
  std::ranges::copy(options.arguments, std::back_inserter(argv));
  return argv;
}

// The argument of --twin, for the zygote that the started one forks: its descriptors, and its
// command line without Python's part.
std::string sibling_argument(const ZygoteOptions& options, const std::vector<int>& fds) {
  std::vector<std::string> argv = arguments_for(options, fds[0]);
  const auto script = std::ranges::find(argv, (options.harness / "worker/zygote.py").string());
  argv.erase(argv.begin(), script + 1);
  return Json::array({fds[0], fds[1], argv}).dump();
}

// A fixed environment: no variable of the supervisor reaches a candidate.
std::vector<std::string> environment(const ZygoteOptions& options) {
  std::vector<std::string> variables = {
      "PATH=/usr/local/bin:/usr/bin:/bin", "HOME=/tmp", "TMPDIR=/tmp", "LC_ALL=C.UTF-8",
      "PYTHONHASHSEED=0", "PYTHONUNBUFFERED=1",
      // The caches of torch.compile, for baselines.
      "TORCHINDUCTOR_CACHE_DIR=/tmp/inductor", "TRITON_CACHE_DIR=/tmp/triton",
      "TORCHINDUCTOR_COMPILE_THREADS=1", "USER=musacoder"};
  if (options.bytecode.empty()) variables.push_back("PYTHONDONTWRITEBYTECODE=1");
  std::ranges::copy(options.environment, std::back_inserter(variables));
  return variables;
}

// The protections that a new child lacks.  It has run only our code so far, and responds after its
// role was created.
Result<std::vector<std::string>> request_protections(Session& session) {
  const CallResult response = session.call(R"({"op": "protections"})", nullptr, kRoleLimit);
  if (const auto* reply = std::get_if<Reply>(&response)) return decode_protections(reply->json);
  return Error{ErrorCode::kUnavailable,
               "the child does not get into its sandbox: " + session.output_tail()};
}

// A zygote process, which handles one request at a time.
struct Process {
  OutputTail output;
  Channel channel;
  // 0: a zygote that another one forks and whose pid is not known yet.  It ends when its channel
  // closes.
  pid_t pid;

  Process(OutputTail tail, Channel ours, pid_t process)
      : output(std::move(tail)), channel(std::move(ours)), pid(process) {}
  Process(const Process&) = delete;
  ~Process() {
    if (pid == 0) return;
    ::kill(pid, SIGKILL);
    ::waitpid(pid, nullptr, 0);
  }
};

}  // namespace

struct Zygote::State {
  // Constant after construction.
  ZygoteOptions options;

  mutable std::mutex mutex;  // One request at a time.
  // Guarded by mutex.
  std::unique_ptr<Process> process;  // Null where the process was lost.
  std::string pytorch_version;       // "" until the process has reported it.
  std::vector<std::string> files;

  mutable std::mutex protections_mutex;
  std::set<std::string> protections_off;  // Guarded by protections_mutex.

  // Starts the process.  With `sibling`, it also forks that zygote's process, once it has imported
  // torch.
  Status start(State* sibling = nullptr) {
    MC_CHECK(process == nullptr);
    MC_TRY_VOID(sandbox::become_reaper(), "PyTorch process");
    MC_TRY(auto pipe, OutputTail::create(kErrorTailBytes), "PyTorch process");
    MC_TRY(auto ends, Channel::create_pair(), "PyTorch process");
    const int output = pipe.second.get(), channel = ends.second.get();
    Program program{.argv = arguments_for(options, channel),
                    .descriptors = {{output, 1}, {output, 2}, {channel, channel}},
                    .has_input = false,
                    .environment = environment(options)};
    std::optional<std::pair<OutputTail, Fd>> its_pipe;
    std::optional<std::pair<Channel, Fd>> its_ends;
    if (sibling != nullptr) {
      MC_CHECK(sibling != this && sibling->process == nullptr);
      MC_TRY(its_pipe, OutputTail::create(kErrorTailBytes), "PyTorch process");
      MC_TRY(its_ends, Channel::create_pair(), "PyTorch process");
      const std::vector<int> fds = {its_ends->second.get(), its_pipe->second.get()};
      for (const int fd : fds) program.descriptors.emplace_back(fd, fd);
      program.argv.insert(program.argv.end(), {"--twin", sibling_argument(sibling->options, fds)});
    }
    MC_TRY(const pid_t pid, start_program(program), "PyTorch process");
    if (sibling != nullptr) {
      sibling->process =
          std::make_unique<Process>(std::move(its_pipe->first), std::move(its_ends->first), 0);
    }
    log_debug(fmt::format("PyTorch process {} of {}: started", pid,
                          options.roles == Roles::kTrusted ? "the trusted" : "candidates"));
    process = std::make_unique<Process>(std::move(pipe.first), std::move(ends.first), pid);
    pytorch_version.clear();
    return ok();
  }

  // REQUIRES: `mutex` is held, also for the functions below.
  Status await_start() {
    if (process == nullptr) MC_TRY_VOID(start(), "restart the PyTorch process");
    if (!pytorch_version.empty()) return ok();
    MC_TRY(const Json hello, call({{"op", "hello"}}, {}, kStartLimit), "start the PyTorch process");
    pytorch_version = hello.value("pytorch", "?");
    if (process->pid == 0) process->pid = hello.value("pid", 0);
    files = hello.value("files", files);
    return ok();
  }

  // Sends a request.  A zygote that does not respond in time is killed: its late response would be
  // taken for the response to the next request.
  Result<Json> call(const Json& request, const std::vector<int>& fds, std::chrono::seconds limit) {
    MC_CHECK(process != nullptr);
    const auto wait = wait_until(std::chrono::steady_clock::now() + limit);
    const Status sent = process->channel.send(request.dump(), fds, wait);
    auto message = sent ? process->channel.receive(wait) : Result<Message>(sent.error());
    if (!message) {
      const Error error =
          with_context(message.error(), "PyTorch process: " + process->output.text());
      log_debug(error.message);
      process.reset();
      return error;
    }
    Json response = Json::parse(message->json, nullptr, false);
    if (is_ok(message->json)) return response;
    const auto refusal = decode_refusal(message->json);
    return Error{
        ErrorCode::kUnavailable,
        "the PyTorch process refused: " + (refusal ? refusal->exception.message : message->json)};
  }
};

Zygote::Zygote(std::unique_ptr<State> state) : state_(std::move(state)) {}
Zygote::~Zygote() = default;

Roles kind_of(Role role) {
  const bool runs_candidates = role == Role::kRecorder || role == Role::kCandidate;
  return runs_candidates ? Roles::kCandidates : Roles::kTrusted;
}

std::string Zygote::pytorch_version() const {
  const std::lock_guard lock(state_->mutex);
  return state_->pytorch_version;
}

pid_t Zygote::pid() const {
  const std::lock_guard lock(state_->mutex);
  return state_->process == nullptr ? 0 : state_->process->pid;
}

std::vector<std::string> Zygote::protections_off() const {
  const std::lock_guard lock(state_->protections_mutex);
  return {state_->protections_off.begin(), state_->protections_off.end()};
}

Result<std::unique_ptr<Zygote>> Zygote::start(const ZygoteOptions& options) {
  auto state = std::make_unique<State>();
  state->options = options;
  MC_TRY_VOID(state->start(), "PyTorch process");
  return std::unique_ptr<Zygote>(new Zygote(std::move(state)));
}

Result<ZygotePair> Zygote::start_pair(const ZygoteOptions& trusted,
                                      const ZygoteOptions& candidates) {
  MC_CHECK(trusted.python == candidates.python);
  MC_CHECK(trusted.roles == Roles::kTrusted && candidates.roles == Roles::kCandidates);
  // Different environments may load different libraries.
  if (trusted.environment != candidates.environment) {
    MC_TRY(auto judges, start(trusted), "PyTorch process");
    MC_TRY(auto others, start(candidates), "PyTorch process");
    return ZygotePair{std::move(judges), std::move(others)};
  }
  auto first = std::make_unique<State>();
  auto second = std::make_unique<State>();
  first->options = trusted;
  second->options = candidates;
  MC_TRY_VOID(first->start(second.get()), "PyTorch process");
  return ZygotePair{std::unique_ptr<Zygote>(new Zygote(std::move(first))),
                    std::unique_ptr<Zygote>(new Zygote(std::move(second)))};
}

Status Zygote::await_start() {
  const std::lock_guard lock(state_->mutex);
  return state_->await_start();
}

Result<Session> Zygote::spawn(Role role, const ChildLimits& limits) {
  MC_CHECK(kind_of(role) == state_->options.roles);
  auto session = spawn_once(role, limits);
  const bool is_lost = !session && pid() == 0;
  return is_lost ? spawn_once(role, limits) : std::move(session);
}

Result<Session> Zygote::spawn_once(Role role, const ChildLimits& limits) {
  MC_CHECK(limits.memory_bytes > 0 && limits.threads_max > 0);
  MC_TRY(auto output, OutputTail::create(kOutputTailBytes), "spawn");
  MC_TRY(auto ends, Channel::create_pair(), "spawn");
  MC_CHECK(limits.device_channel < 0 || role == Role::kCandidate);
  std::optional<ArtifactMount> artifacts;
  if (role == Role::kCandidate) {
    MC_TRY(artifacts, ArtifactMount::create(), "spawn");
  }
  sandbox::Profile profile;
  Json response;
  {
    const std::lock_guard lock(state_->mutex);
    MC_TRY_VOID(state_->await_start(), "spawn");
    profile = profile_for(role, limits, state_->files, artifacts ? artifacts->path() : "");
    const Json request{
        {"op", "spawn"},
        {"role", name_of(role)},
        {"imports", limits.imports},
        {"environment", has_device(role, limits) ? limits.environment : std::vector<std::string>()},
        {"sandbox", Json::parse(sandbox::to_json(profile))}};
    std::vector<int> given = {ends.second.get(), output.second.get()};
    if (limits.device_channel >= 0) given.push_back(limits.device_channel);
    MC_TRY(response, state_->call(request, given, state_->options.spawn_limit),
           std::string("start the ") + name_of(role));
  }
  ends.second.reset();
  output.second.reset();
  MC_TRY(sandbox::Child child, sandbox::Child::adopt(response.at("pid").get<pid_t>(), profile),
         "adopt");
  auto impl = std::unique_ptr<Session::Impl>(
      new Session::Impl{std::move(output.first), std::move(ends.first), handle_of(std::move(child)),
                        std::move(artifacts)});
  bool& sees_mount = impl->sees_mount;
  impl->name = fmt::format("{} {}", name_of(role), response.at("pid").get<pid_t>());
  log_debug(fmt::format("{}: started", impl->name));
  Session session(std::move(impl));
  MC_TRY(const auto missing, request_protections(session),
         std::string("start the ") + name_of(role));
  sees_mount = std::ranges::none_of(missing, [](const std::string& protection) {
    return protection == "mount_namespace" || protection == "hidden_paths";
  });
  const std::lock_guard lock(state_->protections_mutex);
  state_->protections_off.insert(missing.begin(), missing.end());
  return session;
}

}  // namespace mc::worker
