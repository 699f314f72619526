// SPDX-License-Identifier: Apache-2.0
//
// Hostile modules: arbitrary texts, and a function that runs them as far as possible.
//
// For any text the result must be an error, a finding or an output. Fuzzing and the tests of
// mutations share this file, so that each input that the fuzzer finds is a test as well.
#ifndef MC_PTX_TESTING_HOSTILE_H_
#define MC_PTX_TESTING_HOSTILE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

namespace mc::ptx {

struct HostileOutcome {
  bool is_loaded = false;
  int num_decoded = 0;  // Kernels that could be launched.
  int num_launched = 0;
};

// Loads a module and runs some of its kernels with pointers, small numbers and a small budget. The
// seed chooses the kernels and the shapes of their launches.
HostileOutcome run_hostile(std::string_view text, uint64_t seed);

// The text with some characters, words and lines changed, at most size_max bytes of it.
std::string mutate(std::string text, uint64_t seed, size_t size_max);

}  // namespace mc::ptx

#endif  // MC_PTX_TESTING_HOSTILE_H_
