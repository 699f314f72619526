// SPDX-License-Identifier: Apache-2.0
//
// Forms: the instructions without memory or control flow, one entry for each opcode, modifiers and
// type. The table has a kernel for each; the generator chooses from them at random.
//
//   {"mad.lo.s32 $0, $1, $2, $3;", "rrrr"}
//
// A letter is the kind of an operand, the result first:
//   h r l  integer of 16, 32, 64 bits       f d  float32, float64     p  predicate
//   e E    float16, and a pair of them      g G  bfloat16, and a pair of them
//   s      count of 32 bits, mostly small   q    float32 from -pi to pi
#ifndef MC_PTX_TESTING_FORMS_H_
#define MC_PTX_TESTING_FORMS_H_

#include <string>
#include <string_view>
#include <vector>

#include "ptx/testing/case.h"

namespace mc::ptx {

struct Form {
  std::string text;
  std::string kinds;
  Tolerance tolerance;
  bool is_approximate = false;
  bool has_divisor = false;    // The second source may not be zero.
  bool is_table_only = false;  // The generator does not draw it.
  // `add.s32`: the first opcode of the text.
  std::string name() const;
};

// How a kind is declared (`.b32`), loaded (`.b32`) and compared.
struct KindTraits {
  char kind;
  std::string_view declared;
  std::string_view loaded;
  Type type;
};
const KindTraits& traits_of(char kind);

std::vector<Form> instruction_forms();

// Edge values of a kind; and a random value, edge or ordinary.
const std::vector<uint64_t>& edges_of(char kind);
uint64_t random_value(char kind, Random& random);

}  // namespace mc::ptx

#endif  // MC_PTX_TESTING_FORMS_H_
