// SPDX-License-Identifier: Apache-2.0
// The class at::Tensor, a reference-counted pointer over abi.h, and functions that create tensors.
#ifndef MC_AT_TENSOR_H_
#define MC_AT_TENSOR_H_

#include <tuple>
#include <utility>

#include "mc_at/accessor.h"
#include "mc_at/check.h"
#include "mc_at/operators.h"
#include "mc_at/types.h"

namespace c10 {

// The properties of a new tensor; those not given are PyTorch's defaults.
struct TensorOptions {
  TensorOptions() = default;
  TensorOptions(ScalarType t) : dtype_(t) {}
  TensorOptions(caffe2::TypeMeta t) : dtype_(t.type) {}
  TensorOptions(Device d) : device_(d) {}
  TensorOptions(DeviceType d) : device_(Device(d)) {}
  TensorOptions(Layout l) : layout_(l) {}
  TensorOptions(MemoryFormat f) : format_(f) {}
  TensorOptions dtype(std::optional<ScalarType> t) const { return with(&TensorOptions::dtype_, t); }
  TensorOptions dtype(caffe2::TypeMeta t) const { return dtype(std::optional(t.type)); }
  template <class T>
  TensorOptions dtype() const {
    return dtype(CppTypeToScalarType<T>::value);
  }
  TensorOptions device(std::optional<Device> d) const { return with(&TensorOptions::device_, d); }
  TensorOptions device(DeviceType type, DeviceIndex index = -1) const {
    return device(std::optional(Device(type, index)));
  }
  TensorOptions device(const char* text) const { return device(std::optional(Device(text))); }
  TensorOptions layout(std::optional<Layout> l) const { return with(&TensorOptions::layout_, l); }
  TensorOptions memory_format(std::optional<MemoryFormat> f) const {
    return with(&TensorOptions::format_, f);
  }
  TensorOptions pinned_memory(std::optional<bool> p) const {
    return with(&TensorOptions::pinned_, p);
  }
  TensorOptions requires_grad(std::optional<bool> r) const {
    return with(&TensorOptions::grad_, r);
  }
  Device device() const { return device_.value_or(Device(DeviceType::CPU)); }
  caffe2::TypeMeta dtype() const { return {dtype_.value_or(ScalarType::Float)}; }
  Layout layout() const { return layout_.value_or(Layout::Strided); }
  bool requires_grad() const { return grad_.value_or(false); }
  bool pinned_memory() const { return pinned_.value_or(false); }

  std::optional<ScalarType> dtype_;
  std::optional<Device> device_;
  std::optional<Layout> layout_;
  std::optional<MemoryFormat> format_;
  std::optional<bool> pinned_;
  std::optional<bool> grad_;

 private:
  template <class T>
  TensorOptions with(T TensorOptions::* member, T value) const {
    TensorOptions copy = *this;
    copy.*member = std::move(value);
    return copy;
  }
};

inline TensorOptions dtype(ScalarType t) { return TensorOptions(t); }
inline TensorOptions dtype(caffe2::TypeMeta t) { return TensorOptions(t); }
template <class T>
TensorOptions dtype() {
  return TensorOptions(CppTypeToScalarType<T>::value);
}
inline TensorOptions device(Device d) { return TensorOptions(d); }
inline TensorOptions layout(Layout l) { return TensorOptions(l); }
inline TensorOptions requires_grad(bool r = true) { return TensorOptions().requires_grad(r); }

}  // namespace c10

namespace at {

using namespace c10;  // PyTorch's own headers do so.

class Tensor;
using TensorList = ArrayRef<Tensor>;
using OptionalIntArrayRef = OptionalArrayRef<int64_t>;

// The result of x.type().
struct DeprecatedTypeProperties {
  ScalarType dtype;
  Device where;
  ScalarType scalarType() const { return dtype; }
  bool is_cuda() const { return where.is_cuda(); }
  Device device() const { return where; }
};

}  // namespace at

