// SPDX-License-Identifier: Apache-2.0
#include "runtime/call.h"

#include <algorithm>
#include <cstdio>
#include <cstring>

#include "runtime/runtime.h"

namespace mc::emu {
namespace {

// A few scalars may cross; what a host would need to do the work may not.
constexpr uint64_t kToHostLeast = 1024;
constexpr uint64_t kPartToHost = 16;

}  // namespace

void Digest::add(const void* bytes, size_t size) {
  const char* from = static_cast<const char*>(bytes);
  uint64_t sum = 0;
  for (size_t i = 0; i * 4 < size; ++i) {
    int32_t word = 0;
    std::memcpy(&word, from + i * 4, std::min<size_t>(4, size - i * 4));
    sum += static_cast<uint64_t>(int64_t{word}) * ((i * weight + offset) | 1);
  }
  total = total * weight + sum;
}

void Call::begin(uint64_t given_bytes, const Digest& key) {
  is_active_ = true;
  is_taken_ = false;
  ++number_;
  to_host_max_ = std::max(kToHostLeast, given_bytes / kPartToHost);
  launches_ = kernel_ns_ = to_host_ = moved_ = unknown_reads_ = 0;
  reads_given_ = given_bytes == 0;
  std::fill(std::begin(output_bytes_), std::end(output_bytes_), 0);
  digest_ = key;
}

void Call::note_to_host(size_t bytes) {
  if (!is_active_) return;
  const uint64_t before = to_host_.fetch_add(bytes);
  if (before > to_host_max_ || before + bytes <= to_host_max_) return;
  Finding f;
  f.kind = "host_compute";
  std::snprintf(f.detail, sizeof f.detail,
                "forward copied %zu bytes from the device to the host, more than %zu: what is "
                "computed there is not computed by a kernel",
                static_cast<size_t>(before + bytes), static_cast<size_t>(to_host_max_));
  Runtime::get().report().add(f);
}

void Call::note_late_work(const char* what) {
  Finding f;
  f.kind = "late_work";
  std::snprintf(f.detail, sizeof f.detail, "%s after forward had returned", what);
  Runtime::get().report().add(f);
}

void Call::note_output(const void* bytes, size_t size, const Origin* origins) {
  digest_.add(bytes, size);
  for (size_t i = 0; i < size; ++i) ++output_bytes_[static_cast<size_t>(origins[i])];
}

int Call::describe(char* text, size_t capacity) const {
  const auto bytes = [this](Origin origin) {
    return static_cast<size_t>(output_bytes_[static_cast<size_t>(origin)]);
  };
  return std::snprintf(
      text, capacity,
      "\"call\":%zu,\"launches\":%zu,\"kernel_us\":%zu,"
      "\"digest\":\"%016zx\",\"kernel\":%zu,\"fill\":%zu,"
      "\"given\":%zu,\"host\":%zu,\"nowhere\":%zu,\"reads_given\":%s,\"unknown_reads\":%zu",
      static_cast<size_t>(number_), static_cast<size_t>(launches_),
      static_cast<size_t>(kernel_ns_ / 1000), static_cast<size_t>(digest_.total),
      bytes(Origin::kKernel), bytes(Origin::kFill), bytes(Origin::kGiven), bytes(Origin::kHost),
      bytes(Origin::kNowhere), reads_given_ ? "true" : "false",
      static_cast<size_t>(unknown_reads_));
}

}  // namespace mc::emu
