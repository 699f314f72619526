# SPDX-License-Identifier: Apache-2.0
"""The command `check`: CUDA programs that run without a GPU."""

from __future__ import annotations

import json
import tempfile
import unittest
from pathlib import Path

from program import BAD_INPUT, MACHINE_FAILED, SOME_FAIL, InFolder, run

SUM = r"""
#include <cstdio>
#include <cstdlib>
__global__ void sum(const int* x, int* out) {
  __shared__ int part[64];
  part[threadIdx.x] = x[threadIdx.x];
  %s
  if (threadIdx.x == 0) {
    int all = 0;
    for (int i = 0; i < 64; ++i) all += part[i];
    *out = all;
  }
}
int main(int argc, char** argv) {
  int host[64], all = 0, *x, *out;
  for (int& one : host) one = argc > 1 ? std::atoi(argv[1]) : 1;
  cudaMalloc(&x, sizeof host);
  cudaMalloc(&out, sizeof all);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  sum<<<1, 64>>>(x, out);
  cudaMemcpy(&all, out, sizeof all, cudaMemcpyDeviceToHost);
  std::printf("%%d\n", all);
  return all == 64 ? 0 : 7;
}
"""
MANAGED = r"""
#include <cstdio>
__global__ void twice(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }
#ifndef N
#define N 1
#endif
int main() {
  int *x, *y, *mapped;
  cudaMallocManaged(&x, 4096 * sizeof(int));
  x[0] = 1;
  twice<<<1, 32>>>(x, 1);
  cudaDeviceSynchronize();
  const int first = x[0];
  x[0] = 3;
  twice<<<1, 32>>>(x, 1);
  cudaMallocManaged(&y, sizeof(int));
  cudaMemcpy(y, x, sizeof(int), cudaMemcpyDeviceToHost);  // Behind the kernel.
  const int second = *y;
  cudaFree(x);
  cudaMallocManaged(&x, 4096 * sizeof(int));
  const int fresh = x[0];
  cudaHostAlloc(&x, 1024 * sizeof(int), cudaHostAllocMapped);
  cudaHostGetDevicePointer(&mapped, x, 0);
  x[0] = 4;
  twice<<<1, 1024>>>(mapped, 1024);
  cudaDeviceSynchronize();
  if (N > 1) twice<<<1, 1024>>>(mapped + 4096 * 1024, 1);
  cudaDeviceSynchronize();
  std::printf("%d %d %d %d\n", first, second, fresh, x[0]);
}
"""
STREAMS = r"""
__global__ void twice(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }
int main() {
  int* x;
  cudaStream_t some, other;
  cudaEvent_t done;
  cudaMalloc(&x, 64 * sizeof(int));
  cudaMemset(x, 0, 64 * sizeof(int));
  cudaStreamCreateWithFlags(&some, cudaStreamNonBlocking);
  cudaStreamCreateWithFlags(&other, cudaStreamNonBlocking);
  cudaEventCreate(&done);
  cudaDeviceSynchronize();
  twice<<<1, 32, 0, some>>>(x, 32);
  twice<<<1, 32, 0, other>>>(x + 32, 32);
  cudaEventRecord(done, some);
  if (WAITS) cudaStreamWaitEvent(other, done);
  twice<<<1, 32, 0, other>>>(x, 32);
  cudaDeviceSynchronize();
}
"""
PROFILED = r"""
__global__ void copy(const float* x, float* y, int stride) {
  int i = blockIdx.x * blockDim.x + threadIdx.x;
  y[i] = x[i * stride];
}
template <int kWidth> __global__ void columns(float* y) {
  __shared__ float tile[32 * kWidth];
  tile[threadIdx.y * kWidth + threadIdx.x] = threadIdx.x;
  __syncthreads();
  y[threadIdx.y * 32 + threadIdx.x] = tile[threadIdx.x * kWidth + threadIdx.y];
}
int main() {
  float *x, *y;
  cudaMalloc(&x, 1 << 17);
  cudaMalloc(&y, 1 << 17);
  cudaMemset(x, 0, 1 << 17);
  copy<<<4, 256>>>(x, y, 1);
  copy<<<4, 256>>>(x, y, 32);
  columns<32><<<1, dim3(32, 32)>>>(y);
  columns<33><<<1, dim3(32, 32)>>>(y);
}
"""
UNWRITTEN_COPY = r"""
#include <cstdio>
#include <ctime>
__global__ void half(float* x) { x[threadIdx.x] = 1; }
int main() {
  float h[64], *x, sum = 0;
  cudaMalloc(&x, sizeof h);
  half<<<1, 32>>>(x);
  cudaMemcpy(h, x, sizeof h, cudaMemcpyDeviceToHost);
  for (int i = 0; i < USED; ++i) sum += h[i];
  timespec now;
  clock_gettime(CLOCK_MONOTONIC, &now);
  std::printf("%g after %ld\n", sum, now.tv_nsec);
}
"""
VARIABLES = r"""
#include <cstdio>
__managed__ int count = 5;
__managed__ int values[2000];
__device__ int step = 3;
__global__ void add() { atomicAdd(&count, step); values[threadIdx.x] = threadIdx.x; }
int main() {
  count += 10;
  cudaLaunchAttribute early[1];
  early[0].id = cudaLaunchAttributeProgrammaticStreamSerialization;
  early[0].val.programmaticStreamSerializationAllowed = 1;
  cudaLaunchConfig_t config = {1, 64, 0, nullptr, early, 1};
  cudaLaunchKernelEx(&config, add);
  if (WAITS) cudaDeviceSynchronize();
  std::printf("%d %d\n", count, values[63]);
}
"""
DRIVER = r"""
#include <cuda.h>
int main() {
  CUcontext context;
  CUdeviceptr memory;
  cuInit(0);
  cuCtxCreate(&context, nullptr, 0, 0);
  return cuMemAlloc(&memory, 64) == CUDA_ERROR_NOT_SUPPORTED ? 0 : 1;
}
"""
NVRTC = r"""
#include <cuda.h>
#include <nvrtc.h>
#include <cstdio>
#include <string>
const char kText[] = "extern \"C\" __global__ void twice(int* x) { x[threadIdx.x] *= 2; }";
int main(int argc, char**) {
  nvrtcProgram program;
  const char* flags[] = {"-arch=compute_90", "-lineinfo"};
  size_t bytes = 0;
  nvrtcCreateProgram(&program, kText, "twice.cu", 0, nullptr, nullptr);
  if (nvrtcCompileProgram(program, 2, flags) != NVRTC_SUCCESS) return 1;
  nvrtcGetPTXSize(program, &bytes);
  std::string ptx(bytes, 0);
  nvrtcGetPTX(program, ptx.data());
  CUmodule module;
  CUfunction twice;
  cuModuleLoadData(&module, ptx.data());
  cuModuleGetFunction(&twice, module, "twice");
  int host[32] = {21}, *x;
  cudaMalloc(&x, sizeof host);
  cudaMemcpy(x, host, sizeof host, cudaMemcpyHostToDevice);
  void* arguments[] = {&x};
  cuLaunchKernel(twice, 1, 1, 1, 31 + argc, 1, 1, 0, nullptr, arguments, nullptr);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%d\n", host[0]);
}
"""
NESTED = r"""
__global__ void child(int* x) { x[threadIdx.x] = 1; }
__global__ void parent(int* x) { child<<<1, 32>>>(x); }
int main() { parent<<<1, 1>>>(nullptr); }
"""
# The products of all ways to transpose, beside plain loops; an argument chooses a fault.
PRODUCTS = r"""
#include <cublas_v2.h>
#include <cuda_fp16.h>
#include <cmath>
#include <cstdio>
#include <vector>
constexpr int m = 7, n = 5, k = 6;
float at(int i) { return static_cast<float>(i * 7 % 11 - 5); }
template <class T>
T* on_device(const std::vector<T>& values) {
  T* x;
  cudaMalloc(&x, values.size() * sizeof(T));
  cublasSetVector(values.size(), sizeof(T), values.data(), 1, x, 1);
  return x;
}
int main(int argc, char** argv) {
  const char fault = argc > 1 ? argv[1][0] : '-';
  std::vector<float> a, b, c, got(m * n);
  std::vector<__half> half;
  for (int i = 0; i < m * k; ++i) a.push_back(at(i)), half.push_back(__float2half(at(i)));
  for (int i = 0; i < k * n; ++i) b.push_back(at(i + 3));
  for (int i = 0; i < m * n; ++i) c.push_back(at(i + 8));
  float *x = on_device(a), *y = on_device(b), *z = nullptr, *fresh, two = 2, minus = -1, zero = 0;
  __half* h = on_device(half);
  cublasHandle_t handle;
  cublasCreate(&handle);
  double worst = 0;
  for (int way = 0; way < 4; ++way) {
    const bool ta = way & 1, tb = way & 2;
    z = on_device(c);
    cublasSgemm(handle, ta ? CUBLAS_OP_T : CUBLAS_OP_N, tb ? CUBLAS_OP_T : CUBLAS_OP_N, m, n, k,
                &two, x, ta ? k : m, y, tb ? n : k, &minus, z, m);
    cublasGetMatrix(m, n, sizeof(float), z, m, got.data(), m);
    for (int i = 0; i < m * n; ++i) {
      double sum = 0;
      for (int l = 0; l < k; ++l) {
        const int row = i % m, column = i / m;
        sum += a[ta ? row * k + l : l * m + row] * b[tb ? l * n + column : column * k + l];
      }
      worst = std::fmax(worst, std::fabs(2 * sum - c[i] - got[i]));
    }
  }
  cublasGemmEx(handle, CUBLAS_OP_N, CUBLAS_OP_T, 1, 1, k, &two, h, CUDA_R_16F, m, h, CUDA_R_16F, m,
               &zero, z, CUDA_R_32F, 1, CUBLAS_COMPUTE_32F, CUBLAS_GEMM_DEFAULT);
  cudaMemcpy(got.data(), z, sizeof(float), cudaMemcpyDeviceToHost);
  double square = 0;
  for (int l = 0; l < k; ++l) square += 2 * a[l * m] * a[l * m];
  std::printf("%g %d %s\n", worst, got[0] == square, cublasGetStatusName(CUBLAS_STATUS_SUCCESS));
  cudaMalloc(&fresh, m * k * sizeof(float));
  const auto multiply = [&](int columns, const float* left) {
    cublasSgemm(handle, CUBLAS_OP_N, CUBLAS_OP_N, m, columns, k, &two, left, m, y, k, &zero, z, m);
  };
  if (fault == 'u') multiply(n, fresh);
  if (fault == 'o') multiply(n + 1, x);
  if (fault == 'd') cublasSdot(handle, k, x, 1, y, 1, &two);
  cudaMemcpy(got.data(), z, sizeof(float), cudaMemcpyDeviceToHost);
  std::printf("%g\n", got[0]);
  cublasDestroy(handle);
}
"""
GRAPH = r"""
#include <cstdio>
__global__ void twice(int* x, int n) { if (threadIdx.x < n) x[threadIdx.x] *= 2; }
int main(int argc, char**) {
  int *host, *x, calls = 0;
  cudaStream_t stream;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaMallocHost(&host, 32 * sizeof(int));
  cudaMalloc(&x, 32 * sizeof(int));
  cudaStreamCreate(&stream);
  for (int i = 0; i < 32; ++i) host[i] = i;
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaMemcpyAsync(x, host, 32 * sizeof(int), cudaMemcpyHostToDevice, stream);
  twice<<<1, 64, 0, stream>>>(x, argc > 1 ? 33 : 32);
  cudaMemcpyAsync(host, x, 32 * sizeof(int), cudaMemcpyDeviceToHost, stream);
  cudaLaunchHostFunc(stream, [](void* data) { ++*static_cast<int*>(data); }, &calls);
  twice<<<1, 32, 0, stream>>>(x, 1);
  cudaStreamEndCapture(stream, &graph);
  std::printf("%d %d\n", host[5], calls);
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(exec, stream);
  cudaStreamSynchronize(stream);
  std::printf("%d %d\n", host[5], calls);
  cudaGraphExecDestroy(exec);
  cudaGraphDestroy(graph);
}
"""
FORKED_GRAPH = r"""
#include <cstdio>
__global__ void add(int* x) { x[threadIdx.x] += 1; }
int main(int argc, char**) {
  int host[32] = {}, *x;
  cudaStream_t stream, other;
  cudaEvent_t begun, done;
  cudaGraph_t graph;
  cudaGraphExec_t exec;
  cudaMalloc(&x, sizeof host);
  cudaMemset(x, 0, sizeof host);
  cudaStreamCreate(&stream);
  cudaStreamCreate(&other);
  cudaEventCreate(&begun);
  cudaEventCreate(&done);
  cudaStreamBeginCapture(stream, cudaStreamCaptureModeGlobal);
  cudaEventRecord(begun, stream);
  cudaStreamWaitEvent(other, begun);
  add<<<1, 32, 0, other>>>(x);
  if (argc > 1) cudaMemcpyAsync(host, x, sizeof host, cudaMemcpyDeviceToHost, other);
  cudaEventRecord(done, other);
  cudaStreamWaitEvent(stream, done);
  add<<<1, 32, 0, stream>>>(x);
  cudaStreamEndCapture(stream, &graph);
  cudaGraphInstantiate(&exec, graph, 0);
  for (int i = 0; i < 3; ++i) cudaGraphLaunch(exec, stream);
  cudaMemcpy(host, x, sizeof host, cudaMemcpyDeviceToHost);
  std::printf("%d\n", host[5]);
}
"""
PHASES = r"""
#include <cuda/barrier>
#include <cstdio>
#pragma nv_diag_suppress static_var_with_dynamic_init
__global__ void sum(int* out) {
  __shared__ cuda::barrier<cuda::thread_scope_block> arrived;
  __shared__ int part[64];
  if (threadIdx.x == 0) init(&arrived, blockDim.x);
  __syncthreads();
  for (int k = 0; k < 3; ++k) {
    part[threadIdx.x] = threadIdx.x + k;
    auto token = arrived.arrive();
    if (WAITS) arrived.wait(std::move(token));
    const int x = part[(threadIdx.x + 33) % 64];
    arrived.arrive_and_wait();
    atomicAdd(out, x);
  }
}
int main() {
  int *x, all;
  cudaMalloc(&x, sizeof all);
  cudaMemset(x, 0, sizeof all);
  sum<<<1, 64>>>(x);
  cudaMemcpy(&all, x, sizeof all, cudaMemcpyDeviceToHost);
  std::printf("%d\n", all);
}
"""
RIGHT, RACING = SUM % "__syncthreads();", SUM % ";"