namespace c10::mc_at {

// An argument of an operator.
struct Value : McAtValue {
  Value(std::nullopt_t) : McAtValue{kMcAtNone, 0, {0}} {}
  Value(const at::Tensor& t);
  Value(bool b) : McAtValue{kMcAtBool, 0, {b}} {}
  Value(int i) : McAtValue{kMcAtInt, 0, {i}} {}
  Value(int64_t i) : McAtValue{kMcAtInt, 0, {i}} {}
  Value(double d) : McAtValue{kMcAtDouble, 0, {0}} { real = d; }
  Value(const Scalar& s) : McAtValue(s.value) {}
  Value(ScalarType t) : Value(static_cast<int>(t)) {}
  Value(Layout l) : Value(static_cast<int>(l)) {}
  Value(MemoryFormat f) : Value(static_cast<int>(f)) {}
  Value(const Device& d)
      : McAtValue{kMcAtDevice, static_cast<int32_t>(d.index()), {static_cast<int64_t>(d.type())}} {}
  Value(IntArrayRef v) : McAtValue{kMcAtInts, static_cast<int32_t>(v.size()), {0}} {
    pointer = v.data();
  }
  Value(at::TensorList v) : McAtValue{kMcAtTensors, static_cast<int32_t>(v.size()), {0}} {
    pointer = v.data();
  }
  Value(std::string_view v) : McAtValue{kMcAtText, static_cast<int32_t>(v.size()), {0}} {
    pointer = v.data();
  }
  template <class T>
  Value(const std::optional<T>& v) : Value(v.has_value() ? Value(*v) : Value(std::nullopt)) {}
};
static_assert(sizeof(Value) == sizeof(McAtValue) && sizeof(McAtValue) == 16);

inline McAtValue run(McAtOperator* op, std::initializer_list<Value> args) {
  McAtValue result;
  op(args.begin(), static_cast<int32_t>(args.size()), &result);
  return result;
}
at::Tensor call(McAtOperator* op, std::initializer_list<Value> args);
std::vector<at::Tensor> call_for_list(McAtOperator* op, std::initializer_list<Value> args);
// Calls an operator that changes its first argument and returns it.
inline void change(McAtOperator* op, std::initializer_list<Value> args) {
  mc_at_release(const_cast<void*>(run(op, args).pointer));
}
// The arguments dtype, layout, device and pin_memory.
#define MC_AT_OPTIONS(o) (o).dtype_, (o).layout_, (o).device_, (o).pinned_
// Calls an operator that creates a tensor with these options.
at::Tensor create(McAtOperator* op, std::initializer_list<Value> args,
                  const TensorOptions& options);

}  // namespace c10::mc_at

namespace at {

namespace mc_at = c10::mc_at;

class Tensor {
 public:
  Tensor() : impl_(mc_at_undefined()) { mc_at_retain(impl_); }
  Tensor(const Tensor& other) : impl_(other.impl_) { mc_at_retain(impl_); }
  Tensor(Tensor&& other) noexcept : impl_(std::exchange(other.impl_, mc_at_undefined())) {}
  Tensor& operator=(const Tensor& other) & {
    Tensor copy(other);
    std::swap(impl_, copy.impl_);
    return *this;
  }
  Tensor& operator=(Tensor&& other) & noexcept {
    std::swap(impl_, other.impl_);
    return *this;
  }
  // Assigns into the memory of a temporary view: `x[0] = row;`.
  Tensor& operator=(const Tensor& other) && { return copy_(other); }
  Tensor& operator=(Tensor&& other) && { return copy_(other); }
  Tensor& operator=(const Scalar& value) && { return fill_(value); }
  ~Tensor() { mc_at_release(impl_); }
  // Takes ownership of a handle.
  static Tensor owning(const void* handle) {
    Tensor tensor(Nothing{});
    tensor.impl_ = const_cast<void*>(handle);
    return tensor;
  }
  void* handle() const { return impl_; }

