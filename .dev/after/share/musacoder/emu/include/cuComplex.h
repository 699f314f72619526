// SPDX-License-Identifier: Apache-2.0
// CUDA's complex numbers.
#ifndef MC_EMU_CUCOMPLEX_H_
#define MC_EMU_CUCOMPLEX_H_

#include <cmath>

#include "mc_emu/cuda.h"

typedef float2 cuFloatComplex;
inline cuFloatComplex make_cuFloatComplex(float x, float y) { return make_float2(x, y); }
inline float cuCrealf(cuFloatComplex a) { return a.x; }
inline float cuCimagf(cuFloatComplex a) { return a.y; }
inline cuFloatComplex cuConjf(cuFloatComplex a) { return make_cuFloatComplex(a.x, -a.y); }
inline cuFloatComplex cuCaddf(cuFloatComplex a, cuFloatComplex b) {
  return make_cuFloatComplex(a.x + b.x, a.y + b.y);
}
inline cuFloatComplex cuCsubf(cuFloatComplex a, cuFloatComplex b) {
  return make_cuFloatComplex(a.x - b.x, a.y - b.y);
}
inline cuFloatComplex cuCmulf(cuFloatComplex a, cuFloatComplex b) {
  return make_cuFloatComplex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
inline cuFloatComplex cuCfmaf(cuFloatComplex a, cuFloatComplex b, cuFloatComplex c) {
  return cuCaddf(cuCmulf(a, b), c);
}
inline float cuCabsf(cuFloatComplex a) { return std::hypot(a.x, a.y); }
inline cuFloatComplex cuCdivf(cuFloatComplex a, cuFloatComplex b) {
  const float scale = std::abs(b.x) + std::abs(b.y);
  const cuFloatComplex u = make_cuFloatComplex(a.x / scale, a.y / scale);
  const cuFloatComplex v = make_cuFloatComplex(b.x / scale, b.y / scale);
  const float norm = v.x * v.x + v.y * v.y;
  return make_cuFloatComplex((u.x * v.x + u.y * v.y) / norm, (u.y * v.x - u.x * v.y) / norm);
}

typedef double2 cuDoubleComplex;
inline cuDoubleComplex make_cuDoubleComplex(double x, double y) { return make_double2(x, y); }
inline double cuCreal(cuDoubleComplex a) { return a.x; }
inline double cuCimag(cuDoubleComplex a) { return a.y; }
inline cuDoubleComplex cuConj(cuDoubleComplex a) { return make_cuDoubleComplex(a.x, -a.y); }
inline cuDoubleComplex cuCadd(cuDoubleComplex a, cuDoubleComplex b) {
  return make_cuDoubleComplex(a.x + b.x, a.y + b.y);
}
inline cuDoubleComplex cuCsub(cuDoubleComplex a, cuDoubleComplex b) {
  return make_cuDoubleComplex(a.x - b.x, a.y - b.y);
}
inline cuDoubleComplex cuCmul(cuDoubleComplex a, cuDoubleComplex b) {
  return make_cuDoubleComplex(a.x * b.x - a.y * b.y, a.x * b.y + a.y * b.x);
}
inline cuDoubleComplex cuCfma(cuDoubleComplex a, cuDoubleComplex b, cuDoubleComplex c) {
  return cuCadd(cuCmul(a, b), c);
}
inline double cuCabs(cuDoubleComplex a) { return std::hypot(a.x, a.y); }
inline cuDoubleComplex cuCdiv(cuDoubleComplex a, cuDoubleComplex b) {
  const double scale = std::abs(b.x) + std::abs(b.y);
  const cuDoubleComplex u = make_cuDoubleComplex(a.x / scale, a.y / scale);
  const cuDoubleComplex v = make_cuDoubleComplex(b.x / scale, b.y / scale);
  const double norm = v.x * v.x + v.y * v.y;
  return make_cuDoubleComplex((u.x * v.x + u.y * v.y) / norm, (u.y * v.x - u.x * v.y) / norm);
}

typedef cuFloatComplex cuComplex;
inline cuComplex make_cuComplex(float x, float y) { return make_cuFloatComplex(x, y); }

#endif  // MC_EMU_CUCOMPLEX_H_
