// SPDX-License-Identifier: Apache-2.0
//
// The rate of the line protocol alone: a verifier that passes everything at once.
#include <sstream>
#include <string>

#include <benchmark/benchmark.h>

#include "service/stream.h"

namespace mc::service {
namespace {

class NoOp final : public Verifier {
 public:
  Result<eval::Preparation> run(const Request& request) override {
    task::Verdict verdict;
    verdict.task = request.task.id;
    verdict.candidate = request.candidate.id;
    verdict.outcome = task::Passed{};
    return eval::Preparation(std::move(verdict));
  }
};

// Requests with 4 KB of code and answer, all different and all open at once.
void BM_Stream(benchmark::State& state) {
  const auto count = static_cast<int>(state.range(0));
  const std::string code(1'500, 'c'), answer(2'500, 'a');
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const std::string id = std::to_string(i);
    lines += R"({"id":")" + id + R"(","task":{"id":"t","code":")" + code + R"("},"answer":")" +
             answer + id + "\"}\n";
  }
  NoOp verifier;
  for (auto _ : state) {
    std::istringstream in(lines);
    std::ostringstream out;
    serve_stream(in, out, verifier, {.jobs = 2});
    benchmark::DoNotOptimize(out);
  }
  state.SetItemsProcessed(state.iterations() * count);
}
BENCHMARK(BM_Stream)->Arg(1'000)->Arg(100'000)->Unit(benchmark::kMillisecond)->UseRealTime();

}  // namespace
}  // namespace mc::service