  bool defined() const { return impl_ != mc_at_undefined(); }
  void reset() { *this = Tensor(); }
  bool is_same(const Tensor& other) const { return impl_ == other.impl_; }
  int64_t dim() const { return mc_at_dim(impl_); }
  int64_t ndimension() const { return dim(); }
  int64_t numel() const { return mc_at_numel(impl_); }
  int64_t size(int64_t dim) const { return mc_at_size(impl_, dim); }
  int64_t stride(int64_t dim) const { return mc_at_stride(impl_, dim); }
  IntArrayRef sizes() const { return {mc_at_sizes(impl_), static_cast<size_t>(dim())}; }
  IntArrayRef strides() const { return {mc_at_strides(impl_), static_cast<size_t>(dim())}; }
  int64_t storage_offset() const { return mc_at_storage_offset(impl_); }
  ScalarType scalar_type() const { return static_cast<ScalarType>(mc_at_dtype(impl_)); }
  caffe2::TypeMeta dtype() const { return {scalar_type()}; }
  Layout layout() const { return static_cast<Layout>(mc_at_layout(impl_)); }
  Device device() const {
    return Device(device_type(), static_cast<DeviceIndex>(mc_at_device_index(impl_)));
  }
  DeprecatedTypeProperties type() const { return {scalar_type(), device()}; }
  DeviceIndex get_device() const { return static_cast<DeviceIndex>(mc_at_device_index(impl_)); }
  int64_t element_size() const { return static_cast<int64_t>(itemsize()); }
  size_t itemsize() const { return mc_at_element_size(mc_at_dtype(impl_)); }
  size_t nbytes() const { return static_cast<size_t>(numel()) * itemsize(); }
  bool is_cuda() const { return device_type() == DeviceType::CUDA; }
  bool is_cpu() const { return device_type() == DeviceType::CPU; }
  bool is_privateuseone() const { return device_type() == DeviceType::PrivateUse1; }
  bool is_floating_point() const { return c10::isFloatingType(scalar_type()); }
  bool is_contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return mc_at_is_contiguous(impl_, static_cast<int32_t>(format)) != 0;
  }
  bool requires_grad() const { return mc_at_requires_grad(impl_) != 0; }
  TensorOptions options() const {
    return TensorOptions(scalar_type()).device(device()).layout(layout());
  }

  void* data_ptr() const { return mc_at_data(impl_, -1, 0); }
  void* mutable_data_ptr() const { return mc_at_data(impl_, -1, 0); }
  const void* const_data_ptr() const { return mc_at_data(impl_, -1, 1); }
  template <class T>
  T* data_ptr() const {
    static_assert(!std::is_const_v<T>, "data_ptr is of types that are not const");
    return static_cast<T*>(mc_at_data(impl_, dtype_of<T>(), 0));
  }
  template <class T>
  T* mutable_data_ptr() const {
    return data_ptr<T>();
  }
  template <class T>
  const std::remove_const_t<T>* const_data_ptr() const {
    return static_cast<const T*>(mc_at_data(impl_, dtype_of<T>(), 1));
  }
  template <class T>
  T* data() const {
    return data_ptr<T>();
  }

  template <class T, size_t kDims>
  TensorAccessor<T, kDims> accessor() const& {
    check_dims(kDims, "TensorAccessor");
    return {data_ptr<T>(), mc_at_sizes(impl_), mc_at_strides(impl_)};
  }
  // Deleted, since an accessor of a temporary may outlive the tensor.
  template <class T, size_t kDims>
  TensorAccessor<T, kDims> accessor() && = delete;
  template <class T, size_t kDims, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, kDims, Traits> packed_accessor32() && = delete;
  template <class T, size_t kDims, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, kDims, Traits> packed_accessor64() && = delete;
  template <class T, size_t kDims, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor32<T, kDims, Traits> packed_accessor32() const& {
    TORCH_CHECK(numel() <= static_cast<int64_t>(std::numeric_limits<int32_t>::max()),
                "numel needs to be smaller than int32_t max; otherwise, please use "
                "packed_accessor64");
    check_dims(kDims, "TensorAccessor");
    return {data_ptr<T>(), mc_at_sizes(impl_), mc_at_strides(impl_)};
  }
  template <class T, size_t kDims, template <class> class Traits = DefaultPtrTraits>
  PackedTensorAccessor64<T, kDims, Traits> packed_accessor64() const& {
    check_dims(kDims, "TensorAccessor");
    return {data_ptr<T>(), mc_at_sizes(impl_), mc_at_strides(impl_)};
  }

