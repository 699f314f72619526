// SPDX-License-Identifier: Apache-2.0
//
// PreparedCandidate: a candidate that was found legal and compiled, as a value.
//
// Preparing it needs no device, judge or secret.  It contains everything that measuring needs, in
// another process or on another machine with the same program:
//
//   MC_TRY(const std::string bytes, to_bytes(prepared), path);
//   ...
//   const std::filesystem::path folder = cache_directory() / "prepared";
//   MC_TRY(PreparedCandidate again, prepared_from_bytes(bytes, folder), path);
#ifndef MC_EVAL_PREPARED_H_
#define MC_EVAL_PREPARED_H_

#include <cstddef>
#include <filesystem>
#include <string>
#include <string_view>
#include <variant>
#include <vector>

#include "compile/toolchain.h"
#include "core/result.h"
#include "task/task.h"
#include "task/verdict.h"

namespace mc::eval {

inline constexpr const char* kPreparedSchema = "musacoder-prepared/1";
inline constexpr size_t kPreparedBytesMax = size_t{1} << 30;

// The properties that a machine must share to measure a prepared candidate.
struct Target {
  std::string backend;
  std::string architecture;  // The architecture of a device: "90".
  std::string pytorch;       // "2.11.0+cu130"
  std::string python;        // "3.11" where PyTorch's full headers were compiled in, else "".
  std::string policy;        // The policy's name and version.
  bool operator==(const Target&) const = default;
};
std::string to_string(const Target& target);  // For people, on one line.

struct Machine;

// The target of compilations on this machine under a policy.
Target target_of(const Machine& machine, const std::string& policy,
                 const std::vector<compile::Artifact>& artifacts);

struct PreparedCandidate {
  task::Task task;
  task::Candidate candidate;
  Target target;
  std::string source;    // The text of the module.
  std::string recorded;  // The recorder's response, for compile::parse_extensions.
  std::vector<compile::Artifact> artifacts;
  task::Verdict verdict;  // The verdict so far: ids, hashes and telemetry; no outcome, no seed.
};

// A candidate that is legal and compiled, or its verdict.
using Preparation = std::variant<PreparedCandidate, task::Verdict>;

// A line that names the schema, a line of JSON, then the bytes of the libraries.  kIo where a
// library cannot be read.
Result<std::string> to_bytes(const PreparedCandidate& prepared);

// Writes the libraries into a new directory below `folder`, which exists as long as a copy of an
// artifact.  kInvalidInput for bytes that are not a whole, unchanged file of this kind.
Result<PreparedCandidate> prepared_from_bytes(std::string_view bytes,
                                              const std::filesystem::path& folder);

}  // namespace mc::eval

#endif  // MC_EVAL_PREPARED_H_
