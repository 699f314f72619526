// SPDX-License-Identifier: Apache-2.0
//
// Zygote: a Python process that has imported torch, and forks a clean,
// sandboxed child for each role.  Started once; a child costs milliseconds instead of seconds.
// One that dies, or answers late, is replaced.  Thread-safe.
//
// A fork has all that its zygote has, so there are two: those who run candidate code come from one
// that has nothing of the judge's.
//
//   MC_TRY(auto zygotes, Zygote::start_pair(options, others), "zygotes");  // One import of torch.
//   MC_TRY_VOID(zygotes.trusted->await_start(), "zygotes");
#ifndef MC_WORKER_ZYGOTE_H_
#define MC_WORKER_ZYGOTE_H_

#include <sys/types.h>

#include <chrono>
#include <filesystem>
#include <functional>
#include <memory>
#include <string>
#include <utility>
#include <vector>

#include "core/result.h"
#include "task/task.h"
#include "worker/session.h"

namespace mc::worker {

enum class Role { kInspector, kJudge, kBaseline, kDevice, kRecorder, kCandidate };
// Trusted: inspector, judge, baseline, device.  Those who run candidate code: recorder, candidate
// process.
enum class Roles { kTrusted, kCandidates };
Roles kind_of(Role role);

struct ZygoteOptions {
  Roles roles = Roles::kTrusted;
  std::filesystem::path python;
  std::filesystem::path harness;      // Directory of the Python modules.
  std::filesystem::path sandbox_lib;  // libmc_sandbox.so
  // Folder in which the zygote finds and keeps Python's bytecode; empty: beside the sources, where
  // none is written.  Its children write none.
  std::filesystem::path bytecode{};
  // Additions of the backend to the command line, and to the environment.
  std::vector<std::string> arguments{};
  std::vector<std::string> environment{};
  std::chrono::seconds spawn_limit{30};  // A fork takes milliseconds.
};

struct ChildLimits {
  int64_t memory_bytes = int64_t{4} << 30;
  int64_t tmp_bytes = int64_t{256} << 20;
  double cpu_s = 600;
  int threads_max = 64;
  // Read-only paths below /tmp that trusted roles need; others see what their zygote names.
  std::vector<std::string> visible;
  std::vector<std::string> devices;  // Device nodes, for those who compute on a device.
  // Variables, "NAME=value", that these have besides the zygote's: which device they see.
  std::vector<std::string> environment;
  // Packages that the zygote imports before it makes this child, for it and for all that follow:
  // "triton".
  std::vector<std::string> imports;
  bool runs_programs = false;  // May start processes: torch.compile's compilers.
  bool weak_sandbox = false;   // Go on where a protection cannot be had.
  // A candidate process's channel to the process that holds its device; -1: it has the device
  // itself.
  int device_channel = -1;
};

class Zygote;

struct ZygotePair {
  std::unique_ptr<Zygote> trusted;
  std::unique_ptr<Zygote> candidates;
};

class Zygote {
 public:
  // Does not wait for the imports.
  static Result<std::unique_ptr<Zygote>> start(const ZygoteOptions& options);
  // Both, by a process that imports torch and then makes the candidates' zygote of itself before it
  // imports what is the judge's.  One that is lost later is replaced by itself.
  // With different environments each imports torch by itself.  REQUIRES: they have the same Python.
  static Result<ZygotePair> start_pair(const ZygoteOptions& trusted,
                                       const ZygoteOptions& candidates);
  Status await_start();
  ~Zygote();

  // A child that has entered its sandbox and made its role: on a CUDA device, a judge or candidate
  // process has its context.  kUnavailable where it could not; the message names the protection
  // that this machine cannot give.  Where the zygote is lost over it, a new one is asked once more.
  // REQUIRES: the role is of the zygote's kind.
  Result<Session> spawn(Role role, const ChildLimits& limits);

  std::string pytorch_version() const;
  pid_t pid() const;  // The pid of the process that forks now; for tests.

  // Names of the protections that a child spawned so far goes without, sorted.  Each child told its
  // own before it was given anything of a task or a candidate.
  std::vector<std::string> protections_off() const;

 private:
  struct State;
  explicit Zygote(std::unique_ptr<State> state);
  Result<Session> spawn_once(Role role, const ChildLimits& limits);
  std::unique_ptr<State> state_;
};

// Makers of children: the two zygotes, which outlive it, or a test's fake.
struct Zygotes {
  using Spawn = std::function<Result<Session>(Role role, const ChildLimits& limits)>;
  Zygotes(Zygote& trusted, Zygote& candidates)
      : spawn([&trusted, &candidates](Role role, const ChildLimits& limits) {
          return (kind_of(role) == Roles::kTrusted ? trusted : candidates).spawn(role, limits);
        }) {}
  explicit Zygotes(Spawn maker) : spawn(std::move(maker)) {}

  Spawn spawn;
};

}  // namespace mc::worker

#endif  // MC_WORKER_ZYGOTE_H_
