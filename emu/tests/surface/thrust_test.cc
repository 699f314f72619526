// SPDX-License-Identifier: Apache-2.0
// Thrust: vectors, algorithms on the device, in kernels and on the host, and iterators.
#include <thrust/copy.h>
#include <thrust/count.h>
#include <thrust/device_vector.h>
#include <thrust/execution_policy.h>
#include <thrust/extrema.h>
#include <thrust/functional.h>
#include <thrust/host_vector.h>
#include <thrust/iterator/counting_iterator.h>
#include <thrust/iterator/transform_iterator.h>
#include <thrust/iterator/zip_iterator.h>
#include <thrust/reduce.h>
#include <thrust/scan.h>
#include <thrust/sequence.h>
#include <thrust/sort.h>
#include <thrust/transform.h>
#include <thrust/transform_reduce.h>

#include "kernel_test.h"

namespace {

using mc_emu_test::findings;
using mc_emu_test::run;
using mc_emu_test::Vector;
using ::testing::ElementsAre;

TEST(Thrust, SortsReducesAndScansOnTheDevice) {
  findings();
  thrust::host_vector<int> h{3, 1, 2};
  thrust::device_vector<int> d = h;
  thrust::sort(d.begin(), d.end());
  EXPECT_THAT(std::vector<int>(d), ElementsAre(1, 2, 3));
  thrust::sort(thrust::device, d.begin(), d.end(), thrust::greater<int>());
  EXPECT_EQ(d[0], 3);
  EXPECT_EQ(thrust::reduce(d.begin(), d.end()), 6);
  EXPECT_EQ(thrust::reduce(d.begin(), d.end(), 0, thrust::maximum<int>()), 3);
  thrust::exclusive_scan(d.begin(), d.end(), d.begin());
  EXPECT_THAT(std::vector<int>(d), ElementsAre(0, 3, 5));
  EXPECT_EQ(thrust::max_element(d.begin(), d.end()) - d.begin(), 2);
  thrust::copy(d.begin(), d.end(), h.begin());
  EXPECT_THAT(h, ElementsAre(0, 3, 5));
  d[1] = 7;
  EXPECT_EQ(thrust::count_if(d.begin(), d.end(), [](int x) { return x > 4; }), 2);
  EXPECT_EQ(findings(), "");
}

TEST(Thrust, TransformsRawPointersUnderAPolicy) {
  Vector<float> x(8), y(8);
  thrust::sequence(thrust::device, x.data(), x.data() + 8);
  thrust::transform(thrust::cuda::par.on(nullptr), x.data(), x.data() + 8, x.data(), y.data(),
                    thrust::plus<float>());
  EXPECT_EQ(y[7], 14.0f);
  const auto first = thrust::device_pointer_cast(x.data());
  EXPECT_EQ(thrust::transform_reduce(first, first + 8, thrust::square<float>(), 0.0f,
                                     thrust::plus<float>()),
            140.0f);
}

TEST(Thrust, SortsByKeyAndZips) {
  Vector<int> keys{2, 0, 1}, values{20, 0, 10};
  thrust::sort_by_key(thrust::device, keys.data(), keys.data() + 3, values.data());
  EXPECT_THAT(std::vector<int>(values.begin(), values.end()), ElementsAre(0, 10, 20));
  const auto zipped = thrust::make_zip_iterator(thrust::make_tuple(keys.data(), values.data()));
  const int sum = thrust::transform_reduce(
      thrust::device, zipped, zipped + 3,
      [](const auto& pair) { return thrust::get<0>(pair) * thrust::get<1>(pair); }, 0,
      thrust::plus<int>());
  EXPECT_EQ(sum, 50);
  const auto counting = thrust::make_counting_iterator(1);
  const auto squares = thrust::make_transform_iterator(counting, [](int x) { return x * x; });
  EXPECT_EQ(thrust::reduce(squares, squares + 3), 14);
}

void kernel(const int* x, int* y) {
  y[threadIdx.x] = thrust::reduce(thrust::seq, x, x + threadIdx.x + 1);
}

TEST(Thrust, RunsInAKernel) {
  Vector<int> x(4, 2), y(4);
  run(1, 4, kernel, x.data(), y.data());
  EXPECT_THAT(std::vector<int>(y.begin(), y.end()), ElementsAre(2, 4, 6, 8));
}

}  // namespace
