// SPDX-License-Identifier: Apache-2.0
#include "compile/turns.h"

namespace mc::compile {

Turns::Turn Turns::take(const std::string& name) {
  std::unique_lock lock(mutex_);
  if (!taken_.contains(name)) {
    taken_.insert(name);
    return {this, [this, name](const void*) { end(name); }};
  }
  ended_.wait(lock, [&] { return !taken_.contains(name); });
  return nullptr;
}

void Turns::end(const std::string& name) {
  const std::lock_guard lock(mutex_);
  taken_.erase(name);
  ended_.notify_all();
}

}  // namespace mc::compile
