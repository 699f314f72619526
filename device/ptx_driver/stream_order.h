// SPDX-License-Identifier: Apache-2.0
//
// StreamOrder: finds races between streams.  Vector clocks show which work of two streams may run
// concurrently; a race is concurrent work on the same bytes with at least one write.
//
// The device runs all work when it is queued, so such a race never changes values here; on a GPU it
// sometimes does.  CUDA's rules (programming guide, "Streams", "Events"): the legacy default stream
// waits for the blocking streams and they for it; an event carries the order of its stream; work
// for which the host waited is before all that it queues later.
//
// The use:
//   order.begin(stream);                                  // The next work is this stream's.
//   if (auto other = order.access({"kernel", bytes})) report(*other);
//
// Accesses are recorded once a program has made a stream of its own, or after record().
// Not thread-safe.
#ifndef MC_PTX_DRIVER_STREAM_ORDER_H_
#define MC_PTX_DRIVER_STREAM_ORDER_H_

#include <cuda.h>

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "commands.h"
#include "ptx/device.h"

namespace mc::ptx_driver {

// For each stream, the number of its last work that is ordered before.
using Clock = std::map<CUstream, uint64_t>;

// The bytes that a kernel, a copy or a fill touched.
struct StreamWork {
  std::string name;
  ptx::TouchedBytes bytes;
};

class StreamOrder {
 public:
  void add_stream(CUstream stream, unsigned flags);
  bool is_recording() const { return is_recording_; }
  void record() { is_recording_ = true; }

  // Sets the stream of the next access.
  void begin(CUstream stream);
  // The earlier work of another stream that is not ordered before it and touches the same bytes,
  // if there is one.  REQUIRES: is_recording(), and begin().
  std::optional<std::string> access(StreamWork work);
  // The same for a read by the host after its last wait for one whole stream.
  std::optional<std::string> host_reads(const ptx::Extent& range) const;

  // The queued work, if any, that uses the word which the host touches without a wait.  If both use
  // the word atomically, the access orders later work.
  std::optional<std::string> host_touches(const device::HostAccess& access);

  Clock clock_of(CUstream stream) const;  // The clock that an event records.
  void wait(CUstream stream, const Clock& event);
  void host_waits(const Clock& event);
  void host_waits_for(CUstream stream);
  void host_waits_for_all();
  size_t num_extents() const { return num_extents_; }
  // Earlier work is forgotten, not the streams.
  void forget();

 private:
  struct Record {
    CUstream stream;
    uint64_t tick;
    StreamWork work;
  };
  static CUstream usual(CUstream stream);
  void add(StreamWork work);
  // Called before a record leaves the history.
  void drop_extents(const Record& one);
  bool is_blocking(CUstream stream) const;

  bool is_recording_ = false;
  std::map<CUstream, bool> is_blocking_;  // The program's own streams.
  Clock ticks_;                           // The last work of each stream.
  std::map<CUstream, Clock> known_;       // Work ordered before a stream's next work.
  Clock host_;                            // The work that the host waited for.
  Clock host_by_stream_;                  // The same, at its last wait for each stream.
  CUstream current_ = nullptr;
  std::deque<Record> history_;  // Work that the host has not waited for, oldest first.
  size_t num_extents_ = 0;      // In history_; at most kExtentsMax.
};

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_STREAM_ORDER_H_
