// SPDX-License-Identifier: Apache-2.0
#pragma once
#include "mc_at/torch.h"
namespace c10 {
// The result of a stream's unwrap(); no function here has such a parameter.
struct Stream {
  enum Default { DEFAULT };
  Stream(Default, Device device) : device_(device) {}
  Device device() const { return device_; }

 private:
  Device device_;
};
}  // namespace c10
