// SPDX-License-Identifier: Apache-2.0
//
// Origin: the makers of the bytes of an allocation, as bits of one number.
//
// They are known for allocations, not for bytes, which costs a look at each instruction's first
// access to an allocation in a launch. A write of a whole allocation replaces what it had, and a
// write of a part adds to it. A kernel's write is taken to replace what the host wrote before: it
// is not known which part that was.
#ifndef MC_PTX_ORIGIN_H_
#define MC_PTX_ORIGIN_H_

#include <cstdint>

namespace mc::ptx {

// Bytes of global memory.
struct Extent {
  uint64_t begin = 0, end = 0;
};

enum Origin : uint8_t {
  kByFill = 1,
  kByHost = 2,
  kGiven = 4,  // Memory of the judge.
  kByKernel = 8,
};

}  // namespace mc::ptx

#endif  // MC_PTX_ORIGIN_H_
