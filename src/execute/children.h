// SPDX-License-Identifier: Apache-2.0
//
// The names of the layer below that this layer's interfaces use: the processes, the requests to
// them, and their possible responses.  Their contracts are documented in `worker`.
#ifndef MC_EXECUTE_CHILDREN_H_
#define MC_EXECUTE_CHILDREN_H_

#include "worker/artifact_mount.h"
#include "worker/envelope.h"
#include "worker/one_device.h"
#include "worker/session.h"
#include "worker/warm_pool.h"
#include "worker/zygote.h"

namespace mc::execute {

using worker::ChildLimits;
using worker::Role;
using worker::Roles;
using worker::Zygote;
using worker::ZygoteOptions;
using worker::Zygotes;

using worker::Session;
using worker::WarmPool;

using worker::CallResult;
using worker::ErrorReply;
using worker::Limit;
using worker::LimitExceeded;
using worker::MalformedReply;
using worker::ProcessEnd;
using worker::Reply;

using worker::decode_refusal;
using worker::environment_of_one_device;
using worker::nests_too_deeply;
using worker::nodes_of_one_device;

}  // namespace mc::execute

#endif  // MC_EXECUTE_CHILDREN_H_
