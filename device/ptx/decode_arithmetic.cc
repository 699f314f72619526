// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic, conversions, comparisons and operations on bits.
#include <algorithm>

#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

struct OpRow {
  std::string_view name;
  Op op;
  int sources;
};

constexpr OpRow kOps[] = {
    {"add", Op::kAdd, 2},     {"sub", Op::kSub, 2},
    {"mul", Op::kMul, 2},     {"mad", Op::kMad, 3},
    {"fma", Op::kFma, 3},     {"div", Op::kDiv, 2},
    {"rem", Op::kRem, 2},     {"abs", Op::kAbs, 1},
    {"neg", Op::kNeg, 1},     {"min", Op::kMin, 2},
    {"max", Op::kMax, 2},     {"rcp", Op::kRcp, 1},
    {"sqrt", Op::kSqrt, 1},   {"rsqrt", Op::kRsqrt, 1},
    {"sin", Op::kSin, 1},     {"cos", Op::kCos, 1},
    {"lg2", Op::kLg2, 1},     {"ex2", Op::kEx2, 1},
    {"tanh", Op::kTanh, 1},   {"copysign", Op::kCopysign, 2},
    {"sad", Op::kSad, 3},     {"and", Op::kAnd, 2},
    {"or", Op::kOr, 2},       {"xor", Op::kXor, 2},
    {"not", Op::kNot, 1},     {"cnot", Op::kCnot, 1},
    {"shl", Op::kShl, 2},     {"shr", Op::kShr, 2},
    {"popc", Op::kPopc, 1},   {"clz", Op::kClz, 1},
    {"bfind", Op::kBfind, 1}, {"mul24", Op::kMul24, 2},
    {"mad24", Op::kMad24, 3},
};

struct CompareName {
  std::string_view name;
  Compare compare;
};

constexpr CompareName kCompares[] = {
    {"eq", Compare::kEq},   {"ne", Compare::kNe},   {"lt", Compare::kLt},   {"le", Compare::kLe},
    {"gt", Compare::kGt},   {"ge", Compare::kGe},   {"lo", Compare::kLt},   {"ls", Compare::kLe},
    {"hi", Compare::kGt},   {"hs", Compare::kGe},   {"equ", Compare::kEqu}, {"neu", Compare::kNeu},
    {"ltu", Compare::kLtu}, {"leu", Compare::kLeu}, {"gtu", Compare::kGtu}, {"geu", Compare::kGeu},
    {"num", Compare::kNum}, {"nan", Compare::kNan},
};

Compare compare_of(const Instruction& one) {
  for (const CompareName& row : kCompares) {
    if (!one.modifiers.empty() && one.modifiers[0] == row.name) return row.compare;
  }
  return Compare::kNone;
}

int64_t combination_of(const Instruction& one) {
  return one.has("and") ? 1 : one.has("or") ? 2 : one.has("xor") ? 3 : 0;
}

Rounding rounding_of(const Instruction& one) {
  if (one.has("rz") || one.has("rzi")) return Rounding::kZero;
  if (one.has("rm") || one.has("rmi")) return Rounding::kDown;
  return one.has("rp") || one.has("rpi") ? Rounding::kUp : Rounding::kNearest;
}

// Bit types: moves need no others.
Type bits_type(int width) { return width == 8 ? Type::kB64 : width == 4 ? Type::kB32 : Type::kB16; }

bool is_half(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBf16 || type == Type::kBf16x2;
}

// The value of a type that set gives where its comparison holds.
uint64_t true_of(Type type) {
  if (type == Type::kF32) return 0x3F800000;
  if (type == Type::kF16 || type == Type::kF16x2) return 0x3C00;
  return type == Type::kBf16 || type == Type::kBf16x2 ? 0x3F80 : 0xFFFFFFFF;
}

bool is_pair(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }

