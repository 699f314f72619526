// SPDX-License-Identifier: Apache-2.0
// One 16-bit floating-point type of CUDA, its pair, and every function over them.  Included once by
// cuda_fp16.h and once by cuda_bf16.h, hence no guard; they define first
//
//   MC_T, MC_T2            the type and its pair          __half, __half2
//   MC_RAW, MC_RAW2        their plain-data twins         __half_raw, __half2_raw
//   MC_OTHER               the other 16-bit type          __nv_bfloat16
//   MC_NAME, MC_NAME2      what function names say        half, half2
//   MC_FORMAT              the tag of half_bits.h         Fp16
//   MC_CONVERSIONS, MC_OPERATORS, MC_OPERATORS2           1 or 0: CUDA's implicit conversions and
//                                                         operators, which __CUDA_NO_HALF_... drop
//
// Both types share all names except those with MC_NAME in them, so the functions are overloads, not
// templates: an argument may then convert to the type, as in CUDA.  Arithmetic goes through float,
// which is wide enough to round once for + - * / and sqrt; fma goes through double.

struct MC_RAW {
  unsigned short x;
};

struct alignas(4) MC_RAW2 {
  unsigned short x;
  unsigned short y;
};

struct alignas(2) MC_T {
  MC_T() = default;
  constexpr MC_T(const MC_RAW& raw) : bits_(raw.x) {}
  MC_T& operator=(const MC_RAW& raw) {
    bits_ = raw.x;
    return *this;
  }
  volatile MC_T& operator=(const MC_RAW& raw) volatile {
    bits_ = raw.x;
    return *this;
  }
  constexpr operator MC_RAW() const { return MC_RAW{bits_}; }
  operator MC_RAW() const volatile { return MC_RAW{bits_}; }

#if MC_CONVERSIONS
  explicit MC_T(const MC_OTHER other);
  constexpr MC_T(float x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  MC_T(double x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  MC_T(short x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  MC_T(unsigned short x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  MC_T(int x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  MC_T(unsigned int x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  MC_T(long x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  MC_T(unsigned long x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  MC_T(long long x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  MC_T(unsigned long long x) : bits_(::mc_emu::encode<MC_FORMAT>(x)) {}
  constexpr operator float() const { return ::mc_emu::decode<MC_FORMAT>(bits_); }
  constexpr operator bool() const { return (bits_ & 0x7FFF) != 0; }
  operator char() const { return as<char>(); }
  operator signed char() const { return as<signed char>(); }
  operator unsigned char() const { return as<unsigned char>(); }
  operator short() const { return as<short>(); }
  operator unsigned short() const { return as<unsigned short>(); }
  operator int() const { return as<int>(); }
  operator unsigned int() const { return as<unsigned int>(); }
  operator long() const { return as<long>(); }
  operator unsigned long() const { return as<unsigned long>(); }
  operator long long() const { return as<long long>(); }
  operator unsigned long long() const { return as<unsigned long long>(); }
#endif

 private:
  template <class Int>
  Int as() const {
    const float wide = ::mc_emu::decode<MC_FORMAT>(bits_);
    return ::mc_emu::integer_of<Int>(wide, ::mc_emu::Rounding::kZero);
  }
  unsigned short bits_;
};

struct alignas(4) MC_T2 {
  MC_T x;
  MC_T y;

  MC_T2() = default;
  constexpr MC_T2(const MC_T& low, const MC_T& high) : x(low), y(high) {}
  constexpr MC_T2(const MC_RAW2& raw) : x(MC_RAW{raw.x}), y(MC_RAW{raw.y}) {}
  constexpr operator MC_RAW2() const {
    return MC_RAW2{static_cast<MC_RAW>(x).x, static_cast<MC_RAW>(y).x};
  }
};

namespace mc_emu {

MC_EMU_INLINE constexpr float wide(const MC_T& a) {
  return decode<MC_FORMAT>(static_cast<MC_RAW>(a).x);
}

}  // namespace mc_emu

// Conversion from and to other types.

#define MC_NAMED(prefix, name, suffix) MC_NAMED_EXPANDED(prefix, name, suffix)
#define MC_NAMED_EXPANDED(prefix, name, suffix) prefix##name##suffix
#define MC_RETURN_T(...) return MC_T(MC_RAW{::mc_emu::encode<MC_FORMAT>(__VA_ARGS__)})

MC_EMU_INLINE MC_T MC_NAMED(__float2, MC_NAME, )(const float x) { MC_RETURN_T(x); }
MC_EMU_INLINE MC_T MC_NAMED(__double2, MC_NAME, )(const double x) { MC_RETURN_T(x); }
MC_EMU_INLINE float MC_NAMED(__, MC_NAME, 2float)(const MC_T a) { return ::mc_emu::wide(a); }

#define MC_FROM_FLOAT(suffix, mode)                                       \
  MC_EMU_INLINE MC_T MC_NAMED(__float2, MC_NAME, suffix)(const float x) { \
    MC_RETURN_T(x, ::mc_emu::Rounding::mode);                             \
  }
MC_FROM_FLOAT(_rn, kNearest)
MC_FROM_FLOAT(_rz, kZero)
MC_FROM_FLOAT(_ru, kUp)
MC_FROM_FLOAT(_rd, kDown)
#undef MC_FROM_FLOAT

#define MC_INTEGER_MODE(Int, int_name, suffix, mode)                               \
  MC_EMU_INLINE MC_T MC_NAMED(__##int_name##2, MC_NAME, suffix)(const Int x) {     \
    MC_RETURN_T(x, ::mc_emu::Rounding::mode);                                      \
  }                                                                                \
  MC_EMU_INLINE Int MC_NAMED(__, MC_NAME, 2##int_name##suffix)(const MC_T a) {     \
    return ::mc_emu::integer_of<Int>(::mc_emu::wide(a), ::mc_emu::Rounding::mode); \
  }
#define MC_INTEGER(Int, int_name)               \
  MC_INTEGER_MODE(Int, int_name, _rn, kNearest) \
  MC_INTEGER_MODE(Int, int_name, _rz, kZero)    \
  MC_INTEGER_MODE(Int, int_name, _ru, kUp)      \
  MC_INTEGER_MODE(Int, int_name, _rd, kDown)
MC_INTEGER(short, short)
MC_INTEGER(unsigned short, ushort)
MC_INTEGER(int, int)
MC_INTEGER(unsigned int, uint)
MC_INTEGER(long long, ll)
MC_INTEGER(unsigned long long, ull)
#undef MC_INTEGER
#undef MC_INTEGER_MODE

MC_EMU_INLINE signed char MC_NAMED(__, MC_NAME, 2char_rz)(const MC_T a) {
  return ::mc_emu::integer_of<signed char>(::mc_emu::wide(a), ::mc_emu::Rounding::kZero);
}
MC_EMU_INLINE unsigned char MC_NAMED(__, MC_NAME, 2uchar_rz)(const MC_T a) {
  return ::mc_emu::integer_of<unsigned char>(::mc_emu::wide(a), ::mc_emu::Rounding::kZero);
}

MC_EMU_INLINE short MC_NAMED(__, MC_NAME, _as_short)(const MC_T a) {
  return static_cast<short>(static_cast<MC_RAW>(a).x);
}
MC_EMU_INLINE unsigned short MC_NAMED(__, MC_NAME, _as_ushort)(const MC_T a) {
  return static_cast<MC_RAW>(a).x;
}
MC_EMU_INLINE MC_T MC_NAMED(__short_as_, MC_NAME, )(const short bits) {
  return MC_RAW{static_cast<unsigned short>(bits)};
}
MC_EMU_INLINE MC_T MC_NAMED(__ushort_as_, MC_NAME, )(const unsigned short bits) {
  return MC_RAW{bits};
}

// Pairs: made, taken apart and shuffled.

MC_EMU_INLINE MC_T2 MC_NAMED(make_, MC_NAME2, )(const MC_T x, const MC_T y) { return {x, y}; }
MC_EMU_INLINE MC_T2 MC_NAMED(__halves2, MC_NAME2, )(const MC_T x, const MC_T y) { return {x, y}; }
MC_EMU_INLINE MC_T2 MC_NAMED(__, MC_NAME, MC_REPEATED)(const MC_T a) { return {a, a}; }
MC_EMU_INLINE MC_T2 MC_NAMED(__floats2, MC_NAME2, _rn)(const float x, const float y) {
  return {MC_NAMED(__float2, MC_NAME, )(x), MC_NAMED(__float2, MC_NAME, )(y)};
}
MC_EMU_INLINE MC_T2 MC_NAMED(__float2, MC_NAME2, _rn)(const float x) {
  return MC_NAMED(__floats2, MC_NAME2, _rn)(x, x);
}
MC_EMU_INLINE MC_T2 MC_NAMED(__float22, MC_NAME2, _rn)(const float2 v) {
  return MC_NAMED(__floats2, MC_NAME2, _rn)(v.x, v.y);
}
MC_EMU_INLINE float2 MC_NAMED(__, MC_NAME2, 2float2)(const MC_T2 a) {
  float2 v;
  v.x = ::mc_emu::wide(a.x);
  v.y = ::mc_emu::wide(a.y);
  return v;
}
MC_EMU_INLINE float __low2float(const MC_T2 a) { return ::mc_emu::wide(a.x); }
MC_EMU_INLINE float __high2float(const MC_T2 a) { return ::mc_emu::wide(a.y); }
MC_EMU_INLINE MC_T MC_NAMED(__low2, MC_NAME, )(const MC_T2 a) { return a.x; }
MC_EMU_INLINE MC_T MC_NAMED(__high2, MC_NAME, )(const MC_T2 a) { return a.y; }
MC_EMU_INLINE MC_T2 MC_NAMED(__low2, MC_NAME2, )(const MC_T2 a) { return {a.x, a.x}; }
MC_EMU_INLINE MC_T2 MC_NAMED(__high2, MC_NAME2, )(const MC_T2 a) { return {a.y, a.y}; }
MC_EMU_INLINE MC_T2 MC_NAMED(__lows2, MC_NAME2, )(const MC_T2 a, const MC_T2 b) {
  return {a.x, b.x};
}
MC_EMU_INLINE MC_T2 MC_NAMED(__highs2, MC_NAME2, )(const MC_T2 a, const MC_T2 b) {
  return {a.y, b.y};
}
MC_EMU_INLINE MC_T2 __lowhigh2highlow(const MC_T2 a) { return {a.y, a.x}; }

// Arithmetic.  Each entry makes the function of the type and that of the pair.

#define MC_BINARY(name, name2, expression)                    \
  MC_EMU_INLINE MC_T name(const MC_T a, const MC_T b) {       \
    const float x = ::mc_emu::wide(a), y = ::mc_emu::wide(b); \
    MC_RETURN_T(expression);                                  \
  }                                                           \
  MC_EMU_INLINE MC_T2 name2(const MC_T2 a, const MC_T2 b) {   \
    return {name(a.x, b.x), name(a.y, b.y)};                  \
  }
MC_BINARY(__hadd, __hadd2, x + y)
MC_BINARY(__hsub, __hsub2, x - y)
MC_BINARY(__hmul, __hmul2, x* y)
MC_BINARY(__hdiv, __h2div, x / y)
MC_BINARY(__hadd_rn, __hadd2_rn, x + y)
MC_BINARY(__hsub_rn, __hsub2_rn, x - y)
MC_BINARY(__hmul_rn, __hmul2_rn, x* y)
MC_BINARY(__hadd_sat, __hadd2_sat, ::mc_emu::saturated(x + y))
MC_BINARY(__hsub_sat, __hsub2_sat, ::mc_emu::saturated(x - y))
MC_BINARY(__hmul_sat, __hmul2_sat, ::mc_emu::saturated(x* y))
MC_BINARY(__hmax, __hmax2, ::mc_emu::greater(x, y))
MC_BINARY(__hmin, __hmin2, -::mc_emu::greater(-x, -y))
MC_BINARY(__hmax_nan, __hmax2_nan, x != x || y != y ? NAN : ::mc_emu::greater(x, y))
MC_BINARY(__hmin_nan, __hmin2_nan, x != x || y != y ? NAN : -::mc_emu::greater(-x, -y))
#undef MC_BINARY

MC_EMU_INLINE MC_T __hfma(const MC_T a, const MC_T b, const MC_T c) {
  using ::mc_emu::wide;
  return MC_RAW{::mc_emu::encode_fma<MC_FORMAT>(wide(a), wide(b), wide(c))};
}
MC_EMU_INLINE MC_T __hfma_relu(const MC_T a, const MC_T b, const MC_T c) {
  const float x = ::mc_emu::wide(__hfma(a, b, c));
  MC_RETURN_T(x < 0 ? 0.0f : x);
}
MC_EMU_INLINE MC_T __hfma_sat(const MC_T a, const MC_T b, const MC_T c) {
  MC_RETURN_T(::mc_emu::saturated(::mc_emu::wide(__hfma(a, b, c))));
}
#define MC_TERNARY2(name, name2)                                           \
  MC_EMU_INLINE MC_T2 name2(const MC_T2 a, const MC_T2 b, const MC_T2 c) { \
    return {name(a.x, b.x, c.x), name(a.y, b.y, c.y)};                     \
  }
MC_TERNARY2(__hfma, __hfma2)
MC_TERNARY2(__hfma_relu, __hfma2_relu)
MC_TERNARY2(__hfma_sat, __hfma2_sat)
#undef MC_TERNARY2

// The sum a * b + c of complex numbers (x real, y imaginary), each step rounded.
MC_EMU_INLINE MC_T2 __hcmadd(const MC_T2 a, const MC_T2 b, const MC_T2 c) {
  const MC_T minus_ay = MC_RAW{static_cast<unsigned short>(static_cast<MC_RAW>(a.y).x ^ 0x8000)};
  return {__hfma(minus_ay, b.y, __hfma(a.x, b.x, c.x)), __hfma(a.y, b.x, __hfma(a.x, b.y, c.y))};
}

MC_EMU_INLINE MC_T __hneg(const MC_T a) {
  return MC_RAW{static_cast<unsigned short>(static_cast<MC_RAW>(a).x ^ 0x8000)};
}
MC_EMU_INLINE MC_T __habs(const MC_T a) {
  return MC_RAW{static_cast<unsigned short>(static_cast<MC_RAW>(a).x & 0x7FFF)};
}
MC_EMU_INLINE MC_T2 __hneg2(const MC_T2 a) { return {__hneg(a.x), __hneg(a.y)}; }
MC_EMU_INLINE MC_T2 __habs2(const MC_T2 a) { return {__habs(a.x), __habs(a.y)}; }

#define MC_UNARY(name, expression)           \
  MC_EMU_INLINE MC_T h##name(const MC_T a) { \
    const float x = ::mc_emu::wide(a);       \
    MC_RETURN_T(expression);                 \
  }                                          \
  MC_EMU_INLINE MC_T2 h2##name(const MC_T2 a) { return {h##name(a.x), h##name(a.y)}; }
MC_UNARY(sqrt, std::sqrt(x))
MC_UNARY(rsqrt, 1.0 / std::sqrt(static_cast<double>(x)))
MC_UNARY(rcp, 1.0f / x)
MC_UNARY(exp, std::exp(x))
MC_UNARY(exp2, std::exp2(x))
MC_UNARY(exp10, std::pow(10.0, static_cast<double>(x)))
MC_UNARY(log, std::log(x))
MC_UNARY(log2, std::log2(x))
MC_UNARY(log10, std::log10(x))
MC_UNARY(sin, std::sin(x))
MC_UNARY(cos, std::cos(x))
MC_UNARY(tanh, std::tanh(x))
MC_UNARY(tanh_approx, std::tanh(x))
MC_UNARY(floor, std::floor(x))
MC_UNARY(ceil, std::ceil(x))
MC_UNARY(trunc, std::trunc(x))
MC_UNARY(rint, std::nearbyint(x))
#undef MC_UNARY

// Comparison: plain forms are false where an operand is NaN, the `u` ones are true.

#define MC_COMPARE(name, op)                                             \
  MC_EMU_INLINE bool __h##name(const MC_T a, const MC_T b) {             \
    const float x = ::mc_emu::wide(a), y = ::mc_emu::wide(b);            \
    return x == x && y == y && x op y;                                   \
  }                                                                      \
  MC_EMU_INLINE bool __h##name##u(const MC_T a, const MC_T b) {          \
    const float x = ::mc_emu::wide(a), y = ::mc_emu::wide(b);            \
    return x != x || y != y || x op y;                                   \
  }                                                                      \
  MC_COMPARE2(__h##name, __h##name##2, __hb##name##2, __h##name##2_mask) \
  MC_COMPARE2(__h##name##u, __h##name##u2, __hb##name##u2, __h##name##u2_mask)
#define MC_COMPARE2(name, each, both, mask)                                       \
  MC_EMU_INLINE MC_T2 each(const MC_T2 a, const MC_T2 b) {                        \
    const MC_T zero = MC_RAW{0}, one = MC_RAW{::mc_emu::encode<MC_FORMAT>(1.0f)}; \
    return {name(a.x, b.x) ? one : zero, name(a.y, b.y) ? one : zero};            \
  }                                                                               \
  MC_EMU_INLINE bool both(const MC_T2 a, const MC_T2 b) {                         \
    return name(a.x, b.x) && name(a.y, b.y);                                      \
  }                                                                               \
  MC_EMU_INLINE unsigned mask(const MC_T2 a, const MC_T2 b) {                     \
    return (name(a.x, b.x) ? 0xFFFFu : 0u) | (name(a.y, b.y) ? 0xFFFF0000u : 0u); \
  }
MC_COMPARE(eq, ==)
MC_COMPARE(ne, !=)
MC_COMPARE(lt, <)
MC_COMPARE(le, <=)
MC_COMPARE(gt, >)
MC_COMPARE(ge, >=)
#undef MC_COMPARE2
#undef MC_COMPARE

MC_EMU_INLINE bool __hisnan(const MC_T a) { return __hneu(a, a); }
MC_EMU_INLINE MC_T2 __hisnan2(const MC_T2 a) { return __hneu2(a, a); }
MC_EMU_INLINE int __hisinf(const MC_T a) {
  const unsigned short bits = static_cast<MC_RAW>(a).x;
  if ((bits & 0x7FFF) != MC_FORMAT::kInfinity) return 0;
  return bits == MC_FORMAT::kInfinity ? 1 : -1;
}

#if MC_OPERATORS
// For operands of exactly this type: PyTorch's half types convert to it, and compare and calculate
// as floats.
#define MC_BINARY(result, operation, function)                                 \
  template <class MC_A, std::enable_if_t<std::is_same_v<MC_A, MC_T>, int> = 0> \
  MC_EMU_INLINE result operator operation(const MC_A& a, const MC_A& b) {      \
    return function(a, b);                                                     \
  }
MC_BINARY(MC_T, +, __hadd)
MC_BINARY(MC_T, -, __hsub)
MC_BINARY(MC_T, *, __hmul)
MC_BINARY(MC_T, /, __hdiv)
MC_EMU_INLINE MC_T& operator+=(MC_T& a, const MC_T& b) { return a = __hadd(a, b); }
MC_EMU_INLINE MC_T& operator-=(MC_T& a, const MC_T& b) { return a = __hsub(a, b); }
MC_EMU_INLINE MC_T& operator*=(MC_T& a, const MC_T& b) { return a = __hmul(a, b); }
MC_EMU_INLINE MC_T& operator/=(MC_T& a, const MC_T& b) { return a = __hdiv(a, b); }
MC_EMU_INLINE MC_T operator+(const MC_T& a) { return a; }
MC_EMU_INLINE MC_T operator-(const MC_T& a) { return __hneg(a); }
MC_EMU_INLINE MC_T& operator++(MC_T& a) {
  return a = __hadd(a, MC_RAW{::mc_emu::encode<MC_FORMAT>(1.0f)});
}
MC_EMU_INLINE MC_T& operator--(MC_T& a) {
  return a = __hsub(a, MC_RAW{::mc_emu::encode<MC_FORMAT>(1.0f)});
}
MC_EMU_INLINE MC_T operator++(MC_T& a, int) {
  const MC_T before = a;
  ++a;
  return before;
}
MC_EMU_INLINE MC_T operator--(MC_T& a, int) {
  const MC_T before = a;
  --a;
  return before;
}
MC_BINARY(bool, ==, __heq)
MC_BINARY(bool, !=, __hneu)
MC_BINARY(bool, <, __hlt)
MC_BINARY(bool, <=, __hle)
MC_BINARY(bool, >, __hgt)
MC_BINARY(bool, >=, __hge)
#undef MC_BINARY
#endif

#if MC_OPERATORS2
MC_EMU_INLINE MC_T2 operator+(const MC_T2& a, const MC_T2& b) { return __hadd2(a, b); }
MC_EMU_INLINE MC_T2 operator-(const MC_T2& a, const MC_T2& b) { return __hsub2(a, b); }
MC_EMU_INLINE MC_T2 operator*(const MC_T2& a, const MC_T2& b) { return __hmul2(a, b); }
MC_EMU_INLINE MC_T2 operator/(const MC_T2& a, const MC_T2& b) { return __h2div(a, b); }
MC_EMU_INLINE MC_T2& operator+=(MC_T2& a, const MC_T2& b) { return a = __hadd2(a, b); }
MC_EMU_INLINE MC_T2& operator-=(MC_T2& a, const MC_T2& b) { return a = __hsub2(a, b); }
MC_EMU_INLINE MC_T2& operator*=(MC_T2& a, const MC_T2& b) { return a = __hmul2(a, b); }
MC_EMU_INLINE MC_T2& operator/=(MC_T2& a, const MC_T2& b) { return a = __h2div(a, b); }
MC_EMU_INLINE MC_T2 operator+(const MC_T2& a) { return a; }
MC_EMU_INLINE MC_T2 operator-(const MC_T2& a) { return __hneg2(a); }
MC_EMU_INLINE MC_T2& operator++(MC_T2& a) {
  return a = __hadd2(a, MC_NAMED(__float2, MC_NAME2, _rn)(1.0f));
}
MC_EMU_INLINE MC_T2& operator--(MC_T2& a) {
  return a = __hsub2(a, MC_NAMED(__float2, MC_NAME2, _rn)(1.0f));
}
MC_EMU_INLINE MC_T2 operator++(MC_T2& a, int) {
  const MC_T2 before = a;
  ++a;
  return before;
}
MC_EMU_INLINE MC_T2 operator--(MC_T2& a, int) {
  const MC_T2 before = a;
  --a;
  return before;
}
MC_EMU_INLINE bool operator==(const MC_T2& a, const MC_T2& b) { return __hbeq2(a, b); }
MC_EMU_INLINE bool operator!=(const MC_T2& a, const MC_T2& b) { return __hbneu2(a, b); }
MC_EMU_INLINE bool operator<(const MC_T2& a, const MC_T2& b) { return __hblt2(a, b); }
MC_EMU_INLINE bool operator<=(const MC_T2& a, const MC_T2& b) { return __hble2(a, b); }
MC_EMU_INLINE bool operator>(const MC_T2& a, const MC_T2& b) { return __hbgt2(a, b); }
MC_EMU_INLINE bool operator>=(const MC_T2& a, const MC_T2& b) { return __hbge2(a, b); }
#endif

#undef MC_RETURN_T
#undef MC_NAMED_EXPANDED
#undef MC_NAMED
