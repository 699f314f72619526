// SPDX-License-Identifier: Apache-2.0
//
// Fuzzes the executor with arbitrary PTX modules. Half of the mutations change words and lines, so
// that the texts often parse.
#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "ptx/testing/hostile.h"

extern "C" size_t LLVMFuzzerMutate(uint8_t* data, size_t size, size_t size_max);

extern "C" size_t LLVMFuzzerCustomMutator(uint8_t* data, size_t size, size_t size_max,
                                          unsigned int seed) {
  if (size == 0 || seed % 2 == 0) return LLVMFuzzerMutate(data, size, size_max);
  const std::string text(reinterpret_cast<const char*>(data), size);
  const std::string mutated = mc::ptx::mutate(text, seed, size_max);
  std::copy(mutated.begin(), mutated.end(), data);
  return mutated.size();
}

extern "C" int LLVMFuzzerTestOneInput(const uint8_t* data, size_t size) {
  const std::string_view text(reinterpret_cast<const char*>(data), size);
  mc::ptx::run_hostile(text, std::hash<std::string_view>()(text));
  return 0;
}