// The part of the product that mul, mad, mul24 and mad24 name.
Op part_of_product(const Instruction& one, Op op) {
  if (one.has("wide")) return op == Op::kMul ? Op::kMulWide : Op::kMadWide;
  if (one.has("hi") && op == Op::kMul) return Op::kMulHi;
  if (one.has("hi") && op == Op::kMad) return Op::kMadHi;
  if (one.has("hi") && op == Op::kMul24) return Op::kMul24Hi;
  if (one.has("hi") && op == Op::kMad24) return Op::kMad24Hi;
  return op;
}

uint32_t half_flags(const Instruction& one) {
  return (one.has("ftz") ? 1U : 0U) | (one.has("sat") ? 2U : 0U) | (one.has("relu") ? 4U : 0U);
}

constexpr std::string_view kPrmtModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
constexpr std::string_view kTests[] = {"finite",     "infinite", "number",
                                       "notanumber", "normal",   "subnormal"};

template <size_t N>
int64_t position_of(const Instruction& one, const std::string_view (&names)[N]) {
  for (size_t k = 0; k < N; ++k) {
    if (one.has(names[k])) return static_cast<int64_t>(k);
  }
  return -1;
}

}  // namespace

bool Decoder::try_move(const Instruction& one) {
  const std::string& op = one.opcode;
  const Type type = one.type();
  if (op == "cvt") {
    convert(one);
    return true;
  }
  if (op == "setp") {
    set_predicate(one);
    return true;
  }
  if (op == "set") {
    set_value(one);
    return true;
  }
  if (op == "selp" || op == "slct") {
    choose(one);
    return true;
  }
  if (type == Type::kPred) {
    predicate_logic(one);
    return true;
  }
  if (op != "mov") return false;
  const Operand &to = operand(one, 0), &from = operand(one, 1);
  if (to.kind == Operand::Kind::kVector || from.kind == Operand::Kind::kVector) {
    pack(one);
    return true;
  }
  const int width = bytes_of(type);
  if (from.kind == Operand::Kind::kSpecial &&
      (from.name.starts_with("%clock") || from.name.starts_with("%globaltimer"))) {
    const uint32_t d = result(to, width);
    Step& step = emit(variant_.plain.clock);
    step.d = d;
    step.flags = width == 8 ? 1 : 0;
    step.immediate = from.name.ends_with("_hi") ? 32 : 0;
    return true;
  }
  const uint32_t a = source(one, from, width), d = result(to, width);
  Step& step = emit(variant_.arithmetic({Op::kMov, bits_type(width)}));
  step.d = d;
  step.a = a;
  return true;
}

// `cvt.rnd{.ftz}{.sat}.to.from d, a`, and for pairs `cvt.rn.f16x2.f32 d, a, b`
void Decoder::convert(const Instruction& one) {
  if (one.has("pack")) return lack("cvt.pack is not supported");
  if (one.has("satfinite")) return lack("cvt with .satfinite is not supported");
  if (one.types.size() != 2) return lack("this conversion is not supported");
  if (one.operands.size() == 3 || one.types[0] == Type::kTf32) return convert_pair(one);
  const Operand &to = operand(one, 0), &from = operand(one, 1);
  ConvertKey key;
  key.to = one.types[0];
  key.from = one.types[1];
  key.to_width = to.kind == Operand::Kind::kDiscard ? std::max(bytes_of(key.to), 2) : width_of(to);
  key.from_width = std::max(width_of(from), bytes_of(key.from));
  key.from_width = std::max(key.from_width, 2);
  key.rounding = rounding_of(one);
  key.to_integral = one.has("rni") || one.has("rzi") || one.has("rmi") || one.has("rpi");
  key.is_saturated = one.has("sat");
  key.is_relu = one.has("relu");
  key.is_ftz = one.has("ftz") && (key.from == Type::kF32 || key.to == Type::kF32);
  const bool narrows = !key.to_integral && (key.to == Type::kF32 || key.to == Type::kF64);
  const uint32_t a = source(one, from, key.from_width), d = result(to, key.to_width);
  if (narrows) round_next(one);
  Step& step = emit(variant_.convert(key));
  step.d = d;
  step.a = a;
  step.b = static_cast<uint32_t>(key.to);
  step.c = static_cast<uint32_t>(key.from);
  step.e = static_cast<uint32_t>(key.to_width | key.from_width << 4 |
                                 static_cast<int>(key.rounding) << 8);
  step.flags = (key.to_integral ? 1U : 0U) | (key.is_saturated ? 2U : 0U) |
               (key.is_relu ? 4U : 0U) | (key.is_ftz ? 8U : 0U);
}

