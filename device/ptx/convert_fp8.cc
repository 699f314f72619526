// SPDX-License-Identifier: Apache-2.0
//
// Conversions to and from pairs of 8-bit floats. A pair's first source is its upper half. Flag 1 of
// a step is .relu. All NaNs become one.
#include "ptx/fp8.h"
#include "ptx/lanes.h"

namespace mc::ptx::MC_PTX_VARIANT {
namespace {

constexpr uint32_t kFp8Relu = 1;

template <class T>
MC_INLINE uint16_t pair_of(float high, float low, uint32_t flags) {
  const uint32_t a = narrow_fp8<T>(flags & kFp8Relu ? rectified(high) : high).bits;
  const uint32_t b = narrow_fp8<T>(flags & kFp8Relu ? rectified(low) : low).bits;
  return static_cast<uint16_t>(a << 8 | b);
}

template <class T>
const Step* from_floats(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const float *a = w.at<float>(s->a), *b = w.at<float>(s->b);
  const uint32_t flags = s->flags;
  each_lane(w, w.at<uint16_t>(s->d), [&](int l) { return pair_of<T>(a[l], b[l], flags); });
  return s + 1;
}

template <class T>
const Step* from_halves(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  const uint32_t flags = s->flags;
  alignas(32) float numbers[2 * kLanes];
  widen_row(w.at<F16>(s->a), numbers, 2 * kLanes);
  each_lane(w, w.at<uint16_t>(s->d),
            [&](int l) { return pair_of<T>(numbers[2 * l + 1], numbers[2 * l], flags); });
  return s + 1;
}

template <class T>
const Step* to_halves(Warp& base, const Step* s) {
  LaneWarp& w = lanes_of(base);
  alignas(32) float numbers[2 * kLanes];
  alignas(32) F16 halves[2 * kLanes];
  widen_fp8_row(w.at<T>(s->a), numbers, 2 * kLanes);
  if (s->flags & kFp8Relu) {
    for (float& number : numbers) number = rectified(number);
  }
  narrow_row(numbers, halves, 2 * kLanes);
  each_lane(w, w.at<uint32_t>(s->d),
            [&](int l) { return uint32_t{halves[2 * l + 1].bits} << 16 | halves[2 * l].bits; });
  return s + 1;
}

template <class T>
Handler find_narrowing(Type from) {
  return from == Type::kF32 ? from_floats<T> : from == Type::kF16x2 ? from_halves<T> : nullptr;
}

}  // namespace

Handler find_convert_fp8(const ConvertKey& key) {
  if (key.to == Type::kE4m3x2) return find_narrowing<E4m3>(key.from);
  if (key.to == Type::kE5m2x2) return find_narrowing<E5m2>(key.from);
  if (key.to != Type::kF16x2) return nullptr;
  return key.from == Type::kE4m3x2 ? to_halves<E4m3> : to_halves<E5m2>;
}

}  // namespace mc::ptx::MC_PTX_VARIANT
