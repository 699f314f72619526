// SPDX-License-Identifier: Apache-2.0
//
// Products of matrices by a warp: mma.sync and wmma.
//
// The elements of a matrix are spread over the lanes' registers: `g = lane / 4` and `t = lane % 4`
// name the places, and a register holds as many elements of a row as fit into 32 bits. The
// fragments become small matrices, a loop multiplies them, and the result is spread again. Sums are
// exact or rounded once an element; GPUs truncate some of them.
#include "ptx/halves.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

// ---- Elements. Each type says how many are in a word, and gives the number of one.
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
template <class E, int M, int K>
struct Operands {
  using Number = typename E::Number;
  alignas(32) Number a[M][K];
  alignas(32) Number b[K][8];

  // The 32 lanes of a register hold eight rows of kRow numbers: four lanes hold one row.
  static constexpr int kRow = 4 * E::kPer;

  MC_INLINE void read_a(LaneWarp& w, const uint32_t* places) {
    constexpr int kRegisters = M * K / (32 * E::kPer), kRows = M / 8;
    for (int r = 0; r < kRegisters; ++r) {
      alignas(32) Number numbers[8][kRow];
      E::row(w.at<uint32_t>(places[r]), numbers[0]);
      for (int g = 0; g < 8; ++g) {
        memcpy(&a[r % kRows * 8 + g][r / kRows * kRow], numbers[g], sizeof numbers[g]);
      }
    }
  }

  MC_INLINE void read_b(LaneWarp& w, const uint32_t* places) {
    constexpr int kRegisters = 8 * K / (32 * E::kPer);
    for (int r = 0; r < kRegisters; ++r) {
      alignas(32) Number numbers[8][kRow];
      E::row(w.at<uint32_t>(places[r]), numbers[0]);
      for (int k = 0; k < kRow; ++k) {
        for (int g = 0; g < 8; ++g) b[r * kRow + k][g] = numbers[g][k];
      }
    }
  }
};

// The sum c += a b, four rows at a time.
template <class Operands, int M, int K>
MC_INLINE void multiply(const Operands& operands, float (&c)[M][8]) {
#ifdef __FMA__
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
#else
  for (int m = 0; m < M; ++m) {
    for (int k = 0; k < K; ++k) {
      for (int n = 0; n < 8; ++n) {
        c[m][n] = __builtin_fmaf(operands.a[m][k], operands.b[k][n], c[m][n]);
      }
    }
  }
#endif
}

// Words of c and d: two for each row of a lane; element e is at column 2 t + e % 2.
template <class C, int M>
MC_INLINE void read_sums(LaneWarp& w, const uint32_t* places, C (&c)[M][8]) {
  for (int part = 0; part < M / 8; ++part) {
    const C *even = w.at<C>(places[2 * part]), *odd = w.at<C>(places[2 * part + 1]);
    C* row = c[8 * part];
    for (int l = 0; l < 32; ++l) {
      row[2 * l] = even[l];
      row[2 * l + 1] = odd[l];
    }
  }
}

template <class C, int M>
MC_INLINE void write_sums(LaneWarp& w, const uint32_t* places, const C (&c)[M][8]) {
  for (int part = 0; part < M / 8; ++part) {
    C *even = w.at<C>(places[2 * part]), *odd = w.at<C>(places[2 * part + 1]);
    const C* row = c[8 * part];
    for (int l = 0; l < 32; ++l) {
      even[l] = row[2 * l];
      odd[l] = row[2 * l + 1];
    }
  }
}

// Halves of c and d: a word has both columns of a lane.
template <int M>
MC_INLINE void read_half_sums(LaneWarp& w, const uint32_t* places, float (&c)[M][8]) {
  for (int r = 0; r < M / 8; ++r) {
    const uint32_t* words = w.at<uint32_t>(places[r]);
    for (int l = 0; l < 64; ++l) {
      c[l / 8 + r * 8][l % 8] = HalfWords::of(words[l / 2], l % 2);
    }
  }
}

template <int M>
MC_INLINE void write_half_sums(LaneWarp& w, const uint32_t* places, const float (&c)[M][8]) {
  for (int r = 0; r < M / 8; ++r) {
    F16* halves = w.at<F16>(places[r]);
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
template <class EA, class EB, int M, int K, class C, bool kHalfC, bool kHalfD>
const Step* product(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  if (!all_are_there(w, s)) return s + 1;
  constexpr int kSums = M / 4;
  constexpr int kD = kHalfD ? kSums / 2 : kSums;
  constexpr int kA = M * K / (32 * EA::kPer), kB = 8 * K / (32 * EB::kPer);
  const uint32_t *d = s->list, *a = d + kD, *b = a + kA, *c = b + kB;
  Operands<EA, M, K> left;
  Operands<EB, M, K> right;
  left.read_a(w, a);
  right.read_b(w, b);
  alignas(32) C sums[M][8];
  if constexpr (kHalfC) {
    read_half_sums<M>(w, c, sums);
  } else {
    read_sums<C, M>(w, c, sums);
  }
  struct Both {
    const typename EA::Number (&a)[M][K];
    const typename EB::Number (&b)[K][8];
  };
  multiply<Both, M, K>(Both{left.a, right.b}, sums);
  if constexpr (kHalfD) {
    write_half_sums<M>(w, d, sums);
  } else {
    write_sums<C, M>(w, d, sums);
  }
  return s + 1;
}

// Sums of bytes do not leave 32 bits before they are saturated.
template <class EA, class EB, int M, int K>
const Step* integer_product(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  if (!all_are_there(w, s)) return s + 1;
  constexpr int kSums = M / 4;
  constexpr int kA = M * K / (32 * EA::kPer), kB = 8 * K / (32 * EB::kPer);
  const uint32_t *d = s->list, *a = d + kSums, *b = a + kA, *c = b + kB;
  Operands<EA, M, K> left;
  Operands<EB, M, K> right;
  left.read_a(w, a);
  right.read_b(w, b);
  alignas(32) int32_t sums[M][8];
  read_sums<int32_t, M>(w, c, sums);
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < 8; ++n) {
      int64_t sum = sums[m][n];
      for (int k = 0; k < K; ++k) sum += left.a[m][k] * right.b[k][n];
      const int64_t inside = sum < INT32_MIN ? INT32_MIN : sum > INT32_MAX ? INT32_MAX : sum;
      sums[m][n] = static_cast<int32_t>(s->flags != 0 ? inside : sum);
    }
  }
  write_sums<int32_t, M>(w, d, sums);
  return s + 1;
}

