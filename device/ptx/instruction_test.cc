// SPDX-License-Identifier: Apache-2.0
#include <gmock/gmock.h>

#include <bit>
#include <cmath>

#include "ptx/instruction_table.h"
#include "ptx/test_device.h"

namespace mc::ptx {
namespace {

using testing::IsEmpty;

class Instructions : public Kernels {
 protected:
  std::vector<uint64_t> results_of(size_t row) {
    const TableRow& one = instruction_table()[row];
    const uint64_t d = put(std::vector<uint64_t>(kTableThreads), "d");
    Arguments arguments;
    arguments.add(d);
    const int sources = static_cast<int>(std::string(one.registers).size()) - 1;
    for (int k = 0; k < 3; ++k) {
      arguments.add(k < sources ? put(table_inputs(one, k), "source") : d);
    }
    const LaunchReport report = launch({.kernel = "row_" + std::to_string(row),
                                        .block = {kTableThreads, 1, 1},
                                        .arguments = arguments});
    EXPECT_THAT(lines_of(report.findings), IsEmpty()) << one.instruction;
    return get<uint64_t>(d, kTableThreads);
  }
};

bool is_nan(char kind, uint64_t bits) {
  if (kind == 'f') return std::isnan(std::bit_cast<float>(static_cast<uint32_t>(bits)));
  return kind == 'd' && std::isnan(std::bit_cast<double>(bits));
}

// Any NaN is like any other.
void compare(const TableRow& row, const std::vector<uint64_t>& results) {
  std::vector<uint64_t> inputs[3];
  const size_t sources = std::string(row.registers).size() - 1;
  for (size_t k = 0; k < 3; ++k) {
    inputs[k] =
        k < sources ? table_inputs(row, static_cast<int>(k)) : std::vector<uint64_t>(kTableThreads);
  }
  for (size_t k = 0; k < kTableThreads; ++k) {
    const uint64_t expected = row.expected(inputs[0][k], inputs[1][k], inputs[2][k]);
    if (is_nan(row.registers[0], expected) && is_nan(row.registers[0], results[k])) continue;
    ASSERT_EQ(results[k], expected) << row.instruction << std::hex << " of " << inputs[0][k] << ", "
                                    << inputs[1][k] << ", " << inputs[2][k];
  }
}

TEST_F(Instructions, ComputeWhatTheirTableSays) {
  for (const bool allows_avx2 : {true, false}) {
    DeviceOptions options;
    options.allows_avx2 = allows_avx2;
    open(table_module(), options);
    for (size_t row = 0; row < instruction_table().size(); ++row) {
      const TableRow& one = instruction_table()[row];
      const std::vector<uint64_t> results = results_of(row);
      if (one.expected != nullptr) compare(one, results);
    }
  }
}

// Both variants round halves in the same way, one of them by the machine's instructions.
TEST_F(Instructions, GiveTheSameBitsWithAndWithoutAvx2) {
  std::vector<std::vector<uint64_t>> all[2];
  for (const bool allows_avx2 : {false, true}) {
    DeviceOptions options;
    options.allows_avx2 = allows_avx2;
    open(table_module(), options);
    for (size_t row = 0; row < instruction_table().size(); ++row) {
      all[allows_avx2].push_back(results_of(row));
    }
  }
  for (size_t row = 0; row < instruction_table().size(); ++row) {
    const TableRow& one = instruction_table()[row];
    for (size_t k = 0; k < kTableThreads; ++k) {
      const bool both_nan =
          is_nan(one.registers[0], all[0][row][k]) && is_nan(one.registers[0], all[1][row][k]);
      ASSERT_TRUE(both_nan || all[0][row][k] == all[1][row][k]) << one.instruction << " " << k;
    }
  }
}

}  // namespace
}  // namespace mc::ptx
