// SPDX-License-Identifier: Apache-2.0
//
// The common parts of all responses: whether one is a reply or an error, how deeply it nests, and
// the response to the first request that every role gets, about its protections.
#ifndef MC_WORKER_ENVELOPE_H_
#define MC_WORKER_ENVELOPE_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "task/evidence.h"

namespace mc::worker {

// A response with "ok": false.
struct ErrorReply {
  std::string kind;  // "exception", "oom", "link", "unsupported", "protocol"
  std::string stage;
  task::Exception exception;
};

// True if arrays and objects are nested more deeply than in any honest message.  Such JSON must not
// be parsed: nlohmann copies and writes values recursively, and the stack is finite.
bool nests_too_deeply(std::string_view json);

bool is_ok(std::string_view response);
// The names of the protections that a child lacks; an unknown name is a protocol error.
Result<std::vector<std::string>> decode_protections(std::string_view response);
Result<ErrorReply> decode_refusal(std::string_view response);

}  // namespace mc::worker

#endif  // MC_WORKER_ENVELOPE_H_