void Decoder::convert_pair(const Instruction& one) {
  const Type to = one.types[0];
  const bool is_known = to == Type::kTf32 || is_pair(to);
  const bool is_rounded = to == Type::kTf32 ? one.has("rna") : !one.has("rs");
  if (!is_known || !is_rounded || one.types[1] != Type::kF32) {
    return lack("this conversion is not supported");
  }
  const uint32_t a = source(one, 1, 4);
  const uint32_t b = one.operands.size() == 3 ? source(one, 2, 4) : zeros_;
  const uint32_t d = result(operand(one, 0), 4);
  Step& step = emit(variant_.plain.convert_pack);
  step.d = d;
  step.a = a;
  step.b = b;
  step.flags =
      (to == Type::kBf16x2 ? 1U : 0U) | (one.has("relu") ? 2U : 0U) | (to == Type::kTf32 ? 4U : 0U);
  step.immediate = static_cast<int64_t>(rounding_of(one));
}

// `setp.lt{.and}.f32 p{|q}, a, b {, c}`
void Decoder::set_predicate(const Instruction& one) {
  const Operand& to = operand(one, 0);
  const bool has_two = to.kind == Operand::Kind::kVector && to.parts.size() == 2;
  const int width = bytes_of(one.type());
  const int64_t combination = combination_of(one);
  const uint32_t a = source(one, 1, width), b = source(one, 2, width);
  const uint32_t c = combination != 0 ? predicate_source(operand(one, 3)) : 0;
  const uint32_t d = predicate_result(has_two ? to.parts[0] : to);
  const uint32_t e = has_two ? predicate_result(to.parts[1]) : 0;
  const Compare compare = compare_of(one);
  ArithmeticKey key{Op::kSetp, one.type(), compare, one.has("ftz"), false};
  Step& step = emit(compare == Compare::kNone ? nullptr : variant_.arithmetic(key));
  step.d = d;
  step.a = a;
  step.b = b;
  step.c = c;
  step.e = e;
  step.immediate = combination;
  step.flags = combination != 0 && operand(one, 3).is_negated ? kNegated : 0;
  if (is_half(one.type()) && one.has("ftz")) step.flags |= 8U;
}

// `set.lt{.and}.u32.f32 d, a, b{, c}`: all bits, or 1.0, where it holds.
void Decoder::set_value(const Instruction& one) {
  if (one.types.size() != 2) return lack("this form of set is not supported");
  if (is_pair(one.types[1])) return set_pair(one);
  const int from = bytes_of(one.types[1]), to = bytes_of(one.types[0]);
  const uint32_t a = source(one, 1, from), b = source(one, 2, from);
  const uint32_t d = result(operand(one, 0), to), yes = constant(true_of(one.types[0]), to);
  choose_where(one, one.types[1], a, b, {.d = d, .yes = yes, .width = to});
}

