// SPDX-License-Identifier: Apache-2.0
#include "task/verdict_generator.h"

#include <array>
#include <cmath>
#include <random>
#include <string>
#include <vector>

#include "core/check.h"

namespace mc::task {
namespace {

class Generator {
 public:
  explicit Generator(uint64_t seed) : random_(seed) {}

  Verdict verdict(size_t outcome_index) {
    Verdict v{text(), text(), text(), backend(), random_(), protocol(), task_grade(), {}, {}};
    v.outcome = outcome(outcome_index);
    v.telemetry = telemetry();
    return v;
  }

 private:
  const std::string& one_of(const std::vector<std::string>& names) {
    return names[below(names.size())];
  }
  Protocol protocol() {
    static const std::vector<std::string> kTimings = {"full", "quick", "none"};
    const Correctness correctness{small(),         one_of(input_sets()), coin(), coin(),
                                  one_of(modes()), one_of(precisions()), real(), real()};
    return {text(),           kDialects[below(2)],
            text(),           correctness,
            one_of(kTimings), text(),
            text(),           coin(),
            coin(),           text()};
  }
  TaskGrade task_grade() {
    static const std::vector<std::string> kGrades = {"", "good", "weak", "trivial"};
    return {one_of(kGrades), some(&Generator::text)};
  }
  size_t below(size_t n) { return random_() % n; }
  bool coin() { return below(2) == 0; }
  int small() { return static_cast<int>(below(1000)); }
  int64_t wide() { return static_cast<int64_t>(random_()); }
  double real() {
    return std::ldexp(static_cast<double>(wide()), static_cast<int>(below(200)) - 160);
  }
  Backend backend() { return static_cast<Backend>(below(3)); }

  std::string text() {
    static const std::vector<std::string> kParts = {
        "row_sum",  " ",   "\n",       "\t", "\"",         "\\",  std::string(1, '\0'),
        "\x1b[31m", "é",   "カーネル", "😀", "<|im_end|>", "```", "}",
        "-0",       "\x7f"};
    std::string out;
    for (size_t n = below(6); n > 0; --n) out += kParts[below(kParts.size())];
    return out;
  }
  std::map<std::string, int64_t> numbers() {
    std::map<std::string, int64_t> out;
    for (size_t n = below(3); n > 0; --n) out[text()] = wide();
    return out;
  }
  template <typename T>
  std::vector<T> some(T (Generator::*make)()) {
    std::vector<T> out;
    for (size_t n = below(3); n > 0; --n) out.push_back((this->*make)());
    return out;
  }

  // Brace-initialised in the order of the members; a missing one is a warning of the compiler.
  SourceLocation location() { return {text(), small(), small(), text()}; }
  Diagnostic diagnostic() { return {text(), text(), location()}; }
  RuleFinding rule_finding() { return {text(), text(), location()}; }
  std::array<int64_t, 3> triple() { return {wide(), wide(), wide()}; }
  KernelFinding kernel_finding() {
    return {text(), text(), triple(), triple(), text(), location(), location()};
  }
  Mismatch mismatch() { return {some(&Generator::wide), text(), text()}; }
  OutputCheck check() {
    return {text(),    text(), text(), wide(), wide(), real(), real(), some(&Generator::mismatch),
            numbers(), text()};
  }
  Trial trial() {
    return {small(),
            text(),
            text(),
            numbers(),
            text(),
            coin(),
            some(&Generator::check),
            some(&Generator::kernel_finding),
            text()};
  }
  Exception exception() { return {text(), text(), location(), some(&Generator::location)}; }
  Estimate estimate() { return {real(), real(), real()}; }
  KernelTime kernel_time() {
    return {text(),   text(), real(), real(), real(), triple(),
            triple(), wide(), wide(), wide(), real()};
  }
  Floor floor() { return {real(), text(), wide(), real(), real(), real()}; }
  Clocks clocks() { return {wide(), wide(), wide(), some(&Generator::text)}; }
  Timing timing() {
    return {text(), text(), wide(), wide(), wide(), coin(), some(&Generator::text), clocks()};
  }
  Performance performance() {
    return {estimate(),
            maybe(&Generator::estimate),
            estimate(),
            estimate(),
            maybe(&Generator::estimate),
            timing(),
            real(),
            wide(),
            wide(),
            some(&Generator::kernel_time),
            floor()};
  }
  StageTime stage_time() { return {text(), real()}; }
  Audit audit() { return {text(), text(), text()}; }
  Telemetry telemetry() {
    return {some(&Generator::stage_time),
            some(&Generator::text),
            numbers(),
            {numbers(), numbers(), text()},
            text(),
            wide(),
            coin(),
            real(),
            some(&Generator::text),
            text(),
            some(&Generator::audit),
            {some(&Generator::text), some(&Generator::text), some(&Generator::text)},
            some(&Generator::location)};
  }
  template <typename T>
  std::optional<T> maybe(T (Generator::*make)()) {
    if (coin()) return std::nullopt;
    return (this->*make)();
  }

  Outcome outcome(size_t index) {
    switch (index) {
      case 0:
        return Unextractable{text(), text(), location()};
      case 1:
        return Illegal{text(), some(&Generator::rule_finding)};
      case 2:
        return CompileFailed{some(&Generator::diagnostic)};
      case 3:
        return Crashed{text(),  maybe(&Generator::exception),     small(),
                       small(), some(&Generator::kernel_finding), some(&Generator::trial)};
      case 4:
        return TimedOut{text(), real(), some(&Generator::kernel_finding)};
      case 5:
        return OutOfMemory{text(), wide()};
      case 6:
        return Wrong{static_cast<double>(below(5)) / 5, coin(), some(&Generator::trial)};
      case 7:
        return Passed{some(&Generator::trial), maybe(&Generator::performance),
                      static_cast<double>(below(5)) / 4};
      case 8:
        return Unsupported{some(&Generator::rule_finding)};
      case 9:
        return Infra{text()};
    }
    MC_CHECK(index < std::variant_size_v<Outcome>);
    return {};
  }

  std::mt19937_64 random_;
};

}  // namespace

Verdict generate_verdict(uint64_t seed, size_t outcome_index) {
  return Generator(seed).verdict(outcome_index);
}

}  // namespace mc::task
