// SPDX-License-Identifier: Apache-2.0
//
// Unwritten memory: the bytes of global memory that nothing wrote, and what follows from them.
//
// A correct kernel may read such bytes: it copies padding, or loads a whole vector past the end of
// a row. They are a fault only where something follows from them. So a launch that read some is
// undone and runs again with other bytes there. What it leaves otherwise then *follows* from them,
// and is as good as unwritten itself. The device reports the first read (device.h) where such
// bytes reach the host or an output, and where the launch fails with the other bytes.
//
//   `y`, launched with its padding unwritten      read, and equal in all runs: nothing follows
//   `sum[0]`, of a row and its padding            differs: it follows from the read in line 12
//
// Only bytes that differ count, so that a value that is loaded and not used, multiplied away by a
// select, or copied into other padding is none. A launch whose bytes are the same by chance with
// zeros, large numbers and NaN is not found.
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

// The bytes of a device that nothing wrote, by bits. Addresses are the device's.
class Unwritten {
 public:
  static Result<std::unique_ptr<Unwritten>> create(size_t memory_bytes);

  // New memory, or bytes that were written.
  void add(Extent bytes);
  void remove(Extent bytes);
  // The granules of these bytes that a launch wrote, the last one in the shadow.
  void remove_written(const ShadowMemory& shadow, Extent bytes, int granule_shift);
  // Memory that was released.
  void forget(Extent bytes);
  // A copy takes the bits with it, and what the bytes follow from.
  void copy(uint64_t to, Extent from);
  bool has(uint64_t address) const;
  bool has_any(Extent bytes) const;

  // The bytes follow from a read of unwritten ones.
  void add_followers(Extent bytes, const std::shared_ptr<const Finding>& read);
  // The read that some of the bytes follow from, null where none do.
  std::shared_ptr<const Finding> read_before(Extent bytes) const;

 private:
  explicit Unwritten(Reserved bits) : bits_(std::move(bits)) {}

  void set(Extent bytes, bool value);

  struct Follower {
    uint64_t end = 0;
    std::shared_ptr<const Finding> read;  // Shared by all bytes that follow from it.
  };
  Reserved bits_;
  std::map<uint64_t, Follower> followers_;  // Valid where the bits are set.
};

// The reads of unwritten bytes in a launch, by lines of the source.
struct UnwrittenReads {
  struct Site {
    Location location;
    std::shared_ptr<const Finding> first;
    std::vector<Extent> extents;
    uint8_t byte = 0;            // The first byte that it read.
    bool has_followers = false;  // It read what follows from unwritten bytes.

    // Those beyond kExtentsMax are not kept.
    void add(Extent bytes);
  };
  static constexpr size_t kExtentsMax = 1 << 16;
  std::vector<Site> sites;

  Site* find(const Location& location);
};

// The lines of memory that a launch wrote, before and after it.
class Aftermath {
 public:
  // The launch is the last one in the log and in the shadow.
  Aftermath(const UndoLog& undo, const ShadowMemory& shadow, int granule_shift,
            const Unwritten& unwritten);

  // The granules that one of two runs of a launch wrote, and whose bytes differ after them.
  std::vector<Extent> differences(const Aftermath& other) const;
  // Makes memory what it was after the launch, which was undone.
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
