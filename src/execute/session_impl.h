// SPDX-License-Identifier: Apache-2.0
//
// What a Session holds; made by Zygote::spawn.  Members are destroyed bottom up: the child dies
// before its output is waited for.
#ifndef MC_EXECUTE_SESSION_IMPL_H_
#define MC_EXECUTE_SESSION_IMPL_H_

#include <optional>

#include "core/fd.h"
#include "execute/channel.h"
#include "execute/output_tail.h"
#include "execute/report_socket.h"
#include "execute/session.h"
#include "execute/shelf.h"
#include "sandbox/child.h"

namespace mc::execute {

struct Session::Impl {
  OutputTail output;
  ReportSocket report;
  Channel channel;
  sandbox::Child child;
  std::optional<Shelf> shelf = std::nullopt;  // Of a contestant.
  bool sees_shelf = false;
  std::optional<Answer> unsent = std::nullopt;  // Why the last question did not get through.
  bool rests = false;
};

}  // namespace mc::execute

#endif  // MC_EXECUTE_SESSION_IMPL_H_
