// SPDX-License-Identifier: Apache-2.0
//
// CPU loops over rows, each in one pass over memory where PyTorch's operators would take several.
// T is float or double; pointers are to contiguous rows unless there is a stride.  ops.h documents
// each operator; ops.cc calls these loops in parallel over rows.
#ifndef MC_MODEL_KERNELS_H_
#define MC_MODEL_KERNELS_H_

#include <cstdint>

namespace mc::model::kernels {

// The rows [begin, end) of a matrix of `width` columns.
struct Rows {
  int64_t begin;
  int64_t end;
  int64_t width;
};

// The norm y = x * scale * w with scale = 1 / sqrt(mean(x^2) + epsilon), kept for each row.
template <typename T>
void rms_norm(Rows rows, const T* x, const T* w, T epsilon, T* y, T* scale);

// Adds the gradient of rms_norm to dx, and that of w to dw, a buffer that belongs to these rows
// alone.
template <typename T>
void rms_norm_backward(Rows rows, const T* dy, const T* x, const T* w, const T* scale, T* dx,
                       T* dw);

// Rows that contain gate and up side by side (2 * width): y = gate * sigmoid(gate) * up.
template <typename T>
void swiglu(Rows rows, const T* gate_up, T* y);
template <typename T>
void swiglu_backward(Rows rows, const T* dy, const T* gate_up, T* d_gate_up);

// Rotates in place `heads` heads of width D = rows.width in each row; rows are `stride` elements
// apart. cos and sin have D/2 columns; row i uses their row positions[i].  `sign` = -1 is the
// inverse rotation.
template <typename T>
struct Rotation {
  int64_t heads;
  int64_t stride;
  const int64_t* positions;
  const T* cos;
  const T* sin;
  T sign;
};
template <typename T>
void rotate(Rows rows, const Rotation<T>& rotation, T* x);

// Attention of one query head to the first `length` rows of its keys and values, each of width D,
// contiguous: out = softmax(q k^T / sqrt(D)) v.  `scores` is a buffer of `length` elements.
template <typename T>
void attend_one(int64_t length, int64_t head_dim, const T* q, const T* k, const T* v, T* scores,
                T* out);

}  // namespace mc::model::kernels

#endif  // MC_MODEL_KERNELS_H_
