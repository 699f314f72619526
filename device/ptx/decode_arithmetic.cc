// SPDX-License-Identifier: Apache-2.0
//
// Arithmetic, conversions, comparisons and operations on bits.
#include <algorithm>

#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

// The forms of operands that Decoder::operands reads.
constexpr std::string_view kOne = "dw aw", kTwo = "dw aw bw", kThree = "dw aw bw cw";
constexpr std::string_view kShift = "dw aw b4", kCount = "d4 aw";

struct OpRow {
  std::string_view name;
  Op op;
  std::string_view form;
};

constexpr OpRow kOps[] = {
    {"add", Op::kAdd, kTwo},       {"sub", Op::kSub, kTwo},
    {"mul", Op::kMul, kTwo},       {"mad", Op::kMad, kThree},
    {"fma", Op::kFma, kThree},     {"div", Op::kDiv, kTwo},
    {"rem", Op::kRem, kTwo},       {"abs", Op::kAbs, kOne},
    {"neg", Op::kNeg, kOne},       {"min", Op::kMin, kTwo},
    {"max", Op::kMax, kTwo},       {"rcp", Op::kRcp, kOne},
    {"sqrt", Op::kSqrt, kOne},     {"rsqrt", Op::kRsqrt, kOne},
    {"sin", Op::kSin, kOne},       {"cos", Op::kCos, kOne},
    {"lg2", Op::kLg2, kOne},       {"ex2", Op::kEx2, kOne},
    {"tanh", Op::kTanh, kOne},     {"copysign", Op::kCopysign, kTwo},
    {"sad", Op::kSad, kThree},     {"and", Op::kAnd, kTwo},
    {"or", Op::kOr, kTwo},         {"xor", Op::kXor, kTwo},
    {"not", Op::kNot, kOne},       {"cnot", Op::kCnot, kOne},
    {"shl", Op::kShl, kShift},     {"shr", Op::kShr, kShift},
    {"popc", Op::kPopc, kCount},   {"clz", Op::kClz, kCount},
    {"bfind", Op::kBfind, kCount}, {"mul24", Op::kMul24, kTwo},
    {"mad24", Op::kMad24, kThree}, {"lop3", Op::kLop3, "dw aw bw cw in"},
    {"prmt", Op::kPrmt, kThree},   {"shf", Op::kShf, kThree},
    {"brev", Op::kBrev, kOne},     {"bfe", Op::kBfe, "dw aw b4 c4"},
    {"dp4a", Op::kDp4a, kThree},   {"bfi", Op::kBfi, "dw aw bw c4 e4"},
    {"dp2a", Op::kDp2a, kThree},   {"bmsk", Op::kBmsk, kTwo},
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

Rounding rounding_of(const Instruction& one) {
  if (one.has("rz") || one.has("rzi")) return Rounding::kZero;
  if (one.has("rm") || one.has("rmi")) return Rounding::kDown;
  return one.has("rp") || one.has("rpi") ? Rounding::kUp : Rounding::kNearest;
}

bool is_half(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBf16 || type == Type::kBf16x2;
}

// The value with which `set` represents true in a type.
uint64_t true_of(Type type) {
  if (type == Type::kF32) return 0x3F800000;
  if (type == Type::kF16 || type == Type::kF16x2) return 0x3C00;
  return type == Type::kBf16 || type == Type::kBf16x2 ? 0x3F80 : 0xFFFFFFFF;
}

bool is_pair(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }

// The part of the product (lo, hi, wide) that mul, mad, mul24 and mad24 select.
Op part_of_product(const Instruction& one, Op op) {
  if (one.has("wide")) return op == Op::kMul ? Op::kMulWide : Op::kMadWide;
  if (one.has("hi") && op == Op::kMul) return Op::kMulHi;
  if (one.has("hi") && op == Op::kMad) return Op::kMadHi;
  if (one.has("hi") && op == Op::kMul24) return Op::kMul24Hi;
  if (one.has("hi") && op == Op::kMad24) return Op::kMad24Hi;
  return op;
}

constexpr std::string_view kCombinations[] = {"and", "or", "xor"};
constexpr std::string_view kPrmtModes[] = {"f4e", "b4e", "rc8", "ecl", "ecr", "rc16"};
constexpr std::string_view kTests[] = {"finite",     "infinite", "number",
                                       "notanumber", "normal",   "subnormal"};

// The handler's own flags, as arithmetic.cc, integer.cc and bits.cc read them.
uint32_t flags_of(const Instruction& one, Op op) {
  auto flag = [&](std::string_view modifier, uint32_t bit) { return one.has(modifier) ? bit : 0; };
  if (is_half(one.type())) return flag("ftz", 1) | flag("sat", 2) | flag("relu", 4);
  if (op == Op::kBfind) return flag("shiftamt", 1);
  if (op == Op::kBmsk) return flag("clamp", 1);
  if (op == Op::kPrmt) return static_cast<uint32_t>(position_of(one, kPrmtModes) + 1);
  if (op == Op::kShf) return flag("r", 1) | flag("clamp", 2);
  if (op != Op::kDp4a && op != Op::kDp2a) return 0;
  return (is_signed(one.types[0]) ? 1 : 0) | (is_signed(one.type()) ? 2 : 0) | flag("hi", 4);
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
    emit(variant_.plain.clock, {.d = result(to, width),
                                .c = from.name.starts_with("%g") ? 1U : 0U,
                                .flags = width == 8 ? 1U : 0U,
                                .immediate = from.name.ends_with("_hi") ? 32 : 0});
    return true;
  }
  emit(variant_.arithmetic({Op::kMov, bits_type(width)}), operands(one, kOne));
  return true;
}

