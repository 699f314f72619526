// SPDX-License-Identifier: Apache-2.0
// Accessors: a pointer with sizes and strides that kernels index.
#ifndef MC_AT_ACCESSOR_H_
#define MC_AT_ACCESSOR_H_

#include "mc_at/check.h"

#if defined(__CUDACC__) && defined(__NVCC__)
#define MC_AT_INDEX __host__ __device__
#else
#define MC_AT_INDEX
#endif

namespace at {

template <class T>
struct DefaultPtrTraits {
  using PtrType = T*;
};
#if defined(__CUDACC__) && defined(__NVCC__)
template <class T>
struct RestrictPtrTraits {
  using PtrType = T* __restrict__;
};
#endif

// `T a[i][j]…` with pointers to sizes and strides.
template <class T, size_t kDims, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class TensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  MC_AT_INDEX TensorAccessor(PtrType data, const Index* sizes, const Index* strides)
      : data_(data), sizes_(sizes), strides_(strides) {}
  MC_AT_INDEX decltype(auto) operator[](Index i) const {
    if constexpr (kDims == 1) {
      return (data_[strides_[0] * i]);
    } else {
      return TensorAccessor<T, kDims - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1,
                                                         strides_ + 1);
    }
  }
  MC_AT_INDEX Index size(Index i) const { return sizes_[i]; }
  MC_AT_INDEX Index stride(Index i) const { return strides_[i]; }
  MC_AT_INDEX PtrType data() const { return data_; }
  c10::ArrayRef<Index> sizes() const { return {sizes_, kDims}; }
  c10::ArrayRef<Index> strides() const { return {strides_, kDims}; }

 private:
  PtrType data_;
  const Index* sizes_;
  const Index* strides_;
};

// The same with its own sizes and strides, so that it can be a kernel argument.
template <class T, size_t kDims, template <class> class Traits = DefaultPtrTraits,
          class Index = int64_t>
class GenericPackedTensorAccessor {
 public:
  using PtrType = typename Traits<T>::PtrType;
  GenericPackedTensorAccessor(PtrType data, const int64_t* sizes, const int64_t* strides)
      : data_(data) {
    for (size_t i = 0; i < kDims; ++i) {
      sizes_[i] = static_cast<Index>(sizes[i]);
      strides_[i] = static_cast<Index>(strides[i]);
    }
  }
  MC_AT_INDEX decltype(auto) operator[](Index i) const {
    if constexpr (kDims == 1) {
      return (data_[strides_[0] * i]);
    } else {
      return TensorAccessor<T, kDims - 1, Traits, Index>(data_ + strides_[0] * i, sizes_ + 1,
                                                         strides_ + 1);
    }
  }
  MC_AT_INDEX Index size(Index i) const { return sizes_[i]; }
  MC_AT_INDEX Index stride(Index i) const { return strides_[i]; }
  MC_AT_INDEX PtrType data() const { return data_; }

 private:
  PtrType data_;
  Index sizes_[kDims];
  Index strides_[kDims];
};

template <class T, size_t kDims, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor32 = GenericPackedTensorAccessor<T, kDims, Traits, int32_t>;
template <class T, size_t kDims, template <class> class Traits = DefaultPtrTraits>
using PackedTensorAccessor64 = GenericPackedTensorAccessor<T, kDims, Traits, int64_t>;

}  // namespace at

#endif  // MC_AT_ACCESSOR_H_
