// SPDX-License-Identifier: Apache-2.0
// Graphs, launches through addresses, and what streams and pools tell of themselves.
#include "kernel_test.h"

namespace {

using mc_emu_test::findings;
using mc_emu_test::Vector;
using ::testing::HasSubstr;

void add_kernel(const float* x, float* y, float a, int n) {
  const int i = static_cast<int>(blockIdx.x * blockDim.x + threadIdx.x);
  if (i < n) y[i] = x[i] + a;
}

void launch_on(cudaStream_t stream, const float* x, float* y, float a, int n) {
  ::mc_emu::launch(
      ::mc_emu::Config(1, 64, 0, stream), "add_kernel",
      [=](auto... values) MC_EMU_CALL { add_kernel(values...); }, x, y, a, n);
}

TEST(Graph, RunsWhatWasCapturedWhenItIsLaunched) {
  Vector<float> x(64, 1.0f), y(64, 0.0f), z(64, 0.0f);
  cudaStream_t stream, side;
  cudaStreamCreate(&stream);
  cudaStreamCreate(&side);
  cudaEvent_t event;
  cudaEventCreate(&event);
  ASSERT_EQ(cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal), cudaSuccess);
  launch_on(stream, x.data(), y.data(), 2.0f, 64);
  cudaEventRecord(event, stream);
  cudaStreamWaitEvent(side, event);
  launch_on(side, y.data(), z.data(), 3.0f, 64);
  cudaGraph_t graph;
  ASSERT_EQ(cudaStreamEndCapture(stream, &graph), cudaSuccess);
  EXPECT_EQ(y[0], 0.0f);
  EXPECT_EQ(z[0], 0.0f);
  size_t count = 0;
  cudaGraphGetNodes(graph, nullptr, &count);
  EXPECT_EQ(count, 2u);
  cudaGraphExec_t executable;
  ASSERT_EQ(cudaGraphInstantiate(&executable, graph, nullptr, nullptr, 0), cudaSuccess);
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  EXPECT_EQ(y[63], 3.0f);
  EXPECT_EQ(z[63], 6.0f);
  x[5] = 10.0f;
  ASSERT_EQ(cudaGraphLaunch(executable, stream), cudaSuccess);
  EXPECT_EQ(z[5], 15.0f);
  launch_on(side, x.data(), z.data(), 0.0f, 64);  // No longer captured.
  EXPECT_EQ(z[5], 10.0f);
  cudaGraphExecDestroy(executable);
  cudaGraphDestroy(graph);
}

TEST(Graph, TakesKernelsByAddress) {
  Vector<float> x(64, 1.0f), y(64, 0.0f);
  const float* xp = x.data();
  float* yp = y.data();
  float a = 4.0f;
  int n = 64;
  void* arguments[] = {&xp, &yp, &a, &n};
  cudaGraph_t graph;
  cudaGraphCreate(&graph, 0);
  cudaKernelNodeParams parameters = {};
  parameters.func = ::mc_emu::kernel_pointer(add_kernel);
  parameters.gridDim = dim3(1);
  parameters.blockDim = dim3(64);
  parameters.kernelParams = arguments;
  cudaGraphNode_t node;
  ASSERT_EQ(cudaGraphAddKernelNode(&node, graph, nullptr, 0, &parameters), cudaSuccess);
  cudaGraphExec_t executable;
  cudaGraphInstantiate(&executable, graph, 0);
  a = 100.0f;  // The node has the value of when it was added.
  EXPECT_EQ(cudaGraphLaunch(executable, nullptr), cudaSuccess);
  EXPECT_EQ(y[7], 5.0f);
}

