// SPDX-License-Identifier: Apache-2.0
//
// Readable names of mangled C++ symbols, for rules and messages.
//
// Neither abi::__cxa_demangle nor c++filt is used, because a candidate chooses its symbols.  A
// symbol may refer back to its own parts, so that the length of its demangled name doubles with
// every few bytes (190 bytes give 9 MB, 400 bytes more than any memory).  The parsing time of some
// symbols doubles with every six bytes.  This demangler expands no back reference, so its time is
// linear in the length of the symbol.
#ifndef MC_CORE_DEMANGLE_H_
#define MC_CORE_DEMANGLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace mc {

inline constexpr size_t kDemangledBytesMax = 400;

// The qualified name without return type and parameters: "ns::axpy<float, 256>" of
// "_ZN2ns4axpyIfLi256EEEvPT_PKS1_".  "..." replaces back references and template arguments that are
// neither numbers nor names of types; it also ends the list or name that it is in:
// "ns::kernel<float, ...>", "ns::Scalar::...".  The result is `symbol` itself where no name can be
// read: C names, operators, vtables and the like.  It has at most kDemangledBytesMax bytes.
std::string demangle(std::string_view symbol);

}  // namespace mc

#endif  // MC_CORE_DEMANGLE_H_