  Tensor contiguous(MemoryFormat format = MemoryFormat::Contiguous) const {
    return mc_at::call(&mc_at_op_contiguous, {*this, format});
  }
  Tensor clone(std::optional<MemoryFormat> format = std::nullopt) const {
    return mc_at::call(&mc_at_op_clone, {*this, format});
  }
  Tensor detach() const { return mc_at::call(&mc_at_op_detach, {*this}); }
  Tensor view(IntArrayRef size) const { return mc_at::call(&mc_at_op_view, {*this, size}); }
  Tensor view(ScalarType dtype) const { return mc_at::call(&mc_at_op_view_dtype, {*this, dtype}); }
  Tensor view_as(const Tensor& other) const {
    return mc_at::call(&mc_at_op_view_as, {*this, other});
  }
  Tensor reshape(IntArrayRef size) const { return mc_at::call(&mc_at_op_reshape, {*this, size}); }
  Tensor reshape_as(const Tensor& other) const {
    return mc_at::call(&mc_at_op_reshape_as, {*this, other});
  }
  Tensor transpose(int64_t first, int64_t second) const {
    return mc_at::call(&mc_at_op_transpose_int, {*this, first, second});
  }
  Tensor permute(IntArrayRef dims) const { return mc_at::call(&mc_at_op_permute, {*this, dims}); }
  Tensor t() const { return mc_at::call(&mc_at_op_t, {*this}); }
  Tensor unsqueeze(int64_t dim) const { return mc_at::call(&mc_at_op_unsqueeze, {*this, dim}); }
  Tensor squeeze() const { return mc_at::call(&mc_at_op_squeeze, {*this}); }
  Tensor squeeze(int64_t dim) const { return mc_at::call(&mc_at_op_squeeze_dim, {*this, dim}); }
  Tensor slice(int64_t dim = 0, std::optional<int64_t> start = std::nullopt,
               std::optional<int64_t> end = std::nullopt, int64_t step = 1) const {
    return mc_at::call(&mc_at_op_slice_Tensor, {*this, dim, start, end, step});
  }
  Tensor select(int64_t dim, int64_t index) const {
    return mc_at::call(&mc_at_op_select_int, {*this, dim, index});
  }
  Tensor operator[](int64_t index) const { return select(0, index); }
  Tensor narrow(int64_t dim, int64_t start, int64_t length) const {
    return mc_at::call(&mc_at_op_narrow, {*this, dim, start, length});
  }
  Tensor flatten(int64_t start = 0, int64_t end = -1) const {
    return mc_at::call(&mc_at_op_flatten_using_ints, {*this, start, end});
  }
  Tensor expand(IntArrayRef size, bool implicit = false) const {
    return mc_at::call(&mc_at_op_expand, {*this, size, implicit});
  }
  Tensor expand_as(const Tensor& other) const {
    return mc_at::call(&mc_at_op_expand_as, {*this, other});
  }
  Tensor as_strided(IntArrayRef size, IntArrayRef stride,
                    std::optional<int64_t> offset = std::nullopt) const {
    return mc_at::call(&mc_at_op_as_strided, {*this, size, stride, offset});
  }
  std::vector<Tensor> chunk(int64_t chunks, int64_t dim = 0) const {
    return mc_at::call_for_list(&mc_at_op_chunk, {*this, chunks, dim});
  }
  std::vector<Tensor> split(int64_t size, int64_t dim = 0) const {
    return mc_at::call_for_list(&mc_at_op_split_Tensor, {*this, size, dim});
  }
  std::vector<Tensor> unbind(int64_t dim = 0) const {
    return mc_at::call_for_list(&mc_at_op_unbind_int, {*this, dim});
  }
  Tensor new_empty(IntArrayRef size, TensorOptions options = {}) const {
    return mc_at::create(&mc_at_op_new_empty, {*this, size, MC_AT_OPTIONS(options)}, options);
  }
  Tensor new_zeros(IntArrayRef size, TensorOptions options = {}) const {
    return mc_at::create(&mc_at_op_new_zeros, {*this, size, MC_AT_OPTIONS(options)}, options);
  }
  Tensor new_ones(IntArrayRef size, TensorOptions options = {}) const {
    return mc_at::create(&mc_at_op_new_ones, {*this, size, MC_AT_OPTIONS(options)}, options);
  }
  Tensor new_full(IntArrayRef size, const Scalar& value, TensorOptions options = {}) const {
    return mc_at::create(&mc_at_op_new_full, {*this, size, value, MC_AT_OPTIONS(options)}, options);
  }
  Tensor to(ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const {
    return mc_at::call(&mc_at_op_to_dtype, {*this, dtype, non_blocking, copy, format});
  }
  Tensor to(caffe2::TypeMeta dtype) const { return to(dtype.type); }
  Tensor to(Device device, ScalarType dtype, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const {
    return mc_at::call(&mc_at_op_to_device, {*this, device, dtype, non_blocking, copy, format});
  }
  Tensor to(TensorOptions options, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const {
    return mc_at::call(&mc_at_op_to_dtype_layout,
                       {*this, MC_AT_OPTIONS(options), non_blocking, copy, format});
  }
  Tensor to(const Tensor& other, bool non_blocking = false, bool copy = false,
            std::optional<MemoryFormat> format = std::nullopt) const {
    return mc_at::call(&mc_at_op_to_other, {*this, other, non_blocking, copy, format});
  }
  Tensor cpu() const { return to(TensorOptions(DeviceType::CPU)); }
  Tensor cuda() const { return to(TensorOptions(DeviceType::CUDA)); }
  Tensor toType(ScalarType t) const { return to(t); }
  Tensor type_as(const Tensor& other) const {
    return mc_at::call(&mc_at_op_type_as, {*this, other});
  }
  Tensor& copy_(const Tensor& source, bool non_blocking = false) {
    mc_at::change(&mc_at_op_copy_, {*this, source, non_blocking});
    return *this;
  }
  const Tensor& copy_(const Tensor& source, bool non_blocking = false) const {
    mc_at::change(&mc_at_op_copy_, {*this, source, non_blocking});
    return *this;
  }
  Tensor& fill_(const Scalar& value) {
    return mc_at::change(&mc_at_op_fill__Scalar, {*this, value}), *this;
  }
  const Tensor& fill_(const Scalar& value) const {
    return mc_at::change(&mc_at_op_fill__Scalar, {*this, value}), *this;
  }
  Tensor& zero_() { return mc_at::change(&mc_at_op_zero_, {*this}), *this; }
  const Tensor& zero_() const { return mc_at::change(&mc_at_op_zero_, {*this}), *this; }
  const Tensor& resize_(IntArrayRef size) const {
    return mc_at::change(&mc_at_op_resize_, {*this, size}), *this;
  }
  const Tensor& set_requires_grad(bool requires_grad) const {
    return mc_at::change(&mc_at_op_requires_grad_, {*this, requires_grad}), *this;
  }
  Scalar item() const {
    Scalar scalar;
    scalar.value = mc_at::run(&mc_at_op_item, {*this});
    return scalar;
  }
  template <class T>
  T item() const {
    return item().template to<T>();
  }
  Tensor repeat(IntArrayRef repeats) const {
    return mc_at::call(&mc_at_op_repeat, {*this, repeats});
  }

  // Computations.
  Tensor add(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor add(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor& add_(const Tensor& other, const Scalar& alpha = 1);
  Tensor& add_(const Scalar& other, const Scalar& alpha = 1);
  Tensor sub(const Tensor& other, const Scalar& alpha = 1) const;
  Tensor sub(const Scalar& other, const Scalar& alpha = 1) const;
  Tensor mul(const Tensor& other) const;
  Tensor mul(const Scalar& other) const;
  Tensor& mul_(const Tensor& other);
  Tensor& mul_(const Scalar& other);
  Tensor div(const Tensor& other) const;
  Tensor div(const Scalar& other) const;
  Tensor& div_(const Tensor& other);
  Tensor& div_(const Scalar& other);
  Tensor operator-() const;
  Tensor& operator+=(const Tensor& other) { return add_(other); }
  Tensor& operator+=(const Scalar& other) { return add_(other); }
  Tensor& operator*=(const Tensor& other) { return mul_(other); }
  Tensor& operator*=(const Scalar& other) { return mul_(other); }
  Tensor& operator/=(const Tensor& other) { return div_(other); }
  Tensor& operator/=(const Scalar& other) { return div_(other); }
  Tensor neg() const;
  Tensor sqrt() const;
  Tensor rsqrt() const;
  Tensor exp() const;
  Tensor relu() const;
  Tensor sigmoid() const;
  Tensor tanh() const;
  Tensor mm(const Tensor& other) const;
  Tensor bmm(const Tensor& other) const;
  Tensor matmul(const Tensor& other) const;
  Tensor sum(std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor sum(OptionalIntArrayRef dim, bool keepdim = false,
             std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor mean(std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor mean(OptionalIntArrayRef dim, bool keepdim = false,
              std::optional<ScalarType> dtype = std::nullopt) const;
  Tensor var(bool unbiased = true) const;
  Tensor var(OptionalIntArrayRef dim, bool unbiased = true, bool keepdim = false) const;
  Tensor max() const;
  Tensor min() const;

 private:
  struct Nothing {};
  explicit Tensor(Nothing) {}
  DeviceType device_type() const { return static_cast<DeviceType>(mc_at_device_type(impl_)); }
  template <class T>
  static int32_t dtype_of() {
    return static_cast<int32_t>(c10::CppTypeToScalarType<std::remove_const_t<T>>::value);
  }
  void check_dims(size_t wanted, const char* what) const {
    TORCH_CHECK(dim() == static_cast<int64_t>(wanted), what, " expected ", wanted,
                " dims but tensor has ", dim());
  }

  void* impl_;  // Reference-counted, like at::Tensor's only member.
};

}  // namespace at

namespace c10::mc_at {

inline Value::Value(const at::Tensor& t) : McAtValue{kMcAtTensor, 0, {0}} { pointer = t.handle(); }
inline at::Tensor call(McAtOperator* op, std::initializer_list<Value> args) {
  return at::Tensor::owning(run(op, args).pointer);
}
inline std::vector<at::Tensor> call_for_list(McAtOperator* op, std::initializer_list<Value> args) {
  const McAtValue result = run(op, args);
  const auto* first = static_cast<const at::Tensor*>(result.pointer);
  std::vector<at::Tensor> list(first, first + result.size);
  mc_at_free_list(result.pointer);
  return list;
}
inline at::Tensor create(McAtOperator* op, std::initializer_list<Value> args,
                         const TensorOptions& options) {
  at::Tensor tensor = call(op, args);
  if (options.requires_grad()) tensor.set_requires_grad(true);
  return tensor;
}

}  // namespace c10::mc_at

namespace at {

// --- Functions that create tensors.

inline Tensor empty(IntArrayRef size, TensorOptions o = {},
                    std::optional<MemoryFormat> f = std::nullopt) {
  return mc_at::create(&mc_at_op_empty_memory_format,
                       {size, MC_AT_OPTIONS(o), f.has_value() ? f : o.format_}, o);
}
inline Tensor empty_strided(IntArrayRef size, IntArrayRef stride, TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_empty_strided, {size, stride, MC_AT_OPTIONS(o)}, o);
}
inline Tensor zeros(IntArrayRef size, TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_zeros, {size, MC_AT_OPTIONS(o)}, o);
}
inline Tensor ones(IntArrayRef size, TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_ones, {size, MC_AT_OPTIONS(o)}, o);
}
inline Tensor full(IntArrayRef size, const Scalar& value, TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_full, {size, value, MC_AT_OPTIONS(o)}, o);
}
inline Tensor rand(IntArrayRef size, TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_rand, {size, MC_AT_OPTIONS(o)}, o);
}
inline Tensor randn(IntArrayRef size, TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_randn, {size, MC_AT_OPTIONS(o)}, o);
}
inline Tensor arange(const Scalar& end, TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_arange, {end, MC_AT_OPTIONS(o)}, o);
}
inline Tensor arange(const Scalar& start, const Scalar& end, TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_arange_start, {start, end, MC_AT_OPTIONS(o)}, o);
}
inline Tensor arange(const Scalar& start, const Scalar& end, const Scalar& step,
                     TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_arange_start_step, {start, end, step, MC_AT_OPTIONS(o)}, o);
}
inline Tensor scalar_tensor(const Scalar& value, TensorOptions o = {}) {
  return mc_at::create(&mc_at_op_scalar_tensor, {value, MC_AT_OPTIONS(o)}, o);
}
#define MC_AT_LIKE(name)                                                              \
  inline Tensor name(const Tensor& self, TensorOptions o = {},                        \
                     std::optional<MemoryFormat> f = std::nullopt) {                  \
    return mc_at::create(&mc_at_op_##name,                                            \
                         {self, MC_AT_OPTIONS(o), f.has_value() ? f : o.format_}, o); \
  }
