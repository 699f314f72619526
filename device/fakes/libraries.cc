// SPDX-License-Identifier: Apache-2.0
//
// Some functions of cuBLAS and cuDNN over the fake driver, whose device memory is this process's.
#include <algorithm>
#include <cstdint>
#include <cstring>
#include <string_view>
#include <vector>

#include "cuda/libraries.h"

namespace mc::device {
namespace {

constexpr int kBadParameter = 3;

struct FakeHandle {
  int mode = 0;
};
struct Descriptor {
  std::vector<int> dims;
  std::vector<int64_t> attribute;
};

int make(void** made) {
  *made = new FakeHandle;
  return 0;
}
int set(void*, uint64_t) { return 0; }

int set_mode(FakeHandle* handle, int mode) {
  handle->mode = mode;
  return 0;
}
int get_mode(FakeHandle* handle, int* mode) {
  *mode = handle->mode;
  return 0;
}

// Supports column-major matrices without transposition; otherwise CUBLAS_STATUS_NOT_SUPPORTED.
int sgemm(void*, int trans_a, int trans_b, int m, int n, int k, const float* alpha, const float* a,
          int lda, const float* b, int ldb, const float* beta, float* c, int ldc) {
  constexpr int kNotSupported = 15;
  if (trans_a != 0 || trans_b != 0) return kNotSupported;
  for (int column = 0; column < n; ++column) {
    for (int row = 0; row < m; ++row) {
      float sum = 0;
      for (int i = 0; i < k; ++i) sum += a[i * lda + row] * b[column * ldb + i];
      float& out = c[column * ldc + row];
      out = *alpha * sum + (*beta == 0 ? 0 : *beta * out);
    }
  }
  return 0;
}

int make_descriptor(Descriptor** made) {
  *made = new Descriptor;
  return 0;
}
int end_descriptor(Descriptor* descriptor) {
  delete descriptor;
  return 0;
}
int set_dims(Descriptor* descriptor, int, int count, const int* dims, const int*) {
  descriptor->dims.assign(dims, dims + count);
  return 0;
}
int get_dims(const Descriptor* descriptor, int wanted, int* type, int* count, int* dims,
             int* strides) {
  *type = 0;
  *count = static_cast<int>(descriptor->dims.size());
  for (int i = 0; i < wanted && i < *count; ++i) dims[i] = strides[i] = descriptor->dims[i];
  return 0;
}
int make_graph(int, Descriptor** made) { return make_descriptor(made); }
int set_attribute(Descriptor* descriptor, int, int kind, int64_t count, const void* elements) {
  if (attribute_bytes(static_cast<uint32_t>(kind)) != 8) return kBadParameter;
  descriptor->attribute.resize(static_cast<size_t>(count));
  std::memcpy(descriptor->attribute.data(), elements, static_cast<size_t>(count) * 8);
  return 0;
}
int get_attribute(Descriptor* descriptor, int, int kind, int64_t wanted, int64_t* count,
                  void* elements) {
  const auto held = static_cast<int64_t>(descriptor->attribute.size());
  if (attribute_bytes(static_cast<uint32_t>(kind)) != 8) return kBadParameter;
  *count = held;
  const auto given = static_cast<size_t>(std::min(wanted, held));
  if (given > 0) std::memcpy(elements, descriptor->attribute.data(), given * 8);
  return 0;
}

// Adds up its arguments, from all registers and stack slots in which they are passed.
int add_up(void*, int mode, const float* alpha, const float* beta, Descriptor*, const float* x,
           Descriptor*, float* y, Descriptor*, const float* scale, const float* bias,
           const float* mean, const float* variance, double epsilon) {
  *y = static_cast<float>(mode) + *alpha + *beta + *x + *scale + *bias + *mean + *variance +
       static_cast<float>(epsilon);
  return 0;
}

int set_dropout(Descriptor* descriptor, void*, float dropout, void*, uint64_t bytes,
                uint64_t seed) {
  descriptor->attribute = {static_cast<int64_t>(dropout * 100), static_cast<int64_t>(bytes),
                           static_cast<int64_t>(seed)};
  return descriptor->attribute == std::vector<int64_t>{25, 1, 2} ? 0 : kBadParameter;
}

// cuDNN refuses an address for a result that has no descriptor, and so does this.
int get_weights(void*, Descriptor*, int layer, uint64_t bytes, const void*, int part,
                Descriptor* matrix, void** matrix_at, Descriptor* bias, void** bias_at) {
  if ((matrix == nullptr) != (matrix_at == nullptr) || (bias == nullptr) != (bias_at == nullptr)) {
    return kBadParameter;
  }
  const uint64_t place = bytes + static_cast<uint64_t>(layer * 10 + part);
  for (void** at : {matrix_at, bias_at}) {
    if (at != nullptr) *at = reinterpret_cast<void*>(place);
  }
  return 0;
}

struct Named {
  std::string_view name;
  void* function;
};
template <typename Function>
void* pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

const Named kFunctions[] = {
    {"cublasCreate_v2", pointer(make)},
    {"cublasSetStream_v2", pointer(set)},
    {"cublasSetWorkspace_v2", pointer(set)},
    {"cublasSetMathMode", pointer(set_mode)},
    {"cublasGetMathMode", pointer(get_mode)},
    {"cublasSetPointerMode_v2", pointer(set)},
    {"cublasSetAtomicsMode", pointer(set)},
    {"cublasSgemm_v2", pointer(sgemm)},
    {"cudnnCreate", pointer(make)},
    {"cudnnSetStream", pointer(set)},
    {"cudnnCreateTensorDescriptor", pointer(make_descriptor)},
    {"cudnnDestroyTensorDescriptor", pointer(end_descriptor)},
    {"cudnnSetTensorNdDescriptor", pointer(set_dims)},
    {"cudnnGetTensorNdDescriptor", pointer(get_dims)},
    {"cudnnBackendCreateDescriptor", pointer(make_graph)},
    {"cudnnBackendDestroyDescriptor", pointer(end_descriptor)},
    {"cudnnBackendSetAttribute", pointer(set_attribute)},
    {"cudnnBackendGetAttribute", pointer(get_attribute)},
    {"cudnnCreateDropoutDescriptor", pointer(make_descriptor)},
    {"cudnnDestroyDropoutDescriptor", pointer(end_descriptor)},
    {"cudnnSetDropoutDescriptor", pointer(set_dropout)},
    {"cudnnCreateRNNDescriptor", pointer(make_descriptor)},
    {"cudnnDestroyRNNDescriptor", pointer(end_descriptor)},
    {"cudnnGetRNNWeightParams", pointer(get_weights)},
    {"cudnnBatchNormalizationForwardInference", pointer(add_up)},
};

}  // namespace

void* find_library_function(const char* name) {
  for (const Named& one : kFunctions) {
    if (one.name == name) return one.function;
  }
  return nullptr;
}

}  // namespace mc::device
