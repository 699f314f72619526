// SPDX-License-Identifier: Apache-2.0
//
// Case: a kernel with its input, and how its output is compared between two machines.
//
// Each kernel is `.entry NAME(.param .u64 in, .param .u64 out)`. Its output is a row of records,
// one for each thread, and a Column describes one value of a record: its type and how far two
// machines may differ. NaNs of a float column are equal to each other, as the ISA leaves their bits
// open. Many cases share one PTX module, so that a GPU's compiler is started once for all of them.
//
//   MC_TRY(const CaseRunner runner, CaseRunner::create(module), "load");
//   const auto a = runner.run_executor(module.cases[0]), b = runner.run_reference(module.cases[0]);
//   if (a && b) puts(describe_difference(module.cases[0], *a, *b).c_str());
#ifndef MC_PTX_TESTING_CASE_H_
#define MC_PTX_TESTING_CASE_H_

#include <array>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "ptx/device.h"
#include "ptx/module.h"

namespace mc::ptx {

// The permitted difference of two results; satisfying one of the two bounds suffices.
struct Tolerance {
  int64_t ulp = 0;
  double absolute = 0;
};

// One value of each record.
struct Column {
  std::string name;
  Type type = Type::kB32;
  int64_t offset = 0;
  int64_t stride = 0;  // Bytes from one record to the next.
  Tolerance tolerance;
};

struct Case {
  std::string name;  // Also the kernel's.
  std::string text;  // The kernel, without the module's head.
  std::array<uint32_t, 3> grid = {1, 1, 1};
  std::array<uint32_t, 3> block = {1, 1, 1};
  std::vector<uint8_t> input;
  std::vector<Column> operands;  // Columns of the input, for messages. May be empty.
  int64_t output_bytes = 0;
  std::vector<Column> results;
  int64_t num_records = 0;
};

struct CaseModule {
  std::string name;
  std::string head;  // Version, target, functions and variables that the kernels share.
  std::vector<Case> cases;
  std::string text() const;
};

// A source of random numbers that is the same everywhere.
class Random {
 public:
  explicit Random(uint64_t seed) : state_(seed) {}
  uint64_t bits();
  // From 0 to below count. REQUIRES: count > 0.
  uint64_t below(uint64_t count) { return bits() % count; }
  bool has_chance(uint64_t percent) { return below(100) < percent; }

 private:
  uint64_t state_;
};

// Empty if both outputs are equal within the tolerances; otherwise the first difference, with its
// operands, and the number of differing records.
std::string describe_difference(const Case& one, std::span<const uint8_t> expected,
                                std::span<const uint8_t> actual);

// Runs the cases of one module by the executor and by the reference.
class CaseRunner {
 public:
  // Returns kInvalidInput if the module does not parse.
  static Result<CaseRunner> create(const CaseModule& module, DeviceOptions options = {});
  // Returns the output, or an error if the executor refuses the kernel or finds a fault.
  Result<std::vector<uint8_t>> run_executor(const Case& one) const;
  Result<std::vector<uint8_t>> run_reference(const Case& one) const;

 private:
  CaseRunner() = default;
  std::unique_ptr<Module> parsed_;
  std::unique_ptr<Device> device_;
  ModuleId id_ = 0;
};

// A kernel for each form of an instruction, with edges of its types and random values as operands,
// and kernels of memory, atomics, meetings, branches and calls.
std::vector<CaseModule> table_cases();

struct GenerateOptions {
  uint64_t seed = 1;
  int count = 0;
  // Parts of forms that the kernels do not have ("mad24"). "atom" leaves out all atomics.
  std::vector<std::string> without;
};

// Random kernels, determined by the seed. Results of approximate instructions only go to the
// output, so that all other values are exact.
std::vector<CaseModule> generate_cases(const GenerateOptions& options);

}  // namespace mc::ptx

#endif  // MC_PTX_TESTING_CASE_H_
