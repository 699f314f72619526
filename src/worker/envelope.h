// SPDX-License-Identifier: Apache-2.0
//
// The parts of every answer, whoever gave it: whether it is one, why it is none, how deeply it
// nests, and the one question that every role answers first, about its protections.
#ifndef MC_WORKER_ENVELOPE_H_
#define MC_WORKER_ENVELOPE_H_

#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "task/verdict.h"

namespace mc::worker {

// A child's "ok": false.
struct ErrorReply {
  std::string kind;  // "exception", "oom", "link", "unsupported", "protocol"
  std::string stage;
  task::Exception exception;
};

// True if arrays and objects stand deeper inside each other than in any honest message.  Such JSON
// must not be parsed: nlohmann copies and writes values by recursion, and a stack has an end.
bool nests_too_deeply(std::string_view json);

bool is_ok(std::string_view answer);
// Names of the protections that a child goes without; an unknown one is a protocol error.
Result<std::vector<std::string>> decode_protections(std::string_view answer);
Result<ErrorReply> decode_refusal(std::string_view answer);

}  // namespace mc::worker

#endif  // MC_WORKER_ENVELOPE_H_
