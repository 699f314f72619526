// SPDX-License-Identifier: Apache-2.0
//
// The products of cuBLAS for checked programs (src/check), in the place of the library that
// cuda/libraries.h calls.  They are plain loops: sums are in the order of the common index, in the
// type that the call names or float for half.  The judge's candidates have none of them.
#include <cuda_bf16.h>
#include <cuda_fp16.h>
#include <library_types.h>

#include <algorithm>
#include <cstring>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "check.h"
#include "cuda/libraries.h"
#include "ptx_driver/driver.h"

namespace mc::device {
namespace {

using ptx_driver::Driver;

constexpr const char* kName = "[gemm]";  // The name in findings.

constexpr int64_t kElementsMax = int64_t{1} << 40;  // More than memory has.

// cublasStatus_t.
constexpr int kDone = 0, kInvalidValue = 7, kExecutionFailed = 13, kNotSupported = 15;

// The numbers of cublasComputeType_t.
constexpr int kHalf = 64, kHalfPedantic = 65, kFloat = 68, kDouble = 70;
constexpr int kFloats[] = {kHalf, kHalfPedantic, kFloat, 69, 74, 75, 77, 78};
constexpr int kDoubles[] = {kDouble, 71, 79};

struct Handle {
  CUstream stream = nullptr;
  int math_mode = 0;
  int pointer_mode = 0;  // 1: scalars are on the device.
};

// Columns of elements, one every `stride` elements.
struct Matrix {
  CUdeviceptr address = 0;
  int type = CUDA_R_32F;
  int64_t stride = 0;
  int64_t step = 0;  // Elements from one product's matrix to the next one's.
  bool is_transposed = false;
};

// A scalar's value, or its address on the device.
struct Scalar {
  double value = 0;
  CUdeviceptr address = 0;
};

// The matrix c becomes alpha a b + beta c; a has m x k elements, b k x n.  `count` such triples.
struct Product {
  int64_t m = 0, n = 0, k = 0, count = 1;
  Matrix a, b, c;
  int scalar_type = CUDA_R_32F;
  Scalar alpha, beta;
};

size_t bytes_of(int type) { return type == CUDA_R_64F ? 8 : type == CUDA_R_32F ? 4 : 2; }

bool is_known(int type) {
  return type == CUDA_R_32F || type == CUDA_R_64F || type == CUDA_R_16F || type == CUDA_R_16BF;
}

template <typename Type>
Type load_as(const uint8_t* from) {
  Type value;
  std::memcpy(&value, from, sizeof value);
  return value;
}

double load(const uint8_t* from, int type) {
  switch (type) {
    case CUDA_R_64F:
      return load_as<double>(from);
    case CUDA_R_16F:
      return __half2float(__half(load_as<__half_raw>(from)));
    case CUDA_R_16BF:
      return __bfloat162float(__nv_bfloat16(load_as<__nv_bfloat16_raw>(from)));
    default:
      return load_as<float>(from);
  }
}

void store(uint8_t* to, int type, double value) {
  const auto put = [to](const auto& bits) { std::memcpy(to, &bits, sizeof bits); };
  switch (type) {
    case CUDA_R_64F:
      return put(value);
    case CUDA_R_16F:
      return put(static_cast<__half_raw>(__float2half(static_cast<float>(value))));
    case CUDA_R_16BF:
      return put(static_cast<__nv_bfloat16_raw>(__float2bfloat16(static_cast<float>(value))));
    default:
      return put(static_cast<float>(value));
  }
}

// The columns of a matrix in memory: a product has `rows` x `columns` of it.
class Columns {
 public:
  Columns(const Matrix& matrix, int64_t rows, int64_t columns, int64_t number)
      : matrix_(matrix),
        begin_(matrix.address +
               static_cast<uint64_t>(number * matrix.step) * bytes_of(matrix.type)),
        height_(matrix.is_transposed ? columns : rows),
        width_(matrix.is_transposed ? rows : columns) {}

  CUdeviceptr column(int64_t index) const {
    return begin_ + static_cast<uint64_t>(index * matrix_.stride) * bytes_of(matrix_.type);
  }
  size_t column_bytes() const { return static_cast<size_t>(height_) * bytes_of(matrix_.type); }
  int64_t width() const { return width_; }

  // Null unless one allocation holds all of them.
  uint8_t* host() const { return Driver::get().device().host(begin_, bytes()); }
  size_t bytes() const { return width_ == 0 ? 0 : column(width_ - 1) - begin_ + column_bytes(); }

