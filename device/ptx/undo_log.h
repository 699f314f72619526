// SPDX-License-Identifier: Apache-2.0
//
// UndoLog: the bytes that a launch of several workers overwrote.
//
// Blocks of a correct kernel do not depend on one another, so workers may run them in any order.
// If a block fails, or writes what another block touches, the results depend on the order: the
// launch is undone and runs again on one worker, whose order is always the same. A worker copies a
// line of memory before its first write in a launch. If several workers copy a line, the copy of
// the worker that marks the line first is kept; no worker writes before a mark. A mark is set by a
// compare-exchange after the copy, and read with acquire: a worker that finds it set may write,
// since the kept copy was made before. Only save() is thread-safe; the other functions run between
// launches, when the workers' threads have been joined.
#ifndef MC_PTX_UNDO_LOG_H_
#define MC_PTX_UNDO_LOG_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <utility>
#include <vector>

#include "ptx/global_memory.h"

namespace mc::ptx {

class UndoLog {
 public:
  static Result<std::unique_ptr<UndoLog>> create(const GlobalMemory& memory, int workers);

  void begin_launch();
  // Call this before a worker's write. Thread-safe.
  void save(int worker, uint64_t address, uint64_t bytes);
  // True if another worker touched a granule that a worker wrote.
  bool workers_conflict(std::span<const std::unique_ptr<ShadowMemory>> shadows,
                        int granule_shift) const;
  void restore();

  static constexpr int kLineShift = 7;  // A line of the shadow, if granules have four bytes.
  struct Saved {
    uint64_t line = 0;
    std::array<uint8_t, 1 << kLineShift> bytes;
  };
  // The lines that the launch wrote, as they were before it.
  std::vector<Saved> before() const;
  // The bytes of a line.
  uint8_t* data_of(uint64_t line) const;
  // The lines that the launch wrote, as they are now.
  std::vector<Saved> written() const;
  // True if memory equals the result of another launch, which began with the same bytes and was
  // undone.
  bool is_as(const std::vector<Saved>& written) const;

 private:
  UndoLog(Reserved marks, uint8_t* origin, int workers)
      : marks_(std::move(marks)), origin_(origin), saved_(static_cast<size_t>(workers)) {}

  Reserved marks_;  // For each line the last launch that wrote it.
  uint8_t* origin_;
  std::vector<std::vector<Saved>> saved_;  // One row for each worker.
  uint32_t launch_ = 0;
};

}  // namespace mc::ptx

#endif  // MC_PTX_UNDO_LOG_H_
