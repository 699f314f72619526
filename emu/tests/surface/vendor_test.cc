// SPDX-License-Identifier: Apache-2.0
// Headers of the vendor's libraries beside the emulator's own types.
#include <cuComplex.h>
#include <cublasLt.h>
#include <cublas_v2.h>
#include <cuda_profiler_api.h>
#include <cuda_runtime.h>
#include <cudnn.h>
#include <cufft.h>
#include <curand.h>
#include <cusolverDn.h>
#include <cusparse.h>
#include <gtest/gtest.h>
#include <nvToolsExt.h>
#include <sm_60_atomic_functions.h>

namespace {

TEST(Vendor, ComplexNumbersFollowTheRules) {
  const cuComplex a = make_cuComplex(3, 4);
  const cuComplex b = make_cuComplex(1, -2);
  EXPECT_EQ(cuCabsf(a), 5);
  const cuComplex product = cuCmulf(a, b);
  EXPECT_EQ(cuCrealf(product), 11);
  EXPECT_EQ(cuCimagf(product), -2);
  const cuComplex back = cuCdivf(product, b);
  EXPECT_NEAR(back.x, 3, 1e-6);
  EXPECT_NEAR(back.y, 4, 1e-6);
}

TEST(Vendor, HandlesCanBeDeclared) {
  cublasHandle_t blas = nullptr;
  cudnnHandle_t dnn = nullptr;
  EXPECT_EQ(blas, nullptr);
  EXPECT_EQ(dnn, nullptr);
  EXPECT_EQ(CUBLAS_STATUS_SUCCESS, 0);
  EXPECT_EQ(cudaProfilerStart(), cudaSuccess);
  nvtxRangePush("range");
  EXPECT_EQ(nvtxRangePop(), 0);
}

}  // namespace
