// SPDX-License-Identifier: Apache-2.0
//
// Report: what the executor found in kernels, as lines of JSON for the supervisor
// (src/execute/decode.h reads them).  A finding is reported once for each place and each thing that
// went wrong there.  Thread-safe.
#ifndef MC_PTX_DRIVER_REPORT_H_
#define MC_PTX_DRIVER_REPORT_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include "ptx/finding.h"

namespace mc::ptx_driver {

// The makers of a call's outputs, in bytes. Where an allocation has several, the host counts before
// kernels, and these before what was given.
struct CallRecord {
  uint64_t number = 0;
  uint64_t launches = 0;
  uint64_t kernel_us = 0;    // The processor time of its launches.
  uint64_t sectors = 0;      // Those that its kernels moved, where the device counts.
  bool reads_given = false;  // A kernel read what the judge gave.
  uint64_t by_host = 0, by_kernels = 0, given = 0, by_fills = 0, by_none = 0;

  // Adds an output whose allocation has these origins.
  void add(uint8_t origins, uint64_t bytes);
};

class Report {
 public:
  void add(const ptx::Finding& finding);
  void add(const CallRecord& record);
  // A construct that the executor lacks; each time that a kernel meets it.
  void add_unsupported(const std::string& kernel, const std::string& detail);
  // The place in the program of the call that work follows from: Header::place.
  void set_place(uint64_t place) { place_ = place; }
  // The lines since the last call.
  std::string take();
  // The next candidate's findings are new.
  void forget();

 private:
  void add_line(std::string line);

  std::atomic<uint64_t> place_{0};
  std::mutex mutex_;
  std::string lines_;           // Guarded by mutex_, as the next.
  std::set<std::string> seen_;  // Kinds and places.
};

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_REPORT_H_
