// SPDX-License-Identifier: Apache-2.0
//
// Zygote: a Python process that has imported torch and loaded the emulator, and forks a clean,
// sandboxed child for each role.  Started once; a child costs milliseconds instead of seconds.
// Thread-safe.
#ifndef MC_EXECUTE_ZYGOTE_H_
#define MC_EXECUTE_ZYGOTE_H_

#include <filesystem>
#include <memory>
#include <string>
#include <vector>

#include "core/result.h"
#include "execute/session.h"
#include "task/task.h"

namespace mc::execute {

enum class Role { kInspector, kRecorder, kJudge, kContestant };

struct ZygoteOptions {
  std::filesystem::path python;
  std::filesystem::path harness;      // Directory of the Python modules.
  std::filesystem::path sandbox_lib;  // libmc_sandbox.so
  std::filesystem::path emulator;     // libmc_emu.so; empty: none.
  std::filesystem::path shim;
  task::Backend backend = task::Backend::kCpu;
  std::filesystem::path aten_lib;    // The recorder of ATen operators, where there is no shim.
  std::filesystem::path device_lib;  // What contestants load on a CUDA device.
};

struct ChildLimits {
  int64_t memory_bytes = int64_t{4} << 30;
  int64_t tmp_bytes = int64_t{256} << 20;
  double cpu_s = 600;
  int threads_max = 64;
  std::vector<std::string> visible;  // Read-only paths below /tmp that the child needs.
  std::vector<std::string> devices;  // Device nodes, for judges and contestants only.
  bool runs_programs = false;        // May start processes: torch.compile's compilers.
  bool weak_sandbox = false;         // Go on where a protection cannot be had.
};

class Zygote {
 public:
  static Result<std::unique_ptr<Zygote>> create(const ZygoteOptions& options);
  ~Zygote();

  // A child that has entered its sandbox and made its role: on a CUDA device, a judge or contestant
  // has its context.  kUnavailable where it could not; the message names the protection that this
  // machine cannot give.
  Result<Session> spawn(Role role, const ChildLimits& limits);

  const std::string& pytorch_version() const;

  // Names of the protections that a child spawned so far goes without, sorted.  Each child told its
  // own before it was given anything of a task or a candidate.
  std::vector<std::string> protections_off() const;

 private:
  struct State;
  explicit Zygote(std::unique_ptr<State> state);
  std::unique_ptr<State> state_;
};

}  // namespace mc::execute

#endif  // MC_EXECUTE_ZYGOTE_H_
