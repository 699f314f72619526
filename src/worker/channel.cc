// SPDX-License-Identifier: Apache-2.0
#include "worker/channel.h"

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstring>

#include <fcntl.h>
#include <poll.h>
#include <sys/socket.h>

#include "core/check.h"
#include "worker/envelope.h"

namespace mc::worker {
namespace {

constexpr size_t kFdsMax = 8;
constexpr size_t kHeaderBytes = 4;

bool would_block() { return errno == EAGAIN || errno == EWOULDBLOCK || errno == EINTR; }

Error closed() { return {ErrorCode::kUnavailable, "the child closed its channel"}; }

// Attaches `fds` as SCM_RIGHTS; `control` must outlive the message.
void attach(msghdr& message, const std::vector<int>& fds, std::array<char, 256>& control) {
  if (fds.empty()) return;
  MC_CHECK(CMSG_SPACE(sizeof(int) * fds.size()) <= control.size());
  MC_CHECK(std::ranges::all_of(fds, [](int fd) { return fd >= 0; }));
  const size_t bytes = sizeof(int) * fds.size();
  message.msg_control = control.data();
  message.msg_controllen = CMSG_SPACE(bytes);
  cmsghdr* header = CMSG_FIRSTHDR(&message);
  header->cmsg_level = SOL_SOCKET;
  header->cmsg_type = SCM_RIGHTS;
  header->cmsg_len = CMSG_LEN(bytes);
  std::memcpy(CMSG_DATA(header), fds.data(), bytes);
}

// Keeps the first descriptor and closes all others.
void take_fds(msghdr& message, Fd& kept) {
  for (cmsghdr* header = CMSG_FIRSTHDR(&message); header != nullptr;
       header = CMSG_NXTHDR(&message, header)) {
    if (header->cmsg_level != SOL_SOCKET || header->cmsg_type != SCM_RIGHTS) continue;
    const size_t count = (header->cmsg_len - CMSG_LEN(0)) / sizeof(int);
    for (size_t i = 0; i < count; ++i) {
      int raw = -1;
      std::memcpy(&raw, CMSG_DATA(header) + i * sizeof(int), sizeof raw);
      Fd fd(raw);
      if (!kept.is_open()) kept = std::move(fd);
    }
  }
}

Status send_bytes(int socket, std::string_view bytes, const std::vector<int>& fds,
                  const Channel::Wait& wait) {
  bool fds_sent = false;
  while (!bytes.empty()) {
    std::array<char, 256> control{};
    iovec part{const_cast<char*>(bytes.data()), bytes.size()};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    if (!fds_sent) attach(message, fds, control);
    const ssize_t sent = ::sendmsg(socket, &message, MSG_NOSIGNAL);
    if (sent > 0) {
      fds_sent = true;
      bytes.remove_prefix(static_cast<size_t>(sent));
    } else if (would_block()) {
      MC_TRY_VOID(wait(socket, POLLOUT), "send to a child");
    } else {
      return system_error(ErrorCode::kUnavailable, "send to a child");
    }
  }
  return ok();
}

Status receive_bytes(int socket, char* data, size_t size, Fd& region, const Channel::Wait& wait) {
  while (size > 0) {
    std::array<char, 256> control{};
    iovec part{data, size};
    msghdr message{};
    message.msg_iov = &part;
    message.msg_iovlen = 1;
    message.msg_control = control.data();
    message.msg_controllen = control.size();
    const ssize_t received = ::recvmsg(socket, &message, MSG_CMSG_CLOEXEC);
    if (received > 0) {
      take_fds(message, region);
      data += received;
      size -= static_cast<size_t>(received);
    } else if (received == 0) {
      return closed();
    } else if (would_block()) {
      MC_TRY_VOID(wait(socket, POLLIN), "wait for a child");
    } else {
      return system_error(ErrorCode::kUnavailable, "receive from a child");
    }
  }
  return ok();
}

}  // namespace

Result<std::pair<Channel, Fd>> Channel::create_pair() {
  int ends[2];
  if (::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) != 0) {
    return system_error(ErrorCode::kUnavailable, "socketpair");
  }
  Fd ours(ends[0]);
  Fd theirs(ends[1]);
  const int flags = ::fcntl(ours.get(), F_GETFL);
  ::fcntl(ours.get(), F_SETFL, flags | O_NONBLOCK);
  return std::pair(Channel(std::move(ours)), std::move(theirs));
}

Status Channel::send(std::string_view json, const std::vector<int>& fds, const Wait& wait) const {
  if (json.size() > kMessageBytesMax || fds.size() > kFdsMax) {
    return Error{ErrorCode::kProtocol, "message over the limit"};
  }
  const auto length = static_cast<uint32_t>(json.size());
  std::string frame(kHeaderBytes, '\0');
  std::memcpy(frame.data(), &length, sizeof length);
  frame += json;
  return send_bytes(fd_.get(), frame, fds, wait);
}

bool Channel::has_unread() const {
  char byte = 0;
  return ::recv(fd_.get(), &byte, 1, MSG_PEEK | MSG_DONTWAIT) > 0;
}

Result<Message> Channel::receive(const Wait& wait) const {
  Message message;
  std::array<char, kHeaderBytes> header{};
  MC_TRY_VOID(receive_bytes(fd_.get(), header.data(), header.size(), message.region, wait),
              "message");
  uint32_t length = 0;
  std::memcpy(&length, header.data(), sizeof length);
  if (length > kMessageBytesMax) return Error{ErrorCode::kProtocol, "message over the limit"};
  message.json.resize(length);
  MC_TRY_VOID(receive_bytes(fd_.get(), message.json.data(), length, message.region, wait),
              "message");
  if (nests_too_deeply(message.json))
    return Error{ErrorCode::kProtocol, "message nests too deeply"};
  return message;
}

}  // namespace mc::worker
