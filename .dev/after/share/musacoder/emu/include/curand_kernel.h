// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CURAND_KERNEL_H_
#define MC_EMU_CURAND_KERNEL_H_

// cuRAND's device interface for code that runs on the CPU: the generators Philox4x32-10 and XORWOW
// (the default, curandState), with the bits of a GPU, and uniform, normal and log-normal numbers.
// Uniform numbers are exact; normal ones differ from a GPU's in the last bits of sin, cos and log.
// The other generators and distributions are missing.

#include <math.h>

#include "curand_philox.h"
#include "curand_xorwow.h"

typedef curandStateXORWOW_t curandState_t;
typedef curandStateXORWOW_t curandState;

namespace mc_emu {

// (0, 1], from 32 and from 53 random bits.
MC_EMU_INLINE float uniform_float(unsigned x) {
  return static_cast<float>(x) * 0x1p-32f + 0x1p-33f;
}
MC_EMU_INLINE double uniform_double(unsigned x) { return x * 0x1p-32 + 0x1p-32; }
MC_EMU_INLINE double uniform_double(unsigned x, unsigned y) {
  const unsigned long long bits = x ^ (static_cast<unsigned long long>(y) << 21);
  return static_cast<double>(bits) * 0x1p-53 + 0x1p-54;
}

// Two independent normal numbers from two uniform ones (Box and Muller).
inline float2 normal_pair(unsigned x, unsigned y) {
  constexpr float kTurn = 0x1p-32f * 6.2831855f;
  const float radius = ::sqrtf(-2.0f * ::logf(uniform_float(x)));
  const float angle = static_cast<float>(y) * kTurn + kTurn / 2;
  return make_float2(::sinf(angle) * radius, ::cosf(angle) * radius);
}
inline double2 normal_pair_double(unsigned x0, unsigned x1, unsigned y0, unsigned y1) {
  const double radius = ::sqrt(-2.0 * ::log(uniform_double(x0, x1)));
  const double half_turns = uniform_double(y0, y1) * 2.0;
  return make_double2(sinpi(half_turns) * radius, cospi(half_turns) * radius);
}

inline uint4 curand4_of(curandStatePhilox4_32_10_t* state) { return curand4(state); }
inline uint4 curand4_of(curandStateXORWOW_t* state) {
  uint4 x;
  x.x = curand(state);
  x.y = curand(state);
  x.z = curand(state);
  x.w = curand(state);
  return x;
}

// The second number of a pair waits in the state.
template <class State>
float next_normal(State* state) {
  state->has_normal = !state->has_normal;
  if (!state->has_normal) return state->spare_normal;
  const unsigned x = curand(state);
  const float2 pair = normal_pair(x, curand(state));
  state->spare_normal = pair.y;
  return pair.x;
}
template <class State>
double next_normal_double(State* state) {
  state->has_normal_double = !state->has_normal_double;
  if (!state->has_normal_double) return state->spare_normal_double;
  const uint4 x = curand4_of(state);
  const double2 pair = normal_pair_double(x.x, x.y, x.z, x.w);
  state->spare_normal_double = pair.y;
  return pair.x;
}

}  // namespace mc_emu

// The functions of both generators.
#define MC_EMU_DISTRIBUTIONS(State)                                                                \
  inline float curand_uniform(State* state) { return ::mc_emu::uniform_float(curand(state)); }     \
  inline float curand_normal(State* state) { return ::mc_emu::next_normal(state); }                \
  inline double curand_normal_double(State* state) { return ::mc_emu::next_normal_double(state); } \
  inline float2 curand_normal2(State* state) {                                                     \
    const unsigned x = curand(state);                                                              \
    return ::mc_emu::normal_pair(x, curand(state));                                                \
  }                                                                                                \
  inline double2 curand_normal2_double(State* state) {                                             \
    const uint4 x = ::mc_emu::curand4_of(state);                                                   \
    return ::mc_emu::normal_pair_double(x.x, x.y, x.z, x.w);                                       \
  }                                                                                                \
  inline float curand_log_normal(State* state, float mean, float deviation) {                      \
    return ::expf(mean + deviation * curand_normal(state));                                        \
  }                                                                                                \
  inline double curand_log_normal_double(State* state, double mean, double deviation) {            \
    return ::exp(mean + deviation * curand_normal_double(state));                                  \
  }                                                                                                \
  inline float2 curand_log_normal2(State* state, float mean, float deviation) {                    \
    const float2 x = curand_normal2(state);                                                        \
    return make_float2(::expf(mean + deviation * x.x), ::expf(mean + deviation * x.y));            \
  }
MC_EMU_DISTRIBUTIONS(curandStatePhilox4_32_10_t)
MC_EMU_DISTRIBUTIONS(curandStateXORWOW_t)
#undef MC_EMU_DISTRIBUTIONS

inline double curand_uniform_double(curandStatePhilox4_32_10_t* state) {
  return ::mc_emu::uniform_double(curand(state));
}
inline double curand_uniform_double(curandStateXORWOW_t* state) {
  const unsigned x = curand(state);
  return ::mc_emu::uniform_double(x, curand(state));
}

// Four, or two, at once: only of Philox.

inline float4 curand_uniform4(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  return make_float4(::mc_emu::uniform_float(x.x), ::mc_emu::uniform_float(x.y),
                     ::mc_emu::uniform_float(x.z), ::mc_emu::uniform_float(x.w));
}
inline double2 curand_uniform2_double(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  return make_double2(::mc_emu::uniform_double(x.x, x.y), ::mc_emu::uniform_double(x.z, x.w));
}
inline float4 curand_normal4(curandStatePhilox4_32_10_t* state) {
  const uint4 x = curand4(state);
  const float2 a = ::mc_emu::normal_pair(x.x, x.y), b = ::mc_emu::normal_pair(x.z, x.w);
  return make_float4(a.x, a.y, b.x, b.y);
}
inline float4 curand_log_normal4(curandStatePhilox4_32_10_t* state, float mean, float deviation) {
  const float4 x = curand_normal4(state);
  return make_float4(::expf(mean + deviation * x.x), ::expf(mean + deviation * x.y),
                     ::expf(mean + deviation * x.z), ::expf(mean + deviation * x.w));
}

#endif  // MC_EMU_CURAND_KERNEL_H_
