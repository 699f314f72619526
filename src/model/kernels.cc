// SPDX-License-Identifier: Apache-2.0
//
// This file is built with -O3 and OpenMP's simd pragmas, which allow reordered sums.  Each float
// loop is compiled for three generations of x86, and one version is chosen at start-up; the double
// version serves the tests of gradients.
#include "model/kernels.h"

#include <algorithm>
#include <bit>
#include <cmath>

#if defined(__x86_64__) && !defined(__SANITIZE_ADDRESS__) && !defined(__SANITIZE_THREAD__)
#define MC_CLONES [[gnu::target_clones("arch=x86-64-v4", "arch=x86-64-v3", "default")]]
#else
#define MC_CLONES
#endif
#define MC_INLINE [[gnu::always_inline]] inline

namespace mc::model::kernels {
namespace {

MC_INLINE double exponential(double x) { return std::exp(x); }

// e^x = 2^n e^r with |r| <= ln(2)/2, and e^r by its series; the relative error is below 2e-7.
MC_INLINE float exponential(float x) {
  constexpr float kRound = 12582912.0F;  // 1.5 * 2^23: adding it rounds to an integer.
  x = std::min(std::max(x, -87.0F), 88.0F);
  const float n = (x * 1.44269504F + kRound) - kRound;
  const float r = (x - n * 0.693359375F) + n * 2.12194440e-4F;
  float p = 1.0F / 720;
  p = p * r + 1.0F / 120;
  p = p * r + 1.0F / 24;
  p = p * r + 1.0F / 6;
  p = p * r + 0.5F;
  p = p * r + 1.0F;
  p = p * r + 1.0F;
  return p * std::bit_cast<float>((static_cast<int32_t>(n) + 127) << 23);
}

template <typename T>
MC_INLINE void rms_norm_rows(Rows rows, const T* x, const T* w, T epsilon, T* y, T* scale) {
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* row = x + i * rows.width;
    T* out = y + i * rows.width;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < rows.width; ++j) sum += row[j] * row[j];
    const T factor = 1 / std::sqrt(sum / static_cast<T>(rows.width) + epsilon);
    scale[i] = factor;
#pragma omp simd
    for (int64_t j = 0; j < rows.width; ++j) out[j] = row[j] * factor * w[j];
  }
}

// With s = scale and n = width: dx_j += s (w_j dy_j - x_j s^2 / n sum_i w_i dy_i x_i).
template <typename T>
MC_INLINE void rms_norm_backward_rows(Rows rows, const T* dy, const T* x, const T* w,
                                      const T* scale, T* dx, T* dw) {
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* x_row = x + i * rows.width;
    const T* dy_row = dy + i * rows.width;
    T* dx_row = dx + i * rows.width;
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < rows.width; ++j) sum += dy_row[j] * w[j] * x_row[j];
    const T factor = scale[i];
    const T mean = sum * factor * factor * factor / static_cast<T>(rows.width);
#pragma omp simd
    for (int64_t j = 0; j < rows.width; ++j) {
      dw[j] += dy_row[j] * x_row[j] * factor;
      dx_row[j] += factor * w[j] * dy_row[j] - mean * x_row[j];
    }
  }
}

template <typename T>
MC_INLINE void swiglu_rows(Rows rows, const T* gate_up, T* y) {
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* gate = gate_up + 2 * i * rows.width;
    const T* up = gate + rows.width;
    T* out = y + i * rows.width;
#pragma omp simd
    for (int64_t j = 0; j < rows.width; ++j) {
      out[j] = gate[j] / (1 + exponential(-gate[j])) * up[j];
    }
  }
}

template <typename T>
MC_INLINE void swiglu_backward_rows(Rows rows, const T* dy, const T* gate_up, T* d_gate_up) {
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* gate = gate_up + 2 * i * rows.width;
    const T* up = gate + rows.width;
    const T* dy_row = dy + i * rows.width;
    T* d_gate = d_gate_up + 2 * i * rows.width;
    T* d_up = d_gate + rows.width;
#pragma omp simd
    for (int64_t j = 0; j < rows.width; ++j) {
      const T sigmoid = 1 / (1 + exponential(-gate[j]));
      const T silu = gate[j] * sigmoid;
      d_up[j] = dy_row[j] * silu;
      d_gate[j] = dy_row[j] * up[j] * (sigmoid + silu * (1 - sigmoid));
    }
  }
}

template <typename T>
MC_INLINE void rotate_rows(Rows rows, const Rotation<T>& rotation, T* x) {
  const int64_t half = rows.width / 2;
  for (int64_t i = rows.begin; i < rows.end; ++i) {
    const T* cos = rotation.cos + rotation.positions[i] * half;
    const T* sin = rotation.sin + rotation.positions[i] * half;
    for (int64_t head = 0; head < rotation.heads; ++head) {
      T* low = x + i * rotation.stride + head * rows.width;
      T* high = low + half;
#pragma omp simd
      for (int64_t j = 0; j < half; ++j) {
        const T a = low[j];
        const T b = high[j];
        const T s = rotation.sign * sin[j];
        low[j] = a * cos[j] - b * s;
        high[j] = b * cos[j] + a * s;
      }
    }
  }
}

