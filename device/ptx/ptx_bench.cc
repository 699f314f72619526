// SPDX-License-Identifier: Apache-2.0
//
// How fast kernels run with all checks, on one worker, so that figures are CPU time. Items are
// elements or multiply-adds as the name says.
#include <benchmark/benchmark.h>

#include <fstream>
#include <sstream>

#include "core/check.h"
#include "ptx/device.h"

namespace mc::ptx {
namespace {

constexpr int kElements = 1 << 20;
constexpr int kSide = 256;

std::string read_testdata(const std::string& name) {
  std::ifstream file(std::string(MC_PTX_DIR) + "/testdata/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

// A device with a module and three arrays of ones.
struct Bench {
  std::unique_ptr<Device> device;
  ModuleId module = 0;
  uint64_t a = 0, b = 0, c = 0;

  Bench(const std::string& file, float value) {
    DeviceOptions options;
    options.memory_bytes = 64 << 20;
    auto created = Device::create(options);
    MC_CHECK(created);
    device = std::move(created).value();
    auto loaded = device->load(read_testdata(file));
    MC_CHECK(loaded);
    module = *loaded;
    const std::vector<float> values(kElements, value);
    const auto bytes = std::as_bytes(std::span(values));
    for (uint64_t* address : {&a, &b, &c}) {
      *address = device->allocate(bytes.size(), "array").value();
      MC_CHECK(device->copy_in(*address,
                               {reinterpret_cast<const uint8_t*>(bytes.data()), bytes.size()}));
    }
  }

  void run(benchmark::State& state, LaunchOptions options, int64_t items) {
    options.module = module;
    options.checks_races = state.range(0) != 0;
    for (auto _ : state) {
      const auto report = device->launch(options);
      MC_CHECK(report && report->findings.empty());
    }
    state.SetItemsProcessed(state.iterations() * items);
  }
};

Bench& basic() {
  static Bench bench("basic.ptx", 1);
  return bench;
}

// Kernels of rows or of single elements, with blocks of 256 threads.
void elements(benchmark::State& state, const char* kernel, uint32_t blocks, Arguments arguments) {
  basic().run(state,
              {.kernel = kernel,
               .grid = {blocks, 1, 1},
               .block = {256, 1, 1},
               .shared_bytes = 1024,
               .arguments = std::move(arguments)},
              kElements);
}

void ElementwiseElements(benchmark::State& state) {
  const Bench& m = basic();
  elements(state, "add", kElements / 256, Arguments().add(m.a).add(m.b).add(m.c).add(kElements));
}

// The same into memory that is new for each launch, as a tensor's is.
void NewOutputElements(benchmark::State& state) {
  const Bench& m = basic();
  for (auto _ : state) {
    const uint64_t c = m.device->allocate(kElements * sizeof(float), "output").value();
    const auto report =
        m.device->launch({.module = m.module,
                          .kernel = "add",
                          .grid = {kElements / 256, 1, 1},
                          .block = {256, 1, 1},
                          .arguments = Arguments().add(m.a).add(m.b).add(c).add(kElements),
                          .checks_races = state.range(0) != 0});
    MC_CHECK(report && report->findings.empty());
    MC_CHECK(m.device->release(c));
  }
  state.SetItemsProcessed(state.iterations() * kElements);
}

void GeluElements(benchmark::State& state) {
  elements(state, "gelu", kElements / 256,
           Arguments().add(basic().a).add(basic().c).add(kElements));
}

void ReductionElements(benchmark::State& state) {
  elements(state, "row_sums", 256, Arguments().add(basic().a).add(basic().c).add(kElements / 256));
}

void SoftmaxElements(benchmark::State& state) {
  elements(state, "softmax", 256, Arguments().add(basic().a).add(basic().c).add(kElements / 256));
}

void matmul(benchmark::State& state, const char* kernel, uint32_t tile,
            std::array<uint32_t, 3> block) {
  Bench& m = basic();
  Arguments arguments;
  arguments.add(m.a).add(m.b).add(m.c).add(kSide);
  const uint32_t tiles = kSide / tile;
  m.run(state,
        {.kernel = kernel, .grid = {tiles, tiles, 1}, .block = block, .arguments = arguments},
        int64_t{kSide} * kSide * kSide);
}

void TiledMatmulMultiplyAdds(benchmark::State& state) {
  matmul(state, "tiled_matmul", 16, {16, 16, 1});
}

void RegisterMatmulMultiplyAdds(benchmark::State& state) {
  matmul(state, "register_matmul", 64, {256, 1, 1});
}

void MmaMatmulMultiplyAdds(benchmark::State& state) {
  // The halves have the bits of small floats; their values do not matter.
  static Bench bench("matrix.ptx", 0.5F);
  Arguments arguments;
  arguments.add(bench.a).add(bench.b).add(bench.c).add(kSide);
  bench.run(state,
            {.kernel = "mma_matmul",
             .grid = {kSide / 64, kSide / 64, 1},
             .block = {128, 1, 1},
             .arguments = arguments},
            int64_t{kSide} * kSide * kSide);
}

// The argument enables the race checks.
BENCHMARK(ElementwiseElements)->Arg(1)->Arg(0)->MeasureProcessCPUTime();
BENCHMARK(NewOutputElements)->Arg(1)->Arg(0)->MeasureProcessCPUTime();
BENCHMARK(ReductionElements)->Arg(1)->Arg(0)->MeasureProcessCPUTime();
BENCHMARK(SoftmaxElements)->Arg(1)->Arg(0)->MeasureProcessCPUTime();
BENCHMARK(GeluElements)->Arg(1)->Arg(0)->MeasureProcessCPUTime();
BENCHMARK(TiledMatmulMultiplyAdds)->Arg(1)->Arg(0)->MeasureProcessCPUTime();
BENCHMARK(MmaMatmulMultiplyAdds)->Arg(1)->Arg(0)->MeasureProcessCPUTime();
BENCHMARK(RegisterMatmulMultiplyAdds)->Arg(1)->Arg(0)->MeasureProcessCPUTime();

}  // namespace
}  // namespace mc::ptx

BENCHMARK_MAIN();