// Single bits: the sum counts those of a and b, or of a xor b.
template <int M, int K>
const Step* bit_product(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  if (!all_are_there(w, s)) return s + 1;
  constexpr int kWords = K / 32, kA = M * kWords / 32, kB = 8 * kWords / 32;
  const uint32_t *d = s->list, *a = d + M / 4, *b = a + kA, *c = b + kB;
  int32_t sums[M][8];
  read_sums<int32_t, M>(w, c, sums);
  uint32_t left[M][kWords], right[8][kWords];
  for (int r = 0; r < kA; ++r) {
    for (int l = 0; l < 32; ++l) {
      left[r % (M / 8) * 8 + l / 4][r / (M / 8) * 4 + l % 4] = w.at<uint32_t>(a[r])[l];
    }
  }
  for (int r = 0; r < kB; ++r) {
    for (int l = 0; l < 32; ++l) right[l / 4][r * 4 + l % 4] = w.at<uint32_t>(b[r])[l];
  }
  for (int m = 0; m < M; ++m) {
    for (int n = 0; n < 8; ++n) {
      for (int k = 0; k < kWords; ++k) {
        const uint32_t x = left[m][k], y = right[n][k];
        sums[m][n] += __builtin_popcount(s->flags & 2 ? x ^ y : x & y);
      }
    }
  }
  write_sums<int32_t, M>(w, d, sums);
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

// ---- The tables.
template <class E, int M, int K>
Handler with_sums(const MatrixKey& key) {
  const bool half_c = key.c == Type::kF16, half_d = key.d == Type::kF16;
  if (half_c != half_d) return nullptr;
  if (!half_c) return product<E, E, M, K, float, false, false>;
  return std::is_same_v<E, HalfWords> ? product<E, E, M, K, float, true, true> : nullptr;
}

template <class EA, class EB>
Handler find_bytes(const MatrixKey& key) {
  if (key.m == 8 && key.k == 16) return integer_product<EA, EB, 8, 16>;
  if (key.m == 16 && key.k == 16) return integer_product<EA, EB, 16, 16>;
  return key.m == 16 && key.k == 32 ? integer_product<EA, EB, 16, 32> : nullptr;
}

template <class EA, class EB>
Handler find_nibbles(const MatrixKey& key) {
  if (key.m == 8 && key.k == 32) return integer_product<EA, EB, 8, 32>;
  if (key.m == 16 && key.k == 32) return integer_product<EA, EB, 16, 32>;
  return key.m == 16 && key.k == 64 ? integer_product<EA, EB, 16, 64> : nullptr;
}

Handler find_integers(const MatrixKey& key) {
  const bool signed_a = is_signed(key.a), signed_b = is_signed(key.b);
  using S8 = IntegerWords<8, true>;
  using U8 = IntegerWords<8, false>;
  using S4 = IntegerWords<4, true>;
  using U4 = IntegerWords<4, false>;
  if (bytes_of(key.a) == 1) {
    if (signed_a) return signed_b ? find_bytes<S8, S8>(key) : find_bytes<S8, U8>(key);
    return signed_b ? find_bytes<U8, S8>(key) : find_bytes<U8, U8>(key);
  }
  if (signed_a) return signed_b ? find_nibbles<S4, S4>(key) : find_nibbles<S4, U4>(key);
  return signed_b ? find_nibbles<U4, S4>(key) : find_nibbles<U4, U4>(key);
}

Handler find_bit_product(const MatrixKey& key) {
  if (key.m == 8 && key.k == 128) return bit_product<8, 128>;
  if (key.m == 16 && key.k == 128) return bit_product<16, 128>;
  return key.m == 16 && key.k == 256 ? bit_product<16, 256> : nullptr;
}

}  // namespace

Handler find_matrix(const MatrixKey& key) {
  if (kLanes != 32 || key.n != 8) return nullptr;
  const bool is_large = key.m == 16;
  switch (key.a) {
    case Type::kF16:
      if (is_large && key.k == 16) return with_sums<HalfWords, 16, 16>(key);
      return is_large && key.k == 8 ? with_sums<HalfWords, 16, 8>(key) : nullptr;
    case Type::kBf16:
      if (is_large && key.k == 16) return with_sums<BrainWords, 16, 16>(key);
      return is_large && key.k == 8 ? with_sums<BrainWords, 16, 8>(key) : nullptr;
    case Type::kTf32:
      if (is_large && key.k == 8) return with_sums<Tf32Words, 16, 8>(key);
      return is_large && key.k == 4 ? with_sums<Tf32Words, 16, 4>(key) : nullptr;
      MC_ROW(Type::kF64, key.m == 8 && key.k == 4 ? double_product : nullptr)
      MC_ROW(Type::kB1, find_bit_product(key))
    case Type::kU8:
    case Type::kS8:
    case Type::kU4:
      MC_ROW(Type::kS4, find_integers(key))
    default:
      return nullptr;
  }
}

}  // namespace mc::ptx::MC_PTX_VARIANT