template <typename T>
MC_INLINE void attend(int64_t length, int64_t head_dim, const T* q, const T* k, const T* v,
                      T* scores, T* out) {
  const T factor = 1 / std::sqrt(static_cast<T>(head_dim));
  T largest = -INFINITY;
  for (int64_t t = 0; t < length; ++t) {
    T sum = 0;
#pragma omp simd reduction(+ : sum)
    for (int64_t j = 0; j < head_dim; ++j) sum += q[j] * k[t * head_dim + j];
    scores[t] = sum * factor;
    largest = std::max(largest, scores[t]);
  }
  T total = 0;
#pragma omp simd reduction(+ : total)
  for (int64_t t = 0; t < length; ++t) {
    scores[t] = exponential(scores[t] - largest);
    total += scores[t];
  }
  std::fill(out, out + head_dim, T{0});
  for (int64_t t = 0; t < length; ++t) {
    const T weight = scores[t] / total;
#pragma omp simd
    for (int64_t j = 0; j < head_dim; ++j) out[j] += weight * v[t * head_dim + j];
  }
}

MC_CLONES void rms_norm_float(Rows rows, const float* x, const float* w, float epsilon, float* y,
                              float* scale) {
  rms_norm_rows(rows, x, w, epsilon, y, scale);
}
MC_CLONES void rms_norm_backward_float(Rows rows, const float* dy, const float* x, const float* w,
                                       const float* scale, float* dx, float* dw) {
  rms_norm_backward_rows(rows, dy, x, w, scale, dx, dw);
}
MC_CLONES void swiglu_float(Rows rows, const float* gate_up, float* y) {
  swiglu_rows(rows, gate_up, y);
}
MC_CLONES void swiglu_backward_float(Rows rows, const float* dy, const float* gate_up,
                                     float* d_gate_up) {
  swiglu_backward_rows(rows, dy, gate_up, d_gate_up);
}
MC_CLONES void rotate_float(Rows rows, const Rotation<float>& rotation, float* x) {
  rotate_rows(rows, rotation, x);
}
MC_CLONES void attend_float(int64_t length, int64_t head_dim, const float* q, const float* k,
                            const float* v, float* scores, float* out) {
  attend(length, head_dim, q, k, v, scores, out);
}

}  // namespace

template <>
void rms_norm(Rows rows, const float* x, const float* w, float epsilon, float* y, float* scale) {
  rms_norm_float(rows, x, w, epsilon, y, scale);
}
template <>
void rms_norm(Rows rows, const double* x, const double* w, double epsilon, double* y,
              double* scale) {
  rms_norm_rows(rows, x, w, epsilon, y, scale);
}
template <>
void rms_norm_backward(Rows rows, const float* dy, const float* x, const float* w,
                       const float* scale, float* dx, float* dw) {
  rms_norm_backward_float(rows, dy, x, w, scale, dx, dw);
}
template <>
void rms_norm_backward(Rows rows, const double* dy, const double* x, const double* w,
                       const double* scale, double* dx, double* dw) {
  rms_norm_backward_rows(rows, dy, x, w, scale, dx, dw);
}
template <>
void swiglu(Rows rows, const float* gate_up, float* y) {
  swiglu_float(rows, gate_up, y);
}
template <>
void swiglu(Rows rows, const double* gate_up, double* y) {
  swiglu_rows(rows, gate_up, y);
}
template <>
void swiglu_backward(Rows rows, const float* dy, const float* gate_up, float* d_gate_up) {
  swiglu_backward_float(rows, dy, gate_up, d_gate_up);
}
template <>
void swiglu_backward(Rows rows, const double* dy, const double* gate_up, double* d_gate_up) {
  swiglu_backward_rows(rows, dy, gate_up, d_gate_up);
}
template <>
void rotate(Rows rows, const Rotation<float>& rotation, float* x) {
  rotate_float(rows, rotation, x);
}
template <>
void rotate(Rows rows, const Rotation<double>& rotation, double* x) {
  rotate_rows(rows, rotation, x);
}
template <>
void attend_one(int64_t length, int64_t head_dim, const float* q, const float* k, const float* v,
                float* scores, float* out) {
  attend_float(length, head_dim, q, k, v, scores, out);
}
template <>
void attend_one(int64_t length, int64_t head_dim, const double* q, const double* k, const double* v,
                double* scores, double* out) {
  attend(length, head_dim, q, k, v, scores, out);
}

}  // namespace mc::model::kernels
