// SPDX-License-Identifier: Apache-2.0
#include "ptx/operations.h"

namespace mc::ptx {

namespace lanes_32 {
extern const Variant kVariant;
}
namespace lanes_128 {
extern const Variant kVariant;
}

const Variant* variant_of(int lanes) {
  return lanes == 32 ? &lanes_32::kVariant : lanes == 128 ? &lanes_128::kVariant : nullptr;
}

}  // namespace mc::ptx
