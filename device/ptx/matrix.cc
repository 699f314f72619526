// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices by a warp: mma.sync and wmma.
//
// The elements of a matrix are spread over the lanes' registers: `g = lane / 4` and `t = lane % 4`
// name the offsets, and a register holds as many elements of a row as fit into 32 bits. The
// fragments become small matrices, a loop multiplies them, and the result is spread again. Sums are
// exact or rounded once an element; GPUs truncate some of them.
#include "ptx/fp8.h"
#include "ptx/halves.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

// ---- Elements. Each element type has its number per word, and returns an element's value.
struct HalfWords {
  using Number = float;
  static constexpr int kPer = 2;
  MC_INLINE static float of(uint32_t word, int k) {
    return widen(F16{static_cast<uint16_t>(word >> (16 * k))});
  }
  MC_INLINE static void row(const uint32_t* words, float* numbers) {
    widen_row(reinterpret_cast<const F16*>(words), numbers, 64);
  }
};
struct BrainWords {
  using Number = float;
  static constexpr int kPer = 2;
  MC_INLINE static float of(uint32_t word, int k) {
    return __builtin_bit_cast(float, k == 0 ? word << 16 : word & 0xFFFF0000);
  }
  MC_INLINE static void row(const uint32_t* words, float* numbers) {
    widen_row(reinterpret_cast<const Bf16*>(words), numbers, 64);
  }
};
struct Tf32Words {
  using Number = float;
  static constexpr int kPer = 1;
  MC_INLINE static float of(uint32_t word, int) {
    return __builtin_bit_cast(float, word & 0xFFFFE000);
  }
  MC_INLINE static void row(const uint32_t* words, float* numbers) {
    for (int l = 0; l < 32; ++l) numbers[l] = of(words[l], 0);
  }
};
template <class T>
struct Fp8Words {
  using Number = float;
  static constexpr int kPer = 4;
  MC_INLINE static void row(const uint32_t* words, float* numbers) {
    widen_fp8_row(reinterpret_cast<const T*>(words), numbers, 128);
  }
};
template <int kBits, bool kSigned>
struct IntegerWords {
  using Number = int32_t;
  static constexpr int kPer = 32 / kBits;
  MC_INLINE static int32_t of(uint32_t word, int k) {
    const uint32_t top = word << (32 - kBits * (k + 1));
    return kSigned ? static_cast<int32_t>(top) >> (32 - kBits)
                   : static_cast<int32_t>(top >> (32 - kBits));
  }
  MC_INLINE static void row(const uint32_t* words, int32_t* numbers) {
    for (int l = 0; l < 32; ++l) {
      for (int k = 0; k < kPer; ++k) numbers[l * kPer + k] = of(words[l], k);
    }
  }
};

// ---- Fragments. M is 8 or 16, N is 8.
template <class EA, class EB, int M, int K>
struct Operands {
  alignas(32) typename EA::Number a[M][K];
  alignas(32) typename EB::Number b[K][8];

  // The 32 lanes of a register hold eight rows of kRow numbers: four lanes hold one row.
  static constexpr int kRow = 4 * EA::kPer;
  static constexpr int kInA = M * K / (8 * kRow), kInB = K / kRow;  // Registers.

  MC_INLINE void read_a(LaneWarp& w, const uint32_t* offsets) {
    constexpr int kRows = M / 8;
    for (int r = 0; r < kInA; ++r) {
      alignas(32) typename EA::Number numbers[8][kRow];
      EA::row(w.at<uint32_t>(offsets[r]), numbers[0]);
      for (int g = 0; g < 8; ++g) {
        memcpy(&a[r % kRows * 8 + g][r / kRows * kRow], numbers[g], sizeof numbers[g]);
      }
    }
  }

  MC_INLINE void read_b(LaneWarp& w, const uint32_t* offsets) {
    for (int r = 0; r < kInB; ++r) {
      alignas(32) typename EB::Number numbers[8][kRow];
      EB::row(w.at<uint32_t>(offsets[r]), numbers[0]);
      for (int k = 0; k < kRow; ++k) {
        for (int g = 0; g < 8; ++g) b[r * kRow + k][g] = numbers[g][k];
      }
    }
  }
};

