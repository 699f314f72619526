// SPDX-License-Identifier: Apache-2.0
//
// Values of the reference: what one instruction of PTX computes from the bits of its sources.
//
// This is the arithmetic of the slow interpreter (reference.h), written from the PTX ISA's
// definition of each instruction and sharing nothing with the executor. A value is 64 bits, of
// which a type reads the low ones. Floating point is computed as the exact result and one rounding:
// encode() rounds to any format, and sums, products and quotients come from double with its last
// bit made sticky.
#ifndef MC_PTX_TESTING_REFERENCE_VALUES_H_
#define MC_PTX_TESTING_REFERENCE_VALUES_H_

#include <cstdint>
#include <span>

#include "ptx/module.h"

namespace mc::ptx {

// The low bits of a value, as many as the type has.
uint64_t bits_as(uint64_t value, Type type);
// The value of an integer type, extended by its sign if it has one.
int64_t integer_as(uint64_t value, Type type);
// The value of a float type. Exact.
long double float_as(uint64_t value, Type type);
bool is_float(Type type);

enum class RoundingMode : uint8_t { kNearest, kZero, kDown, kUp, kAway };

// The bits of the float nearest to a value by a mode. NaN gives the canonical one. Floats of 8 bits
// are not among the types.
uint64_t encode(long double value, Type type, RoundingMode mode);

// The result of an instruction that reads only its sources. False if the reference does not know
// it. The carry is the flag CC.CF.
bool compute(const Instruction& one, std::span<const uint64_t> sources, bool& carry,
             uint64_t& result);

// The comparison of setp and set, before it is combined with a predicate.
bool compare(const Instruction& one, Type type, uint64_t a, uint64_t b);

// The new value that an atomic operation stores.
bool combine(const Instruction& one, uint64_t old, uint64_t b, uint64_t c, uint64_t& result);

}  // namespace mc::ptx

#endif  // MC_PTX_TESTING_REFERENCE_VALUES_H_
