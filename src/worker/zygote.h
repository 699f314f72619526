// SPDX-License-Identifier: Apache-2.0
//
// Zygote: a Python process that has imported torch, and forks a clean, sandboxed child for each
// role.  It is started once; a child costs milliseconds instead of seconds.  A zygote that dies, or
// responds late, is replaced.  Thread-safe.
//
// A fork inherits the memory of its zygote, so there are two zygotes: processes that run candidate
// code are forked from one that contains nothing of the judge.
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
// kTrusted: inspector, judge, baseline, device.  kCandidates, which run candidate code: recorder,
// candidate process.
enum class Roles { kTrusted, kCandidates };
Roles kind_of(Role role);

struct ZygoteOptions {
  Roles roles = Roles::kTrusted;
  std::filesystem::path python;
  std::filesystem::path harness;      // Directory of the Python modules.
  std::filesystem::path sandbox_lib;  // libmc_sandbox.so
  // The folder in which the zygote reads and writes Python's bytecode; empty: beside the sources,
  // and none is written.  Its children write none.
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
  // Read-only paths below /tmp that trusted roles need; other roles see the paths that their zygote
  // names.
  std::vector<std::string> visible;
  std::vector<std::string> devices;  // Device nodes, for roles that compute on a device.
  // Variables, "NAME=value", for roles that compute on a device, beside the zygote's: the visible
  // device.
  std::vector<std::string> environment;
  // Packages that the zygote imports before it forks this child, for it and all later ones:
  // "triton".
  std::vector<std::string> imports;
  bool runs_programs = false;  // May start processes: the compilers of torch.compile.
  bool weak_sandbox = false;   // Continue where a protection is missing.
  // A candidate process's channel to its device process; -1: it uses the device itself.
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
  // Starts both with one import of torch: the first process imports torch and forks the candidates'
  // zygote before it imports modules of the judge.  A zygote that is lost later is replaced
  // individually.  With different environments each zygote imports torch itself.  REQUIRES: they
  // have the same Python.
  static Result<ZygotePair> start_pair(const ZygoteOptions& trusted,
                                       const ZygoteOptions& candidates);
  Status await_start();
  ~Zygote();

  // A child that has entered its sandbox and created its role: on a CUDA device, a judge or
  // candidate process has its context.  kUnavailable where this failed; the message names the
  // protection that this machine lacks.  Where the zygote is lost in the attempt, a new one tries
  // once more.  REQUIRES: the role is of the zygote's kind.
  Result<Session> spawn(Role role, const ChildLimits& limits);

  std::string pytorch_version() const;
  pid_t pid() const;  // The pid of the current zygote process; for tests.

  // Sorted names of the protections that any child so far lacks.  Each child reports its own before
  // it receives any part of a task or a candidate.
  std::vector<std::string> protections_off() const;

 private:
  struct State;
  explicit Zygote(std::unique_ptr<State> state);
  Result<Session> spawn_once(Role role, const ChildLimits& limits);
  std::unique_ptr<State> state_;
};

// Spawns children: from the two zygotes, which outlive it, or with a test's fake.
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
