// SPDX-License-Identifier: Apache-2.0
// PyTorch's small types: dtypes, devices, lists of sizes.
#ifndef MC_AT_TYPES_H_
#define MC_AT_TYPES_H_

#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <optional>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "mc_at/abi.h"
#include "mc_at/half.h"

namespace c10 {

using std::make_optional;
using std::nullopt;
using std::nullopt_t;
using std::optional;

using DeviceIndex = int8_t;
using StreamId = int64_t;

// The values are PyTorch's; device/facade/runtime checks them.
enum class ScalarType : int8_t {
  Byte = 0,
  Char = 1,
  Short = 2,
  Int = 3,
  Long = 4,
  Half = 5,
  Float = 6,
  Double = 7,
  Bool = 11,
  BFloat16 = 15,
  Undefined = 46
};
enum class DeviceType : int8_t { CPU = 0, CUDA = 1, Meta = 14, PrivateUse1 = 20 };
enum class Layout : int8_t { Strided = 0, Sparse = 1 };
enum class MemoryFormat : int8_t {
  Contiguous = 0,
  Preserve = 1,
  ChannelsLast = 2,
  ChannelsLast3d = 3
};

constexpr ScalarType kByte = ScalarType::Byte;
constexpr ScalarType kChar = ScalarType::Char;
constexpr ScalarType kShort = ScalarType::Short;
constexpr ScalarType kInt = ScalarType::Int;
constexpr ScalarType kLong = ScalarType::Long;
constexpr ScalarType kHalf = ScalarType::Half;
constexpr ScalarType kFloat = ScalarType::Float;
constexpr ScalarType kDouble = ScalarType::Double;
constexpr ScalarType kBool = ScalarType::Bool;
constexpr ScalarType kBFloat16 = ScalarType::BFloat16;
constexpr DeviceType kCPU = DeviceType::CPU;
constexpr DeviceType kCUDA = DeviceType::CUDA;
constexpr DeviceType kMeta = DeviceType::Meta;
constexpr DeviceType kPrivateUse1 = DeviceType::PrivateUse1;
constexpr Layout kStrided = Layout::Strided;

inline const char* toString(ScalarType t) { return mc_at_dtype_name(static_cast<int32_t>(t)); }
inline size_t elementSize(ScalarType t) { return mc_at_element_size(static_cast<int32_t>(t)); }
constexpr bool isIntegralType(ScalarType t, bool with_bool) {
  return t <= ScalarType::Long || (with_bool && t == ScalarType::Bool);
}
constexpr bool isFloatingType(ScalarType t) {
  return t == ScalarType::Half || t == ScalarType::Float || t == ScalarType::Double ||
         t == ScalarType::BFloat16;
}
constexpr bool isReducedFloatingType(ScalarType t) {
  return t == ScalarType::Half || t == ScalarType::BFloat16;
}

template <class T>
struct CppTypeToScalarType;
template <ScalarType kType>
struct ScalarTypeToCPPType;
namespace impl {
template <ScalarType kType>
using ScalarTypeToCPPTypeT = typename ScalarTypeToCPPType<kType>::type;
}
#define MC_AT_TYPE(cpp, name)                             \
  template <>                                             \
  struct CppTypeToScalarType<cpp> {                       \
    static constexpr ScalarType value = ScalarType::name; \
  };                                                      \
  template <>                                             \
  struct ScalarTypeToCPPType<ScalarType::name> {          \
    using type = cpp;                                     \
  };
MC_AT_TYPE(uint8_t, Byte)
MC_AT_TYPE(int8_t, Char)
MC_AT_TYPE(int16_t, Short)
MC_AT_TYPE(int, Int)
MC_AT_TYPE(int64_t, Long)
MC_AT_TYPE(c10::Half, Half)
MC_AT_TYPE(float, Float)
MC_AT_TYPE(double, Double)
MC_AT_TYPE(bool, Bool)
MC_AT_TYPE(c10::BFloat16, BFloat16)
#undef MC_AT_TYPE

struct Device {
  Device(DeviceType type, DeviceIndex index = -1) : type_(type), index_(index) {}
  Device(const std::string& text) {
    int32_t type = 0;
    int32_t index = 0;
    mc_at_parse_device(text.c_str(), &type, &index);
    type_ = static_cast<DeviceType>(type);
    index_ = static_cast<DeviceIndex>(index);
  }
  Device(const char* text) : Device(std::string(text)) {}
  DeviceType type() const { return type_; }
  DeviceIndex index() const { return index_; }
  bool has_index() const { return index_ != -1; }
  bool is_cuda() const { return type_ == DeviceType::CUDA; }
  bool is_cpu() const { return type_ == DeviceType::CPU; }
  bool is_privateuseone() const { return type_ == DeviceType::PrivateUse1; }
  bool operator==(const Device& other) const {
    return type_ == other.type_ && index_ == other.index_;
  }
  bool operator!=(const Device& other) const { return !(*this == other); }
  void set_index(DeviceIndex index) { index_ = index; }
  std::string str() const {
    char text[64];
    mc_at_device_text(static_cast<int32_t>(type_), index_, text, sizeof text);
    return text;
  }

