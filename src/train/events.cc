// SPDX-License-Identifier: Apache-2.0
#include "train/events.h"

#include <array>
#include <bit>
#include <cstring>

namespace mc::train {
namespace {

static_assert(std::endian::native == std::endian::little);

// Protobuf's wire types, in the low bits of a field's key.
enum Wire : uint32_t { kVarint = 0, kFixed64 = 1, kBytes = 2, kFixed32 = 5 };

void add_varint(std::string& out, uint64_t value) {
  for (; value >= 0x80; value >>= 7) out += static_cast<char>(value | 0x80);
  out += static_cast<char>(value);
}

void add_key(std::string& out, uint32_t field, Wire wire) { add_varint(out, field << 3 | wire); }

void add_bytes(std::string& out, uint32_t field, std::string_view bytes) {
  add_key(out, field, kBytes);
  add_varint(out, bytes.size());
  out += bytes;
}

template <typename T>
void add_raw(std::string& out, T value) {
  char bytes[sizeof value];
  std::memcpy(bytes, &value, sizeof value);
  out.append(bytes, sizeof bytes);
}

constexpr std::array<uint32_t, 256> crc_table() {
  constexpr uint32_t kPolynomial = 0x82F63B78;  // The polynomial of Castagnoli, bits reversed.
  std::array<uint32_t, 256> table{};
  for (uint32_t i = 0; i < 256; ++i) {
    uint32_t crc = i;
    for (int bit = 0; bit < 8; ++bit) crc = crc >> 1 ^ (crc & 1 ? kPolynomial : 0);
    table[i] = crc;
  }
  return table;
}

uint32_t masked_crc(std::string_view bytes) { return std::rotr(crc32c(bytes), 15) + 0xA282EAD8; }

std::string record(std::string_view message) {
  std::string length;
  add_raw(length, uint64_t{message.size()});
  std::string out = length;
  add_raw(out, masked_crc(length));
  out += message;
  add_raw(out, masked_crc(message));
  return out;
}

// Event.wall_time = 1.
std::string event_at(double wall_time_s) {
  std::string event;
  add_key(event, 1, kFixed64);
  add_raw(event, wall_time_s);
  return event;
}

}  // namespace

uint32_t crc32c(std::string_view bytes) {
  static constexpr std::array<uint32_t, 256> kTable = crc_table();
  uint32_t crc = ~uint32_t{0};
  for (const char byte : bytes) crc = crc >> 8 ^ kTable[(crc ^ static_cast<uint8_t>(byte)) & 0xFF];
  return ~crc;
}

std::string event_file_header(double wall_time_s) {
  std::string event = event_at(wall_time_s);
  add_bytes(event, 3, "brain.Event:2");  // Event.file_version
  return record(event);
}

std::string event_record(double wall_time_s, int64_t step, std::span<const Scalar> scalars) {
  std::string summary;
  for (const auto& [tag, number] : scalars) {
    std::string value;
    add_bytes(value, 1, tag);  // Summary.Value.tag, .simple_value
    add_key(value, 2, kFixed32);
    add_raw(value, static_cast<float>(number));
    add_bytes(summary, 1, value);  // Summary.value
  }
  std::string event = event_at(wall_time_s);
  add_key(event, 2, kVarint);  // Event.step, .summary
  add_varint(event, static_cast<uint64_t>(step));
  add_bytes(event, 5, summary);
  return record(event);
}

}  // namespace mc::train
