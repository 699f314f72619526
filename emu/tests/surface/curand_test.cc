// SPDX-License-Identifier: Apache-2.0
// The generators of cuRAND: published vectors, numbers that cuRAND itself gave, and slow twins.
#include <gtest/gtest.h>

#include <cmath>

#include "curand_kernel.h"
#include "kernel_test.h"

namespace {

struct Start {
  unsigned long long seed, subsequence, offset;
  unsigned first_two[2];
};

// The first numbers of cuRAND 13.0 (its device header, compiled for the host).
const Start kXorwow[] = {
    {1234, 0, 0, {0x253D5E15, 0x6F558604}},
    {1234, 0, 9, {0x5DE5C108, 0x93AD0E4A}},
    {1234, 5, 0, {0xDE75663F, 0x8051A417}},
    {1234, 5, 9, {0x18C2F892, 0x45EBFBE1}},
    {1234, 4294967297, 0, {0x938114D8, 0x7F7876A2}},
    {1234, 4294967297, 9, {0xFC94D544, 0xC3F1CC3A}},
};
const Start kPhilox[] = {
    {1234, 0, 0, {0x2090B348, 0xDA7CF0AB}},
    {1234, 0, 9, {0xFC06FA38, 0xCC170B27}},
    {1234, 5, 0, {0xF942741C, 0xB7A11B7A}},
    {1234, 5, 9, {0xD88ECB0D, 0x088F2111}},
    {1234, 4294967297, 0, {0x89072108, 0x006CD729}},
    {1234, 4294967297, 9, {0xC72C3C43, 0x9C093AD7}},
};

template <class State, size_t kCount>
void expect_starts(const Start (&starts)[kCount]) {
  for (const Start& start : starts) {
    State state;
    curand_init(start.seed, start.subsequence, start.offset, &state);
    EXPECT_EQ(curand(&state), start.first_two[0]) << start.subsequence << ' ' << start.offset;
    EXPECT_EQ(curand(&state), start.first_two[1]) << start.subsequence << ' ' << start.offset;
  }
}

TEST(Curand, StartsWhereCurandStarts) {
  expect_starts<curandStateXORWOW_t>(kXorwow);
  expect_starts<curandStatePhilox4_32_10_t>(kPhilox);
}

// The known answers that came with the paper's implementation (Random123).
TEST(Philox, HasItsPublishedVectors) {
  struct Known {
    uint4 counter;
    uint2 key;
    uint4 want;
  };
  const Known known[] = {
      {{0, 0, 0, 0}, {0, 0}, {0x6627E8D5, 0xE169C58D, 0xBC57AC4C, 0x9B00DBD8}},
      {{~0u, ~0u, ~0u, ~0u}, {~0u, ~0u}, {0x408F276D, 0x41C83B0E, 0xA20BC7C6, 0x6D5451FD}},
      {{0x243F6A88, 0x85A308D3, 0x13198A2E, 0x03707344},
       {0xA4093822, 0x299F31D0},
       {0xD16CFE09, 0x94FDCCEB, 0x5001E420, 0x24126EA1}}};
  for (const Known& k : known) {
    const uint4 got = curand_Philox4x32_10(k.counter, k.key);
    EXPECT_EQ(got.x, k.want.x);
    EXPECT_EQ(got.y, k.want.y);
    EXPECT_EQ(got.z, k.want.z);
    EXPECT_EQ(got.w, k.want.w);
  }
}

template <class State>
class Generator : public testing::Test {};
using Generators = testing::Types<curandStatePhilox4_32_10_t, curandStateXORWOW_t>;
TYPED_TEST_SUITE(Generator, Generators);

TYPED_TEST(Generator, SkippingIsDrawing) {
  for (unsigned long long distance : {1ull, 2ull, 3ull, 4ull, 5ull, 1000ull, 1027ull}) {
    TypeParam drawn, skipped;
    curand_init(99, 7, 2, &drawn);
    curand_init(99, 7, 2, &skipped);
    for (unsigned long long i = 0; i < distance; ++i) curand(&drawn);
    skipahead(distance, &skipped);
    for (int i = 0; i < 9; ++i) EXPECT_EQ(curand(&drawn), curand(&skipped)) << distance;
  }
}

TYPED_TEST(Generator, SubsequencesAdd) {
  TypeParam once, twice;
  curand_init(5, 300, 0, &once);
  curand_init(5, 100, 0, &twice);
  skipahead_sequence(200, &twice);
  EXPECT_EQ(curand(&once), curand(&twice));
}

TYPED_TEST(Generator, NumbersHaveTheirDistribution) {
  TypeParam state;
  curand_init(3, 0, 0, &state);
  constexpr int kCount = 20000;
  double uniform = 0, normal = 0, square = 0;
  for (int i = 0; i < kCount; ++i) {
    const float u = curand_uniform(&state);
    ASSERT_TRUE(u > 0.0f && u <= 1.0f);
    uniform += u;
    const float x = curand_normal(&state);
    normal += x;
    square += x * x;
  }
  EXPECT_NEAR(uniform / kCount, 0.5, 0.01);
  EXPECT_NEAR(normal / kCount, 0.0, 0.03);
  EXPECT_NEAR(square / kCount, 1.0, 0.05);
}

TEST(Philox, FourAtOnceAreTheNextFour) {
  for (unsigned long long offset = 0; offset < 5; ++offset) {
    curandStatePhilox4_32_10_t one, four;
    curand_init(1, 2, offset, &one);
    curand_init(1, 2, offset, &four);
    const uint4 got = curand4(&four);
    EXPECT_EQ(got.x, curand(&one));
    EXPECT_EQ(got.y, curand(&one));
    EXPECT_EQ(got.z, curand(&one));
    EXPECT_EQ(got.w, curand(&one));
    EXPECT_EQ(curand(&four), curand(&one));
  }
}

__global__ void drop(const float* in, float* out, float p, unsigned long long seed) {
  const unsigned i = blockIdx.x * blockDim.x + threadIdx.x;
  curandState state;
  curand_init(seed, i, 0, &state);
  out[i] = curand_uniform(&state) > p ? in[i] / (1.0f - p) : 0.0f;
}

TEST(Curand, DropsTheShareAskedForInAKernel) {
  const mc_emu_test::Vector<float> in(2048, 1.0f);
  mc_emu_test::Vector<float> out(in.size());
  mc_emu_test::run(dim3(8), dim3(256), drop, in.data(), out.data(), 0.25f, 11ull);
  int dropped = 0;
  for (float x : out) dropped += x == 0.0f;
  EXPECT_NEAR(dropped / 2048.0, 0.25, 0.04);
}

}  // namespace