// `set.lt.f16x2.f16x2 d, a, b`: the same for each half.
void Decoder::set_pair(const Instruction& one) {
  const Type to = one.types[0], half = one.types[1] == Type::kF16x2 ? Type::kF16 : Type::kBf16;
  const bool is_known = to == one.types[1] || (is_integer(to) && bytes_of(to) == 4);
  if (!is_known) return lack("this form of set is not supported");
  const uint32_t a = source(one, 1, 4), b = source(one, 2, 4), d = result(operand(one, 0), 4);
  const uint32_t yes = constant(true_of(to), 2);
  if (halves_[0] == 0) {
    for (uint32_t& place : halves_) place = row(2);
  }
  const uint32_t* results = halves_ + 4;
  move_parts(a, {halves_[0], halves_[1]}, true);
  move_parts(b, {halves_[2], halves_[3]}, true);
  for (int k = 0; k < 2; ++k) {
    choose_where(one, half, halves_[k], halves_[2 + k], {.d = results[k], .yes = yes, .width = 2});
  }
  move_parts(d, {results[0], results[1]}, false);
}

// A row of zeros, with another value where a comparison holds.
void Decoder::choose_where(const Instruction& one, Type type, uint32_t a, uint32_t b,
                           const Choice& choice) {
  const int64_t combination = combination_of(one);
  const uint32_t c = combination != 0 ? predicate_source(operand(one, 3)) : 0;
  if (condition_ == 0) condition_ = row(0);
  const Compare compare = compare_of(one);
  ArithmeticKey key{Op::kSetp, type, compare, one.has("ftz"), false};
  Step& step = emit(compare == Compare::kNone ? nullptr : variant_.arithmetic(key));
  step.d = condition_;
  step.a = a;
  step.b = b;
  step.c = c;
  step.immediate = combination;
  step.flags = combination != 0 && operand(one, 3).is_negated ? kNegated : 0;
  if (is_half(type) && one.has("ftz")) step.flags |= 8U;
  Step& chosen = emit(variant_.arithmetic({Op::kSelp, bits_type(choice.width)}));
  chosen.d = choice.d;
  chosen.a = choice.yes;
  chosen.b = zeros_;
  chosen.c = condition_;
}

// Halves of a register of 32 bits to rows of their own, or back.
void Decoder::move_parts(uint32_t whole, std::vector<uint32_t> parts, bool unpacks) {
  Step& step = emit(variant_.plain.pack);
  step.d = whole;
  step.b = 4;
  step.c = 2;
  step.flags = unpacks ? 1 : 0;
  list(std::move(parts));
}

// `selp d, a, b, p` and `slct.type.ctype d, a, b, c`
void Decoder::choose(const Instruction& one) {
  const bool is_selp = one.opcode == "selp";
  if (one.types.empty()) return fail("it has no type");
  const int width = bytes_of(one.types[0]);
  const uint32_t a = source(one, 1, width), b = source(one, 2, width);
  const uint32_t c = is_selp ? predicate_source(operand(one, 3)) : source(one, 3, 4);
  const uint32_t d = result(operand(one, 0), width);
  Step& step = emit(variant_.arithmetic({is_selp ? Op::kSelp : Op::kSlct, bits_type(width)}));
  step.d = d;
  step.a = a;
  step.b = b;
  step.c = c;
  if (is_selp) {
    step.flags = operand(one, 3).is_negated ? kNegated : 0;
  } else {
    step.flags = one.type() != Type::kF32 ? 0 : one.has("ftz") ? 3 : 1;
  }
}

// Predicates have and, or, xor, not and mov.
void Decoder::predicate_logic(const Instruction& one) {
  const std::string& op = one.opcode;
  const bool is_unary = op == "not" || op == "mov";
  const bool is_known = is_unary || op == "and" || op == "or" || op == "xor";
  if (!is_known) return lack("this instruction has no predicates");
  const Operand& first = operand(one, 1);
  const uint32_t a = predicate_source(first);
  const uint32_t b = is_unary ? zeros_ : predicate_source(operand(one, 2));
  const uint32_t d = predicate_result(operand(one, 0));
  Step& step = emit(variant_.plain.predicate);
  step.d = d;
  step.a = a;
  step.b = b;
  step.immediate = op == "and" ? 0 : op == "or" ? 1 : 2;
  const bool negates = first.is_negated != (op == "not");
  step.flags = negates ? kNegated : 0;
  if (!is_unary && operand(one, 2).is_negated) step.flags |= kNegatedSecond;
}

