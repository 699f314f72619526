// SPDX-License-Identifier: Apache-2.0
//
// Report: the executor's findings in kernels, as lines of JSON for the supervisor
// (src/execute/decode.h reads them).  A finding is reported once for each source location and kind.
// Thread-safe.
#ifndef MC_PTX_DRIVER_REPORT_H_
#define MC_PTX_DRIVER_REPORT_H_

#include <atomic>
#include <cstdint>
#include <mutex>
#include <set>
#include <string>

#include <nlohmann/json_fwd.hpp>

#include "ptx/finding.h"

namespace mc::ptx_driver {

// The origins of a call's outputs, in bytes.  If an allocation has several, the host takes
// precedence over kernels, and kernels over the inputs.
struct CallRecord {
  uint64_t number = 0;
  uint64_t launches = 0;
  uint64_t kernel_us = 0;    // The processor time of its launches.
  uint64_t sectors = 0;      // Sectors that its kernels moved, if the device counts.
  bool reads_given = false;  // A kernel read the judge's inputs.
  uint64_t by_host = 0, by_kernels = 0, given = 0, by_fills = 0, by_none = 0;

  // Adds an output whose allocation has these origins.
  void add(uint8_t origins, uint64_t bytes);
};

// A line of the report, whatever bytes the names of a candidate have.
std::string text_of_line(const nlohmann::json& line);

class Report {
 public:
  void add(const ptx::Finding& finding);
  void add(const CallRecord& record);
  // Adds an unsupported construct; called each time that a kernel reaches it.
  void add_unsupported(const std::string& kernel, const std::string& detail);
  // Sets the Header::location of the host call that queued the work.
  void set_location(uint64_t location) { location_ = location; }
  // Returns the lines since the last take().
  std::string take();
  // Forgets all findings, for the next candidate.
  void forget();

 private:
  void add_line(std::string line);

  std::atomic<uint64_t> location_{0};
  std::mutex mutex_;
  std::string lines_;           // Guarded by mutex_, like the next member.
  std::set<std::string> seen_;  // Kinds and locations.
};

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_REPORT_H_
