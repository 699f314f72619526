// SPDX-License-Identifier: Apache-2.0
//
// Writes the table of instructions for a comparison with a GPU.
//
// usage: ptx_table DIRECTORY
//   table.ptx     a kernel row_N(d, a, b, c) for each row, to be launched with 1,024 threads
//   rows.txt      a line for each row: its registers and its instruction
//   N.a N.b N.c   its operands, 8 bytes a thread
//   N.d           what the executor computed
#include <cstdio>
#include <fstream>
#include <string>

#include "core/check.h"
#include "ptx/device.h"
#include "ptx/instruction_table.h"

namespace mc::ptx {
namespace {

void write(const std::string& path, const void* data, size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  MC_CHECK(file.good());
}

class TableWriter {
 public:
  explicit TableWriter(std::string directory) : directory_(std::move(directory)) {
    const std::string text = table_module();
    write(directory_ + "/table.ptx", text.data(), text.size());
    auto device = Device::create({});
    MC_CHECK(device);
    device_ = std::move(device).value();
    const auto module = device_->load(text);
    MC_CHECK(module);
    module_ = *module;
  }

  void write_row(size_t number) {
    const TableRow& row = instruction_table()[number];
    const int sources = static_cast<int>(std::string(row.registers).size()) - 1;
    std::vector<uint64_t> values(kTableThreads);
    const uint64_t d = put(values);
    Arguments arguments;
    arguments.add(d);
    for (int k = 0; k < 3; ++k) {
      if (k < sources) values = table_inputs(row, k);
      if (k < sources) write(path(number, "abc"[k]), values.data(), 8 * values.size());
      arguments.add(k < sources ? put(values) : d);
    }
    const auto report = device_->launch({.module = module_,
                                         .kernel = "row_" + std::to_string(number),
                                         .block = {kTableThreads, 1, 1},
                                         .arguments = arguments});
    MC_CHECK(report && report->findings.empty());
    MC_CHECK(device_->copy_out(d, {reinterpret_cast<uint8_t*>(values.data()), 8 * kTableThreads}));
    write(path(number, 'd'), values.data(), 8 * values.size());
  }

 private:
  std::string path(size_t number, char part) const {
    return directory_ + "/" + std::to_string(number) + "." + part;
  }

  uint64_t put(const std::vector<uint64_t>& values) {
    const auto address = device_->allocate(8 * values.size(), "values");
    MC_CHECK(address);
    const auto* bytes = reinterpret_cast<const uint8_t*>(values.data());
    MC_CHECK(device_->copy_in(*address, {bytes, 8 * values.size()}));
    return *address;
  }

  std::string directory_;
  std::unique_ptr<Device> device_;
  ModuleId module_ = 0;
};

}  // namespace
}  // namespace mc::ptx

int main(int argc, char** argv) {
  if (argc != 2) {
    std::fprintf(stderr, "usage: ptx_table DIRECTORY\n");
    return 2;
  }
  mc::ptx::TableWriter writer(argv[1]);
  std::string rows;
  for (size_t k = 0; k < mc::ptx::instruction_table().size(); ++k) {
    const mc::ptx::TableRow& row = mc::ptx::instruction_table()[k];
    rows += std::string(row.registers) + " " + row.instruction + "\n";
    writer.write_row(k);
  }
  mc::ptx::write(std::string(argv[1]) + "/rows.txt", rows.data(), rows.size());
  return 0;
}
