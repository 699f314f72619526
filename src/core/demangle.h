// SPDX-License-Identifier: Apache-2.0
//
// The names behind C++ symbols, for rules and messages.
//
// Not by abi::__cxa_demangle, nor by c++filt: a symbol refers back to its own parts, so that what
// it stands for doubles with every few bytes (190 bytes give 9 MB, 400 more than any memory), and
// some take twice as long to parse for every six bytes, whatever they stand for.  Symbols are what
// a candidate chooses.  What is done here is linear in the symbol, because nothing is expanded.
#ifndef MC_CORE_DEMANGLE_H_
#define MC_CORE_DEMANGLE_H_

#include <cstddef>
#include <string>
#include <string_view>

namespace mc {

inline constexpr size_t kDemangledBytesMax = 400;

// "ns::axpy<float, 256>" of "_ZN2ns4axpyIfLi256EEEvPT_PKS1_": the qualified name, without return
// type and parameters.  What refers back, and other template arguments than numbers and the names
// of types, is "...", which also ends what follows it: "ns::kernel<float, ...>", "ns::Scalar::...".
// `symbol` itself where no name can be read: C names, operators, vtables and the like.  At most
// kDemangledBytesMax bytes.
std::string demangle(std::string_view symbol);

}  // namespace mc

#endif  // MC_CORE_DEMANGLE_H_
