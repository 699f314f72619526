// SPDX-License-Identifier: Apache-2.0
// Tensors, operators and errors for candidates that were compiled by the facade, compiled against
// PyTorch's full headers.
//
// Operators are called boxed: one generic function calls all of them through PyTorch's dispatcher,
// where the guard's refusals apply.
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/core/UndefinedTensorImpl.h>
#include <c10/util/Exception.h>

#include <algorithm>
#include <cstdio>
#include <string>
#include <vector>

#include "mc_at/abi.h"
#include "mc_at/operators.h"

namespace {

static_assert(sizeof(at::Tensor) == sizeof(void*));
static_assert(static_cast<int>(at::kByte) == 0 && static_cast<int>(at::kChar) == 1 &&
              static_cast<int>(at::kShort) == 2 && static_cast<int>(at::kInt) == 3 &&
              static_cast<int>(at::kLong) == 4 && static_cast<int>(at::kHalf) == 5 &&
              static_cast<int>(at::kFloat) == 6 && static_cast<int>(at::kDouble) == 7 &&
              static_cast<int>(at::kBool) == 11 && static_cast<int>(at::kBFloat16) == 15 &&
              static_cast<int>(at::ScalarType::Undefined) == 46);
static_assert(static_cast<int>(at::kCPU) == 0 && static_cast<int>(at::kCUDA) == 1 &&
              static_cast<int>(at::kMeta) == 14 && static_cast<int>(at::kPrivateUse1) == 20);
static_assert(static_cast<int>(at::kStrided) == 0 && static_cast<int>(at::kSparse) == 1);
static_assert(static_cast<int>(at::MemoryFormat::Contiguous) == 0 &&
              static_cast<int>(at::MemoryFormat::Preserve) == 1 &&
              static_cast<int>(at::MemoryFormat::ChannelsLast) == 2 &&
              static_cast<int>(at::MemoryFormat::ChannelsLast3d) == 3);

c10::TensorImpl* impl_of(void* tensor) { return static_cast<c10::TensorImpl*>(tensor); }

// A handle has the same memory layout as an at::Tensor.
const at::Tensor& as_tensor(void* const& handle) {
  return *reinterpret_cast<const at::Tensor*>(&handle);
}

void* give(at::Tensor tensor) { return tensor.unsafeReleaseTensorImpl(); }

c10::IValue ivalue_of(const McAtValue& value) {
  switch (value.kind) {
    case kMcAtInt:
      return value.integer;
    case kMcAtDouble:
      return value.real;
    case kMcAtBool:
      return value.integer != 0;
    case kMcAtTensor: {
      void* handle = const_cast<void*>(value.pointer);
      return as_tensor(handle);
    }
    case kMcAtInts:
      return at::IntArrayRef(static_cast<const int64_t*>(value.pointer),
                             static_cast<size_t>(value.size));
    case kMcAtTensors: {
      const auto* first = static_cast<const at::Tensor*>(value.pointer);
      return std::vector<at::Tensor>(first, first + value.size);
    }
    case kMcAtDevice:
      return at::Device(static_cast<at::DeviceType>(value.integer),
                        static_cast<at::DeviceIndex>(value.size));
    case kMcAtText:
      return std::string(static_cast<const char*>(value.pointer), static_cast<size_t>(value.size));
    default:
      return {};
  }
}

McAtValue value_of(const c10::IValue& result) {
  McAtValue value{};
  if (result.isTensor()) {
    value.kind = kMcAtTensor;
    value.pointer = give(result.toTensor());
  } else if (result.isTensorList()) {
    const std::vector<at::Tensor> list = result.toTensorVector();
    auto* items = new at::Tensor[list.size()];
    std::copy(list.begin(), list.end(), items);
    value.kind = kMcAtTensors;
    value.size = static_cast<int32_t>(list.size());
    value.pointer = items;
  } else if (result.isBool()) {
    value.kind = kMcAtBool;
    value.integer = result.toBool();
  } else if (result.isInt()) {
    value.kind = kMcAtInt;
    value.integer = result.toInt();
  } else if (result.isDouble()) {
    value.kind = kMcAtDouble;
    value.real = result.toDouble();
  } else {
    TORCH_CHECK(result.isNone(), "the facade cannot carry a result of type ", result.tagKind());
  }
  return value;
}

void call(const c10::OperatorHandle& op, const McAtValue* args, int32_t num_args,
          McAtValue* results) {
  const c10::FunctionSchema& schema = op.schema();
  TORCH_INTERNAL_ASSERT(static_cast<size_t>(num_args) <= schema.arguments().size());
  torch::jit::Stack stack;
  stack.reserve(schema.arguments().size());
  for (size_t i = 0; i < schema.arguments().size(); ++i) {
    const c10::Argument& argument = schema.arguments()[i];
    if (i < static_cast<size_t>(num_args)) {
      stack.push_back(ivalue_of(args[i]));
    } else {
      TORCH_INTERNAL_ASSERT(argument.default_value().has_value());
      stack.push_back(*argument.default_value());
    }
  }
  op.callBoxed(stack);
  for (size_t i = 0; i < stack.size(); ++i) results[i] = value_of(stack[i]);
}

c10::SourceLocation place(const char* function, const char* file, uint32_t line) {
  return {function, file, line};
}

}  // namespace