// `mov.b32 d, {a, b}` and `mov.b32 {a, b}, d`
void Decoder::pack(const Instruction& one) {
  const Operand &to = operand(one, 0), &from = operand(one, 1);
  const bool unpacks = to.kind == Operand::Kind::kVector;
  const std::vector<Operand>& parts = unpacks ? to.parts : from.parts;
  const int whole = bytes_of(one.type());
  if (whole > 8) return lack("registers of 128 bits");
  const int part = parts.empty() ? 0 : whole / static_cast<int>(parts.size());
  if (part < 2 || part * std::ssize(parts) != whole) {
    return lack("these parts of a register are not supported");
  }
  const uint32_t d = unpacks ? source(one, from, whole) : result(to, whole);
  std::vector<uint32_t> places;
  for (const Operand& operand : parts) {
    // Each discarded part has a place of its own, else they would share one.
    places.push_back(unpacks ? result(operand, part) : source(one, operand, part));
  }
  Step& step = emit(variant_.plain.pack);
  step.d = d;
  step.b = static_cast<uint32_t>(whole);
  step.c = static_cast<uint32_t>(part);
  step.flags = unpacks ? 1 : 0;
  list(places);
}

bool Decoder::try_bits(const Instruction& one) {
  struct Row {
    std::string_view name;
    Op op;
    int wide, narrow;  // Sources of the type's width, and of 32 bits behind them.
  };
  constexpr Row kRows[] = {{"lop3", Op::kLop3, 3, 0}, {"prmt", Op::kPrmt, 3, 0},
                           {"shf", Op::kShf, 3, 0},   {"bfe", Op::kBfe, 1, 2},
                           {"bfi", Op::kBfi, 2, 2},   {"brev", Op::kBrev, 1, 0},
                           {"dp4a", Op::kDp4a, 3, 0}, {"dp2a", Op::kDp2a, 3, 0}};
  const auto found = std::find_if(std::begin(kRows), std::end(kRows),
                                  [&](const Row& one_row) { return one_row.name == one.opcode; });
  if (found == std::end(kRows)) return false;
  const int width = bytes_of(one.type());
  uint32_t places[4] = {};
  for (int k = 0; k < found->wide + found->narrow; ++k) {
    places[k] = source(one, static_cast<size_t>(k) + 1, k < found->wide ? width : 4);
  }
  const uint32_t d = result(operand(one, 0), width);
  ArithmeticKey key{found->op, one.type()};
  Step& step = emit(variant_.arithmetic(key));
  step.d = d;
  step.a = places[0];
  step.b = places[1];
  step.c = places[2];
  step.e = places[3];
  if (found->op == Op::kLop3) {
    if (one.has("BoolOp") || operand(one, 0).kind == Operand::Kind::kVector)
      lack("lop3 of predicates");
    step.immediate = operand(one, 4).value;
  } else if (found->op == Op::kPrmt) {
    step.flags = static_cast<uint32_t>(position_of(one, kPrmtModes) + 1);
  } else if (found->op == Op::kShf) {
    step.flags = (one.has("r") ? 1U : 0U) | (one.has("clamp") ? 2U : 0U);
  } else if (found->op == Op::kDp4a || found->op == Op::kDp2a) {
    const bool signed_a = is_signed(one.types[0]), signed_b = is_signed(one.type());
    step.flags = (signed_a ? 1U : 0U) | (signed_b ? 2U : 0U) | (one.has("hi") ? 4U : 0U);
  }
  return true;
}