// `cvt.rnd{.ftz}{.sat}.to.from d, a`, and for pairs `cvt.rn.f16x2.f32 d, a, b`
void Decoder::convert(const Instruction& one) {
  if (one.has("pack")) return mark_unsupported("cvt.pack is not supported");
  if (one.types.size() != 2) return mark_unsupported("this conversion is not supported");
  if (is_fp8_pair(one.types[0]) || is_fp8_pair(one.types[1])) return convert_fp8(one);
  if (one.has("satfinite")) return mark_unsupported("cvt with .satfinite is not supported");
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
  const bool is_rounded = key.to_integral || key.to == Type::kF32 || key.to == Type::kF64;
  Step step = {.d = result(to, key.to_width), .a = source(from, key.from_width)};
  step.b = static_cast<uint32_t>(key.to);
  step.c = static_cast<uint32_t>(key.from);
  step.e = static_cast<uint32_t>(key.to_width | key.from_width << 4 |
                                 static_cast<int>(key.rounding) << 8);
  step.flags = (key.to_integral ? 1U : 0U) | (key.is_saturated ? 2U : 0U) |
               (key.is_relu ? 4U : 0U) | (key.is_ftz ? 8U : 0U);
  if (is_rounded) round_next(one);
  emit(variant_.convert(key), step);
}

void Decoder::convert_pair(const Instruction& one) {
  const Type to = one.types[0];
  const bool is_known = to == Type::kTf32 || is_pair(to);
  const bool is_rounded = to == Type::kTf32 ? one.has("rna") : !one.has("rs");
  if (!is_known || !is_rounded || one.types[1] != Type::kF32) {
    return mark_unsupported("this conversion is not supported");
  }
  Step step = operands(one, one.operands.size() == 3 ? "d4 a4 b4" : "d4 a4");
  step.flags =
      (to == Type::kBf16x2 ? 1U : 0U) | (one.has("relu") ? 2U : 0U) | (to == Type::kTf32 ? 4U : 0U);
  step.immediate = static_cast<int64_t>(rounding_of(one));
  emit(variant_.plain.convert_pack, step);
}

// `cvt.rn.satfinite{.relu}.e4m3x2.f32 d, a, b`, `cvt.rn.satfinite{.relu}.e4m3x2.f16x2 d, a` and
// `cvt.rn{.relu}.f16x2.e4m3x2 d, a`
void Decoder::convert_fp8(const Instruction& one) {
  const bool narrows = is_fp8_pair(one.types[0]), is_relu = one.has("relu");
  const size_t num_modifiers = 3U + (narrows ? 1U : 0U) + (is_relu ? 1U : 0U);  // Two are types.
  if (!one.has("rn") || one.has("satfinite") != narrows || one.modifiers.size() != num_modifiers) {
    return mark_unsupported("this conversion is not supported");
  }
  const bool has_two = narrows && one.types[1] == Type::kF32;
  Step step = operands(one, has_two ? "d2 a4 b4" : narrows ? "d2 a4" : "d4 a2");
  step.flags = is_relu ? 1U : 0U;
  emit(variant_.convert({.to = one.types[0], .from = one.types[1]}), step);
}

