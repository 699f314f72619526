// SPDX-License-Identifier: Apache-2.0
//
// Report: what the executor found in kernels, as lines of JSON for the supervisor
// (src/execute/decode.h reads them).  A finding is reported once for each place and each thing that
// went wrong there.  Thread-safe.
#ifndef MC_PTX_DRIVER_REPORT_H_
#define MC_PTX_DRIVER_REPORT_H_

#include <mutex>
#include <set>
#include <string>

#include "ptx/finding.h"

namespace mc::ptx_driver {

class Report {
 public:
  void add(const ptx::Finding& finding);
  // A construct that the executor lacks; each time that a kernel meets it.
  void add_unsupported(const std::string& kernel, const std::string& detail);
  // The lines since the last call.
  std::string take();
  // The next candidate's findings are new.
  void forget();

 private:
  void add_line(std::string line);

  std::mutex mutex_;
  std::string lines_;           // Guarded by mutex_, as the next.
  std::set<std::string> seen_;  // Kinds and places.
};

}  // namespace mc::ptx_driver

#endif  // MC_PTX_DRIVER_REPORT_H_
