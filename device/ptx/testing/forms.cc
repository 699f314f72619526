// SPDX-License-Identifier: Apache-2.0
#include "ptx/testing/forms.h"

#include <cctype>
#include <cmath>
#include <map>
#include <sstream>

#include "ptx/testing/reference_values.h"

namespace mc::ptx {
namespace {

using Names = std::vector<std::string>;

constexpr KindTraits kTraits[] = {
    {'h', ".b16", ".b16", Type::kB16},   {'r', ".b32", ".b32", Type::kB32},
    {'l', ".b64", ".b64", Type::kB64},   {'f', ".f32", ".f32", Type::kF32},
    {'d', ".f64", ".f64", Type::kF64},   {'p', ".pred", ".u32", Type::kB32},
    {'e', ".b16", ".b16", Type::kF16},   {'E', ".b32", ".b32", Type::kF16x2},
    {'g', ".b16", ".b16", Type::kBf16},  {'G', ".b32", ".b32", Type::kBf16x2},
    {'s', ".b32", ".b32", Type::kB32},   {'q', ".f32", ".f32", Type::kF32},
    {'m', ".b16", ".b16", Type::kB16},   {'n', ".f32", ".f32", Type::kF32},
    {'N', ".b32", ".b32", Type::kF16x2},
};

// The error bounds of approximations: the ISA's, or a GPU's observed error if that is smaller.
constexpr Tolerance kOneUlp = {1, 0}, kTwoUlp = {2, 0};
constexpr Tolerance kSine = {0, 1.7e-5}, kLogarithm = {4, 2.4e-7}, kTanh = {512, 0};
constexpr Tolerance kHalfTanh = {2, 6e-4}, kHalfPower = {2, 0};

char kind_of(const std::string& type) {
  const std::pair<const char*, char> rows[] = {{"f16x2", 'E'}, {"bf16x2", 'G'}, {"f16", 'e'},
                                               {"bf16", 'g'},  {"f32", 'f'},    {"f64", 'd'},
                                               {"pred", 'p'}};
  for (const auto& [name, kind] : rows) {
    if (type == name) return kind;
  }
  if (type.ends_with("64")) return 'l';
  return type.ends_with("16") ? 'h' : 'r';  // Bytes are in registers of 32 bits.
}

class List {
 public:
  std::vector<Form> forms;

  // `name $0, $1, ...;` with as many sources as kinds has letters behind the first.
  Form& add(const std::string& name, const std::string& kinds) {
    std::string text = name + " $0";
    for (size_t k = 1; k < kinds.size(); ++k) text += ", $" + std::to_string(k);
    forms.push_back({text + ";", kinds, {}, false, false});
    return forms.back();
  }

  void approximate(const std::string& name, const std::string& kinds, Tolerance tolerance) {
    Form& form = add(name, kinds);
    form.tolerance = tolerance;
    form.is_approximate = true;
  }

  // An operation whose operands and result have its type.
  Form& typed(const std::string& name, const std::string& type, int sources) {
    return add(name + "." + type, std::string(static_cast<size_t>(sources) + 1, kind_of(type)));
  }

