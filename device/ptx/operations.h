// SPDX-License-Identifier: Apache-2.0
//
// Operations: the keys by which the decoder finds handlers in a variant.
//
// Handlers are compiled for 32 and for 128 lanes, with AVX2. Each variant is a table of functions
// that find the handler of an operation, or null. The keys are plain values, so that the variants
// share no code with the rest of the library, which any processor can run.
#ifndef MC_PTX_OPERATIONS_H_
#define MC_PTX_OPERATIONS_H_

#include <cstdint>

#include "ptx/program.h"

namespace mc::ptx {

enum class Op : uint8_t {
  kNone,
  kMov,
  kAdd,
  kSub,
  kMul,
  kMulHi,
  kMulWide,
  kMul24,
  kMul24Hi,
  kMad,
  kMad24,
  kMad24Hi,
  kMadHi,
  kMadWide,
  kFma,
  kDiv,
  kDivApprox,
  kRem,
  kAbs,
  kNeg,
  kMin,
  kMax,
  kMinNan,
  kMaxNan,
  kRcp,
  kSqrt,
  kRsqrt,
  kSin,
  kCos,
  kLg2,
  kEx2,
  kTanh,
  kCopysign,
  kSad,
  kAnd,
  kOr,
  kXor,
  kNot,
  kCnot,
  kShl,
  kShr,
  kPopc,
  kClz,
  kBrev,
  kBfind,
  kBfe,
  kBmsk,
  kBfi,
  kLop3,
  kPrmt,
  kShf,
  kDp4a,
  kDp2a,
  kSelp,
  kSlct,
  kSetp,
  kSet,
  kTestp,
  kAddCarry,
  kExch,
  kCas,
  kInc,
  kDec,
};

enum class Compare : uint8_t {
  kNone,
  kEq,
  kNe,
  kLt,
  kLe,
  kGt,
  kGe,
  kEqu,
  kNeu,
  kLtu,
  kLeu,
  kGtu,
  kGeu,
  kNum,
  kNan
};
enum class Rounding : uint8_t { kNearest, kZero, kDown, kUp };

struct ArithmeticKey {
  Op op = Op::kNone;
  Type type = Type::kNone;
  Compare compare = Compare::kNone;
  bool is_ftz = false;
  bool is_saturated = false;
};

// How a conversion reads a register: one of 2, 4 or 8 bytes can hold a narrower integer.
struct ConvertKey {
  Type to = Type::kNone, from = Type::kNone;
  int to_width = 4, from_width = 4;
  Rounding rounding = Rounding::kNearest;
  bool to_integral = false;  // The result has no fraction: rni, rzi, rmi, rpi.
  bool is_saturated = false;
  bool is_relu = false;
  bool is_ftz = false;
};

struct AccessKey {
  int bytes = 4;  // The bytes of an element in memory.
  bool is_signed = false;
  int width = 4;  // The width of the register.
  int elements = 1;
};

struct AtomicKey {
  Op op = Op::kNone;
  Type type = Type::kNone;
};

// The m, n and k of a product of matrices, and the types of a, b, c and d.
struct MatrixKey {
  int m = 0, n = 0, k = 0;
  Type a = Type::kNone, b = Type::kNone, c = Type::kNone, d = Type::kNone;
  bool is_saturated = false;
  bool is_xor = false;  // One-bit products: xor, else and.
};

// Handlers that need no key.
struct PlainHandlers {
  Handler guard, branch, indexed_branch, join, leave, give_back, call, indirect_call;
  Handler barrier, warp_barrier, shuffle, vote, match, redux, active_mask, elect;
  Handler unsupported;
  Handler nothing, fence, fence_of_block, pause, trap, clock, sleep, builtin_call;
  Handler predicate, pack, convert_pack, is_space, rounded, frame_load, frame_store;
  Handler copy_async, copy_async_commit, copy_async_wait, load_matrix, load_matrix_transposed;
  Handler store_matrix, store_matrix_transposed;
  Handler load_fragment, store_fragment, multiply_fragments;
  Handler count_instruction, count_access;  // Steps of counts.h.
};

struct Launch;

struct Variant {
  int lanes;
  Handler (*arithmetic)(const ArithmeticKey&);
  Handler (*convert)(const ConvertKey&);
  Handler (*load)(const AccessKey&);
  Handler (*store)(const AccessKey&);
  Handler (*atomic)(const AtomicKey&);
  Handler (*matrix)(const MatrixKey&);
  PlainHandlers plain;
  // Runs the blocks of a launch that one worker takes.
  void (*work)(Launch&, int worker);
};

// Null where no variant has that many lanes.
const Variant* variant_of(int lanes);

}  // namespace mc::ptx

#endif  // MC_PTX_OPERATIONS_H_