 private:
  DeviceType type_ = DeviceType::CPU;
  DeviceIndex index_ = -1;
};

template <class T>
class ArrayRef {
 public:
  using value_type = T;
  using iterator = const T*;
  using const_iterator = const T*;
  constexpr ArrayRef() = default;
  constexpr ArrayRef(const T& one) : data_(&one), size_(1) {}
  constexpr ArrayRef(const T* data, size_t size) : data_(data), size_(size) {}
  constexpr ArrayRef(const T* begin, const T* end)
      : data_(begin), size_(static_cast<size_t>(end - begin)) {}
  template <class A>
  ArrayRef(const std::vector<T, A>& values) : data_(values.data()), size_(values.size()) {}
  ArrayRef(const std::initializer_list<T>& values) : data_(values.begin()), size_(values.size()) {}
  template <size_t kSize>
  constexpr ArrayRef(const T (&values)[kSize]) : data_(values), size_(kSize) {}
  template <class C, class = decltype(static_cast<const T*>(std::declval<const C&>().data())),
            size_t kSize = std::tuple_size<C>::value>
  ArrayRef(const C& array) : data_(array.data()), size_(kSize) {}
  constexpr const T* data() const { return data_; }
  constexpr size_t size() const { return size_; }
  constexpr bool empty() const { return size_ == 0; }
  constexpr const T* begin() const { return data_; }
  constexpr const T* end() const { return data_ + size_; }
  constexpr const T& operator[](size_t i) const { return data_[i]; }
  const T& at(size_t i) const;
  // These functions throw if the element does not exist (check.h).
  const T& front() const;
  const T& back() const;
  ArrayRef slice(size_t begin, size_t count) const;
  ArrayRef slice(size_t begin) const;
  std::vector<T> vec() const { return std::vector<T>(data_, data_ + size_); }
  bool equals(ArrayRef other) const {
    if (size_ != other.size_) return false;
    for (size_t i = 0; i < size_; ++i) {
      if (!(data_[i] == other.data_[i])) return false;
    }
    return true;
  }

 private:
  const T* data_ = nullptr;
  size_t size_ = 0;
};
// Unlike an optional of an ArrayRef it takes a single element by reference: in an optional, `{1}`
// would be converted to a temporary int64_t, which the ArrayRef would outlive.
template <class T>
class OptionalArrayRef : public std::optional<ArrayRef<T>> {
  using Base = std::optional<ArrayRef<T>>;