MC_AT_LIKE(empty_like)
MC_AT_LIKE(zeros_like)
MC_AT_LIKE(ones_like)
MC_AT_LIKE(rand_like)
MC_AT_LIKE(randn_like)
#undef MC_AT_LIKE
inline Tensor full_like(const Tensor& self, const Scalar& value, TensorOptions o = {},
                        std::optional<MemoryFormat> f = std::nullopt) {
  return mc_at::create(&mc_at_op_full_like,
                       {self, value, MC_AT_OPTIONS(o), f.has_value() ? f : o.format_}, o);
}
#undef MC_AT_OPTIONS
inline Tensor cat(TensorList tensors, int64_t dim = 0) {
  return mc_at::call(&mc_at_op_cat, {tensors, dim});
}
inline Tensor stack(TensorList tensors, int64_t dim = 0) {
  return mc_at::call(&mc_at_op_stack, {tensors, dim});
}

// --- Functions that compute.

#define MC_AT_UNARY(name)                                                                  \
  inline Tensor name(const Tensor& self) { return mc_at::call(&mc_at_op_##name, {self}); } \
  inline Tensor Tensor::name() const { return mc_at::call(&mc_at_op_##name, {*this}); }
MC_AT_UNARY(neg)
MC_AT_UNARY(sqrt)
MC_AT_UNARY(rsqrt)
MC_AT_UNARY(exp)
MC_AT_UNARY(relu)
MC_AT_UNARY(sigmoid)
MC_AT_UNARY(tanh)
MC_AT_UNARY(max)
MC_AT_UNARY(min)
#undef MC_AT_UNARY
inline Tensor silu(const Tensor& self) { return mc_at::call(&mc_at_op_silu, {self}); }
#define MC_AT_BINARY(name)                               \
  inline Tensor name(const Tensor& a, const Tensor& b) { \
    return mc_at::call(&mc_at_op_##name, {a, b});        \
  }                                                      \
  inline Tensor Tensor::name(const Tensor& b) const {    \
    return mc_at::call(&mc_at_op_##name, {*this, b});    \
  }
MC_AT_BINARY(mm)
MC_AT_BINARY(bmm)
MC_AT_BINARY(matmul)
#undef MC_AT_BINARY
#define MC_AT_SUM(name)                                                           \
  inline Tensor Tensor::name(const Tensor& b, const Scalar& alpha) const {        \
    return mc_at::call(&mc_at_op_##name##_Tensor, {*this, b, alpha});             \
  }                                                                               \
  inline Tensor Tensor::name(const Scalar& b, const Scalar& alpha) const {        \
    return mc_at::call(&mc_at_op_##name##_Scalar, {*this, b, alpha});             \
  }                                                                               \
  inline Tensor name(const Tensor& a, const Tensor& b, const Scalar& alpha = 1) { \
    return a.name(b, alpha);                                                      \
  }                                                                               \
  inline Tensor name(const Tensor& a, const Scalar& b, const Scalar& alpha = 1) { \
    return a.name(b, alpha);                                                      \
  }
MC_AT_SUM(add)
MC_AT_SUM(sub)
#undef MC_AT_SUM
#define MC_AT_PRODUCT(name)                                                  \
  inline Tensor Tensor::name(const Tensor& b) const {                        \
    return mc_at::call(&mc_at_op_##name##_Tensor, {*this, b});               \
  }                                                                          \
  inline Tensor Tensor::name(const Scalar& b) const {                        \
    return mc_at::call(&mc_at_op_##name##_Scalar, {*this, b});               \
  }                                                                          \
  inline Tensor& Tensor::name##_(const Tensor& b) {                          \
    return mc_at::change(&mc_at_op_##name##__Tensor, {*this, b}), *this;     \
  }                                                                          \
  inline Tensor& Tensor::name##_(const Scalar& b) {                          \
    return mc_at::change(&mc_at_op_##name##__Scalar, {*this, b}), *this;     \
  }                                                                          \
  inline Tensor name(const Tensor& a, const Tensor& b) { return a.name(b); } \
  inline Tensor name(const Tensor& a, const Scalar& b) { return a.name(b); }
MC_AT_PRODUCT(mul)
MC_AT_PRODUCT(div)
#undef MC_AT_PRODUCT
inline Tensor& Tensor::add_(const Tensor& b, const Scalar& alpha) {
  return mc_at::change(&mc_at_op_add__Tensor, {*this, b, alpha}), *this;
}
inline Tensor& Tensor::add_(const Scalar& b, const Scalar& alpha) {
  return mc_at::change(&mc_at_op_add__Scalar, {*this, b, alpha}), *this;
}
inline Tensor Tensor::operator-() const { return neg(); }
#define MC_AT_OPERATOR(op, name)                                                    \
  inline Tensor operator op(const Tensor& a, const Tensor& b) { return a.name(b); } \
  inline Tensor operator op(const Tensor& a, const Scalar& b) { return a.name(b); }
MC_AT_OPERATOR(+, add)
MC_AT_OPERATOR(-, sub)
MC_AT_OPERATOR(*, mul)
MC_AT_OPERATOR(/, div)
#undef MC_AT_OPERATOR
inline Tensor operator+(const Scalar& a, const Tensor& b) { return b.add(a); }
inline Tensor operator*(const Scalar& a, const Tensor& b) { return b.mul(a); }
inline Tensor operator-(const Scalar& a, const Tensor& b) { return b.neg().add(a); }
inline Tensor operator/(const Scalar& a, const Tensor& b) { return full_like(b, a).div(b); }
#define MC_AT_REDUCTION(name, by_dims)                                                           \
  inline Tensor Tensor::name(std::optional<ScalarType> t) const {                                \
    return mc_at::call(&mc_at_op_##name, {*this, t});                                            \
  }                                                                                              \
  inline Tensor Tensor::name(OptionalIntArrayRef dim, bool keepdim, std::optional<ScalarType> t) \
      const {                                                                                    \
    return mc_at::call(&mc_at_op_##by_dims, {*this, dim, keepdim, t});                           \
  }                                                                                              \
  inline Tensor name(const Tensor& a, std::optional<ScalarType> t = std::nullopt) {              \
    return a.name(t);                                                                            \
  }                                                                                              \
  inline Tensor name(const Tensor& a, OptionalIntArrayRef dim, bool keepdim = false,             \
                     std::optional<ScalarType> t = std::nullopt) {                               \
    return a.name(dim, keepdim, t);                                                              \
  }
MC_AT_REDUCTION(sum, sum_dim_IntList)
MC_AT_REDUCTION(mean, mean_dim)
#undef MC_AT_REDUCTION
inline Tensor Tensor::var(bool unbiased) const {
  return mc_at::call(&mc_at_op_var, {*this, unbiased});
}
inline Tensor Tensor::var(OptionalIntArrayRef dim, bool unbiased, bool keepdim) const {
  return mc_at::call(&mc_at_op_var_dim, {*this, dim, unbiased, keepdim});
}
inline Tensor var(const Tensor& a, bool unbiased = true) { return a.var(unbiased); }
inline Tensor var(const Tensor& a, OptionalIntArrayRef dim, bool unbiased = true,
                  bool keepdim = false) {
  return a.var(dim, unbiased, keepdim);
}

}  // namespace at

#endif  // MC_AT_TENSOR_H_