  // The elements as the product has them, by columns.  REQUIRES: host() is not null.
  template <typename Sum>
  std::vector<Sum> elements() const {
    std::vector<Sum> all(static_cast<size_t>(height_ * width_));
    const uint8_t* const from = host();
    MC_CHECK(from != nullptr);
    for (int64_t y = 0; y < width_; ++y) {
      const uint8_t* const column_at = from + (column(y) - begin_);
      for (int64_t x = 0; x < height_; ++x) {
        const int64_t index = matrix_.is_transposed ? x * width_ + y : y * height_ + x;
        all[static_cast<size_t>(index)] = static_cast<Sum>(
            load(column_at + static_cast<size_t>(x) * bytes_of(matrix_.type), matrix_.type));
      }
    }
    return all;
  }

  void add_extents(std::vector<ptx::Extent>& extents) const {
    for (int64_t y = 0; y < width_; ++y) {
      extents.push_back({column(y), column(y) + column_bytes()});
    }
  }

 private:
  Matrix matrix_;
  CUdeviceptr begin_;
  int64_t height_, width_;
};

CUresult refuse(ptx::FindingKind kind, size_t bytes) {
  Driver::get().report().add(
      {.kind = kind,
       .kernel = kName,
       .detail = "a matrix of " + std::to_string(bytes) + " bytes is not within one allocation"});
  return CUDA_ERROR_INVALID_VALUE;
}

// A finding where something in the matrix was never written.
void check_written(const Columns& columns) {
  for (int64_t y = 0; y < columns.width(); ++y) {
    if (!Driver::get().device().has_unwritten(columns.column(y), columns.column_bytes())) continue;
    return Driver::get().report().add(
        {.kind = ptx::FindingKind::kUnwrittenCopy,
         .kernel = kName,
         .detail = "a product has bytes that nothing wrote, and its output follows from them"});
  }
}

template <typename Sum>
std::vector<Sum> sums_of(const Columns& a, const Columns& b, const Product& product) {
  const std::vector<Sum> left = a.elements<Sum>(), right = b.elements<Sum>();
  const auto m = static_cast<size_t>(product.m), k = static_cast<size_t>(product.k);
  std::vector<Sum> sums(m * static_cast<size_t>(product.n));
  for (size_t y = 0; y < static_cast<size_t>(product.n); ++y) {
    Sum* const column = &sums[y * m];
    for (size_t i = 0; i < k; ++i) {
      const Sum factor = right[y * k + i];
      const Sum* const from = &left[i * m];
      for (size_t x = 0; x < m; ++x) column[x] += from[x] * factor;
    }
  }
  return sums;
}

bool read(Scalar& scalar, int type) {
  if (scalar.address == 0) return true;
  const uint8_t* const from = Driver::get().device().host(scalar.address, bytes_of(type));
  if (from != nullptr) scalar.value = load(from, type);
  return from != nullptr;
}

template <typename Sum>
CUresult multiply_one(const Product& product, int64_t number) {
  const Columns a(product.a, product.m, product.k, number);
  const Columns b(product.b, product.k, product.n, number);
  const Columns c(product.c, product.m, product.n, number);
  for (const Columns* one : {&a, &b}) {
    if (one->bytes() > 0 && one->host() == nullptr) {
      return refuse(ptx::FindingKind::kOutOfBoundsRead, one->bytes());
    }
  }
  if (c.host() == nullptr) return refuse(ptx::FindingKind::kOutOfBoundsWrite, c.bytes());
  const bool adds = product.beta.value != 0;
  check_written(a);
  check_written(b);
  if (adds) check_written(c);
  const std::vector<Sum> sums = sums_of<Sum>(a, b, product);
  const std::vector<Sum> old = adds ? c.elements<Sum>() : std::vector<Sum>(sums.size());
  const auto alpha = static_cast<Sum>(product.alpha.value);
  const auto beta = static_cast<Sum>(product.beta.value);
  ptx::Device& device = Driver::get().device();
  uint8_t* const to = c.host();
  const size_t element = bytes_of(product.c.type);
  for (int64_t y = 0; y < product.n; ++y) {
    for (int64_t x = 0; x < product.m; ++x) {
      const auto at = static_cast<size_t>(y * product.m + x);
      store(to + static_cast<size_t>(y * product.c.stride + x) * element, product.c.type,
            alpha * sums[at] + (adds ? beta * old[at] : Sum{0}));
    }
    device.note_write(c.column(y), c.column_bytes());
  }
  ptx::TouchedBytes touched;
  a.add_extents(touched.read);
  b.add_extents(touched.read);
  if (adds) c.add_extents(touched.read);
  c.add_extents(touched.written);
  Driver::get().note_stream_access(kName, std::move(touched));
  return CUDA_SUCCESS;
}

template <typename Sum>
CUresult multiply(Product product) {
  if (!read(product.alpha, product.scalar_type) || !read(product.beta, product.scalar_type)) {
    return refuse(ptx::FindingKind::kOutOfBoundsRead, bytes_of(product.scalar_type));
  }
  for (int64_t i = 0; i < product.count; ++i) {
    if (const CUresult status = multiply_one<Sum>(product, i)) return status;
  }
  return CUDA_SUCCESS;
}

bool is_in(int compute, std::span<const int> numbers) {
  return std::ranges::find(numbers, compute) != numbers.end();
}

// True if the columns of the matrix fit into its stride, and no offset overflows.
bool fits(const Matrix& matrix, int64_t rows, int64_t columns, int64_t count) {
  const auto [height, width] =
      matrix.is_transposed ? std::pair(columns, rows) : std::pair(rows, columns);
  return height >= 0 && width >= 0 && count >= 0 && matrix.stride >= std::max<int64_t>(height, 1) &&
         matrix.stride <= kElementsMax / std::max<int64_t>(width, 1) && matrix.step >= 0 &&
         matrix.step <= kElementsMax / std::max<int64_t>(count, 1);
}

// Queues the product; the result is a cublasStatus_t.
int queue(const Handle& handle, const Product& product, int compute) {
  const bool is_double = is_in(compute, kDoubles);
  const auto& [m, n, k, count, a, b, c, scalar_type, alpha, beta] = product;
  if (!is_double && !is_in(compute, kFloats)) return kNotSupported;
  if (!is_known(a.type) || !is_known(b.type) || !is_known(c.type)) return kNotSupported;
  if (!fits(a, m, k, count) || !fits(b, k, n, count) || !fits(c, m, n, count)) return kInvalidValue;
  if (m == 0 || n == 0) return kDone;
  const CUresult status = Driver::get().queue(handle.stream, [product, is_double] {
    return is_double ? multiply<double>(product) : multiply<float>(product);
  });
  return status == CUDA_SUCCESS ? kDone : kExecutionFailed;
}

Scalar scalar_of(const Handle& handle, const void* pointer, int type) {
  if (handle.pointer_mode != 0) return {0, reinterpret_cast<CUdeviceptr>(pointer)};
  return {load(static_cast<const uint8_t*>(pointer), type), 0};
}

int scalar_type_of(int compute) {
  if (compute == kHalf || compute == kHalfPedantic) return CUDA_R_16F;
  return is_in(compute, kDoubles) ? CUDA_R_64F : CUDA_R_32F;
}

// ---- The functions, as cuBLAS has them ----------------------------------------------------------

int gemm_strided_ex(Handle* handle, int trans_a, int trans_b, int m, int n, int k,
                    const void* alpha, CUdeviceptr a, int a_type, int lda, int64_t a_step,
                    CUdeviceptr b, int b_type, int ldb, int64_t b_step, const void* beta,
                    CUdeviceptr c, int c_type, int ldc, int64_t c_step, int count, int compute,
                    int) {
  if (alpha == nullptr || beta == nullptr) return kInvalidValue;
  const int type = scalar_type_of(compute);
  return queue(*handle,
               {.m = m,
                .n = n,
                .k = k,
                .count = count,
                .a = {a, a_type, lda, a_step, trans_a != 0},
                .b = {b, b_type, ldb, b_step, trans_b != 0},
                .c = {c, c_type, ldc, c_step, false},
                .scalar_type = type,
                .alpha = scalar_of(*handle, alpha, type),
                .beta = scalar_of(*handle, beta, type)},
               compute);
}

int gemm_ex(Handle* handle, int trans_a, int trans_b, int m, int n, int k, const void* alpha,
            CUdeviceptr a, int a_type, int lda, CUdeviceptr b, int b_type, int ldb,
            const void* beta, CUdeviceptr c, int c_type, int ldc, int compute, int algorithm) {
  return gemm_strided_ex(handle, trans_a, trans_b, m, n, k, alpha, a, a_type, lda, 0, b, b_type,
                         ldb, 0, beta, c, c_type, ldc, 0, 1, compute, algorithm);
}

int sgemm_ex(Handle* handle, int trans_a, int trans_b, int m, int n, int k, const void* alpha,
             CUdeviceptr a, int a_type, int lda, CUdeviceptr b, int b_type, int ldb,
             const void* beta, CUdeviceptr c, int c_type, int ldc) {
  return gemm_ex(handle, trans_a, trans_b, m, n, k, alpha, a, a_type, lda, b, b_type, ldb, beta, c,
                 c_type, ldc, kFloat, 0);
}

template <int kType, int kCompute>
int gemm_strided(Handle* handle, int trans_a, int trans_b, int m, int n, int k, const void* alpha,
                 CUdeviceptr a, int lda, int64_t a_step, CUdeviceptr b, int ldb, int64_t b_step,
                 const void* beta, CUdeviceptr c, int ldc, int64_t c_step, int count) {
  return gemm_strided_ex(handle, trans_a, trans_b, m, n, k, alpha, a, kType, lda, a_step, b, kType,
                         ldb, b_step, beta, c, kType, ldc, c_step, count, kCompute, 0);
}

template <int kType, int kCompute>
int gemm(Handle* handle, int trans_a, int trans_b, int m, int n, int k, const void* alpha,
         CUdeviceptr a, int lda, CUdeviceptr b, int ldb, const void* beta, CUdeviceptr c, int ldc) {
  return gemm_ex(handle, trans_a, trans_b, m, n, k, alpha, a, kType, lda, b, kType, ldb, beta, c,
                 kType, ldc, kCompute, 0);
}

// The row of y is the row of x times the matrix, transposed.
template <int kType, int kCompute>
int gemv(Handle* handle, int trans, int m, int n, const void* alpha, CUdeviceptr a, int lda,
         CUdeviceptr x, int x_step, const void* beta, CUdeviceptr y, int y_step) {
  if (x_step < 0 || y_step < 0) return kNotSupported;
  const bool is_transposed = trans != 0;
  return gemm<kType, kCompute>(handle, 0, is_transposed ? 0 : 1, 1, is_transposed ? n : m,
                               is_transposed ? m : n, alpha, x, x_step, a, lda, beta, y, y_step);
}

int create(Handle** made) {
  *made = new Handle;  // It is kept: Libraries gives it to the next program.
  return kDone;
}
int set_stream(Handle* handle, CUstream stream) {
  handle->stream = stream;
  return kDone;
}
int set_math_mode(Handle* handle, int mode) {
  handle->math_mode = mode;
  return kDone;
}
int get_math_mode(const Handle* handle, int* mode) {
  *mode = handle->math_mode;
  return kDone;
}
int set_pointer_mode(Handle* handle, int mode) {
  handle->pointer_mode = mode;
  return kDone;
}
int get_pointer_mode(const Handle* handle, int* mode) {
  *mode = handle->pointer_mode;
  return kDone;
}
// A workspace, and whether atomics may be used, change nothing here.
int set_nothing(Handle*) { return kDone; }

struct Named {
  std::string_view name;
  void* function;
};
template <typename Function>
void* pointer(Function* function) {
  return reinterpret_cast<void*>(function);
}

const Named kFunctions[] = {
    {"cublasCreate_v2", pointer(create)},
    {"cublasSetStream_v2", pointer(set_stream)},
    {"cublasSetWorkspace_v2", pointer(set_nothing)},
    {"cublasSetAtomicsMode", pointer(set_nothing)},
    {"cublasSetMathMode", pointer(set_math_mode)},
    {"cublasGetMathMode", pointer(get_math_mode)},
    {"cublasSetPointerMode_v2", pointer(set_pointer_mode)},
    {"cublasGetPointerMode_v2", pointer(get_pointer_mode)},
    {"cublasSgemm_v2", pointer(gemm<CUDA_R_32F, kFloat>)},
    {"cublasDgemm_v2", pointer(gemm<CUDA_R_64F, kDouble>)},
    {"cublasHgemm", pointer(gemm<CUDA_R_16F, kHalf>)},
    {"cublasSgemmStridedBatched", pointer(gemm_strided<CUDA_R_32F, kFloat>)},
    {"cublasDgemmStridedBatched", pointer(gemm_strided<CUDA_R_64F, kDouble>)},
    {"cublasHgemmStridedBatched", pointer(gemm_strided<CUDA_R_16F, kHalf>)},
    {"cublasSgemmEx", pointer(sgemm_ex)},
    {"cublasGemmEx", pointer(gemm_ex)},
    {"cublasGemmStridedBatchedEx", pointer(gemm_strided_ex)},
    {"cublasSgemv_v2", pointer(gemv<CUDA_R_32F, kFloat>)},
    {"cublasDgemv_v2", pointer(gemv<CUDA_R_64F, kDouble>)},
};

}  // namespace

void* find_library_function(const char* name) {
  if (!Driver::get().checks_copies) return nullptr;
  const auto* const found = std::ranges::find(kFunctions, std::string_view(name), &Named::name);
  return found == std::end(kFunctions) ? nullptr : found->function;
}

}  // namespace mc::device