// The sum c += a b, four rows at a time.
template <class Operands, int M, int K>
MC_INLINE void multiply(const Operands& operands, float (&c)[M][8]) {
  for (int m = 0; m < M; m += 4) {
    __m256 sums[4];
    for (int i = 0; i < 4; ++i) sums[i] = _mm256_load_ps(c[m + i]);
    for (int k = 0; k < K; ++k) {
      const __m256 row = _mm256_load_ps(operands.b[k]);
      for (int i = 0; i < 4; ++i) {
        sums[i] = _mm256_fmadd_ps(_mm256_broadcast_ss(&operands.a[m + i][k]), row, sums[i]);
      }
    }
    for (int i = 0; i < 4; ++i) _mm256_store_ps(c[m + i], sums[i]);
  }
}

// Sums of integers do not leave 64 bits before they are saturated. Bits are combined by and or xor.
constexpr uint32_t kSaturates = 1, kXor = 2;

template <class Operands, int M, int K>
MC_INLINE void multiply(const Operands& operands, int32_t (&c)[M][8], uint32_t flags) {
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < 8; ++n) {
      int64_t sum = c[m][n];
      for (int k = 0; k < K; ++k) {
        const int32_t x = operands.a[m][k], y = operands.b[k][n];
        sum += flags & kXor ? x ^ y : x * y;
      }
      const int64_t inside = sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum;
      c[m][n] = static_cast<int32_t>(flags & kSaturates ? inside : sum);
    }
  }
}

// Words of c and d: two for each row of a lane; element e is at column 2 t + e % 2.
template <class C, int M>
MC_INLINE void read_sums(LaneWarp& w, const uint32_t* offsets, C (&c)[M][8]) {
  for (int part = 0; part < M / 8; ++part) {
    const C *even = w.at<C>(offsets[2 * part]), *odd = w.at<C>(offsets[2 * part + 1]);
    C* row = c[8 * part];
    for (int l = 0; l < 32; ++l) {
      row[2 * l] = even[l];
      row[2 * l + 1] = odd[l];
    }
  }
}

template <class C, int M>
MC_INLINE void write_sums(LaneWarp& w, const uint32_t* offsets, const C (&c)[M][8]) {
  for (int part = 0; part < M / 8; ++part) {
    C *even = w.at<C>(offsets[2 * part]), *odd = w.at<C>(offsets[2 * part + 1]);
    const C* row = c[8 * part];
    for (int l = 0; l < 32; ++l) {
      even[l] = row[2 * l];
      odd[l] = row[2 * l + 1];
    }
  }
}

// Halves of c and d: a word has both columns of a lane.
template <int M>
MC_INLINE void read_half_sums(LaneWarp& w, const uint32_t* offsets, float (&c)[M][8]) {
  for (int r = 0; r < M / 8; ++r) {
    const uint32_t* words = w.at<uint32_t>(offsets[r]);
    for (int l = 0; l < 64; ++l) {
      c[l / 8 + r * 8][l % 8] = HalfWords::of(words[l / 2], l % 2);
    }
  }
}

template <int M>
MC_INLINE void write_half_sums(LaneWarp& w, const uint32_t* offsets, const float (&c)[M][8]) {
  for (int r = 0; r < M / 8; ++r) {
    F16* halves = w.at<F16>(offsets[r]);
    for (int l = 0; l < 64; ++l) halves[l] = narrow<F16>(c[l / 8 + r * 8][l % 8]);
  }
}

bool all_are_there(LaneWarp& w, const Step* s) {
  if (w.is_full()) return true;
  report(*w.block, w, s, FindingKind::kShuffleSource, w.thread(lowest(w.active)),
         "lanes of the warp are missing");
  return false;
}

// The list: registers of d, a, b and c.
template <class EA, class EB, int M, int K, bool kHalf>
const Step* product(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  if (!all_are_there(w, s)) return s + 1;
  using Sum = typename EA::Number;
  Operands<EA, EB, M, K> operands;
  const uint32_t *d = s->list, *a = d + (kHalf ? M / 8 : M / 4);
  const uint32_t *b = a + operands.kInA, *c = b + operands.kInB;
  operands.read_a(w, a);
  operands.read_b(w, b);
  alignas(32) Sum sums[M][8];
  if constexpr (kHalf) {
    read_half_sums<M>(w, c, sums);
    multiply<decltype(operands), M, K>(operands, sums);
    write_half_sums<M>(w, d, sums);
    return s + 1;
  }
  read_sums<Sum, M>(w, c, sums);
  if constexpr (std::is_same_v<Sum, float>) {
    multiply<decltype(operands), M, K>(operands, sums);
  } else {
    multiply<decltype(operands), M, K>(operands, sums, s->flags);
  }
  write_sums<Sum, M>(w, d, sums);
  return s + 1;
}

