// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_UTIL_OPERATORS_CUH_
#define MC_EMU_CUB_UTIL_OPERATORS_CUH_

// The operators and small types of CUB.

#include <cstddef>

#include "cuda_runtime.h"

namespace cub {

struct NullType {};

template <class K, class V>
struct KeyValuePair {
  using Key = K;
  using Value = V;
  Key key;
  Value value;
  KeyValuePair() = default;
  KeyValuePair(const Key& k, const Value& v) : key(k), value(v) {}
  bool operator!=(const KeyValuePair& other) const {
    return key != other.key || value != other.value;
  }
  bool operator==(const KeyValuePair& other) const { return !(*this != other); }
};

struct Sum {
  template <class T, class U>
  auto operator()(const T& a, const U& b) const -> decltype(a + b) {
    return a + b;
  }
};
struct Difference {
  template <class T, class U>
  auto operator()(const T& a, const U& b) const -> decltype(a - b) {
    return a - b;
  }
};
struct Division {
  template <class T, class U>
  auto operator()(const T& a, const U& b) const -> decltype(a / b) {
    return a / b;
  }
};
struct Max {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return a < b ? b : a;
  }
};
struct Min {
  template <class T>
  T operator()(const T& a, const T& b) const {
    return b < a ? b : a;
  }
};
struct Equality {
  template <class T, class U>
  bool operator()(const T& a, const U& b) const {
    return a == b;
  }
};
struct Inequality {
  template <class T, class U>
  bool operator()(const T& a, const U& b) const {
    return a != b;
  }
};

// The pair (index, value) with the larger or smaller value; of equals, the one of lower index.
struct ArgMax {
  template <class K, class V>
  KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const {
    return a.value < b.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};
struct ArgMin {
  template <class K, class V>
  KeyValuePair<K, V> operator()(const KeyValuePair<K, V>& a, const KeyValuePair<K, V>& b) const {
    return b.value < a.value || (a.value == b.value && b.key < a.key) ? b : a;
  }
};

template <class Out>
struct CastOp {
  template <class T>
  Out operator()(const T& a) const {
    return static_cast<Out>(a);
  }
};

}  // namespace cub

#endif  // MC_EMU_CUB_UTIL_OPERATORS_CUH_
