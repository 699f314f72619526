// SPDX-License-Identifier: Apache-2.0
//
// Origin: the writers of an allocation's bytes (kernels, host, judge), as bits.
//
// Origins are recorded per allocation, not per byte, so that only an instruction's first access to
// an allocation in a launch costs time. A write of a whole allocation replaces its origins, and a
// write of a part adds to them. A kernel's write is assumed to replace the host's, since it is not
// known which part the host wrote.
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
