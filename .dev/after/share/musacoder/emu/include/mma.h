// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_MMA_H_
#define MC_EMU_MMA_H_

// CUDA's <mma.h>: nvcuda::wmma.  The elements of a matrix are dealt out over the lanes in row
// order, each once; CUDA leaves the order open.  Loads and stores are plain accesses of each lane,
// checked as such; a product waits for all lanes of the warp.  Products are exact and are summed in
// single precision (integers, doubles: in their own type).

#include <cstdint>
#include <type_traits>

#include "cuda_bf16.h"
#include "cuda_fp16.h"
#include "cuda_runtime.h"

namespace nvcuda::wmma {

struct matrix_a;
struct matrix_b;
struct accumulator;
struct row_major;
struct col_major;
enum layout_t { mem_row_major, mem_col_major };
namespace precision {
struct tf32;
}

template <class T>
struct mc_emu_storage {
  using type = T;
};
template <>
struct mc_emu_storage<precision::tf32> {
  using type = float;
};

template <class Use, int kM, int kN, int kK, class T, class Layout = void>
class fragment {
 public:
  static constexpr bool is_a = std::is_same_v<Use, matrix_a>;
  static constexpr bool is_b = std::is_same_v<Use, matrix_b>;
  static constexpr int rows = is_b ? kK : kM;
  static constexpr int columns = is_a ? kK : kN;
  static constexpr int num_elements = rows * columns / 32;
  static constexpr int num_storage_elements = num_elements;
  using element_type = typename mc_emu_storage<T>::type;
  using storage_element_type = element_type;
  static_assert(rows * columns % 32 == 0 && kM * kN * kK >= 256, "a shape that wmma has");

  element_type x[num_elements];

  // The place of this lane's element `i`.
  static int mc_emu_index(int i) { return lane() * num_elements + i; }
  static int mc_emu_row(int i) { return mc_emu_index(i) / columns; }
  static int mc_emu_column(int i) { return mc_emu_index(i) % columns; }

 private:
  static int lane() {
    return static_cast<int>((threadIdx.z * blockDim.y + threadIdx.y) * blockDim.x + threadIdx.x) %
           32;
  }
};

inline float __float_to_tf32(float x) {
  const uint32_t bits = __builtin_bit_cast(uint32_t, x);
  return __builtin_bit_cast(float, (bits + 0x1000u) & ~0x1FFFu);
}

template <class Fragment, class Value>
inline void fill_fragment(Fragment& a, const Value& value) {
  for (int i = 0; i < Fragment::num_elements; ++i) {
    a.x[i] = static_cast<typename Fragment::element_type>(value);
  }
}

template <class Use, int kM, int kN, int kK, class T, class Layout, class Memory>
inline void load_matrix_sync(fragment<Use, kM, kN, kK, T, Layout>& a, const Memory* p,
                             unsigned stride) {
  using Fragment = fragment<Use, kM, kN, kK, T, Layout>;
  static_assert(!std::is_void_v<Layout>, "an accumulator is loaded with a layout");
  constexpr bool kRows = std::is_same_v<Layout, row_major>;
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const unsigned row = Fragment::mc_emu_row(i), column = Fragment::mc_emu_column(i);
    a.x[i] = p[kRows ? row * stride + column : column * stride + row];
  }
}
template <int kM, int kN, int kK, class T, class Memory>
inline void load_matrix_sync(fragment<accumulator, kM, kN, kK, T>& a, const Memory* p,
                             unsigned stride, layout_t layout) {
  using Fragment = fragment<accumulator, kM, kN, kK, T>;
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const unsigned row = Fragment::mc_emu_row(i), column = Fragment::mc_emu_column(i);
    a.x[i] = p[layout == mem_row_major ? row * stride + column : column * stride + row];
  }
}
template <int kM, int kN, int kK, class T, class Memory>
inline void store_matrix_sync(Memory* p, const fragment<accumulator, kM, kN, kK, T>& a,
                              unsigned stride, layout_t layout) {
  using Fragment = fragment<accumulator, kM, kN, kK, T>;
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const unsigned row = Fragment::mc_emu_row(i), column = Fragment::mc_emu_column(i);
    p[layout == mem_row_major ? row * stride + column : column * stride + row] = a.x[i];
  }
}

namespace mc_emu_wmma {

inline float wide(float x) { return x; }
inline double wide(double x) { return x; }
inline float wide(__half x) { return __half2float(x); }
inline float wide(__nv_bfloat16 x) { return __bfloat162float(x); }
inline int wide(signed char x) { return x; }
inline int wide(unsigned char x) { return x; }
inline int wide(int x) { return x; }
template <class T, class Sum>
T narrow(Sum x) {
  if constexpr (std::is_same_v<T, __half>)
    return __float2half(static_cast<float>(x));
  else
    return static_cast<T>(x);
}

}  // namespace mc_emu_wmma

template <int kM, int kN, int kK, class A, class LayoutA, class B, class LayoutB, class C, class D>
inline void mma_sync(fragment<accumulator, kM, kN, kK, D>& d,
                     const fragment<matrix_a, kM, kN, kK, A, LayoutA>& a,
                     const fragment<matrix_b, kM, kN, kK, B, LayoutB>& b,
                     const fragment<accumulator, kM, kN, kK, C>& c, bool = false,
                     int line = __builtin_LINE()) {
  static_assert(std::is_same_v<A, B>, "both factors of a product have one type");
  using Element = typename mc_emu_storage<A>::type;
  struct Own {
    Element a[fragment<matrix_a, kM, kN, kK, A, LayoutA>::num_elements];
    Element b[fragment<matrix_b, kM, kN, kK, B, LayoutB>::num_elements];
  };
  constexpr int kNumA = sizeof(Own::a) / sizeof(Element), kNumB = sizeof(Own::b) / sizeof(Element);
  Own own, all[32];
  for (int i = 0; i < kNumA; ++i) own.a[i] = a.x[i];
  for (int i = 0; i < kNumB; ++i) own.b[i] = b.x[i];
  mc_emu_gather(&own, sizeof own, all, line);
  using Fragment = fragment<accumulator, kM, kN, kK, D>;
  for (int i = 0; i < Fragment::num_elements; ++i) {
    const int row = Fragment::mc_emu_row(i), column = Fragment::mc_emu_column(i);
    auto sum = mc_emu_wmma::wide(c.x[i]);
    for (int k = 0; k < kK; ++k) {
      const int at_a = row * kK + k, at_b = k * kN + column;
      sum += mc_emu_wmma::wide(all[at_a / kNumA].a[at_a % kNumA]) *
             mc_emu_wmma::wide(all[at_b / kNumB].b[at_b % kNumB]);
    }
    d.x[i] = mc_emu_wmma::narrow<D>(sum);
  }
}

}  // namespace nvcuda::wmma

#endif  // MC_EMU_MMA_H_
