// SPDX-License-Identifier: Apache-2.0
#include "ptx/testing/reference_values.h"

#include <algorithm>
#include <bit>
#include <cfenv>
#include <cmath>
#include <limits>
#include <string>

#include "ptx/testing/reference_fp8.h"

namespace mc::ptx {
namespace {

__extension__ using Wide = __int128;
__extension__ using UnsignedWide = unsigned __int128;

constexpr long double kNan = std::numeric_limits<long double>::quiet_NaN();
constexpr long double kInfinity = std::numeric_limits<long double>::infinity();

// A float has 1 sign bit, exponent bits and mantissa bits; tf32 is a float32 with 13 zeros.
struct Format {
  int mantissa;
  int exponent_bits;
  int zeros = 0;
  int bias() const { return (1 << (exponent_bits - 1)) - 1; }
  int bits() const { return 1 + exponent_bits + mantissa + zeros; }
};

Format format_of(Type type) {
  switch (type) {
    case Type::kF16:
    case Type::kF16x2:
      return {10, 5};
    case Type::kBf16:
    case Type::kBf16x2:
      return {7, 8};
    case Type::kE4m3:
      return {3, 4};
    case Type::kE5m2:
      return {2, 5};
    case Type::kTf32:
      return {10, 8, 13};
    case Type::kF64:
      return {52, 11};
    default:
      return {23, 8};
  }
}

int width_of(Type type) {
  if (type == Type::kPred) return 1;
  return is_fp8(type) ? 8 : 8 * bytes_of(type);
}
bool is_pair(Type type) { return type == Type::kF16x2 || type == Type::kBf16x2; }

RoundingMode mode_of(const Instruction& one) {
  if (one.has("rz") || one.has("rzi")) return RoundingMode::kZero;
  if (one.has("rm") || one.has("rmi")) return RoundingMode::kDown;
  if (one.has("rp") || one.has("rpi")) return RoundingMode::kUp;
  return one.has("rna") ? RoundingMode::kAway : RoundingMode::kNearest;
}

int environment_of(RoundingMode mode) {
  switch (mode) {
    case RoundingMode::kZero:
      return FE_TOWARDZERO;
    case RoundingMode::kDown:
      return FE_DOWNWARD;
    case RoundingMode::kUp:
      return FE_UPWARD;
    default:
      return FE_TONEAREST;
  }
}

// A whole number, rounded from a value that is not negative.
long double round_whole(long double value, bool is_negative, RoundingMode mode) {
  const long double whole = std::floor(value), rest = value - whole;
  bool goes_up = false;
  switch (mode) {
    case RoundingMode::kNearest:
      goes_up = rest > 0.5L || (rest == 0.5L && std::fmod(whole, 2.0L) == 1);
      break;
    case RoundingMode::kAway:
      goes_up = rest >= 0.5L;
      break;
    case RoundingMode::kZero:
      break;
    case RoundingMode::kDown:
      goes_up = is_negative && rest > 0;
      break;
    case RoundingMode::kUp:
      goes_up = !is_negative && rest > 0;
      break;
  }
  return goes_up ? whole + 1 : whole;
}

// A float rounded to a whole number of the same sign.
long double round_integral(long double value, RoundingMode mode) {
  if (!std::isfinite(value)) return value;
  return std::copysign(round_whole(std::fabs(value), std::signbit(value), mode), value);
}

// .ftz: a subnormal number is a zero of its sign.
uint64_t flush(uint64_t bits, Type type) {
  const Format f = format_of(type);
  const uint64_t exponent = (bits >> (f.mantissa + f.zeros)) & ((1ULL << f.exponent_bits) - 1);
  return exponent == 0 ? bits & (1ULL << (f.bits() - 1)) : bits;
}

// Implements .ftz of a result: it becomes zero if rounding with an unbounded exponent leaves it
// below the least normal number. On an H100, mul.rn.ftz.f32 gives 0 for 0.99999994 * 2^-126, and
// fma.rn.ftz of halves gives 0 for 2^-14 * (1 - 1.06 * 2^-12), but 2^-14 for 2^-14 * (1 - 2^-14).
// The code that ptxas makes of cvt.ftz.f32.f64 has the limits of this rule, in each mode.
enum class Flush : uint8_t { kNothing, kTiny };

long double flush_tiny(long double value, Type type, RoundingMode mode) {
  if (value == 0 || !std::isfinite(value)) return value;
  const Format f = format_of(type);
  const int unit = std::ilogb(value) - f.mantissa;
  const long double size = std::ldexp(std::fabs(value), -unit);
  const long double rounded = std::ldexp(round_whole(size, std::signbit(value), mode), unit);
  return rounded < std::ldexp(1.0L, 1 - f.bias()) ? std::copysign(0.0L, value) : value;
}

// .sat of floats: 0 to 1, NaN and -0 give +0.
uint64_t saturate(uint64_t bits, Type type) {
  const long double value = float_as(bits, type);
  if (!(value > 0)) return 0;
  return value > 1 ? encode(1, type, RoundingMode::kNearest) : bits;
}

// .relu: negative values give +0, NaN is canonical.
uint64_t rectify(uint64_t bits, Type type) {
  const long double value = float_as(bits, type);
  if (std::isnan(value)) return encode(value, type, RoundingMode::kNearest);
  return value > 0 ? bits : 0;
}

bool is_zero(long double value) { return value == 0; }

// One rounding of add, sub, mul, fma, div and sqrt. Formats below double take the result of double
// towards zero with a last bit that is set when the result is inexact, which rounds as the exact
// result would.
uint64_t round_operation(const std::string& op, const long double* x, Type type, RoundingMode mode,
                         Flush flushes) {
  auto operate = [&]() -> double {
    const volatile double a = static_cast<double>(x[0]), b = static_cast<double>(x[1]);
    const volatile double c = static_cast<double>(x[2]);
    if (op == "add") return a + b;
    if (op == "sub") return a - b;
    if (op == "mul") return a * b;
    if (op == "div") return a / b;
    if (op == "rcp") return 1.0 / a;
    if (op == "sqrt") return std::sqrt(a);
    return std::fma(a, b, c);
  };
  std::fesetround(type == Type::kF64 ? environment_of(mode) : FE_TOWARDZERO);
  std::feclearexcept(FE_INEXACT);
  volatile double result = operate();
  const bool is_inexact = std::fetestexcept(FE_INEXACT) != 0;
  // The sign of an exact zero depends on the mode.
  std::fesetround(environment_of(mode));
  if (result == 0 && !is_inexact) result = operate();
  std::fesetround(FE_TONEAREST);
  if (type == Type::kF64) {
    return std::isnan(result) ? encode(kNan, type, mode) : std::bit_cast<uint64_t>(double{result});
  }
  uint64_t bits = std::bit_cast<uint64_t>(double{result});
  if (is_inexact && std::isfinite(result)) bits |= 1;
  const double exact = std::bit_cast<double>(bits);
  return encode(flushes == Flush::kTiny ? flush_tiny(exact, type, mode) : exact, type, mode);
}

// The rule of min and max: a number wins over NaN unless .NaN is there, and -0 is less than +0.
long double least_or_most(const Instruction& one, long double a, long double b) {
  if (std::isnan(a) || std::isnan(b)) {
    if (one.has("NaN") || (std::isnan(a) && std::isnan(b))) return kNan;
    return std::isnan(a) ? b : a;
  }
  const bool a_is_less = a < b || (a == b && std::signbit(a));
  return a_is_less == (one.opcode == "min") ? a : b;
}

// Functions for which the ISA only bounds the error. False for another opcode.
bool approximate(const std::string& op, long double a, long double& result) {
  if (op == "rcp") {
    result = 1 / a;
  } else if (op == "sqrt") {
    result = std::sqrt(a);
  } else if (op == "rsqrt") {
    result = 1 / std::sqrt(a);
  } else if (op == "sin") {
    result = std::sin(a);
  } else if (op == "cos") {
    result = std::cos(a);
  } else if (op == "lg2") {
    result = std::log2(a);
  } else if (op == "ex2") {
    result = std::exp2(a);
  } else if (op == "tanh") {
    result = std::tanh(a);
  } else {
    return false;
  }
  return true;
}

bool test_number(const Instruction& one, long double a, Type type) {
  const Format f = format_of(type);
  const bool is_subnormal = a != 0 && std::fabs(a) < std::ldexp(1.0L, 1 - f.bias());
  if (one.has("finite")) return std::isfinite(a);
  if (one.has("infinite")) return std::isinf(a);
  if (one.has("number")) return !std::isnan(a);
  if (one.has("notanumber")) return std::isnan(a);
  return one.has("subnormal") ? is_subnormal : std::isfinite(a) && !is_subnormal;
}

// A div.approx has no quotients for divisors above 2^126.
bool has_no_quotient(const Instruction& one, long double b) {
  return one.has("approx") && std::isfinite(b) && std::fabs(b) > std::ldexp(1.0L, 126);
}

bool compute_float_one(const Instruction& one, const uint64_t* bits, Type type, uint64_t& d) {
  const std::string& op = one.opcode;
  const RoundingMode mode = mode_of(one);
  const Format format = format_of(type);
  const uint64_t sign = 1ULL << (format.bits() - 1);
  uint64_t in[3] = {bits[0], bits[1], bits[2]};
  if (one.has("ftz")) {
    for (uint64_t& value : in) value = flush(value, type);
  }
  const long double x[3] = {float_as(in[0], type), float_as(in[1], type), float_as(in[2], type)};
  const bool is_approximate = one.has("approx") || one.has("full");
  long double value = 0;
  if (op == "abs") {
    d = in[0] & ~sign;
  } else if (op == "neg") {
    d = in[0] ^ sign;
  } else if (op == "copysign") {
    d = (in[1] & ~sign) | (in[0] & sign);
  } else if (op == "testp") {
    d = test_number(one, x[0], type) ? 1 : 0;
  } else if (op == "min" || op == "max") {
    d = encode(least_or_most(one, x[0], x[1]), type, RoundingMode::kNearest);
  } else if (op == "div" && is_approximate) {
    value = has_no_quotient(one, x[1]) ? x[0] * std::copysign(0.0L, x[1]) : x[0] / x[1];
    d = encode(value, type, RoundingMode::kNearest);
  } else if (is_approximate && approximate(op, x[0], value)) {
    d = encode(value, type, RoundingMode::kNearest);
  } else if (op == "add" || op == "sub" || op == "mul" || op == "div" || op == "rcp" ||
             op == "sqrt" || op == "fma" || op == "mad") {
    d = round_operation(op, x, type, mode, one.has("ftz") ? Flush::kTiny : Flush::kNothing);
  } else {
    return false;
  }
  if (op == "testp") return true;
  if (one.has("ftz")) d = flush(d, type);
  if (one.has("sat")) d = saturate(d, type);
  if (one.has("relu")) d = rectify(d, type);
  return true;
}

bool compute_float(const Instruction& one, std::span<const uint64_t> x, uint64_t& d) {
  const Type type = one.type();
  uint64_t bits[3] = {};
  for (size_t k = 0; k < std::min<size_t>(x.size(), 3); ++k) bits[k] = bits_as(x[k], type);
  if (!is_pair(type)) return compute_float_one(one, bits, type, d);
  const Type half = type == Type::kF16x2 ? Type::kF16 : Type::kBf16;
  d = 0;
  for (int part = 0; part < 2; ++part) {
    uint64_t own[3] = {}, result = 0;
    for (int k = 0; k < 3; ++k) own[k] = (bits[k] >> (16 * part)) & 0xFFFF;
    if (!compute_float_one(one, own, half, result)) return false;
    d |= (result & 0xFFFF) << (16 * part);
  }
  return true;
}

Wide clamp_to(Wide value, Type type) {
  const int width = width_of(type);
  const Wide one = 1;
  const Wide least = is_signed(type) ? -(one << (width - 1)) : 0;
  const Wide most = is_signed(type) ? (one << (width - 1)) - 1 : (one << width) - 1;
  return std::clamp(value, least, most);
}

// The part of a product that mul, mad, mul24 and mad24 name.
Wide product(const Instruction& one, Wide a, Wide b, Type type) {
  const UnsignedWide full = static_cast<UnsignedWide>(a) * static_cast<UnsignedWide>(b);
  if (!one.has("hi")) return static_cast<Wide>(full);
  const int shift = one.opcode.ends_with("24") ? 16 : width_of(type);
  return is_signed(type) ? static_cast<Wide>(full) >> shift : static_cast<Wide>(full >> shift);
}

Wide low_24(Wide a, bool has_sign) {
  a &= 0xFFFFFF;
  return has_sign && (a & 0x800000) != 0 ? a - 0x1000000 : a;
}

// .cc, addc, subc, madc: sums of unsigned values with a carry, which subtractions borrow.
bool compute_carry(const Instruction& one, Wide a, Wide b, Wide c, bool& carry, uint64_t& d) {
  const Type type = one.type();
  const int width = width_of(type);
  auto low = [&](Wide value) {
    return static_cast<Wide>(bits_as(static_cast<uint64_t>(value), type));
  };
  Wide total = 0;
  if (one.opcode == "add" || one.opcode == "addc") {
    total = low(a) + low(b) + (one.opcode == "addc" && carry ? 1 : 0);
  } else if (one.opcode == "sub" || one.opcode == "subc") {
    total = low(a) - low(b) - (one.opcode == "subc" && carry ? 1 : 0);
  } else if (one.opcode == "mad" || one.opcode == "madc") {
    total = low(product(one, a, b, type)) + low(c) + (one.opcode == "madc" && carry ? 1 : 0);
  } else {
    return false;
  }
  if (one.has("cc")) carry = ((total >> width) & 1) != 0;
  d = static_cast<uint64_t>(total);
  return true;
}

bool compute_integer(const Instruction& one, Wide a, Wide b, Wide c, uint64_t& d) {
  const std::string& op = one.opcode;
  const Type type = one.type();
  const bool has_sign = is_signed(type);
  Wide value = 0;
  if (op == "add") {
    value = a + b;
  } else if (op == "sub") {
    value = a - b;
  } else if (op == "mul") {
    value = product(one, a, b, type);
  } else if (op == "mad") {
    value = product(one, a, b, type) + c;
  } else if (op == "mul24" || op == "mad24") {
    value = product(one, low_24(a, has_sign), low_24(b, has_sign), type) + (op == "mad24" ? c : 0);
    // The saturation of mad24.hi is that of its sum.
  } else if (op == "sad") {
    value = c + (a < b ? b - a : a - b);
  } else if (op == "div" || op == "rem") {
    if (b == 0) return false;
    value = op == "div" ? a / b : a % b;
  } else if (op == "abs") {
    value = a < 0 ? -a : a;
  } else if (op == "neg") {
    value = -a;
  } else if (op == "min") {
    value = std::min(a, b);
  } else if (op == "max") {
    value = std::max(a, b);
  } else {
    return false;
  }
  if (one.has("sat")) value = clamp_to(value, type);
  d = static_cast<uint64_t>(value);
  return true;
}

uint64_t find_bit(const Instruction& one, Wide a, int width) {
  if (is_signed(one.type()) && a < 0) a = ~a;
  for (int k = width - 1; k >= 0; --k) {
    if (((a >> k) & 1) != 0) return static_cast<uint64_t>(one.has("shiftamt") ? width - 1 - k : k);
  }
  return 0xFFFFFFFF;
}

// A field's position or length as a GPU reads it: eight bits for 32-bit values.
int64_t field_bound(uint64_t word, int width) {
  return static_cast<int64_t>(width == 64 ? word : word & 0xFF);
}

uint64_t extract_field(uint64_t a, uint64_t b, uint64_t c, int width, bool has_sign) {
  const int64_t position = field_bound(b, width), length = field_bound(c, width);
  const int64_t last = std::min<int64_t>(position + length - 1, width - 1);
  const uint64_t fill = has_sign && length > 0 ? (a >> last) & 1 : 0;
  uint64_t d = 0;
  for (int64_t k = 0; k < width; ++k) {
    const bool is_inside = k < length && position + k < width;
    d |= (is_inside ? (a >> (position + k)) & 1 : fill) << k;
  }
  return d;
}

uint64_t insert_field(uint64_t a, uint64_t b, uint64_t c, uint64_t length_source, int width) {
  const int64_t position = field_bound(c, width), length = field_bound(length_source, width);
  for (int64_t k = 0; k < length && position + k < width; ++k) {
    const uint64_t bit = 1ULL << (position + k);
    b = (b & ~bit) | (((a >> k) & 1) != 0 ? bit : 0);
  }
  return b;
}

uint64_t permute_bytes(const Instruction& one, uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t both = bits_as(a, Type::kB32) | b << 32;
  uint64_t d = 0;
  const uint64_t n = c & 3;
  for (uint64_t k = 0; k < 4; ++k) {
    uint64_t from = (c >> (4 * k)) & 7;
    bool is_sign = ((c >> (4 * k)) & 8) != 0;
    const bool has_mode = one.modifiers.size() > 1;
    if (one.has("f4e")) from = n + k;
    if (one.has("b4e")) from = (n + 8 - k) & 7;
    if (one.has("rc8")) from = n;
    if (one.has("ecl")) from = std::max(k, n);
    if (one.has("ecr")) from = std::min(k, n);
    if (one.has("rc16")) from = (k & 1) + 2 * (n & 1);
    if (has_mode) is_sign = false;
    const uint64_t byte = (both >> (8 * from)) & 0xFF;
    d |= (is_sign ? ((byte & 0x80) != 0 ? 0xFFU : 0U) : byte) << (8 * k);
  }
  return d;
}

uint64_t look_up_bits(uint64_t a, uint64_t b, uint64_t c, uint64_t table) {
  uint64_t d = 0;
  for (int k = 0; k < 32; ++k) {
    const uint64_t row = ((a >> k) & 1) << 2 | ((b >> k) & 1) << 1 | ((c >> k) & 1);
    d |= ((table >> row) & 1) << k;
  }
  return d;
}

uint64_t funnel_shift(const Instruction& one, uint64_t a, uint64_t b, uint64_t c) {
  const uint64_t n = one.has("wrap") ? c & 31 : std::min<uint64_t>(c, 32);
  const uint64_t both = a | b << 32;
  if (one.has("r")) return both >> n;
  return n == 0 ? b : both >> (32 - n);
}

uint64_t dot_product(const Instruction& one, uint64_t a, uint64_t b, uint64_t c) {
  const bool a_has_sign = is_signed(one.types[0]), b_has_sign = is_signed(one.types[1]);
  auto part = [](uint64_t value, int width, int k, bool has_sign) {
    const uint64_t bits = value >> (width * k);
    if (width == 8) return integer_as(bits, has_sign ? Type::kS8 : Type::kU8);
    return integer_as(bits, has_sign ? Type::kS16 : Type::kU16);
  };
  const bool is_four = one.opcode == "dp4a";
  const int first = one.has("hi") ? 2 : 0;
  uint64_t sum = c;
  for (int k = 0; k < (is_four ? 4 : 2); ++k) {
    sum += static_cast<uint64_t>(part(a, is_four ? 8 : 16, k, a_has_sign) *
                                 part(b, 8, is_four ? k : first + k, b_has_sign));
  }
  return sum;
}

uint64_t shift(const Instruction& one, Wide a, uint64_t count, int width) {
  const int n = static_cast<int>(std::min<uint64_t>(count, static_cast<uint64_t>(width)));
  if (one.opcode == "shr") return static_cast<uint64_t>(a >> n);
  return static_cast<uint64_t>(static_cast<UnsignedWide>(a) << n);
}

bool compute_bits(const Instruction& one, std::span<const uint64_t> x, uint64_t& d) {
  const std::string& op = one.opcode;
  const Type type = one.type();
  const int width = width_of(type);
  auto in = [&](size_t k) { return k < x.size() ? bits_as(x[k], type) : 0; };
  auto word = [&](size_t k) { return k < x.size() ? bits_as(x[k], Type::kB32) : 0; };
  const uint64_t a = in(0), b = in(1), c = in(2);
  if (op == "and") {
    d = a & b;
  } else if (op == "or") {
    d = a | b;
  } else if (op == "xor") {
    d = a ^ b;
  } else if (op == "not") {
    d = bits_as(~a, type);
  } else if (op == "cnot") {
    d = a == 0 ? 1 : 0;
  } else if (op == "shl" || op == "shr") {
    d = shift(one, is_signed(type) ? Wide{integer_as(x[0], type)} : Wide{a}, word(1), width);
  } else if (op == "popc") {
    d = static_cast<uint64_t>(std::popcount(a));
  } else if (op == "clz") {
    d = 0;
    while (d < static_cast<uint64_t>(width) &&
           ((a >> (static_cast<uint64_t>(width) - 1 - d)) & 1) == 0)
      ++d;
  } else if (op == "brev") {
    d = 0;
    for (int k = 0; k < width; ++k) d |= ((a >> k) & 1) << (width - 1 - k);
  } else if (op == "bfind") {
    d = find_bit(one, is_signed(type) ? Wide{integer_as(x[0], type)} : Wide{a}, width);
  } else if (op == "bfe") {
    d = extract_field(a, word(1), word(2), width, is_signed(type));
  } else if (op == "bfi") {
    d = insert_field(a, b, word(2), word(3), width);
  } else if (op == "prmt") {
    d = permute_bytes(one, a, b, c);
  } else if (op == "lop3") {
    d = look_up_bits(a, b, c, x[3]);
  } else if (op == "shf") {
    d = funnel_shift(one, a, b, c);
  } else if (op == "dp4a" || op == "dp2a") {
    d = dot_product(one, word(0), word(1), word(2));
  } else {
    return false;
  }
  return true;
}

// The value of a float as an integer: rounded, clamped, and the ISA's choice for NaN.
uint64_t convert_to_integer(long double value, Type to, Type from, RoundingMode mode) {
  if (std::isnan(value)) {
    const bool is_zero = from != Type::kF64 && width_of(to) < 64;
    const uint64_t highest = 1ULL << (width_of(to) - 1);
    return is_zero ? 0 : static_cast<uint64_t>(integer_as(highest, to));
  }
  const long double limit = std::ldexp(1.0L, 100);
  const long double whole = std::clamp(round_integral(value, mode), -limit, limit);
  return static_cast<uint64_t>(clamp_to(static_cast<Wide>(whole), to));
}

uint64_t convert_one(const Instruction& one, uint64_t a, Type to, Type from) {
  const RoundingMode mode = mode_of(one);
  const bool flushes = one.has("ftz");
  if (!is_float(from)) {
    const Wide value =
        is_signed(from) ? Wide{integer_as(a, from)} : static_cast<Wide>(bits_as(a, from));
    if (!is_float(to)) {
      const Wide limited = one.has("sat") ? clamp_to(value, to) : value;
      return static_cast<uint64_t>(integer_as(static_cast<uint64_t>(limited), to));
    }
    const uint64_t bits = encode(static_cast<long double>(value), to, mode);
    return one.has("sat") ? saturate(bits, to) : bits;
  }
  uint64_t in = bits_as(a, from);
  if (flushes && from == Type::kF32) in = flush(in, from);
  long double value = float_as(in, from);
  // GPUs keep the upper bits of a NaN, which may be those of an infinity.
  if (to == Type::kTf32 && std::isnan(value)) return in & 0xFFFFE000;
  if (!is_float(to)) return convert_to_integer(value, to, from, mode);
  const bool is_whole = one.has("rni") || one.has("rzi") || one.has("rmi") || one.has("rpi");
  if (is_whole) value = round_integral(value, mode);
  if (flushes && to == Type::kF32) value = flush_tiny(value, to, mode);
  uint64_t bits = encode(value, to, is_whole ? RoundingMode::kNearest : mode);
  if (one.has("sat")) bits = saturate(bits, to);
  return one.has("relu") ? rectify(bits, to) : bits;
}

uint64_t convert(const Instruction& one, std::span<const uint64_t> x) {
  const Type to = one.types[0], from = one.types[1];
  if (is_fp8_pair(to) || is_fp8_pair(from)) return convert_fp8(one, x);
  if (!is_pair(to)) return convert_one(one, x[0], to, from);
  const Type half = to == Type::kF16x2 ? Type::kF16 : Type::kBf16;
  return convert_one(one, x[0], half, from) << 16 | convert_one(one, x[1], half, from);
}

uint64_t choose_by_sign(const Instruction& one, std::span<const uint64_t> x) {
  const Type type = one.types[1];
  if (!is_float(type)) return integer_as(x[2], type) >= 0 ? x[0] : x[1];
  uint64_t c = bits_as(x[2], type);
  if (one.has("ftz")) c = flush(c, type);
  return float_as(c, type) >= 0 ? x[0] : x[1];
}

}  // namespace

bool is_float(Type type) {
  return type == Type::kF16 || type == Type::kF16x2 || type == Type::kBf16 ||
         type == Type::kBf16x2 || is_fp8(type) || type == Type::kTf32 || type == Type::kF32 ||
         type == Type::kF64;
}

uint64_t bits_as(uint64_t value, Type type) {
  const int width = width_of(type);
  return width >= 64 || width == 0 ? value : value & ((1ULL << width) - 1);
}

int64_t integer_as(uint64_t value, Type type) {
  const int unused = 64 - width_of(type);
  value = bits_as(value, type);
  return is_signed(type) ? static_cast<int64_t>(value << unused) >> unused
                         : static_cast<int64_t>(value);
}

long double float_as(uint64_t value, Type type) {
  const Format f = format_of(type);
  value >>= f.zeros;
  const uint64_t exponent = (value >> f.mantissa) & ((1ULL << f.exponent_bits) - 1);
  const uint64_t mantissa = value & ((1ULL << f.mantissa) - 1);
  const bool is_negative = ((value >> (f.mantissa + f.exponent_bits)) & 1) != 0;
  long double result = 0;
  // The largest exponent of an e4m3 has numbers, too, and one NaN.
  const bool is_fine = type == Type::kE4m3;
  if (exponent == (1ULL << f.exponent_bits) - 1 && (!is_fine || mantissa == 7)) {
    result = mantissa == 0 ? kInfinity : kNan;
  } else {
    const uint64_t whole = exponent == 0 ? mantissa : mantissa | 1ULL << f.mantissa;
    const int scale = std::max(static_cast<int>(exponent), 1) - f.bias() - f.mantissa;
    result = std::ldexp(static_cast<long double>(whole), scale);
  }
  return is_negative ? -result : result;
}

uint64_t encode(long double value, Type type, RoundingMode mode) {
  const Format f = format_of(type);
  const uint64_t infinity = ((1ULL << f.exponent_bits) - 1) << f.mantissa;
  if (std::isnan(value)) return (infinity | ((1ULL << f.mantissa) - 1)) << f.zeros;
  const bool is_negative = std::signbit(value);
  const uint64_t sign = is_negative ? 1ULL << (f.mantissa + f.exponent_bits) : 0;
  value = std::fabs(value);
  if (std::isinf(value)) return (sign | infinity) << f.zeros;
  if (is_zero(value)) return sign << f.zeros;
  const int exponent_min = 1 - f.bias();
  int unit = std::max(std::ilogb(value), exponent_min) - f.mantissa;
  long double whole = round_whole(std::ldexp(value, -unit), is_negative, mode);
  if (whole == std::ldexp(1.0L, f.mantissa + 1)) {
    whole /= 2;
    ++unit;
  }
  uint64_t bits = static_cast<uint64_t>(whole);
  const bool is_normal = bits >> f.mantissa != 0;
  if (is_normal) {
    const int exponent = unit - (exponent_min - f.mantissa) + 1;
    bits = bits - (1ULL << f.mantissa) + (static_cast<uint64_t>(exponent) << f.mantissa);
  }
  if (bits >= infinity) {
    const bool stays_finite = mode == RoundingMode::kZero ||
                              (mode == RoundingMode::kDown && !is_negative) ||
                              (mode == RoundingMode::kUp && is_negative);
    bits = stays_finite ? infinity - 1 : infinity;
  }
  return (sign | bits) << f.zeros;
}

bool compare(const Instruction& one, Type type, uint64_t a, uint64_t b) {
  const std::string& name = one.modifiers.at(0);
  if (is_float(type)) {
    a = one.has("ftz") ? flush(bits_as(a, type), type) : a;
    b = one.has("ftz") ? flush(bits_as(b, type), type) : b;
    const long double x = float_as(a, type), y = float_as(b, type);
    const bool is_unordered = std::isnan(x) || std::isnan(y);
    if (name == "num") return !is_unordered;
    if (name == "nan") return is_unordered;
    if (is_unordered) return name.size() == 3;
    const std::string ordered = name.substr(0, 2);
    return ordered == "eq"   ? x == y
           : ordered == "ne" ? x != y
           : ordered == "lt" ? x < y
           : ordered == "le" ? x <= y
           : ordered == "gt" ? x > y
                             : x >= y;
  }
  Wide x = static_cast<Wide>(bits_as(a, type)), y = static_cast<Wide>(bits_as(b, type));
  if (is_signed(type)) {
    x = integer_as(a, type);
    y = integer_as(b, type);
  }
  if (name == "eq") return x == y;
  if (name == "ne") return x != y;
  if (name == "lt" || name == "lo") return x < y;
  if (name == "le" || name == "ls") return x <= y;
  if (name == "gt" || name == "hi") return x > y;
  return x >= y;
}

bool combine(const Instruction& one, uint64_t old, uint64_t b, uint64_t c, uint64_t& result) {
  const Type type = one.type();
  const uint64_t low = bits_as(old, type), other = bits_as(b, type);
  if (one.has("exch")) {
    result = b;
  } else if (one.has("cas")) {
    result = low == other ? c : old;
  } else if (one.has("and")) {
    result = old & b;
  } else if (one.has("or")) {
    result = old | b;
  } else if (one.has("xor")) {
    result = old ^ b;
  } else if (one.has("inc")) {
    result = low >= other ? 0 : low + 1;
  } else if (one.has("dec")) {
    result = low == 0 || low > other ? other : low - 1;
  } else if (one.has("add") || one.has("min") || one.has("max")) {
    Instruction plain;
    plain.opcode = one.has("add") ? "add" : one.has("min") ? "min" : "max";
    plain.types = {type};
    // Sums of float32 in global memory flush subnormal numbers, those in shared memory do not.
    if (type == Type::kF32 && one.has("global")) plain.modifiers = {"ftz"};
    bool carry = false;
    const uint64_t sources[] = {old, b};
    return compute(plain, sources, carry, result);
  } else {
    return false;
  }
  return true;
}

bool compute(const Instruction& one, std::span<const uint64_t> sources, bool& carry,
             uint64_t& result) {
  const std::string& op = one.opcode;
  const Type type = one.type();
  if (op == "cvt") {
    result = convert(one, sources);
    return true;
  }
  if (op == "slct") {
    result = choose_by_sign(one, sources);
    return true;
  }
  if (op == "selp") {
    result = sources[2] != 0 ? sources[0] : sources[1];
    return true;
  }
  if (is_float(type)) return compute_float(one, sources, result);
  Wide x[3] = {};
  for (size_t k = 0; k < std::min<size_t>(sources.size(), 3); ++k) {
    x[k] = is_signed(type) ? Wide{integer_as(sources[k], type)}
                           : static_cast<Wide>(bits_as(sources[k], type));
  }
  // The addend of mad.wide is as wide as its result.
  if (op == "mad" && one.has("wide")) x[2] = static_cast<Wide>(sources[2]);
  if (one.has("cc") || op.ends_with("c")) {
    if (compute_carry(one, x[0], x[1], x[2], carry, result)) return true;
  }
  return compute_integer(one, x[0], x[1], x[2], result) || compute_bits(one, sources, result);
}

}  // namespace mc::ptx