bool Decoder::try_arithmetic(const Instruction& one) {
  const std::string& op = one.opcode;
  if (op == "testp") {
    const int64_t test = position_of(one, kTests);
    const uint32_t a = source(one, 1, bytes_of(one.type())), d = predicate_result(operand(one, 0));
    Step& step = emit(test < 0 ? nullptr : variant_.arithmetic({Op::kTestp, one.type()}));
    step.d = d;
    step.a = a;
    step.immediate = test;
    return true;
  }
  if (op == "addc" || op == "subc" || op == "madc" || one.has("cc")) {
    carry(one, Op::kAddCarry);
    return true;
  }
  for (const OpRow& row : kOps) {
    if (row.name != op) continue;
    arithmetic(one, row.op, row.sources);
    return true;
  }
  return false;
}

// add{.cc}, addc{.cc}, sub, subc, mad.lo, mad.hi, madc
void Decoder::carry(const Instruction& one, Op op) {
  const int width = bytes_of(one.type());
  if (width != 4 && width != 8) return lack("carries of this width");
  if (carries_ == 0) carries_ = row(4);
  const bool is_product = one.opcode.starts_with("mad"),
             is_difference = one.opcode.starts_with("sub");
  const uint32_t a = source(one, 1, width), b = source(one, 2, width);
  const uint32_t c = is_product ? source(one, 3, width) : zeros_;
  const uint32_t d = result(operand(one, 0), width);
  Step& step = emit(variant_.arithmetic({op, width == 8 ? Type::kU64 : Type::kU32}));
  step.d = d;
  step.a = a;
  step.b = b;
  step.c = c;
  step.e = carries_;
  step.flags = (one.opcode.ends_with("c") ? 1U : 0U) | (one.has("cc") ? 2U : 0U) |
               (is_difference ? 4U : 0U) | (is_product ? (one.has("hi") ? 16U : 8U) : 0U);
  step.immediate = is_signed(one.type()) ? 1 : 0;
}

void Decoder::round_next(const Instruction& one) {
  const Rounding rounding = rounding_of(one);
  if (rounding == Rounding::kNearest) return;
  emit(variant_.plain.rounded).immediate = static_cast<int64_t>(rounding);
}

void Decoder::arithmetic(const Instruction& one, Op op, int sources) {
  const Type type = one.type();
  const int width = bytes_of(type);
  const bool is_integer_type = is_integer(type);
  if (width == 0 || width > 8 || (is_integer_type && width == 1)) return lack("this type");
  op = part_of_product(one, op);
  if (one.has("NaN")) op = op == Op::kMin ? Op::kMinNan : Op::kMaxNan;
  if (one.has("xorsign")) return lack("xorsign is not supported");
  const bool is_wide = op == Op::kMulWide || op == Op::kMadWide;
  const bool counts_bits = op == Op::kPopc || op == Op::kClz || op == Op::kBfind;
  const bool is_shift = op == Op::kShl || op == Op::kShr;
  uint32_t places[3] = {zeros_, zeros_, zeros_};
  for (int k = 0; k < sources; ++k) {
    const int own = is_shift && k == 1 ? 4 : is_wide && k == 2 ? 2 * width : width;
    places[k] = source(one, static_cast<size_t>(k) + 1, own);
  }
  if (std::ssize(one.operands) != sources + 1) return fail("a wrong number of operands");
  const uint32_t d = result(operand(one, 0), is_wide ? 2 * width : counts_bits ? 4 : width);
  const bool is_float = type == Type::kF32 || type == Type::kF64;
  if (is_float) round_next(one);
  if (is_half(type) && rounding_of(one) != Rounding::kNearest) return lack("this rounding");
  ArithmeticKey key{op, type, Compare::kNone, one.has("ftz"), is_integer_type && one.has("sat")};
  Step& step = emit(variant_.arithmetic(key));
  step.d = d;
  step.a = places[0];
  step.b = places[1];
  step.c = places[2];
  if (is_half(type)) step.flags = half_flags(one);
  if (op == Op::kBfind) step.flags = one.has("shiftamt") ? 1 : 0;
  if (!is_float || !one.has("sat")) return;
  Step& saturate = emit(variant_.arithmetic({Op::kNone, type, Compare::kNone, false, true}));
  saturate.d = d;
}

}  // namespace mc::ptx