extern "C" {

// --- Operators.

#define MC_AT_DEFINE(name, overload, entry)                                            \
  void mc_at_op_##entry(const McAtValue* args, int32_t num_args, McAtValue* results) { \
    static const c10::OperatorHandle op =                                              \
        c10::Dispatcher::singleton().findSchemaOrThrow("aten::" name, overload);       \
    call(op, args, num_args, results);                                                 \
  }
MC_AT_EACH_OPERATOR(MC_AT_DEFINE)
#undef MC_AT_DEFINE

// --- Tensors.

void* mc_at_undefined(void) { return c10::UndefinedTensorImpl::singleton(); }
void mc_at_retain(void* tensor) {
  if (tensor == mc_at_undefined()) return;
  c10::raw::intrusive_ptr::incref(impl_of(tensor));
}
void mc_at_release(void* tensor) {
  if (tensor == mc_at_undefined()) return;
  c10::raw::intrusive_ptr::decref(impl_of(tensor));
}
void mc_at_free_list(const void* tensors) { delete[] static_cast<const at::Tensor*>(tensors); }

int32_t mc_at_dim(void* tensor) { return static_cast<int32_t>(impl_of(tensor)->dim()); }
const int64_t* mc_at_sizes(void* tensor) { return impl_of(tensor)->sizes().data(); }
const int64_t* mc_at_strides(void* tensor) { return impl_of(tensor)->strides().data(); }
int64_t mc_at_size(void* tensor, int64_t dim) { return impl_of(tensor)->size(dim); }
int64_t mc_at_stride(void* tensor, int64_t dim) { return as_tensor(tensor).stride(dim); }
int64_t mc_at_numel(void* tensor) { return impl_of(tensor)->numel(); }
int64_t mc_at_storage_offset(void* tensor) { return impl_of(tensor)->storage_offset(); }
int32_t mc_at_dtype(void* tensor) { return static_cast<int32_t>(as_tensor(tensor).scalar_type()); }
int32_t mc_at_layout(void* tensor) { return static_cast<int32_t>(impl_of(tensor)->layout()); }
int32_t mc_at_device_type(void* tensor) {
  return static_cast<int32_t>(impl_of(tensor)->device_type());
}
int32_t mc_at_device_index(void* tensor) { return impl_of(tensor)->device().index(); }
int mc_at_is_contiguous(void* tensor, int32_t memory_format) {
  return impl_of(tensor)->is_contiguous(static_cast<at::MemoryFormat>(memory_format));
}
int mc_at_requires_grad(void* tensor) { return impl_of(tensor)->requires_grad(); }
size_t mc_at_element_size(int32_t dtype) {
  return c10::elementSize(static_cast<at::ScalarType>(dtype));
}

void* mc_at_data(void* handle, int32_t dtype, int is_const) {
  const at::Tensor& tensor = as_tensor(handle);
  if (dtype < 0) {
    return is_const ? const_cast<void*>(tensor.const_data_ptr()) : tensor.mutable_data_ptr();
  }
  switch (static_cast<at::ScalarType>(dtype)) {
#define MC_AT_CASE(cpp, name)                                        \
  case at::ScalarType::name:                                         \
    return is_const ? const_cast<cpp*>(tensor.const_data_ptr<cpp>()) \
                    : tensor.mutable_data_ptr<cpp>();
    AT_FORALL_SCALAR_TYPES_AND3(Half, BFloat16, Bool, MC_AT_CASE)
#undef MC_AT_CASE
    default:
      TORCH_CHECK(false, "the facade has no data of dtype ", static_cast<at::ScalarType>(dtype));
  }
}

// --- Errors.

void mc_at_fail(int kind, const char* function, const char* file, uint32_t line, const char* text) {
  switch (kind) {
    case kMcAtValue:
      throw c10::ValueError(place(function, file, line), text);
    case kMcAtType:
      throw c10::TypeError(place(function, file, line), text);
    case kMcAtIndex:
      throw c10::IndexError(place(function, file, line), text);
    case kMcAtNotImplemented:
      throw c10::NotImplementedError(place(function, file, line), text);
    default:
      c10::detail::torchCheckFail(function, file, line, text);
  }
}

void mc_at_fail_internal(const char* function, const char* file, uint32_t line,
                         const char* condition, const char* text) {
  c10::detail::torchInternalAssertFail(function, file, line, condition, std::string(text));
}

void mc_at_warn(const char* function, const char* file, uint32_t line, const char* text) {
  c10::warn(c10::Warning(c10::UserWarning(), place(function, file, line), text, false));
}

const char* mc_at_dtype_name(int32_t dtype) {
  return c10::toString(static_cast<at::ScalarType>(dtype));
}
const char* mc_at_type_name(int32_t dtype, size_t* size) {
  const auto name = c10::scalarTypeToTypeMeta(static_cast<at::ScalarType>(dtype)).name();
  *size = name.size();
  return name.data();
}

void mc_at_device_text(int32_t type, int32_t index, char* text, size_t size) {
  const at::Device device(static_cast<at::DeviceType>(type), static_cast<at::DeviceIndex>(index));
  std::snprintf(text, size, "%s", device.str().c_str());
}

void mc_at_parse_device(const char* text, int32_t* type, int32_t* index) {
  const at::Device device{std::string(text)};
  *type = static_cast<int32_t>(device.type());
  *index = device.index();
}

}  // extern "C"
