// SPDX-License-Identifier: Apache-2.0
//
// A table of instructions with what each computes, for tests and for comparisons with a GPU.
//
// table_module() has a kernel for each row, in which each thread executes the row's instruction
// once; table_inputs() are its operands, edges of the type first. The program ptx_table writes both
// and the executor's results to files.
#ifndef MC_PTX_INSTRUCTION_TABLE_H_
#define MC_PTX_INSTRUCTION_TABLE_H_

#include <cstdint>
#include <string>
#include <vector>

namespace mc::ptx {

struct TableRow {
  // `add.s32 $d, $a, $b;` with places for the registers.
  const char* instruction;
  // The result and the sources: h 16, w 32, l 64 bits; p a predicate (a result alone); f, d floats.
  const char* registers;
  // The result's bits for those of the sources, or null where GPUs approximate.
  uint64_t (*expected)(uint64_t a, uint64_t b, uint64_t c);
};

const std::vector<TableRow>& instruction_table();

constexpr size_t kTableThreads = 1024;
// A kernel `row_N(d, a, b, c)` for each row.
std::string table_module();
// The bits of source number 0, 1 or 2 of a row, kTableThreads of 8 bytes each.
std::vector<uint64_t> table_inputs(const TableRow& row, int source);

}  // namespace mc::ptx

#endif  // MC_PTX_INSTRUCTION_TABLE_H_
