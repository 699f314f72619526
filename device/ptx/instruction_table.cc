// SPDX-License-Identifier: Apache-2.0
#include "ptx/instruction_table.h"

#include <bit>
#include <cfenv>
#include <cmath>
#include <cstring>
#include <random>

namespace mc::ptx {
namespace {

float f32(uint64_t bits) { return std::bit_cast<float>(static_cast<uint32_t>(bits)); }
double f64(uint64_t bits) { return std::bit_cast<double>(bits); }
uint64_t bits(float x) { return std::bit_cast<uint32_t>(x); }
uint64_t bits(double x) { return std::bit_cast<uint64_t>(x); }
int32_t s32(uint64_t x) { return static_cast<int32_t>(x); }
uint32_t u32(uint64_t x) { return static_cast<uint32_t>(x); }
int64_t s64(uint64_t x) { return static_cast<int64_t>(x); }
uint64_t word(int64_t x) { return static_cast<uint32_t>(x); }
float flush(float x) { return std::fabs(x) < 0x1p-126F ? std::copysign(0.0F, x) : x; }

float saturated(float x) { return x > 0 ? (x < 1 ? x : 1.0F) : 0.0F; }

// A number wins against a NaN, and -0 against +0.
float lesser(float a, float b) {
  if (std::isnan(a) || std::isnan(b)) return std::isnan(a) ? b : a;
  if (a == b) return std::signbit(a) ? a : b;
  return a < b ? a : b;
}

// The compiler must not compute these before the mode of rounding is set.
float volatile_sum(float a, float b) {
  const volatile float x = a, y = b;
  return x + y;
}
float volatile_product(float a, float b) {
  const volatile float x = a, y = b;
  return x * y;
}

template <class F>
float with_rounding(int mode, F f) {
  const int saved = std::fegetround();
  std::fesetround(mode);
  const volatile float result = f();
  std::fesetround(saved);
  return result;
}

template <class T>
T limited(double x, double least, double most, T at_least, T at_most) {
  if (std::isnan(x)) return 0;
  return x <= least ? at_least : x >= most ? at_most : static_cast<T>(x);
}

uint64_t extract(uint64_t a, uint64_t b, uint64_t c, bool is_signed) {
  const uint32_t at = b & 255, n = c & 255;
  const bool negative = is_signed && s32(a) < 0;
  uint64_t wide = negative ? a | 0xFFFFFFFF00000000 : u32(a);
  uint32_t value = 0;
  for (uint32_t k = 0; k < n && k < 32; ++k) {
    const uint32_t from = at + k > 63 ? 63 : at + k;
    value |= static_cast<uint32_t>(wide >> from & 1) << k;
  }
  if (is_signed && n > 0 && n < 32 && value >> (n - 1) & 1) value |= ~uint32_t{0} << n;
  return value;
}

#define MC_ROW(instruction, registers, expression)              \
  {instruction, registers,                                      \
   []([[maybe_unused]] uint64_t a, [[maybe_unused]] uint64_t b, \
      [[maybe_unused]] uint64_t c) -> uint64_t { return expression; }}

const std::vector<TableRow> kTable = {
    // Integers.
    MC_ROW("add.s32 $d, $a, $b;", "www", word(u32(a) + u32(b))),
    MC_ROW(
        "add.sat.s32 $d, $a, $b;", "www",
        word(std::min<int64_t>(std::max<int64_t>(int64_t{s32(a)} + s32(b), INT32_MIN), INT32_MAX))),
    MC_ROW("sub.s64 $d, $a, $b;", "lll", a - b),
    MC_ROW("mul.lo.s32 $d, $a, $b;", "www", word(u32(a) * u32(b))),
    MC_ROW("mul.hi.s32 $d, $a, $b;", "www", word(int64_t{s32(a)} * s32(b) >> 32)),
    MC_ROW("mul.hi.u32 $d, $a, $b;", "www", uint64_t{u32(a)} * u32(b) >> 32),
    MC_ROW("mul.wide.s32 $d, $a, $b;", "lww", static_cast<uint64_t>(int64_t{s32(a)} * s32(b))),
    MC_ROW("mul.wide.u32 $d, $a, $b;", "lww", uint64_t{u32(a)} * u32(b)),
    MC_ROW("mul.lo.u16 $d, $a, $b;", "hhh", (a * b) & 0xFFFF),
    MC_ROW("mad.lo.s32 $d, $a, $b, $c;", "wwww", word(u32(a) * u32(b) + u32(c))),
    MC_ROW("mad.wide.s32 $d, $a, $b, $c;", "lwwl",
           static_cast<uint64_t>(int64_t{s32(a)} * s32(b)) + c),
    MC_ROW("mad.lo.s64 $d, $a, $b, $c;", "llll", a* b + c),
    MC_ROW("div.s32 $d, $a, $b;", "www", s32(b) == 0 ? 0xFFFFFFFF : word(int64_t{s32(a)} / s32(b))),
    MC_ROW("div.u32 $d, $a, $b;", "www", u32(b) == 0 ? 0xFFFFFFFF : u32(a) / u32(b)),
    MC_ROW("rem.s32 $d, $a, $b;", "www", s32(b) == 0 ? u32(a) : word(int64_t{s32(a)} % s32(b))),
    MC_ROW("rem.u64 $d, $a, $b;", "lll", b == 0 ? a : a % b),
    MC_ROW("abs.s32 $d, $a;", "ww", word(std::abs(int64_t{s32(a)}))),
    MC_ROW("neg.s32 $d, $a;", "ww", word(-int64_t{s32(a)})),
    MC_ROW("min.s32 $d, $a, $b;", "www", word(std::min(s32(a), s32(b)))),
    MC_ROW("max.u32 $d, $a, $b;", "www", std::max(u32(a), u32(b))),
    MC_ROW("min.s64 $d, $a, $b;", "lll", static_cast<uint64_t>(std::min(s64(a), s64(b)))),
    MC_ROW("sad.s32 $d, $a, $b, $c;", "wwww",
           word(u32(c) + (s32(a) < s32(b) ? u32(b) - u32(a) : u32(a) - u32(b)))),
    MC_ROW("and.b32 $d, $a, $b;", "www", u32(a& b)),
    MC_ROW("xor.b64 $d, $a, $b;", "lll", a ^ b),
    MC_ROW("not.b16 $d, $a;", "hh", ~a & 0xFFFF),
    MC_ROW("cnot.b32 $d, $a;", "ww", u32(a) == 0 ? 1 : 0),
    MC_ROW("shl.b32 $d, $a, $b;", "www", u32(b) > 31 ? 0 : word(u32(a) << u32(b))),
    MC_ROW("shl.b64 $d, $a, $b;", "llw", u32(b) > 63 ? 0 : a << u32(b)),
    MC_ROW("shr.s32 $d, $a, $b;", "www", word(s32(a) >> std::min(u32(b), 31U))),
    MC_ROW("shr.u32 $d, $a, $b;", "www", u32(b) > 31 ? 0 : u32(a) >> u32(b)),
    MC_ROW("shr.s64 $d, $a, $b;", "llw", static_cast<uint64_t>(s64(a) >> std::min(u32(b), 63U))),
    MC_ROW("popc.b32 $d, $a;", "ww", static_cast<uint64_t>(std::popcount(u32(a)))),
    MC_ROW("popc.b64 $d, $a;", "wl", static_cast<uint64_t>(std::popcount(a))),
    MC_ROW("clz.b32 $d, $a;", "ww", static_cast<uint64_t>(std::countl_zero(u32(a)))),
    MC_ROW("clz.b64 $d, $a;", "wl", static_cast<uint64_t>(std::countl_zero(a))),
    MC_ROW("bfind.u32 $d, $a;", "ww",
           u32(a) == 0 ? 0xFFFFFFFF : 31U - static_cast<uint32_t>(std::countl_zero(u32(a)))),
    MC_ROW("bfind.shiftamt.u32 $d, $a;", "ww",
           u32(a) == 0 ? 0xFFFFFFFF : static_cast<uint32_t>(std::countl_zero(u32(a)))),
    MC_ROW("bfe.u32 $d, $a, $b, $c;", "wwww", extract(a, b, c, false)),
    MC_ROW("bfe.s32 $d, $a, $b, $c;", "wwww", extract(a, b, c, true)),
    MC_ROW("lop3.b32 $d, $a, $b, $c, 0x96;", "wwww", u32(a ^ b ^ c)),
    MC_ROW("lop3.b32 $d, $a, $b, $c, 0xCA;", "wwww", u32((a & b) | (~a & c))),
    MC_ROW("shf.l.wrap.b32 $d, $a, $b, $c;", "wwww", u32(((b << 32 | u32(a)) << (c & 31)) >> 32)),
    MC_ROW("shf.r.clamp.b32 $d, $a, $b, $c;", "wwww",
           u32((uint64_t{u32(b)} << 32 | u32(a)) >> std::min(u32(c), 32U))),
    MC_ROW("slct.u32.s32 $d, $a, $b, $c;", "wwww", s32(c) >= 0 ? u32(a) : u32(b)),
    MC_ROW("setp.lt.s32 $d, $a, $b;", "pww", s32(a) < s32(b)),
    MC_ROW("setp.hi.u32 $d, $a, $b;", "pww", u32(a) > u32(b)),
    MC_ROW("setp.ne.b64 $d, $a, $b;", "pll", a != b),
    // Floats.
    MC_ROW("add.f32 $d, $a, $b;", "fff", bits(f32(a) + f32(b))),
    MC_ROW("add.ftz.f32 $d, $a, $b;", "fff", bits(flush(flush(f32(a)) + flush(f32(b))))),
    MC_ROW("add.rz.f32 $d, $a, $b;", "fff",
           bits(with_rounding(FE_TOWARDZERO, [=] { return volatile_sum(f32(a), f32(b)); }))),
    MC_ROW("mul.rm.f32 $d, $a, $b;", "fff",
           bits(with_rounding(FE_DOWNWARD, [=] { return volatile_product(f32(a), f32(b)); }))),
    MC_ROW("mul.f64 $d, $a, $b;", "ddd", bits(f64(a) * f64(b))),
    MC_ROW("fma.rn.f32 $d, $a, $b, $c;", "ffff", bits(std::fma(f32(a), f32(b), f32(c)))),
    MC_ROW("fma.rn.ftz.f32 $d, $a, $b, $c;", "ffff",
           bits(flush(std::fma(flush(f32(a)), flush(f32(b)), flush(f32(c)))))),
    MC_ROW("fma.rn.f64 $d, $a, $b, $c;", "dddd", bits(std::fma(f64(a), f64(b), f64(c)))),
    MC_ROW("fma.rn.sat.f32 $d, $a, $b, $c;", "ffff",
           bits(saturated(std::fma(f32(a), f32(b), f32(c))))),
    MC_ROW("div.rn.f32 $d, $a, $b;", "fff", bits(f32(a) / f32(b))),
    MC_ROW("rcp.rn.f32 $d, $a;", "ff", bits(1 / f32(a))),
    MC_ROW("sqrt.rn.f32 $d, $a;", "ff", bits(std::sqrt(f32(a)))),
    MC_ROW("sqrt.rn.f64 $d, $a;", "dd", bits(std::sqrt(f64(a)))),
    MC_ROW("abs.f32 $d, $a;", "ff", bits(std::fabs(f32(a)))),
    MC_ROW("neg.f32 $d, $a;", "ff", bits(-f32(a))),
    MC_ROW("copysign.f32 $d, $a, $b;", "fff", bits(std::copysign(f32(b), f32(a)))),
    MC_ROW("min.f32 $d, $a, $b;", "fff", bits(lesser(f32(a), f32(b)))),
    MC_ROW("max.f32 $d, $a, $b;", "fff", bits(-lesser(-f32(a), -f32(b)))),
    MC_ROW("setp.lt.f32 $d, $a, $b;", "pff", f32(a) < f32(b)),
    MC_ROW("setp.geu.f32 $d, $a, $b;", "pff", !(f32(a) < f32(b))),
    MC_ROW("setp.neu.f64 $d, $a, $b;", "pdd", f64(a) != f64(b)),
    MC_ROW("setp.nan.f32 $d, $a, $b;", "pff", std::isnan(f32(a)) || std::isnan(f32(b))),
    MC_ROW("testp.infinite.f32 $d, $a;", "pf", std::isinf(f32(a))),
    {"ex2.approx.f32 $d, $a;", "ff", nullptr},
    {"lg2.approx.f32 $d, $a;", "ff", nullptr},
    {"sin.approx.f32 $d, $a;", "ff", nullptr},
    {"tanh.approx.f32 $d, $a;", "ff", nullptr},
    {"rsqrt.approx.f32 $d, $a;", "ff", nullptr},
    // Conversions.
    MC_ROW("cvt.s64.s32 $d, $a;", "lw", static_cast<uint64_t>(int64_t{s32(a)})),
    MC_ROW("cvt.u64.u32 $d, $a;", "lw", u32(a)),
    MC_ROW("cvt.s32.s8 $d, $a;", "ww", word(static_cast<int8_t>(a))),
    MC_ROW("cvt.u16.u32 $d, $a;", "hw", a & 0xFFFF),
    MC_ROW("cvt.sat.s8.s32 $d, $a;", "ww", word(std::min(std::max(s32(a), -128), 127))),
    MC_ROW("cvt.sat.u8.s32 $d, $a;", "ww", word(std::min(std::max(s32(a), 0), 255))),
    MC_ROW("cvt.rn.f32.s32 $d, $a;", "fw", bits(static_cast<float>(s32(a)))),
    MC_ROW("cvt.rn.f32.u64 $d, $a;", "fl", bits(static_cast<float>(a))),
    MC_ROW("cvt.rn.f64.s64 $d, $a;", "dl", bits(static_cast<double>(s64(a)))),
    MC_ROW("cvt.rzi.s32.f32 $d, $a;", "wf",
           word(limited<int32_t>(std::trunc(f32(a)), -0x1p31, 0x1p31, INT32_MIN, INT32_MAX))),
    MC_ROW("cvt.rni.u32.f32 $d, $a;", "wf",
           word(limited<uint32_t>(std::nearbyint(f32(a)), 0, 0x1p32, 0, UINT32_MAX))),
    MC_ROW("cvt.rmi.s64.f32 $d, $a;", "lf",
           static_cast<uint64_t>(
               limited<int64_t>(std::floor(f32(a)), -0x1p63, 0x1p63, INT64_MIN, INT64_MAX))),
    MC_ROW("cvt.rzi.s32.f64 $d, $a;", "wd",
           word(limited<int32_t>(std::trunc(f64(a)), -0x1p31, 0x1p31, INT32_MIN, INT32_MAX))),
    MC_ROW("cvt.rn.f32.f64 $d, $a;", "fd", bits(static_cast<float>(f64(a)))),
    MC_ROW("cvt.f64.f32 $d, $a;", "df", bits(static_cast<double>(f32(a)))),
    MC_ROW("cvt.rpi.f32.f32 $d, $a;", "ff", bits(std::ceil(f32(a)))),
    MC_ROW("cvt.sat.f32.f32 $d, $a;", "ff", bits(saturated(f32(a)))),
    MC_ROW("cvt.rna.tf32.f32 $d, $a;", "wf",
           std::isfinite(f32(a)) ? (u32(a) + 0x1000) & 0xFFFFE000 : u32(a)),
    {"cvt.rn.f16.f32 $d, $a;", "hf", nullptr},
    {"cvt.rz.bf16.f32 $d, $a;", "hf", nullptr},
    {"cvt.f32.f16 $d, $a;", "fh", nullptr},
    {"cvt.rn.f16x2.f32 $d, $a, $b;", "wff", nullptr},
    {"fma.rn.f16x2 $d, $a, $b, $c;", "wwww", nullptr},
    {"add.bf16x2 $d, $a, $b;", "www", nullptr},
    {"prmt.b32 $d, $a, $b, $c;", "wwww", nullptr},
};
#undef MC_ROW

const char* declared_type(char kind) {
  switch (kind) {
    case 'h':
      return "b16";
    case 'w':
      return "b32";
    case 'l':
      return "b64";
    case 'p':
      return "pred";
    case 'f':
      return "f32";
    default:
      return "f64";
  }
}

std::string replaced(std::string text, const std::string& from, const std::string& to) {
  const size_t at = text.find(from);
  return at == std::string::npos ? text : text.replace(at, from.size(), to);
}

std::string kernel_of(const TableRow& row, size_t number) {
  const std::string registers = row.registers;
  std::string text = ".visible .entry row_" + std::to_string(number) +
                     "(.param .u64 pd, .param .u64 pa, .param .u64 pb, .param .u64 pc)\n{\n"
                     ".reg .b64 %at<5>; .reg .b64 %base; .reg .b32 %i; .reg .b64 %bits;\n"
                     "mov.u32 %i, %tid.x;\nmul.wide.u32 %base, %i, 8;\n";
  std::string body = row.instruction;
  for (size_t k = 0; k < registers.size(); ++k) {
    const std::string name = std::string("%") + "dabc"[k], at = "%at" + std::to_string(k);
    text += std::string(".reg .") + declared_type(registers[k]) + " " + name + ";\n";
    text +=
        "ld.param.u64 " + at + ", [p" + "dabc"[k] + "];\nadd.s64 " + at + ", " + at + ", %base;\n";
    if (k > 0)
      text += std::string("ld.global.") + declared_type(registers[k]) + " " + name + ", [" + at +
              "];\n";
    body = replaced(body, std::string("$") + "dabc"[k], name);
  }
  const bool is_predicate = registers[0] == 'p';
  text += body + "\n";
  if (is_predicate) {
    text += ".reg .b32 %chosen; selp.b32 %chosen, 1, 0, %d;\nst.global.b32 [%at0], %chosen;\n";
  } else {
    text += std::string("st.global.") + declared_type(registers[0]) + " [%at0], %d;\n";
  }
  return text + "ret;\n}\n";
}

std::vector<uint64_t> edges(char kind) {
  switch (kind) {
    case 'f':
      return {0,          0x80000000, 1,          0x80000001, 0x007FFFFF, 0x00800000, 0x3F800000,
              0xBF800000, 0x3F000000, 0x40490FDB, 0x4B000001, 0x4F000000, 0xCF000000, 0x4EFFFFFF,
              0x5F000000, 0x7F7FFFFF, 0xFF7FFFFF, 0x7F800000, 0xFF800000, 0x7FC00000};
    case 'd':
      return {bits(0.0),           bits(-0.0),        1,
              bits(1.0),           bits(-1.0),        bits(0.5),
              bits(1e300),         bits(-1e300),      bits(2147483647.5),
              bits(-2147483649.0), bits(0x1p-1060),   bits(HUGE_VAL),
              bits(-HUGE_VAL),     0x7FF8000000000000};
    case 'h':
      return {0, 1, 0x3C00, 0xBC00, 0x7BFF, 0x7C00, 0x03FF, 0x8000, 0xFFFF, 0x7FFF, 0x0400};
    default:
      return {0,
              1,
              2,
              7,
              31,
              32,
              33,
              63,
              64,
              65,
              255,
              0x7FFFFFFF,
              0x80000000,
              0xFFFFFFFF,
              0x100000000,
              0x7FFFFFFFFFFFFFFF,
              0x8000000000000000,
              0xFFFFFFFFFFFFFFFF};
  }
}

// Floats of all sizes, more of them near one.
uint64_t drawn(char kind, std::mt19937_64& generator) {
  const uint64_t any = generator();
  if (kind == 'f' && any % 2 == 0) {
    return (any >> 8 & 0x807FFFFF) | (120 + (any >> 40) % 16) << 23;
  }
  return kind == 'f' || kind == 'w' ? any >> 32 : kind == 'h' ? any >> 48 : any;
}

}  // namespace

const std::vector<TableRow>& instruction_table() { return kTable; }

std::string table_module() {
  std::string text = ".version 8.0\n.target sm_80\n.address_size 64\n";
  for (size_t k = 0; k < kTable.size(); ++k) text += kernel_of(kTable[k], k);
  return text;
}

std::vector<uint64_t> table_inputs(const TableRow& row, int source) {
  const char kind = row.registers[source + 1];
  const std::vector<uint64_t> edge = edges(kind);
  std::mt19937_64 generator(static_cast<uint64_t>(source) * 1000 + static_cast<uint64_t>(kind));
  std::vector<uint64_t> inputs;
  for (size_t k = 0; k < kTableThreads; ++k) {
    // The first threads have all pairs of edges.
    const size_t choice = source == 0 ? k % edge.size() : source == 1 ? k / 20 : k / 7;
    const bool is_edge = k < 400 && choice < edge.size();
    inputs.push_back(is_edge ? edge[choice] : drawn(kind, generator));
  }
  return inputs;
}

}  // namespace mc::ptx