 public:
  OptionalArrayRef() = default;
  OptionalArrayRef(std::nullopt_t) {}
  OptionalArrayRef(const T& one) : Base(ArrayRef<T>(one)) {}
  OptionalArrayRef(const std::initializer_list<T>& values) : Base(ArrayRef<T>(values)) {}
  template <class U, class = std::enable_if_t<std::is_convertible_v<U, Base> &&
                                              !std::is_convertible_v<U, T>>>
  OptionalArrayRef(U&& values) : Base(std::forward<U>(values)) {}
};
template <class T>
bool operator==(ArrayRef<T> a, ArrayRef<T> b) {
  return a.equals(b);
}
template <class T>
bool operator!=(ArrayRef<T> a, ArrayRef<T> b) {
  return !a.equals(b);
}
template <class T>
bool operator==(const std::vector<T>& a, ArrayRef<T> b) {
  return b.equals(a);
}
template <class T>
bool operator==(ArrayRef<T> a, const std::vector<T>& b) {
  return a.equals(b);
}
template <class T>
bool operator!=(ArrayRef<T> a, const std::vector<T>& b) {
  return !a.equals(b);
}
template <class T>
bool operator!=(const std::vector<T>& a, ArrayRef<T> b) {
  return !b.equals(a);
}
using IntArrayRef = ArrayRef<int64_t>;

struct Scalar {
  Scalar() : Scalar(int64_t{0}) {}
  Scalar(double v) { value.kind = kMcAtDouble, value.real = v; }
  Scalar(float v) : Scalar(static_cast<double>(v)) {}
  Scalar(Half v) : Scalar(static_cast<double>(static_cast<float>(v))) {}
  Scalar(BFloat16 v) : Scalar(static_cast<double>(static_cast<float>(v))) {}
  Scalar(bool v) { value.kind = kMcAtBool, value.integer = v; }
  Scalar(int64_t v) { value.kind = kMcAtInt, value.integer = v; }
  Scalar(int v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(int16_t v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(int8_t v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(uint8_t v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(uint16_t v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(uint32_t v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(uint64_t v) : Scalar(static_cast<int64_t>(v)) {}
  Scalar(long long v) : Scalar(static_cast<int64_t>(v)) {}
  bool isFloatingPoint() const { return value.kind == kMcAtDouble; }
  bool isBoolean() const { return value.kind == kMcAtBool; }
  bool isIntegral(bool with_bool) const {
    return value.kind == kMcAtInt || (with_bool && value.kind == kMcAtBool);
  }
  // Throws if an integer does not fit (check.h).
  template <class T>
  T to() const;
  double toDouble() const { return to<double>(); }
  float toFloat() const { return to<float>(); }
  int toInt() const { return to<int>(); }
  int64_t toLong() const { return to<int64_t>(); }
  bool toBool() const { return to<bool>(); }
  McAtValue value = {kMcAtInt, 0, {0}};
};

}  // namespace c10

namespace caffe2 {

// The result of dtype().
struct TypeMeta {
  c10::ScalarType type = c10::ScalarType::Undefined;
  c10::ScalarType toScalarType() const { return type; }
  size_t itemsize() const { return c10::elementSize(type); }
  std::string_view name() const {
    size_t size = 0;
    const char* text = mc_at_type_name(static_cast<int32_t>(type), &size);
    return {text, size};
  }
};
inline bool operator==(TypeMeta a, TypeMeta b) { return a.type == b.type; }
inline bool operator!=(TypeMeta a, TypeMeta b) { return a.type != b.type; }
inline bool operator==(TypeMeta a, c10::ScalarType b) { return a.type == b; }
inline bool operator!=(TypeMeta a, c10::ScalarType b) { return a.type != b; }
inline bool operator==(c10::ScalarType a, TypeMeta b) { return a == b.type; }
inline bool operator!=(c10::ScalarType a, TypeMeta b) { return a != b.type; }

}  // namespace caffe2

namespace c10 {
using caffe2::TypeMeta;
inline ScalarType typeMetaToScalarType(TypeMeta meta) { return meta.type; }
}  // namespace c10

#endif  // MC_AT_TYPES_H_