// `setp.lt{.and}.f32 p{|q}, a, b {, c}`
void Decoder::set_predicate(const Instruction& one) { compare(one, "dp|ep"); }

// `set.lt{.and}.u32.f32 d, a, b{, c}`: all bits set, or 1.0, if it is true. Pairs of halves have
// two results, one in each half of d.
void Decoder::set_value(const Instruction& one) {
  if (one.types.size() != 2) return mark_unsupported("this form of set is not supported");
  const Type to = one.types[0];
  const int width = bytes_of(to);
  if (width != 2 && width != 4) return mark_unsupported("this form of set is not supported");
  const bool has_pairs = is_pair(one.types[1]);
  if (has_pairs && to != one.types[1] && !(is_integer(to) && width == 4)) {
    return mark_unsupported("this form of set is not supported");
  }
  if (second_[0] == 0) second_ = {row(0), row(0), row(4)};
  const auto& [condition, other, rest] = second_;
  Step& step = compare(one, width == 2 ? "d2" : "d4");
  const uint32_t d = std::exchange(step.d, condition);
  if (has_pairs) step.e = other;
  const uint64_t yes = has_pairs ? true_of(to) & 0xFFFF : true_of(to);
  const Handler select = variant_.arithmetic({Op::kSelp, bits_type(width)});
  emit(select, {.d = d, .a = constant(yes, width), .b = zeros_, .c = condition});
  if (!has_pairs) return;
  emit(select, {.d = rest, .a = constant(yes << 16, width), .b = zeros_, .c = other});
  emit(variant_.arithmetic({Op::kOr, Type::kB32}), {.d = d, .a = d, .b = rest});
}

// Decodes a comparison whose results have the form `results`.
Step& Decoder::compare(const Instruction& one, const std::string& results) {
  const int64_t combination = position_of(one, kCombinations) + 1;
  const ArithmeticKey key{Op::kSetp, one.type(), compare_of(one), one.has("ftz"), false};
  Step step = operands(one, results + (combination != 0 ? " aw bw cp" : " aw bw"));
  step.immediate = combination;
  if (is_half(one.type()) && one.has("ftz")) step.flags |= 8U;
  return emit(key.compare == Compare::kNone ? nullptr : variant_.arithmetic(key), step);
}

// `selp d, a, b, p` and `slct.type.ctype d, a, b, c`
void Decoder::choose(const Instruction& one) {
  const bool is_selp = one.opcode == "selp";
  if (one.types.empty()) return fail("it has no type");
  const Type type = one.types[0];
  Step step = operands(one, is_selp ? "dw aw bw cp" : "dw aw bw c4", type);
  if (!is_selp) step.flags = one.type() != Type::kF32 ? 0 : one.has("ftz") ? 3 : 1;
  emit(variant_.arithmetic({is_selp ? Op::kSelp : Op::kSlct, bits_type(bytes_of(type))}), step);
}

// Predicates have and, or, xor, not and mov.
void Decoder::predicate_logic(const Instruction& one) {
  const std::string& op = one.opcode;
  const bool is_unary = op == "not" || op == "mov";
  const int64_t position =
      std::find(std::begin(kCombinations), std::end(kCombinations), op) - kCombinations;
  if (!is_unary && position == std::ssize(kCombinations))
    return mark_unsupported("this instruction has no predicates");
  Step step = operands(one, is_unary ? "dp ap" : "dp ap bp");
  if (is_unary) step.b = zeros_;
  if (op == "not") step.flags ^= kNegated;
  step.immediate = is_unary ? 2 : position;
  emit(variant_.plain.predicate, step);
}

