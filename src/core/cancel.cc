// SPDX-License-Identifier: Apache-2.0
#include "core/cancel.h"

#include <utility>

namespace mc {
namespace {

thread_local std::stop_token current;

}  // namespace

CancelScope::CancelScope(std::stop_token token)
    : outer_(std::exchange(current, std::move(token))) {}
CancelScope::~CancelScope() { current = std::move(outer_); }

std::stop_token this_cancellation() { return current; }
bool is_cancelled() { return current.stop_requested(); }

}  // namespace mc