TEST(Launch, ByAddressAndByConfiguration) {
  Vector<float> x(64, 1.0f), y(64, 0.0f);
  const float* xp = x.data();
  float* yp = y.data();
  float a = 4.0f;
  int n = 64;
  void* arguments[] = {&xp, &yp, &a, &n};
  const void* kernel = ::mc_emu::kernel_pointer(&add_kernel);
  EXPECT_EQ(cudaLaunchKernel(kernel, dim3(1), dim3(64), arguments, 0, nullptr), cudaSuccess);
  EXPECT_EQ(y[9], 5.0f);
  EXPECT_EQ(cudaLaunchCooperativeKernel(kernel, dim3(1), dim3(64), arguments, 0, nullptr),
            cudaSuccess);
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(1);
  config.blockDim = dim3(64);
  EXPECT_EQ(cudaLaunchKernelEx(&config, add_kernel, xp, yp, 6, 64), cudaSuccess);
  EXPECT_EQ(y[9], 7.0f);
  a = 8.0f;
  EXPECT_EQ(cudaLaunchKernelExC(&config, kernel, arguments), cudaSuccess);
  EXPECT_EQ(y[9], 9.0f);
  int not_a_kernel = 0;
  EXPECT_EQ(cudaLaunchKernel(static_cast<const void*>(&not_a_kernel), dim3(1), dim3(1), arguments,
                             0, nullptr),
            cudaErrorInvalidDeviceFunction);
}

TEST(Launch, OfAClusterIsNotSupported) {
  Vector<float> x(64, 1.0f), y(64, 0.0f);
  cudaLaunchAttribute attribute = {};
  attribute.id = cudaLaunchAttributeClusterDimension;
  attribute.val.clusterDim = {2, 1, 1};
  cudaLaunchConfig_t config = {};
  config.gridDim = dim3(2);
  config.blockDim = dim3(32);
  config.attrs = &attribute;
  config.numAttrs = 1;
  EXPECT_EQ(cudaLaunchKernelEx(&config, add_kernel, x.data(), y.data(), 1.0f, 64),
            cudaErrorNotSupported);
  EXPECT_THAT(findings(), HasSubstr("thread block clusters"));
}

TEST(PinnedMemory, MayBeMadeAndCopiedButNoKernelMayReadIt) {
  float* pinned = nullptr;
  Vector<float> y(64, 2.0f);
  ASSERT_EQ(cudaHostAlloc(&pinned, 64 * sizeof(float), cudaHostAllocMapped), cudaSuccess);
  EXPECT_EQ(cudaMemcpy(pinned, y.data(), 64 * sizeof(float), cudaMemcpyDeviceToHost), cudaSuccess);
  EXPECT_EQ(pinned[3], 2.0f);
  mc_emu_test::launch_kernel(1, 64, add_kernel, static_cast<const float*>(pinned), y.data(), 1.0f,
                             64);
  EXPECT_THAT(findings(), HasSubstr("mapped host memory"));
  mc_emu_reset();
  EXPECT_EQ(cudaFreeHost(pinned), cudaSuccess);
}

TEST(Copies, OfThreeDimensionsTakeTheirPitch) {
  cudaPitchedPtr space = {};
  ASSERT_EQ(cudaMalloc3D(&space, make_cudaExtent(8, 3, 2)), cudaSuccess);
  Vector<char> from(48), to(48, 'x');
  for (size_t i = 0; i < from.size(); ++i) from[i] = static_cast<char>(i);
  cudaMemcpy3DParms copy = {};
  copy.srcPtr = make_cudaPitchedPtr(from.data(), 8, 8, 3);
  copy.dstPtr = space;
  copy.extent = make_cudaExtent(8, 3, 2);
  copy.kind = cudaMemcpyDeviceToDevice;
  EXPECT_EQ(cudaMemcpy3D(&copy), cudaSuccess);
  copy.srcPtr = space;
  copy.dstPtr = make_cudaPitchedPtr(to.data(), 8, 8, 3);
  EXPECT_EQ(cudaMemcpy3D(&copy), cudaSuccess);
  EXPECT_EQ(from, to);
}

TEST(Streams, KnowTheirPriorityAndRunCallbacks) {
  int least = 1, greatest = 1, priority = 1, called = 0;
  cudaDeviceGetStreamPriorityRange(&least, &greatest);
  EXPECT_LT(greatest, least);
  cudaStream_t stream;
  cudaStreamCreateWithPriority(&stream, cudaStreamNonBlocking, greatest);
  cudaStreamGetPriority(stream, &priority);
  EXPECT_EQ(priority, greatest);
  cudaLaunchHostFunc(stream, [](void* data) { ++*static_cast<int*>(data); }, &called);
  EXPECT_EQ(called, 1);
  cudaStreamDestroy(stream);
}

}  // namespace
