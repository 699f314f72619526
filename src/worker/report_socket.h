// SPDX-License-Identifier: Apache-2.0
//
// ReportSocket: what the emulator of one candidate process reports, as it happens
// (emu/runtime/report.h).
//
// The report comes through a socket, a line a message: what was sent can neither be read nor taken
// back by whoever gets hold of the candidate process's end.  Each line begins with a key that only
// the emulator was told; a line without it was written by the candidate and counts as a finding of
// kind `forged_report`.
#ifndef MC_WORKER_REPORT_SOCKET_H_
#define MC_WORKER_REPORT_SOCKET_H_

#include <cstdint>
#include <string>
#include <utility>

#include "core/fd.h"
#include "core/result.h"

namespace mc::worker {

// The key of the digest of outputs, for the judge.
struct DigestKey {
  uint64_t weight = 0;
  uint64_t offset = 0;
};

class ReportSocket {
 public:
  // Our end, and the candidate process's, which holds the key already.
  static Result<std::pair<ReportSocket, Fd>> create();

  // All lines so far, each ended by '\n', without their keys.
  const std::string& text();

  DigestKey digest_key() const { return digest_key_; }

 private:
  ReportSocket(Fd fd, std::string lead, DigestKey key)
      : fd_(std::move(fd)), lead_(std::move(lead)), digest_key_(key) {}

  Fd fd_;
  std::string lead_;  // The beginning of a true line.
  DigestKey digest_key_;
  std::string text_;
};

}  // namespace mc::worker

#endif  // MC_WORKER_REPORT_SOCKET_H_
