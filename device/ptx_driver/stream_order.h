// SPDX-License-Identifier: Apache-2.0
//
// StreamOrder: which work of one stream may run at the same time as another stream's, by vector
// clocks, and whether both touch the same bytes, at least one of them writing.
//
// The device does all work when it is queued, so such a fault never shows in values here; on a GPU
// it may, now and then.  CUDA's rules (programming guide, "Streams", "Events"): the legacy default
// stream waits for the blocking streams and they for it; an event carries the order of its stream;
// what the host waited for is before all that it queues later.
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

// The number of the last work of each stream that comes before.
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

  // The next access is by work of this stream.
  void begin(CUstream stream);
  // The earlier work of another stream that is not ordered before it and touches the same bytes,
  // if there is one.  REQUIRES: is_recording(), and begin().
  std::optional<std::string> access(StreamWork work);
  // The same for the host, which waited last for the whole of one stream, and now reads.
  std::optional<std::string> host_reads(const ptx::Extent& range) const;

  // The work that the host did not wait for and that uses the word which it now touches, if there
  // is one. A word that both use by atomics orders what comes later.
  std::optional<std::string> host_touches(const device::HostAccess& access);

  Clock clock_of(CUstream stream) const;  // For an event.
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
  bool is_blocking(CUstream stream) const;

  bool is_recording_ = false;
  std::map<CUstream, bool> is_blocking_;  // The program's own streams.
  Clock ticks_;                           // The last work of each stream.
  std::map<CUstream, Clock> known_;       // The work before the next of a stream.
  Clock host_;                            // The work that the host waited for.
  Clock host_by_stream_;                  // The same when it last waited for a stream.
  CUstream current_ = nullptr;
  std::deque<Record> history_;  // Work that the host has not waited for, oldest first.
  size_t num_extents_ = 0;      // The extents of the history, which are bounded.
};

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_STREAM_ORDER_H_