  void raw(const std::string& text, const std::string& kinds) {
    forms.push_back({text, kinds, {}, false, false});
  }
};

const Names kIntegers = {"u16", "s16", "u32", "s32", "u64", "s64"};
const Names kAllIntegers = {"u8", "s8", "u16", "s16", "u32", "s32", "u64", "s64"};
const Names kModes = {"rn", "rz", "rm", "rp"};

void add_integers(List& list) {
  for (const std::string& type : kIntegers) {
    for (const char* op : {"add", "sub", "mul.lo", "mul.hi", "min", "max"}) list.typed(op, type, 2);
    for (const char* op : {"mad.lo", "mad.hi", "sad"}) list.typed(op, type, 3);
    for (const char* op : {"div", "rem"}) list.typed(op, type, 2).has_divisor = true;
    if (type[0] == 's') {
      for (const char* op : {"abs", "neg"}) list.typed(op, type, 1);
    }
    if (type.ends_with("64")) continue;
    const char wide = type.ends_with("32") ? 'l' : 'r', kind = kind_of(type);
    list.add("mul.wide." + type, {wide, kind, kind});
    list.add("mad.wide." + type, {wide, kind, kind, wide});
  }
  for (const char* op : {"add.sat", "sub.sat"}) list.typed(op, "s32", 2);
  for (const char* op : {"mad.hi.sat", "mad24.hi.sat"}) list.typed(op, "s32", 3);
  for (const char* type : {"u32", "s32"}) {
    for (const char* part : {".lo", ".hi"}) {
      list.typed(std::string("mul24") + part, type, 2);
      list.typed(std::string("mad24") + part, type, 3);
    }
  }
  for (const char* a : {"u32", "s32"}) {
    for (const char* b : {"u32", "s32"}) {
      for (const char* op : {"dp4a.", "dp2a.lo.", "dp2a.hi."}) {
        list.add(std::string(op) + a + "." + b, "rrrr");
      }
    }
  }
}

// Carries pass from one instruction to the next, so that a form is a block of several.
void add_carries(List& list) {
  for (const char* width : {"32", "64"}) {
    const std::string t = std::string("u") + width, kind = width[0] == '3' ? "r" : "l";
    const std::string open = std::string("{ .reg .b") + width + " %t; ";
    const std::string four = kind + kind + kind + kind;
    list.raw(open + "add.cc." + t + " %t, $1, $2; addc." + t + " $0, %t, $3; }", four);
    list.raw(open + "sub.cc." + t + " %t, $1, $2; subc." + t + " $0, %t, $3; }", four);
    list.raw(open + "add.cc." + t + " %t, $1, $2; addc.cc." + t + " %t, $2, $3; addc." + t +
                 " $0, %t, 0; }",
             four);
    list.raw(open + "sub.cc." + t + " %t, $1, $2; subc.cc." + t + " %t, $2, $3; subc." + t +
                 " $0, %t, 0; }",
             four);
    list.raw(open + "mad.lo.cc." + t + " %t, $1, $2, $3; madc.hi." + t + " $0, $1, $2, %t; }",
             four);
    list.raw(open + "mad.hi.cc." + t + " %t, $1, $2, $3; madc.lo.cc." + t +
                 " %t, $1, $2, %t; addc." + t + " $0, %t, 0; }",
             four);
  }
}

void add_bits(List& list) {
  for (const char* type : {"b16", "b32", "b64", "pred"}) {
    for (const char* op : {"and", "or", "xor"}) list.typed(op, type, 2);
    list.typed("not", type, 1);
  }
  for (const char* type : {"b16", "b32", "b64"}) {
    const char kind = kind_of(type);
    list.typed("cnot", type, 1);
    list.add(std::string("shl.") + type, {kind, kind, 's'});
    for (const char* sort : {"b", "u", "s"}) {
      list.add("shr." + std::string(sort) + (type + 1), {kind, kind, 's'});
    }
  }
  for (const char* type : {"b32", "b64"}) {
    const char kind = kind_of(type);
    for (const char* op : {"popc.", "clz."}) list.add(std::string(op) + type, {'r', kind});
    list.typed("brev", type, 1);
    list.add(std::string("bfi.") + type, {kind, kind, kind, 's', 's'});
  }
  for (const char* type : {"u32", "s32", "u64", "s64"}) {
    const char kind = kind_of(type);
    list.add(std::string("bfind.") + type, {'r', kind});
    list.add(std::string("bfind.shiftamt.") + type, {'r', kind});
    list.add(std::string("bfe.") + type, {kind, kind, 's', 's'});
  }
  for (const char* mode : {"", ".f4e", ".b4e", ".rc8", ".ecl", ".ecr", ".rc16"}) {
    list.add(std::string("prmt.b32") + mode, "rrrr");
  }
  for (const char* table : {"0x80", "0xE8", "0x96", "0x1B"}) {
    list.raw(std::string("lop3.b32 $0, $1, $2, $3, ") + table + ";", "rrrr");
  }
  for (const char* op : {"shf.l.wrap", "shf.l.clamp", "shf.r.wrap", "shf.r.clamp"}) {
    list.add(std::string(op) + ".b32", "rrrs");
  }
}

void add_comparisons(List& list) {
  auto all = [&](const std::string& type, const Names& names, const std::string& flags) {
    const char kind = kind_of(type);
    for (const std::string& name : names) {
      list.add("setp." + name + flags + "." + type, {'p', kind, kind});
    }
  };
  const Names ordered = {"eq", "ne", "lt", "le", "gt", "ge"};
  for (const std::string& type : kIntegers) {
    all(type, ordered, "");
    if (type[0] == 'u') all(type, {"lo", "ls", "hi", "hs"}, "");
  }
  for (const char* type : {"b16", "b32", "b64"}) all(type, {"eq", "ne"}, "");
  Names unordered = ordered;
  for (const char* one : {"equ", "neu", "ltu", "leu", "gtu", "geu", "num", "nan"}) {
    unordered.push_back(one);
  }
  for (const char* type : {"f16", "f32", "f64"}) all(type, unordered, "");
  for (const char* type : {"f16", "f32"}) all(type, {"eq", "lt", "gtu", "neu"}, ".ftz");
  const std::string both =
      " %p|%q, $1, $2, $3; selp.b32 %t, 1, 0, %p; selp.b32 %u, 2, 0, %q; or.b32 $0, %t, %u; }";
  for (const char* op : {"and", "or", "xor"}) {
    const std::string open = "{ .reg .pred %p, %q; .reg .b32 %t, %u; setp.";
    list.raw(open + "lt." + op + ".s32" + both, "rrrp");
    list.raw(open + "geu." + op + ".f32" + both, "rffp");
    list.raw(open + "ne." + op + ".u64" + both, "rllp");
  }
  list.raw("{ .reg .pred %p; not.pred %p, $3; setp.gt.and.f64 $0, $1, $2, !$3; }", "pddp");
  for (const char* name : {"eq", "lt", "ge"}) {
    const std::string op = std::string("set.") + name;
    list.add(op + ".u32.s32", "rrr");
    list.add(op + ".s32.u64", "rll");
    list.add(op + ".f32.s32", "frr");
    list.add(op + ".u32.f32", "rff");
    list.add(op + ".f32.f32", "fff");
    list.add(op + ".ftz.f32.f32", "fff");
    list.add(op + ".f32.f64", "fdd");
    list.add(op + ".and.u32.u32", "rrrp");
  }
  for (const std::string& name : unordered) {
    const std::string op = "set." + name;
    list.add(op + ".f16.f16", "eee");
    list.add(op + ".f16x2.f16x2", "EEE");
    list.add(op + ".u32.f16x2", "rEE");
  }
  list.add("set.lt.ftz.f16x2.f16x2", "EEE");
  list.add("set.gt.ftz.f16.f16", "eee");
  list.add("set.le.u16.f16", "hee");
  list.add("set.eq.or.f16x2.f16x2", "EEEp");
}

void add_choices(List& list) {
  for (const char* type : {"b16", "u16", "b32", "s32", "u32", "b64", "u64", "f32", "f64"}) {
    const char kind = kind_of(type);
    list.add(std::string("selp.") + type, {kind, kind, kind, 'p'});
    list.add(std::string("slct.") + type + ".s32", {kind, kind, kind, 'r'});
    list.add(std::string("slct.") + type + ".f32", {kind, kind, kind, 'f'});
  }
  list.add("slct.ftz.s32.f32", "rrrf");
  for (const char* type : {"b16", "b32", "b64", "f32", "f64", "pred"}) list.typed("mov", type, 1);
  list.raw("mov.b32 $0, {$1, $2};", "rhh");
  list.raw("mov.b64 $0, {$1, $2};", "lrr");
  list.raw("mov.b64 $0, {$1, $2, $3, $4};", "lhhhh");
  list.raw("{ .reg .b16 %t; mov.b32 {%t, $0}, $1; }", "hr");
  list.raw("{ .reg .b32 %t; mov.b64 {$0, %t}, $1; }", "rl");
  list.raw("mov.b64 {_, $0}, $1;", "rl");
}

void add_floats(List& list) {
  for (const std::string& mode : kModes) {
    for (const char* op : {"add.", "sub.", "mul.", "fma.", "div.", "rcp.", "sqrt."}) {
      const std::string name = op + mode;
      const int sources = name[0] == 'f' ? 3 : name[0] == 'r' || name[1] == 'q' ? 1 : 2;
      list.typed(name, "f64", sources);
      list.typed(name, "f32", sources);
      list.typed(name + ".ftz", "f32", sources);
      if (sources != 3 && name[0] != 'a' && name[0] != 'm' && !name.starts_with("sub")) continue;
      list.typed(name + ".sat", "f32", sources);
      list.typed(name + ".ftz.sat", "f32", sources);
    }
  }
  for (const char* type : {"f32", "f64"}) {
    for (const char* op : {"add", "sub", "mul", "min", "max", "copysign"}) list.typed(op, type, 2);
    for (const char* op : {"abs", "neg"}) list.typed(op, type, 1);
    for (const char* test : {"finite", "infinite", "number", "notanumber", "normal", "subnormal"}) {
      list.add(std::string("testp.") + test + "." + type, {'p', kind_of(type)});
    }
  }
  for (const char* op : {"add.ftz", "sub.ftz", "mul.ftz", "min.ftz", "max.ftz", "min.NaN",
                         "max.NaN", "min.ftz.NaN", "max.ftz.NaN"}) {
    list.typed(op, "f32", 2);
  }
  for (const char* op : {"abs.ftz", "neg.ftz"}) list.typed(op, "f32", 1);
}

void add_halves(List& list) {
  for (const char* type : {"f16", "f16x2"}) {
    for (const char* flags : {"", ".rn", ".rn.ftz", ".rn.sat", ".rn.ftz.sat", ".ftz"}) {
      for (const char* op : {"add", "sub", "mul"}) list.typed(std::string(op) + flags, type, 2);
    }
    for (const char* flags : {"", ".ftz", ".sat", ".ftz.sat", ".relu", ".ftz.relu"}) {
      list.typed(std::string("fma.rn") + flags, type, 3);
    }
    for (const char* flags : {"", ".ftz", ".NaN", ".ftz.NaN"}) {
      for (const char* op : {"min", "max"}) list.typed(std::string(op) + flags, type, 2);
    }
    for (const char* op : {"abs", "neg", "abs.ftz", "neg.ftz"}) list.typed(op, type, 1);
  }
  for (const char* type : {"bf16", "bf16x2"}) {
    for (const char* op : {"fma.rn", "fma.rn.relu"}) list.typed(op, type, 3);
    for (const char* op : {"min", "max", "min.NaN", "max.NaN"}) list.typed(op, type, 2);
    for (const char* op : {"abs", "neg"}) list.typed(op, type, 1);
  }
}

void add_approximations(List& list) {
  for (const char* flags : {"", ".ftz"}) {
    auto name = [&](const char* op) { return std::string(op) + ".approx" + flags + ".f32"; };
    list.approximate(name("rcp"), "ff", kOneUlp);
    list.approximate(name("sqrt"), "ff", kOneUlp);
    list.approximate(name("rsqrt"), "ff", kTwoUlp);
    list.approximate(name("ex2"), "ff", kTwoUlp);
    list.approximate(name("lg2"), "ff", kLogarithm);
    list.approximate(name("sin"), "fq", kSine);
    list.approximate(name("cos"), "fq", kSine);
    list.approximate(name("div"), "fff", kTwoUlp);
    list.approximate(std::string("div.full") + flags + ".f32", "fff", kTwoUlp);
  }
  list.approximate("tanh.approx.f32", "ff", kTanh);
  for (const char* type : {"f16", "f16x2"}) {
    const std::string kinds(2, kind_of(type));
    list.approximate(std::string("ex2.approx.") + type, kinds, kHalfPower);
    list.approximate(std::string("tanh.approx.") + type, kinds, kHalfTanh);
  }
}

// Saturation is legal if one type cannot represent each value of the other.
bool may_saturate(const std::string& to, const std::string& from) {
  const Type a = type_of(to), b = type_of(from);
  if (is_signed(a) == is_signed(b)) return bytes_of(b) > bytes_of(a);
  return is_signed(b) || bytes_of(b) >= bytes_of(a);
}

void add_integer_conversions(List& list) {
  for (const std::string& to : kAllIntegers) {
    for (const std::string& from : kAllIntegers) {
      const std::string kinds = {kind_of(to), kind_of(from)};
      list.add("cvt." + to + "." + from, kinds);
      if (may_saturate(to, from)) list.add("cvt.sat." + to + "." + from, kinds);
    }
    for (const char* real : {"f16", "f32", "f64"}) {
      for (const std::string& mode : kModes) {
        list.add("cvt." + mode + "." + real + "." + to, {kind_of(real), kind_of(to)});
        const std::string name = "cvt." + mode + "i";
        list.add(name + "." + to + "." + real, {kind_of(to), kind_of(real)});
      }
    }
    list.add("cvt.rzi.ftz." + to + ".f32", {kind_of(to), 'f'});
    list.add("cvt.rni.sat." + to + ".f32", {kind_of(to), 'f'});
    list.add("cvt.rn.sat.f32." + to, {'f', kind_of(to)});
  }
}

void add_float_conversions(List& list) {
  for (const std::string& mode : kModes) {
    for (const char* flags : {"", ".ftz", ".sat", ".ftz.sat"}) {
      list.add("cvt." + mode + flags + ".f32.f64", "fd");
      list.add("cvt." + mode + "i" + flags + ".f32.f32", "ff");
    }
    list.add("cvt." + mode + ".f16.f32", "ef");
    list.add("cvt." + mode + ".f16.f64", "ed");
    list.add("cvt." + mode + "i.f64.f64", "dd");
    list.add("cvt." + mode + "i.f16.f16", "ee");
  }
  for (const char* name :
       {"cvt.f32.f32", "cvt.ftz.f32.f32", "cvt.sat.f32.f32", "cvt.ftz.sat.f32.f32"}) {
    list.add(name, "ff");
  }
  list.add("cvt.rn.ftz.f16.f32", "ef");
  list.add("cvt.rn.sat.f16.f32", "ef");
  list.add("cvt.f32.f16", "fe");
  list.add("cvt.ftz.f32.f16", "fe");
  list.add("cvt.sat.f32.f16", "fe");
  list.add("cvt.f64.f16", "de");
  list.add("cvt.f64.f32", "df");
  list.add("cvt.ftz.f64.f32", "df");
  list.add("cvt.sat.f64.f32", "df");
  list.add("cvt.f32.bf16", "fg");
  for (const char* mode : {"rn", "rz"}) {
    for (const char* flags : {"", ".relu"}) {
      const std::string name = std::string("cvt.") + mode + flags;
      list.add(name + ".f16.f32", "ef");
      list.add(name + ".bf16.f32", "gf");
      list.add(name + ".f16x2.f32", "Eff");
      list.add(name + ".bf16x2.f32", "Gff");
    }
  }
  // The low bits of a tf32 are open.
  list.raw("{ .reg .b32 %t; cvt.rna.tf32.f32 %t, $1; and.b32 %t, %t, 0xFFFFE000; mov.b32 $0, %t; }",
           "ff");
}

void add_fp8_conversions(List& list) {
  for (const std::string pair : {"e4m3x2", "e5m2x2"}) {
    for (const std::string relu : {"", ".relu"}) {
      list.add("cvt.rn.satfinite" + relu + "." + pair + ".f32", "hnn");
      list.add("cvt.rn.satfinite" + relu + "." + pair + ".f16x2", "hN");
      list.add("cvt.rn" + relu + ".f16x2." + pair, "Em");
    }
  }
}

// Results just below the least normal number, where .ftz depends on when it looks: before rounding,
// after it, or after one without a least exponent. The source's low bits are the distance j, its
// sign is that of the result.
void add_tiny_results(List& list) {
  auto add = [&](const std::string& text, const std::string& kinds) {
    list.raw(text, kinds);
    list.forms.back().is_table_only = true;
  };
  const std::string begin =
      "{ .reg .b32 %j, %k, %x, %y, %z; and.b32 %j, $1, 4095; and.b32 %k, $1, 0x80000000; ";
  // The product of 1 - j 2^-23 and 2^-126 (1 + j 2^-23) is 2^-126 (1 - j^2 2^-46).
  const std::string product =
      begin + "mad.lo.s32 %x, %j, -2, 0x3F800000; add.u32 %y, %j, 0x00800000; or.b32 %y, %y, %k; ";
  // The same distance by a product and an addend of opposite signs: j 2^-86 and 2^-126.
  const std::string sum =
      begin +
      "cvt.rn.f32.u32 %x, %j; mul.rn.f32 %x, %x, 0f14800000; "
      "xor.b32 %y, %x, 0x80000000; xor.b32 %y, %y, %k; or.b32 %z, %k, 0x00800000; ";
  // Quotients of neighbours, and reciprocals of numbers above 2^126.
  const std::string quotient = begin +
                               "add.u32 %x, %j, 0x00800000; or.b32 %x, %x, %k; "
                               "add.u32 %y, %j, 0x3F800001; ";
  const std::string reciprocal = begin + "add.u32 %x, %j, 0x7E800000; or.b32 %x, %x, %k; ";
  // The double 2^-126 (1 - j 2^-53).
  const std::string narrowed =
      "{ .reg .b64 %j, %k; .reg .f64 %x; and.b64 %j, $1, 0x3FFFFFFF; "
      "and.b64 %k, $1, 0x8000000000000000; sub.u64 %j, 0x3810000000000000, %j; "
      "or.b64 %j, %j, %k; mov.b64 %x, %j; ";
  for (const std::string& mode : kModes) {
    const std::string ftz = "." + mode + ".ftz.f32 $0, ";
    add(product + "mul" + ftz + "%x, %y; }", "fr");
    add(product + "fma" + ftz + "%x, %y, 0f00000000; }", "fr");
    add(sum + "fma" + ftz + "%x, %y, %z; }", "fr");
    add(quotient + "div" + ftz + "%x, %y; }", "fr");
    add(reciprocal + "rcp" + ftz + "%x; }", "fr");
    add(narrowed + "cvt." + mode + ".ftz.f32.f64 $0, %x; }", "fl");
  }
  // The product of 1 - j 2^-10 and 2^-14 (1 + j 2^-10).
  const std::string half =
      "{ .reg .b16 %j, %k, %x, %y, %z; and.b16 %j, $1, 31; and.b16 %k, $1, 0x8000; "
      "mad.lo.s16 %x, %j, -2, 0x3C00; add.u16 %y, %j, 0x0400; or.b16 %y, %y, %k; ";
  add(half + "mul.rn.ftz.f16 $0, %x, %y; }", "eh");
  add(half + "mov.b16 %z, 0; fma.rn.ftz.f16 $0, %x, %y, %z; }", "eh");
}

std::vector<uint64_t> float_edges(Type type) {
  const double values[] = {0.0,
                           1.0,
                           0.5,
                           1.5,
                           2.5,
                           3.5,
                           2.0,
                           0.3,
                           3.0,
                           10.0,
                           100.0,
                           127.0,
                           127.5,
                           128.0,
                           255.5,
                           256.0,
                           32767,
                           32768.5,
                           65504.0,
                           65519.0,
                           65520.0,
                           65535.5,
                           65536.0,
                           1e-3,
                           1e-5,
                           5.9605e-8,
                           2.98e-8,
                           6.1035e-5,
                           1e10,
                           1e19,
                           1e20,
                           1e38,
                           2147483647,
                           2147483648.,
                           4294967295.,
                           4294967296.,
                           9223372036854775807.,
                           18446744073709551615.,
                           1e-38,
                           1e-45,
                           1e300,
                           1e-300,
                           0.999999940395355,
                           1.00000011920929};
  const int width = 8 * bytes_of(type);
  const uint64_t sign = 1ULL << (width - 1);
  const uint64_t infinity = encode(INFINITY, type, RoundingMode::kNearest);
  const uint64_t normal = infinity & ~(infinity << 1);  // The lowest bit of the exponent.
  std::vector<uint64_t> edges = {
      infinity, infinity - 1, infinity | 1, infinity | infinity >> 1,  1, 2,
      normal,   normal - 1,   normal + 1,   (infinity >> 1) & infinity};
  for (const double value : values) edges.push_back(encode(value, type, RoundingMode::kNearest));
  for (size_t k = 0, count = edges.size(); k < count; ++k) edges.push_back(edges[k] ^ sign);
  return edges;
}

std::vector<uint64_t> integer_edges(int width) {
  std::vector<uint64_t> edges = {3, 5, 7, 10, 0x5555555555555555, 0x123456789ABCDEF0, 100000};
  for (const int bit : {0, 1, 2, 7, 8, 15, 16, 23, 24, 31, 32, 47, 62, 63}) {
    if (bit >= width) continue;
    const uint64_t power = 1ULL << bit;
    for (const uint64_t value : {power, power - 1, power + 1, ~power, 0 - power}) {
      edges.push_back(value);
    }
  }
  return edges;
}

Type type_of_kind(char kind) {
  for (const KindTraits& one : kTraits) {
    if (one.kind == kind) return one.type;
  }
  return Type::kNone;
}

// Pairs with all 256 codes in each half.
std::vector<uint64_t> fp8_pairs() {
  std::vector<uint64_t> edges;
  for (uint64_t code = 0; code < 256; ++code) edges.push_back(code | (code * 37 + 11) % 256 << 8);
  return edges;
}

// Floats at which rounding to 8 bits changes: each number of both formats, the middle between it
// and the next number, the middle's neighbours, all with both signs; and values that saturate.
std::vector<uint64_t> fp8_edges(Type type) {
  std::vector<uint64_t> edges;
  auto put = [&](long double value, uint64_t step) {
    const uint64_t bits = encode(value, type, RoundingMode::kNearest) + step;
    const uint64_t sign = edges.size() % 2 << (8 * bytes_of(type) - 1);
    edges.push_back(bits ^ sign);
  };
  for (const Type narrow : {Type::kE4m3, Type::kE5m2}) {
    for (uint64_t code = 0; code < (narrow == Type::kE4m3 ? 0x7E : 0x7B); ++code) {
      const long double value = float_as(code, narrow), next = float_as(code + 1, narrow);
      put(value, 0);
      for (const uint64_t step : {~0ULL, 0ULL, 1ULL}) put((value + next) / 2, step);
    }
  }
  for (const long double value : {448.0L, 464.0L, 465.0L, 480.0L, 57344.0L, 61440.0L, 61441.0L,
                                  65536.0L, 1e30L, static_cast<long double>(INFINITY)}) {
    put(value, 0);
    put(value, 0);
  }
  put(NAN, 0);
  put(NAN, 0);
  return edges;
}

std::vector<uint64_t> make_edges(char kind) {
  switch (kind) {
    case 'h':
      return integer_edges(16);
    case 'r':
      return integer_edges(32);
    case 'l':
      return integer_edges(64);
    case 'p':
      return {0, 1};
    case 's':
      return {0, 1, 2, 5, 8, 15, 16, 17, 24, 31, 32, 33, 48, 63, 64, 65, 200, 255, 256, 287, ~0ULL};
    case 'q': {
      std::vector<uint64_t> edges;
      for (const double value : {0.0, 1e-3, 0.5, 0.785398, 1.5707963, 3.1415926, 1e-40}) {
        edges.push_back(encode(value, Type::kF32, RoundingMode::kNearest));
        edges.push_back(encode(-value, Type::kF32, RoundingMode::kNearest));
      }
      for (const uint64_t bits : {0x7F800000, 0x7FC00000}) edges.push_back(bits);
      return edges;
    }
    case 'm':
      return fp8_pairs();
    case 'n':
      return fp8_edges(Type::kF32);
    case 'E':
    case 'G':
    case 'N': {
      const std::vector<uint64_t> halves =
          kind == 'N' ? fp8_edges(Type::kF16) : make_edges(kind == 'E' ? 'e' : 'g');
      std::vector<uint64_t> edges;
      for (size_t k = 0; k < halves.size(); ++k) {
        edges.push_back(halves[k] | halves[(3 * k + 7) % halves.size()] << 16);
      }
      return edges;
    }
    default:
      return float_edges(type_of_kind(kind));
  }
}

// A float near one, of either sign.
uint64_t ordinary_float(Type type, Random& random) {
  const double unit = static_cast<double>(random.below(1 << 24)) / (1 << 24);
  const double scale = std::ldexp(1.0, static_cast<int>(random.below(12)) - 4);
  return encode((2 * unit - 1) * scale, type, RoundingMode::kNearest);
}

}  // namespace

const KindTraits& traits_of(char kind) {
  for (const KindTraits& one : kTraits) {
    if (one.kind == kind) return one;
  }
  return kTraits[0];
}

std::string Form::name() const {
  std::istringstream words(text);
  std::string word;
  while (words >> word && std::islower(static_cast<unsigned char>(word[0])) == 0) continue;
  return word;
}

std::vector<Form> instruction_forms() {
  List list;
  add_integers(list);
  add_carries(list);
  add_bits(list);
  add_comparisons(list);
  add_choices(list);
  add_floats(list);
  add_halves(list);
  add_approximations(list);
  add_integer_conversions(list);
  add_float_conversions(list);
  add_fp8_conversions(list);
  add_tiny_results(list);
  return std::move(list.forms);
}

const std::vector<uint64_t>& edges_of(char kind) {
  static const std::map<char, std::vector<uint64_t>> kEdges = [] {
    std::map<char, std::vector<uint64_t>> all;
    for (const KindTraits& one : kTraits) all[one.kind] = make_edges(one.kind);
    return all;
  }();
  return kEdges.at(kind);
}

uint64_t random_value(char kind, Random& random) {
  const std::vector<uint64_t>& edges = edges_of(kind);
  const Type type = traits_of(kind).type;
  if (kind == 'p') return random.below(2);
  if (kind == 's' && random.has_chance(90)) return random.below(72);
  if (kind == 'q' && random.has_chance(90)) {
    const double unit = static_cast<double>(random.below(1 << 24)) / (1 << 24);
    return encode((2 * unit - 1) * 3.14159, Type::kF32, RoundingMode::kNearest);
  }
  if (kind == 'q' || random.has_chance(45)) return bits_as(edges[random.below(edges.size())], type);
  if (kind == 'E' || kind == 'G' || kind == 'N') {
    const char half = kind == 'G' ? 'g' : 'e';
    const uint64_t low = random_value(half, random);
    return low | random_value(half, random) << 16;
  }
  if (is_float(type) && random.has_chance(60)) return ordinary_float(type, random);
  // Small integers are as likely as large ones.
  const uint64_t bits = is_float(type) ? random.bits() : random.bits() >> random.below(64);
  return bits_as(bits, type);
}

}  // namespace mc::ptx