// `mov.b32 d, {a, b}` and `mov.b32 {a, b}, d`
void Decoder::pack(const Instruction& one) {
  const Operand &to = operand(one, 0), &from = operand(one, 1);
  const bool unpacks = to.kind == Operand::Kind::kVector;
  const std::vector<Operand>& parts = unpacks ? to.parts : from.parts;
  const int whole = bytes_of(one.type());
  if (whole > 8) return mark_unsupported("registers of 128 bits");
  const int part = parts.empty() ? 0 : whole / static_cast<int>(parts.size());
  if (part < 2 || part * std::ssize(parts) != whole) {
    return mark_unsupported("these parts of a register are not supported");
  }
  std::vector<uint32_t> offsets;
  for (const Operand& operand : parts) {
    offsets.push_back(unpacks ? result(operand, part) : source(operand, part));
  }
  emit(variant_.plain.pack, {.d = unpacks ? source(from, whole) : result(to, whole),
                             .b = static_cast<uint32_t>(whole),
                             .c = static_cast<uint32_t>(part),
                             .flags = unpacks ? 1U : 0U});
  list(offsets);
}

bool Decoder::try_arithmetic(const Instruction& one) {
  if (one.opcode == "testp") {
    Step step = operands(one, "dp aw");
    step.immediate = position_of(one, kTests);
    emit(step.immediate < 0 ? nullptr : variant_.arithmetic({Op::kTestp, one.type()}), step);
    return true;
  }
  if (one.opcode == "addc" || one.opcode == "subc" || one.opcode == "madc" || one.has("cc")) {
    carry(one);
    return true;
  }
  for (const OpRow& row : kOps) {
    if (row.name != one.opcode) continue;
    arithmetic(one, row.op, row.form);
    return true;
  }
  return false;
}

// add{.cc}, addc{.cc}, sub, subc, mad.lo, mad.hi, madc
void Decoder::carry(const Instruction& one) {
  const int width = bytes_of(one.type());
  if (width != 4 && width != 8) return mark_unsupported("carries of this width");
  if (carries_ == 0) carries_ = row(4);
  const bool is_product = one.opcode.starts_with("mad");
  Step step = operands(one, is_product ? kThree : kTwo);
  step.e = carries_;
  step.flags = (one.opcode.ends_with("c") ? 1U : 0U) | (one.has("cc") ? 2U : 0U) |
               (one.opcode.starts_with("sub") ? 4U : 0U) |
               (is_product ? (one.has("hi") ? 16U : 8U) : 0U);
  step.immediate = is_signed(one.type()) ? 1 : 0;
  emit(variant_.arithmetic({Op::kAddCarry, width == 8 ? Type::kU64 : Type::kU32}), step);
}

void Decoder::round_next(const Instruction& one) {
  const Rounding rounding = rounding_of(one);
  if (rounding == Rounding::kNearest) return;
  emit(variant_.plain.rounded, {.immediate = static_cast<int64_t>(rounding)});
}

void Decoder::arithmetic(const Instruction& one, Op op, std::string_view form) {
  const Type type = one.type();
  const int width = bytes_of(type);
  if (width == 0 || width > 8 || (is_integer(type) && width == 1))
    return mark_unsupported("this type");
  if (one.has("xorsign")) return mark_unsupported("xorsign is not supported");
  if (op == Op::kLop3 && one.has("BoolOp")) return mark_unsupported("lop3 of predicates");
  op = part_of_product(one, op);
  if (op == Op::kMulWide) form = "dx aw bw";
  if (op == Op::kMadWide) form = "dx aw bw cx";
  if (op == Op::kDiv && one.has("approx")) op = Op::kDivApprox;
  if (one.has("NaN")) op = op == Op::kMin ? Op::kMinNan : Op::kMaxNan;
  const bool is_float = type == Type::kF32 || type == Type::kF64, saturates = one.has("sat");
  if (is_half(type) && rounding_of(one) != Rounding::kNearest)
    return mark_unsupported("this rounding");
  Step step = operands(one, form);
  step.flags = flags_of(one, op);
  if (is_float) round_next(one);
  const bool is_saturated = is_integer(type) && saturates;
  emit(variant_.arithmetic({op, type, Compare::kNone, one.has("ftz"), is_saturated}), step);
  if (!is_float || !saturates) return;
  emit(variant_.arithmetic({Op::kNone, type, Compare::kNone, false, true}), {.d = step.d});
}

}  // namespace mc::ptx
