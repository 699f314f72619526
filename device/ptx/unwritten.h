// SPDX-License-Identifier: Apache-2.0
//
// Unwritten memory: the bytes of global memory that no code wrote, and results that depend on them.
//
// A correct kernel may read such bytes: it copies padding, or loads a whole vector past the end of
// a row. They are a fault only if a result depends on them. So a launch that read such bytes is
// undone and runs again with other bytes there. Bytes that then have different values *follow*
// from unwritten memory, and count as unwritten themselves. The device reports the first read
// (device.h) if such bytes reach the host or an output, or if the launch fails with the other
// bytes.
//
//   `y`, launched with its padding unwritten      read, and equal in all runs: nothing follows
//   `sum[0]`, of a row and its padding            differs: it follows from the read in line 12
//
// Only bytes that differ count: a value that is loaded and not used, dropped by a select, or copied
// into other padding is not reported. A launch whose results are equal by chance with zeros, large
// numbers and NaN is missed.
#ifndef MC_PTX_UNWRITTEN_H_
#define MC_PTX_UNWRITTEN_H_

#include <array>
#include <bitset>
#include <cstdint>
#include <map>
#include <memory>
#include <utility>
#include <vector>

#include "core/result.h"
#include "ptx/finding.h"
#include "ptx/global_memory.h"
#include "ptx/module.h"
#include "ptx/origin.h"
#include "ptx/undo_log.h"

namespace mc::ptx {

// The unwritten bytes of a device, as one bit per byte. Addresses are device addresses.
class Unwritten {
 public:
  static Result<std::unique_ptr<Unwritten>> create(size_t memory_bytes);

  // add() marks new memory as unwritten; remove() marks bytes as written.
  void add(Extent bytes);
  void remove(Extent bytes);
  // Marks the granules in these bytes that the last launch wrote, by its shadow, as written.
  void remove_written(const ShadowMemory& shadow, Extent bytes, int granule_shift);
  // Forgets released memory.
  void forget(Extent bytes);
  // Copies the bits, and the reads on which the bytes depend.
  void copy(uint64_t to, Extent from);
  bool has(uint64_t address) const;
  bool has_any(Extent bytes) const;

  // Notes that the bytes depend on a read of unwritten memory.
  void add_followers(Extent bytes, const std::shared_ptr<const Finding>& read);
  // The read on which some of the bytes depend; null if there is none.
  std::shared_ptr<const Finding> read_before(Extent bytes) const;

 private:
  explicit Unwritten(Reserved bits) : bits_(std::move(bits)) {}

  void set(Extent bytes, bool value);

  struct Follower {
    uint64_t end = 0;
    std::shared_ptr<const Finding> read;  // Shared by all bytes that follow from it.
  };
  Reserved bits_;
  std::map<uint64_t, Follower> followers_;  // Valid for bytes whose bits are set.
};

// The reads of unwritten bytes in a launch, by lines of the source.
struct UnwrittenReads {
  struct Site {
    Location location;
    std::shared_ptr<const Finding> first;
    std::vector<Extent> extents;
    uint8_t byte = 0;            // The first byte that it read.
    bool has_followers = false;  // It read bytes that depend on unwritten memory.

    // Adds an extent; extents beyond kExtentsMax are dropped.
    void add(Extent bytes);
  };
  static constexpr size_t kExtentsMax = 1 << 16;
  std::vector<Site> sites;

  Site* find(const Location& location);
};

// The lines of memory that a launch wrote, before and after it.
class Aftermath {
 public:
  // Reads the last launch from the log and the shadow.
  Aftermath(const UndoLog& undo, const ShadowMemory& shadow, int granule_shift,
            const Unwritten& unwritten);

  // The granules that at least one of two runs wrote and whose bytes differ afterwards.
  std::vector<Extent> differences(const Aftermath& other) const;
  // Restores memory to its state after the launch, which was undone.
  void restore(const UndoLog& undo) const;

 private:
  static constexpr size_t kLine = size_t{1} << UndoLog::kLineShift;
  using Bytes = std::array<uint8_t, kLine>;
  struct Line {
    uint64_t number = 0;
    Bytes before, after;
    std::bitset<kLine> written, unwritten;  // Unwritten before the launch.
  };

  const Line* find(uint64_t number) const;
  void add_differences(const Line* mine, const Line* other, std::vector<Extent>& found) const;

  int granule_shift_;
  std::vector<Line> lines_;  // In the order of their numbers.
};

}  // namespace mc::ptx

#endif  // MC_PTX_UNWRITTEN_H_
