// SPDX-License-Identifier: Apache-2.0
//
// GlobalMemory: the memory of a device. ShadowMemory: a worker's shadow of it (shadow.h).
//
// Device addresses begin at kGlobalBase and grow with each allocation, so that they are the same in
// each run. The memory and its shadows are reserved at the start and committed on first touch.
// Only find() and note_access() are thread-safe.
#ifndef MC_PTX_GLOBAL_MEMORY_H_
#define MC_PTX_GLOBAL_MEMORY_H_

#include <atomic>
#include <cstdint>
#include <map>
#include <memory>
#include <string>
#include <utility>

#include "core/result.h"
#include "ptx/shadow.h"

namespace mc::ptx {

struct Allocation {
  uint64_t begin = 0, end = 0;
  std::string name;
  mutable bool is_heap = false;        // A kernel's malloc gave it.
  mutable uint8_t origins = 0;         // Bits of Origin.
  mutable bool is_written = false;     // A kernel wrote to it in this launch.
  mutable bool has_unwritten = false;  // Some of its bytes are unwritten: unwritten.h.
};

// An RAII mapping, which the operating system commits on first touch.
class Reserved {
 public:
  // With a descriptor, maps that file, which other processes may map, too.
  static Result<Reserved> create(size_t bytes, int descriptor = -1);
  Reserved(Reserved&& other) noexcept;
  Reserved& operator=(Reserved&&) = delete;
  ~Reserved();
  uint8_t* data() const { return data_; }
  // Zeroes all bytes.
  void clear();
  // Zeroes the whole pages between the two offsets and frees their memory.
  void clear(size_t begin, size_t end);

 private:
  Reserved(uint8_t* data, size_t bytes, bool is_shared)
      : data_(data), bytes_(bytes), is_shared_(is_shared) {}
  void drop(size_t begin, size_t end);

  uint8_t* data_ = nullptr;
  size_t bytes_ = 0;
  bool is_shared_ = false;
};

class GlobalMemory {
 public:
  static Result<std::unique_ptr<GlobalMemory>> create(size_t bytes, int descriptor = -1);

  // A device address, aligned to 256 bytes. kExhausted if there is no room.
  Result<uint64_t> allocate(size_t bytes, std::string name);
  // Reserves an address range for allocate_at(), aligned to 2 MiB, at or after `wanted` if that is
  // still free.  kExhausted if there is no room.
  Result<uint64_t> reserve(size_t bytes, uint64_t wanted = 0);
  // kInvalidInput unless all bytes are in a reserved range and in no other allocation.
  Status allocate_at(uint64_t address, size_t bytes, std::string name);
  // False if no allocation begins there. Memory in reserved ranges is returned to the system.
  bool release(uint64_t address);
  // The allocation that holds the address, or null.
  const Allocation* find(uint64_t address) const;
  // The allocation that begins nearest before the address, or null.
  const Allocation* find_before(uint64_t address) const;
  const std::map<uint64_t, Allocation>& allocations() const { return allocations_; }
  // Notes that a kernel reads or writes bytes of an allocation.
  void note_access(const Allocation& allocation, bool is_write);
  // True if kernels read the judge's memory since the last take_given_read().
  bool take_given_read() { return reads_given_.exchange(false); }
  // The bytes at a device address, null unless one allocation holds them all.
  uint8_t* host(uint64_t address, size_t bytes) const;

  // The address in this process that device address 0 would have.
  uint8_t* origin() const;
  size_t size() const { return size_; }

 private:
  GlobalMemory(Reserved bytes, size_t size) : bytes_(std::move(bytes)), size_(size) {}

  bool is_reserved(uint64_t address, size_t bytes) const;

  Reserved bytes_;
  size_t size_ = 0;
  std::map<uint64_t, Allocation> allocations_;  // The key is their begin.
  std::map<uint64_t, uint64_t> reserved_;       // Ends of reserved ranges by their begins.
  std::multimap<size_t, uint64_t> spare_;       // Released allocations, by size.
  std::atomic<bool> reads_given_{false};
  uint64_t used_ = 0;
};

class ShadowMemory {
 public:
  static Result<std::unique_ptr<ShadowMemory>> create(size_t memory_bytes);

  // Begins a launch: earlier times of the clock belong to earlier launches.
  void begin_launch();
  // Frees the shadow's pages for a released range of offsets.
  void forget(size_t begin, size_t end);
  uint32_t launch_since() const { return launch_since_; }
  uint32_t* now() { return &now_; }
  GlobalShadow rows() const;
  // The granules of a line that the launch wrote and read.
  uint32_t written_in(uint64_t line) const { return touched(line_at(line).written); }
  uint32_t read_in(uint64_t line) const { return touched(line_at(line).read); }
  // The written granules of a line whose last write was a strong access.
  uint32_t updated_in(uint64_t line) const;

 private:
  ShadowMemory(Reserved lines, Reserved words)
      : lines_(std::move(lines)), words_(std::move(words)) {}

  const Line& line_at(uint64_t line) const {
    return reinterpret_cast<const Line*>(lines_.data())[line];
  }
  uint32_t touched(const Touch& touch) const {
    return touch.since >= launch_since_ ? touch.mask : 0;
  }

  Reserved lines_, words_;
  size_t row_ = 0;  // The words of each of the four rows.
  uint32_t now_ = 0, launch_since_ = 1;
};

}  // namespace mc::ptx

#endif  // MC_PTX_GLOBAL_MEMORY_H_
