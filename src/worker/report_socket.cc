// SPDX-License-Identifier: Apache-2.0
#include "worker/report_socket.h"

#include <array>
#include <cstddef>

#include <fmt/format.h>
#include <sys/random.h>
#include <sys/socket.h>

namespace mc::worker {
namespace {

constexpr size_t kLineBytesMax = 4 << 10;
constexpr size_t kTextBytesMax = 4 << 20;
constexpr const char* kForged = "{\"kind\":\"forged_report\"}\n";

}  // namespace

Result<std::pair<ReportSocket, Fd>> ReportSocket::create() {
  int ends[2] = {-1, -1};
  std::array<uint64_t, 4> key{};
  if (::socketpair(AF_UNIX, SOCK_SEQPACKET | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error(ErrorCode::kUnavailable, "a socket for the report");
  }
  Fd ours(ends[0]), theirs(ends[1]);
  if (::getrandom(key.data(), sizeof key, 0) != sizeof key ||
      ::send(ours.get(), key.data(), sizeof key, 0) != sizeof key) {
    return system_error(ErrorCode::kUnavailable, "the report's key");
  }
  std::string lead = fmt::format("{{\"key\":\"{:016x}{:016x}\",", key[0], key[1]);
  return std::pair(ReportSocket(std::move(ours), std::move(lead), {key[2] | 1, key[3]}),
                   std::move(theirs));
}

const std::string& ReportSocket::text() {
  std::array<char, kLineBytesMax> line;
  for (;;) {
    const ssize_t size = ::recv(fd_.get(), line.data(), line.size(), MSG_DONTWAIT);
    if (size <= 0) break;
    if (text_.size() >= kTextBytesMax) continue;  // A descriptor that comes along is still let go.
    const std::string_view said(line.data(), static_cast<size_t>(size));
    if (said.starts_with(lead_)) {
      text_ += '{';
      text_ += said.substr(lead_.size());
      text_ += '\n';
    } else {
      text_ += kForged;
    }
  }
  return text_;
}

}  // namespace mc::worker
