// SPDX-License-Identifier: Apache-2.0
//
// Functions of cuBLAS, cuBLASLt and cuDNN that cross to the device process, as data.
//
// A candidate process calls them by their own names (client/libraries.cc); the arguments cross in
// one command (Op::kLibraryCall), and the device process calls the real function
// (cuda/libraries.h).  The table has a mark for each argument of each function:
//   i  a 32-bit number           l  a 64-bit number
//   f  a float                   d  a double
//   t  a stream                  p  an address on the device, or null
//   s  a scalar: an address on the host, or on the device where the handle's pointer mode is that
//   h  a library's handle        H  the address for a new one        X  one that ends
//   o? an object, or null        n? the address for a new one        x? one that ends
//   b  bytes on the host, the next argument is their number
//   a? 32-bit numbers on the host, the argument of this index is their number
//   r  the address for a 32-bit result        R  for one of 64 bits
//   O  the address for a 64-bit result, or null where the function must see that (1, or 0)
//   q? the address for 32-bit results, the argument of this index is their number
//   e  the address for heuristic results, the argument before is their number
//   A  the address of an algorithm that such a result had, or null
//   V  elements of an attribute: kind and number are the two arguments before
//   W  the address for such elements: kind and number wanted are the 3rd and 2nd argument before,
//      and the last one is the address for the number that there are
// The ? is a letter for the object's kind (any letter: only equality matters), or a digit.
//
// In the command each argument is a word; bytes of the host follow their word, in whole words.
// The number of a new object is the client's choice.  The reply is a word with the function's
// status, then the results in the order of the arguments.
#ifndef MC_DEVICE_LIBRARY_CALLS_H_
#define MC_DEVICE_LIBRARY_CALLS_H_

#include <cstddef>
#include <cstdint>
#include <string_view>

namespace mc::device {

struct LibraryFunction {
  const char* name;
  const char* marks;
};

constexpr LibraryFunction kLibraryFunctions[] = {
#define MC_LIBRARY_CALL(name, marks) {#name, marks},
#include "library_calls.inc"
#undef MC_LIBRARY_CALL
};
constexpr uint32_t kNumLibraryFunctions = sizeof kLibraryFunctions / sizeof *kLibraryFunctions;

// True for a call that may give the device something to do.
constexpr bool may_launch(const LibraryFunction& function) {
  const std::string_view name = function.name;
  if (name == "cudnnSetDropoutDescriptor") return true;
  for (const std::string_view quiet : {"Create", "Destroy", "Set", "Get", "Finalize"}) {
    if (name.find(quiet) != std::string_view::npos) return false;
  }
  return true;
}

constexpr size_t kLibraryWordsMax = 24;          // Integers and addresses per function.
constexpr size_t kLibraryRealsMax = 2;           // Floats and doubles per function.
constexpr uint64_t kLibraryElementsMax = 4096;   // Elements per array.
constexpr uint64_t kLibraryArrayMax = 1u << 16;  // Elements per array of 32-bit numbers.
constexpr size_t kScalarBytes = 16;
// cublasLtMatmulAlgo_t, cublasLtMatmulHeuristicResult_t.
constexpr size_t kAlgorithmBytes = 64;
constexpr size_t kHeuristicBytes = 96;

// Values of a scalar's word that are not device addresses.
constexpr uint64_t kScalarIsNull = 0;
constexpr uint64_t kScalarFollows = 1;

// cudnnBackendAttributeType_t.
constexpr uint32_t kAttributeHandle = 0;
constexpr uint32_t kAttributeAddress = 6;
constexpr uint32_t kAttributeDescriptor = 15;

// The bytes of an element; 0 for a kind that is not known.
constexpr size_t attribute_bytes(uint32_t kind) {
  constexpr uint32_t kBoolean = 2, kInt64 = 3, kDouble = 5, kChar = 24, kFraction = 26, kLast = 30;
  switch (kind) {
    case kBoolean:
    case kChar:
      return 1;
    case kAttributeHandle:
    case kInt64:
    case kDouble:
    case kAttributeAddress:
    case kAttributeDescriptor:
      return 8;
    case kFraction:
      return 16;
    default:
      return kind <= kLast ? 4 : 0;
  }
}

constexpr size_t words_of(size_t bytes) { return (bytes + 7) / 8; }

}  // namespace mc::device

#endif  // MC_DEVICE_LIBRARY_CALLS_H_
