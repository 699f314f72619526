// SPDX-License-Identifier: Apache-2.0
// PyTorch's header of this name on the emulated device.
#pragma once
#include <cmath>

namespace c10::cuda {

namespace compat {
using std::abs;
using std::ceil;
using std::copysign;
using std::cos;
using std::exp;
using std::floor;
using std::fma;
using std::log;
using std::log1p;
using std::max;
using std::min;
using std::pow;
using std::round;
using std::sin;
using std::sqrt;
using std::tan;
using std::tanh;
inline float rsqrt(float x) { return 1.0f / std::sqrt(x); }
inline double rsqrt(double x) { return 1.0 / std::sqrt(x); }
}  // namespace compat

}  // namespace c10::cuda
