// SPDX-License-Identifier: Apache-2.0
//
// Recording: the commands that the candidate of one verdict sent to its device, as a file
// (docs/replay.md).
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
  std::string device;  // The name of the device that the recording was made on.
  std::string data;    // The frames of python/harness/device/recording.py, compressed.
};

// A line with the schema and the hash of everything that follows; a line of JSON; then the data.
std::string to_bytes(const Recording& recording);
// `content` behind a first line with the schema and its hash.
std::string with_hash(std::string_view content);

// kInvalidInput for bytes that are not such a file, or were changed.  The data itself is not
// parsed.
Result<Recording> recording_from_bytes(std::string_view bytes);

}  // namespace mc::eval

#endif  // MC_EVAL_RECORDING_H_