// m8n8k4 of doubles: an element a lane, two of the sums.
const Step* double_product(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  if (!all_are_there(w, s)) return s + 1;
  const double *a = w.at<double>(s->list[2]), *b = w.at<double>(s->list[3]);
  double results[2][32];
  for (int e = 0; e < 2; ++e) {
    const double* c = w.at<double>(s->list[4 + e]);
    for (int l = 0; l < 32; ++l) {
      double sum = c[l];
      for (int k = 0; k < 4; ++k) {
        sum = __builtin_fma(a[l / 4 * 4 + k], b[(l % 4 * 2 + e) * 4 + k], sum);
      }
      results[e][l] = sum;
    }
  }
  for (int e = 0; e < 2; ++e) memcpy(w.at<double>(s->list[e]), results[e], sizeof results[e]);
  return s + 1;
}

// ---- The tables. A row of a and a column of b fill one register of each lane, or two.
template <class EA, class EB, bool kHalf = false>
Handler with_shape(const MatrixKey& key) {
  constexpr int kUnit = 4 * EA::kPer;
  if (key.m == 16 && key.k == kUnit) return product<EA, EB, 16, kUnit, kHalf>;
  if (key.m == 16 && key.k == 2 * kUnit) return product<EA, EB, 16, 2 * kUnit, kHalf>;
  if constexpr (std::is_same_v<typename EA::Number, int32_t>) {
    if (key.m == 8 && key.k == kUnit) return product<EA, EB, 8, kUnit, false>;
  }
  return nullptr;
}

template <int kBits>
Handler find_integers(const MatrixKey& key) {
  using Signed = IntegerWords<kBits, true>;
  using Unsigned = IntegerWords<kBits, false>;
  if (is_signed(key.b)) {
    return is_signed(key.a) ? with_shape<Signed, Signed>(key) : with_shape<Unsigned, Signed>(key);
  }
  return is_signed(key.a) ? with_shape<Signed, Unsigned>(key) : with_shape<Unsigned, Unsigned>(key);
}

template <bool kHalf>
Handler find_fp8(const MatrixKey& key) {
  using Fine = Fp8Words<E4m3>;
  using Wide = Fp8Words<E5m2>;
  if (key.b == Type::kE4m3) {
    return key.a == Type::kE4m3 ? with_shape<Fine, Fine, kHalf>(key)
                                : with_shape<Wide, Fine, kHalf>(key);
  }
  return key.a == Type::kE4m3 ? with_shape<Fine, Wide, kHalf>(key)
                              : with_shape<Wide, Wide, kHalf>(key);
}

}  // namespace

Handler find_matrix(const MatrixKey& key) {
  const bool has_halves = key.c == Type::kF16;
  if (kLanes != 32 || key.n != 8 || has_halves != (key.d == Type::kF16)) return nullptr;
  if (has_halves && key.a != Type::kF16 && !is_fp8(key.a)) return nullptr;
  switch (key.a) {
    case Type::kF16:
      if (has_halves) return with_shape<HalfWords, HalfWords, true>(key);
      return with_shape<HalfWords, HalfWords>(key);
      MC_ROW(Type::kBf16, with_shape<BrainWords, BrainWords>(key))
      MC_ROW(Type::kTf32, with_shape<Tf32Words, Tf32Words>(key))
      MC_ROW(Type::kF64, key.m == 8 && key.k == 4 ? double_product : nullptr)
      MC_ROW(Type::kB1, with_shape<IntegerWords<1, false>, IntegerWords<1, false>>(key))
    case Type::kE4m3:
      MC_ROW(Type::kE5m2, has_halves ? find_fp8<true>(key) : find_fp8<false>(key))
    case Type::kU8:
      MC_ROW(Type::kS8, find_integers<8>(key))
    case Type::kU4:
      MC_ROW(Type::kS4, find_integers<4>(key))
    default:
      return nullptr;
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
