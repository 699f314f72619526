// SPDX-License-Identifier: Apache-2.0
//
// TensorBoard's event files: records of 8 bytes of length, its masked CRC-32C, an Event message of
// protobuf, and that one's masked CRC-32C.  (tensorflow/core/lib/io/record_writer.h and
// core/util/event.proto describe them.)
#ifndef MC_TRAIN_EVENTS_H_
#define MC_TRAIN_EVENTS_H_

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <utility>

namespace mc::train {

using Scalar = std::pair<std::string_view, double>;

// The record that begins a file.
std::string event_file_header(double wall_time_s);
// One record with the scalars of a step.
std::string event_record(double wall_time_s, int64_t step, std::span<const Scalar> scalars);

// CRC-32C (Castagnoli), as RFC 3720 has it.
uint32_t crc32c(std::string_view bytes);

}  // namespace mc::train

#endif  // MC_TRAIN_EVENTS_H_