class CheckTest(InFolder):
    def check(self, text: str, *options: object) -> tuple[int, str, str]:
        self.write("program.cu", text)
        done = run("check", "program.cu", *options, cwd=self.folder)
        return done.returncode, done.stdout, done.stderr

    def test_a_right_program_has_its_own_output_and_no_finding(self) -> None:
        code, out, err = self.check(RIGHT)
        self.assertEqual((code, out.splitlines()[0]), (0, "64"), err)
        self.assertIn("0 findings in 1 launch; the program ended with exit code 0", out)

    def test_a_race_is_found_with_its_line(self) -> None:
        code, out, _ = self.check(RACING)
        self.assertEqual(code, SOME_FAIL)
        self.assertIn("program.cu:10: shared_race in sum", out)
        self.assertIn("hint: ", out)

    def test_findings_are_json_where_asked_for(self) -> None:
        code, out, err = self.check(RACING, "--json", "--", "1")
        found = json.loads(out)
        self.assertEqual((code, found["schema"], found["launches"]), (3, "musacoder-check/1", 1))
        self.assertEqual(found["findings"][0]["file"], "program.cu")
        self.assertRegex(err, r"(?m)^\d+$")

    def test_arguments_are_the_programs(self) -> None:
        code, out, _ = self.check(RIGHT, "--", "2")
        self.assertEqual((code, out.splitlines()[0]), (MACHINE_FAILED, "128"))
        self.assertIn("the program ended with exit code 7", out)

    def test_what_kernels_print_is_shown(self) -> None:
        kernel = '__global__ void k() { printf("thread %d\\n", threadIdx.x); }\n'
        code, out, _ = self.check("#include <cstdio>\n" + kernel + "int main() { k<<<1, 2>>>(); }")
        self.assertEqual((code, out.splitlines()[:2]), (0, ["thread 0", "thread 1"]))

    def test_a_program_that_does_not_compile_is_refused(self) -> None:
        code, _, err = self.check("int main() { nowhere(); }")
        self.assertEqual(code, BAD_INPUT)
        self.assertIn('identifier "nowhere" is undefined', err)
        self.assertTrue(err.endswith("musacoder: the program does not compile\n"))

    def test_a_python_module_is_refused_with_the_command_for_it(self) -> None:
        self.write("model.py", "x = 1\n")
        done = run("check", "model.py", cwd=self.folder)
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("musacoder eval judges a Python module", done.stderr)
        self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)

    def test_streams_that_nothing_orders_race(self) -> None:
        code, out, _ = self.check(STREAMS, "-X-DWAITS=0")
        self.assertEqual(code, SOME_FAIL)
        self.assertIn("program.cu:17: stream_race in twice\n", out)
        code, out, _ = self.check(STREAMS, "-X-DWAITS=1")
        self.assertEqual(code, 0, out)

    def test_a_profile_has_sectors_and_passes_of_each_kernel(self) -> None:
        code, out, err = self.check(PROFILED, "--profile", "--json")
        self.assertEqual(code, 0, err)
        profile = {one["kernel"]: one for one in json.loads(out)["profile"]}
        copies = profile["copy"]
        self.assertEqual((copies["launches"], copies["threads"]), (2, 2048))
        self.assertEqual(copies["loads"]["sectors"], 32 * 4 + 32 * 32)
        self.assertEqual(copies["stores"]["sectors_per_request"], 4)
        self.assertEqual(copies["sectors"], 32 * 4 + 32 * 32 + 64 * 4)
        conflicts = sorted(one["bank_conflicts"] for one in profile.values())
        self.assertEqual(conflicts, [0, 1, 16.5])
        self.assertNotIn("copy ", self.check(PROFILED)[1])

    def test_unwritten_bytes_count_where_the_output_follows_from_them(self) -> None:
        code, out, _ = self.check(UNWRITTEN_COPY, "-X-DUSED=64")
        self.assertEqual(code, SOME_FAIL)
        self.assertIn("program.cu:9: uninitialised_copy", out)
        code, out, _ = self.check(UNWRITTEN_COPY, "-X-DUSED=32")
        self.assertEqual(code, 0, out)

    def test_folders_of_headers_may_be_relative(self) -> None:
        (self.folder / "inc").mkdir()
        (self.folder / "inc/own.h").write_text("constexpr int kCode = 5;\n")
        code, out, err = self.check('#include "own.h"\nint main() { return kCode; }', "-X-Iinc")
        self.assertEqual(code, MACHINE_FAILED, err)
        self.assertIn("the program ended with exit code 5", out)
        done = run("check", "-X-Iinc", "program.cu", "--", "1", cwd=self.folder)
        self.assertIn("the program ended with exit code 5", done.stdout)

    def test_a_copy_from_nowhere_is_the_programs_error(self) -> None:
        code, out, _ = self.check("#include <cstdio>\nint main() { int* d; cudaMalloc(&d, 4);"
                                  ' std::printf("%d\\n", cudaMemcpy(d, nullptr, 4,'
                                  " cudaMemcpyHostToDevice)); }")  # fmt: skip
        self.assertEqual((code, out.splitlines()[0]), (0, "1"))

    def test_what_the_device_lacks_is_named(self) -> None:
        program = "int main() { cudaIpcMemHandle_t h; return cudaIpcGetMemHandle(&h, 0); }"
        code, _, err = self.check(program)
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("cudaIpcGetMemHandle", err)

    def test_calls_of_the_driver_are_refused_by_name(self) -> None:
        code, _, err = self.check(DRIVER, "-X-lcuda")
        self.assertEqual(code, BAD_INPUT)
        lacks = [line for line in err.splitlines() if "the device lacks" in line]
        self.assertEqual([line.rpartition(" ")[2] for line in lacks], ["cuCtxCreate_v4"])

    def test_kernels_that_nvrtc_compiles_are_checked(self) -> None:
        code, out, err = self.check(NVRTC, "-X-lnvrtc", "-X-lcuda")
        self.assertEqual((code, out.splitlines()[0]), (0, "42"), err)
        code, out, _ = self.check(NVRTC, "-X-lnvrtc", "-X-lcuda", "--", "1")
        self.assertEqual(code, SOME_FAIL)
        self.assertIn("twice.cu:1: out_of_bounds_read in twice", out)

    def test_nested_launches_are_refused_by_name(self) -> None:
        code, _, err = self.check(NESTED, "-X-rdc=true")
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("-rdc=true: relocatable device code (nested launches, ", err)
        code, _, err = self.check(NESTED)
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("kernel launch from __device__ or __global__ functions", err)

    def test_products_of_cublas_are_computed_and_checked(self) -> None:
        code, out, err = self.check(PRODUCTS, "-X-lcublas")
        self.assertEqual((code, out.splitlines()[0]), (0, "0 1 CUBLAS_STATUS_SUCCESS"), out + err)
        for fault, found in (("u", "uninitialised_copy"), ("o", "out_of_bounds_read")):
            code, out, _ = self.check(PRODUCTS, "-X-lcublas", "--", fault)
            self.assertEqual(code, SOME_FAIL)
            line = next(number for number, text in enumerate(PRODUCTS.splitlines(), 1)
                        if "cublasSgemm(handle, CUBLAS_OP_N" in text)  # fmt: skip
            self.assertRegex(out, f"program.cu:({line}|{line + 1}): {found} in .gemm.")
        code, out, err = self.check(PRODUCTS, "-X-lcublas", "--", "d")
        self.assertEqual(code, BAD_INPUT, out)
        self.assertEqual(err.count("the device lacks: "), 1, err)
        self.assertIn("the device lacks: cublasSdot_v2 of a library", err)

    def test_a_graph_has_copies_and_functions_of_the_host(self) -> None:
        code, out, err = self.check(GRAPH)
        self.assertEqual((code, out.splitlines()[:2]), (0, ["5 0", "40 3"]), err)
        code, out, _ = self.check(GRAPH, "--", "1")
        self.assertEqual(code, SOME_FAIL)
        self.assertIn("program.cu:3: out_of_bounds_read in twice", out)

    def test_a_graph_of_two_streams_runs_without_copies_of_the_host(self) -> None:
        code, out, err = self.check(FORKED_GRAPH)
        self.assertEqual((code, out.splitlines()[0]), (0, "6"), out + err)
        code, _, err = self.check(FORKED_GRAPH, "--", "1")
        self.assertEqual(code, BAD_INPUT)
        self.assertIn("the device lacks: a copy to the host in a graph", err)

    def test_barriers_of_shared_memory_order_what_they_separate(self) -> None:
        code, out, err = self.check(PHASES, "-X-DWAITS=1")
        self.assertEqual((code, out.splitlines()[0]), (0, "6240"), out + err)
        code, out, _ = self.check(PHASES, "-X-DWAITS=0")
        self.assertEqual(code, SOME_FAIL)
        self.assertIn("program.cu:11: shared_race in sum", out)

    def test_managed_and_mapped_memory_is_the_hosts_too(self) -> None:
        code, out, err = self.check(MANAGED)
        self.assertEqual((code, out.splitlines()[0]), (0, "2 6 0 8"), out + err)
        code, out, _ = self.check(MANAGED, "-X-DN=2")
        self.assertEqual(code, SOME_FAIL)
        self.assertIn("program.cu:3: out_of_bounds_read in twice", out)

    def test_managed_variables_are_the_hosts_once_it_waited(self) -> None:
        code, out, err = self.check(VARIABLES, "-X-DWAITS=1")
        self.assertEqual((code, out.splitlines()[0]), (0, "207 63"), out + err)
        code, out, _ = self.check(VARIABLES, "-X-DWAITS=0")
        self.assertEqual(code, SOME_FAIL)
        self.assertIn("program.cu:15: host_race", out)

    def test_a_hanging_kernel_a_crash_and_a_hanging_program_end(self) -> None:
        hang = "__global__ void k(volatile int* x) { while (*x == 0); }\nint main() { int* p;"
        hang += " cudaMalloc(&p, 4); cudaMemset(p, 0, 4); k<<<1, 32>>>(p); }"
        code, out, _ = self.check(hang, "--timeout", "10")
        self.assertEqual(code, SOME_FAIL)
        self.assertIn("program.cu:1: step_limit in k", out)
        code, out, _ = self.check("int main() { *(volatile int*)0 = 1; }")
        self.assertEqual(code, MACHINE_FAILED)
        self.assertIn("signal 11", out)
        code, out, _ = self.check("int main() { while (true); }", "--timeout", "1")
        self.assertEqual(code, MACHINE_FAILED)
        self.assertIn("the program ended with time limit", out)

    def test_programs_of_a_command_are_checked_as_they_run(self) -> None:
        self.write("right.cu", RIGHT)
        self.write("racing.cu", RACING)
        make = "all: right racing\n\t./right 1\n\t./racing 1 || true\n"
        make += "%: %.cu\n\tnvcc -O2 -arch=sm_70 -o $@ $<\n"
        self.write("Makefile", make)
        done = run("check", "--schedules", 2, "--sarif", "found.sarif", "--", "make",
                   cwd=self.folder)  # fmt: skip
        self.assertEqual(done.returncode, SOME_FAIL, done.stderr)
        self.assertRegex(done.stdout, r"(?m)^64$")
        self.assertIn("racing.cu:10: shared_race in sum", done.stdout)
        self.assertNotIn("right.cu:", done.stdout)
        end = "in 4 launches; 2 programs; make ended with exit code 0"
        self.assertIn(end, done.stdout.splitlines()[-1])
        result, *_ = json.loads((self.folder / "found.sarif").read_text())["runs"][0]["results"]
        place = result["locations"][0]["physicalLocation"]
        self.assertEqual(place["artifactLocation"]["uri"], "racing.cu")

    def test_a_command_without_such_programs_and_relocatable_code_are_named(self) -> None:
        done = run("check", "--", "true", cwd=self.folder)
        self.assertEqual(done.returncode, BAD_INPUT)
        self.assertIn("no program was checked", done.stderr)
        self.write("a.cu", "")
        done = run("check", "--", "nvcc", "-rdc=true", "a.cu", cwd=self.folder)
        self.assertEqual(done.returncode, MACHINE_FAILED)
        self.assertIn("-rdc=true: relocatable device code", done.stderr)

    def test_the_programs_to_teach_with_have_their_fault_where_they_say(self) -> None:
        faulty = Path(__file__).resolve().parents[2] / "examples/faulty"
        sources = sorted(faulty.glob("*.cu"))
        self.assertEqual(len(sources), 6)
        rule = "all:" + "".join(f" {path.stem}" for path in sources) + "\n"
        rule += f"%: {faulty}/%.cu\n\tnvcc -o $@ $< && ./$@\n"
        self.write("Makefile", rule)
        done = run("check", "--json", "--", "make", cwd=self.folder)
        found = {(Path(one["file"]).name, one["line"], one["kind"])
                 for one in json.loads(done.stdout.splitlines()[-1])["findings"]}  # fmt: skip
        for path in sources:
            (mark,) = [(number, line.split("// Finding: ")[1])
                       for number, line in enumerate(path.read_text().splitlines(), 1)
                       if "// Finding: " in line]  # fmt: skip
            self.assertIn((path.name, *mark), found)

    def test_nothing_is_left_behind(self) -> None:
        before = set(Path(tempfile.gettempdir()).glob("mc-check*"))
        self.check(RACING)
        self.assertEqual(set(Path(tempfile.gettempdir()).glob("mc-check*")) - before, set())
        self.assertEqual([path.name for path in self.folder.iterdir()], ["program.cu"])

    def test_wrong_options_are_one_line(self) -> None:
        for options in (["nothere.cu"], ["program.cu", "--timeout", "0"], []):
            self.write("program.cu", RIGHT)
            done = run("check", *options, cwd=self.folder)
            self.assertEqual(done.returncode, BAD_INPUT)
            self.assertEqual(len(done.stderr.splitlines()), 1, done.stderr)


if __name__ == "__main__":
    unittest.main()
