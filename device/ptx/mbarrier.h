// SPDX-License-Identifier: Apache-2.0
//
// The barriers of shared memory (`mbarrier`), as texts of other instructions.
//
// The object is a word of 64 bits: the arrivals that a phase expects below, and all arrivals so far
// above.  An arrival is an atomic sum that releases, a wait a load that acquires: so races are
// found as with any word by which threads synchronise (order.h).  A text keeps its lines.
#ifndef MC_PTX_MBARRIER_H_
#define MC_PTX_MBARRIER_H_

#include <string>
#include <string_view>

namespace mc::ptx {

// The text with such instructions in the place of init, arrive, test_wait, try_wait and inval, and
// of cp.async.mbarrier.arrive.  Others, those that count bytes among them, stay as they are.
std::string without_mbarriers(std::string_view text);

}  // namespace mc::ptx

#endif  // MC_PTX_MBARRIER_H_
