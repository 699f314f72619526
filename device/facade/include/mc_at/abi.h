// SPDX-License-Identifier: Apache-2.0
// The C interface between a candidate that was compiled by the facade and its runtime
// (device/facade/runtime), which is built once against the installed PyTorch.
//
// A tensor is a reference-counted pointer: the `void*` that is at::Tensor's only word.  Exceptions
// of PyTorch pass through these functions; no function returns an error.
//
// Each PyTorch operator is one function, mc_at_op_<name>_<overload>, named as in at::_ops: the
// rules on library calls read these names (src/legality/symbols.cc).  It calls PyTorch's
// dispatcher, so an operator that a policy removes there is removed here too.
#ifndef MC_AT_ABI_H_
#define MC_AT_ABI_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
extern "C" {

enum McAtKind {
  kMcAtNone = 0,
  kMcAtInt,      // The member `integer`; dtypes, layouts and memory formats too.
  kMcAtDouble,   // The member `real`.
  kMcAtBool,     // The member `integer`.
  kMcAtTensor,   // A handle in `pointer`.
  kMcAtInts,     // An array of `size` integers at `pointer`.
  kMcAtTensors,  // An array of `size` handles at `pointer`.
  kMcAtDevice,   // The type in `integer`, the index in `size`.
  kMcAtText,     // A text of `size` bytes at `pointer`.
};

// An argument or result.  The receiver owns results that are tensors; it frees a list of tensors
// with mc_at_free_list.
struct McAtValue {
  int32_t kind;
  int32_t size;
  union {
    int64_t integer;
    double real;
    const void* pointer;
  };
};

// `args` are in the order of the operator's schema; missing trailing arguments have defaults. The
// function writes one result for each result of the schema.
typedef void McAtOperator(const struct McAtValue* args, int32_t num_args,
                          struct McAtValue* results);

// --- Tensors.

void* mc_at_undefined(void);  // Not counted.
void mc_at_retain(void* tensor);
void mc_at_release(void* tensor);
void mc_at_free_list(const void* tensors);

int32_t mc_at_dim(void* tensor);
const int64_t* mc_at_sizes(void* tensor);
const int64_t* mc_at_strides(void* tensor);
int64_t mc_at_size(void* tensor, int64_t dim);
int64_t mc_at_stride(void* tensor, int64_t dim);
int64_t mc_at_numel(void* tensor);
int64_t mc_at_storage_offset(void* tensor);
int32_t mc_at_dtype(void* tensor);
int32_t mc_at_layout(void* tensor);
int32_t mc_at_device_type(void* tensor);
int32_t mc_at_device_index(void* tensor);
int mc_at_is_contiguous(void* tensor, int32_t memory_format);
int mc_at_requires_grad(void* tensor);
size_t mc_at_element_size(int32_t dtype);
// The data pointer; `dtype` is the type that the caller expects, -1 for any.
void* mc_at_data(void* tensor, int32_t dtype, int is_const);

// --- Errors.  `kind` is a McAtError.

enum McAtError {
  kMcAtRuntime,
  kMcAtValue,
  kMcAtType,
  kMcAtIndex,
  kMcAtNotImplemented,
  kMcAtInternal
};
[[noreturn]] void mc_at_fail(int kind, const char* function, const char* file, uint32_t line,
                             const char* text);
[[noreturn]] void mc_at_fail_internal(const char* function, const char* file, uint32_t line,
                                      const char* condition, const char* text);
void mc_at_warn(const char* function, const char* file, uint32_t line, const char* text);

const char* mc_at_dtype_name(int32_t dtype);  // "Float"
// The name "float", as streams print a TypeMeta; not zero-terminated.
const char* mc_at_type_name(int32_t dtype, size_t* size);
// Writes "cuda:0" or "cpu" to `text`, as streams print a device; or parses such a text.
void mc_at_device_text(int32_t type, int32_t index, char* text, size_t size);
void mc_at_parse_device(const char* text, int32_t* type, int32_t* index);

// --- CUDA devices.  These functions fail with a PyTorch that has no CUDA.

void* mc_at_cuda_stream(int32_t device);          // The current stream; -1: current device.
void* mc_at_cuda_default_stream(int32_t device);  // Likewise, the default stream.
void* mc_at_cuda_pool_stream(int high_priority, int32_t device);
void mc_at_cuda_set_stream(void* stream, int32_t device);
int32_t mc_at_cuda_device(void);
int32_t mc_at_cuda_exchange_device(int32_t device);  // Returns the previous one.
int32_t mc_at_cuda_device_count(void);
const void* mc_at_cuda_properties(int32_t device);  // cudaDeviceProp
void mc_at_cuda_check(int32_t error, const char* file, const char* function, uint32_t line);

}  // extern "C"
#pragma GCC visibility pop

#endif  // MC_AT_ABI_H_
