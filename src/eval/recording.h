// SPDX-License-Identifier: Apache-2.0
//
// Recording: what the candidate of one verdict sent to its device, in a file (docs/replay.md).
//
//   MC_TRY(const Recording recording, recording_from_bytes(bytes), path);
//   MC_TRY(const Replayed replayed, pipeline->replay(recording), path);
#ifndef MC_EVAL_RECORDING_H_
#define MC_EVAL_RECORDING_H_

#include <cstddef>
#include <string>
#include <string_view>

#include "core/result.h"
#include "task/verdict.h"

namespace mc::eval {

inline constexpr const char* kRecordingSchema = "musacoder-recording/1";
inline constexpr size_t kRecordingBytesMax = size_t{1} << 30;

struct Recording {
  task::Verdict verdict;
  std::string device;  // The name of the device that it was made on.
  std::string data;    // The frames of python/harness/device/recording.py, compressed.
};

// A line with the schema and the hash of all that follows; a line of JSON; then the data.
std::string to_bytes(const Recording& recording);
// The same for any text behind the first line.
std::string with_hash(std::string_view content);

// kInvalidInput for what is no such file, or was changed.  The data is not looked at.
Result<Recording> recording_from_bytes(std::string_view bytes);

}  // namespace mc::eval

#endif  // MC_EVAL_RECORDING_H_
