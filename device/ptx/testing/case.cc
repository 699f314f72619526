// SPDX-License-Identifier: Apache-2.0
#include "ptx/testing/case.h"

#include <cmath>
#include <cstdio>
#include <cstring>

#include "ptx/testing/reference.h"
#include "ptx/testing/reference_values.h"

namespace mc::ptx {
namespace {

constexpr uint64_t kInputAddress = 0x1'0000'0000, kOutputAddress = 0x2'0000'0000;
constexpr size_t kDeviceBytes = size_t{64} << 20;

uint64_t value_at(std::span<const uint8_t> bytes, const Column& column, int64_t record) {
  uint64_t value = 0;
  std::memcpy(&value, bytes.data() + column.offset + record * column.stride,
              static_cast<size_t>(bytes_of(column.type)));
  return value;
}

// The position of a float among all floats of its type; -0 and +0 have no neighbours.
int64_t rank_of(uint64_t bits, Type type) {
  const int width = 8 * bytes_of(type);
  const uint64_t sign = 1ULL << (width - 1);
  const auto magnitude = static_cast<int64_t>(bits & (sign - 1));
  return (bits & sign) != 0 ? -magnitude : magnitude;
}

bool is_close(uint64_t a, uint64_t b, Type type, const Tolerance& tolerance) {
  if (a == b) return true;
  if (type == Type::kF16x2 || type == Type::kBf16x2) {
    const Type half = type == Type::kF16x2 ? Type::kF16 : Type::kBf16;
    return is_close(a & 0xFFFF, b & 0xFFFF, half, tolerance) &&
           is_close(a >> 16, b >> 16, half, tolerance);
  }
  if (!is_float(type)) return false;
  const long double x = float_as(a, type), y = float_as(b, type);
  if (std::isnan(x) || std::isnan(y)) return std::isnan(x) && std::isnan(y);
  if (tolerance.absolute > 0 && std::fabs(x - y) <= tolerance.absolute) return true;
  return tolerance.ulp > 0 && std::abs(rank_of(a, type) - rank_of(b, type)) <= tolerance.ulp;
}

std::string hex(uint64_t value, Type type) {
  char text[64];
  std::snprintf(text, sizeof text, "0x%0*llx", 2 * bytes_of(type),
                static_cast<unsigned long long>(value));
  std::string result = text;
  if (is_float(type) && type != Type::kF16x2 && type != Type::kBf16x2) {
    std::snprintf(text, sizeof text, " (%.9Lg)", float_as(value, type));
    result += text;
  }
  return result;
}

std::string describe_record(const Case& one, const Column& column, int64_t record, uint64_t a,
                            uint64_t b) {
  std::string text = column.name + " of record " + std::to_string(record) + ": expected " +
                     hex(a, column.type) + ", actual " + hex(b, column.type);
  for (const Column& operand : one.operands) {
    text += ", " + operand.name + " = " + hex(value_at(one.input, operand, record), operand.type);
  }
  return text;
}

}  // namespace

uint64_t Random::bits() {
  // splitmix64
  uint64_t z = state_ += 0x9E3779B97F4A7C15;
  z = (z ^ (z >> 30)) * 0xBF58476D1CE4E5B9;
  z = (z ^ (z >> 27)) * 0x94D049BB133111EB;
  return z ^ (z >> 31);
}

std::string CaseModule::text() const {
  std::string all = head;
  for (const Case& one : cases) all += one.text;
  return all;
}

std::string describe_difference(const Case& one, std::span<const uint8_t> expected,
                                std::span<const uint8_t> actual) {
  if (std::ssize(expected) != one.output_bytes || std::ssize(actual) != one.output_bytes) {
    return one.name + ": an output has a wrong size";
  }
  int64_t num_different = 0;
  std::string first;
  for (int64_t record = 0; record < one.num_records; ++record) {
    bool is_different = false;
    for (const Column& column : one.results) {
      const uint64_t a = value_at(expected, column, record), b = value_at(actual, column, record);
      if (is_close(a, b, column.type, column.tolerance)) continue;
      is_different = true;
      if (first.empty()) first = describe_record(one, column, record, a, b);
    }
    num_different += is_different ? 1 : 0;
  }
  if (num_different == 0) return "";
  return one.name + ": " + std::to_string(num_different) + " of " +
         std::to_string(one.num_records) + " records differ, " + first;
}

Result<CaseRunner> CaseRunner::create(const CaseModule& module, DeviceOptions options) {
  CaseRunner runner;
  const std::string text = module.text();
  MC_TRY(Module parsed, parse(text), "module " + module.name);
  runner.parsed_ = std::make_unique<Module>(std::move(parsed));
  options.memory_bytes = kDeviceBytes;
  MC_TRY(runner.device_, Device::create(options), "module " + module.name);
  MC_TRY(runner.id_, runner.device_->load(text), "module " + module.name);
  return runner;
}

Result<std::vector<uint8_t>> CaseRunner::run_executor(const Case& one) const {
  std::vector<uint8_t> output(static_cast<size_t>(one.output_bytes));
  MC_TRY(const uint64_t in, device_->allocate(one.input.size(), "in"), one.name);
  MC_TRY(const uint64_t out, device_->allocate(output.size(), "out"), one.name);
  MC_TRY_VOID(device_->copy_in(in, one.input), one.name);
  MC_TRY_VOID(device_->fill(out, 0, output.size()), one.name);
  LaunchOptions options;
  options.module = id_;
  options.kernel = one.name;
  options.grid = one.grid;
  options.block = one.block;
  options.arguments.add(in).add(out);
  Result<LaunchReport> report = device_->launch(options);
  MC_TRY_VOID(device_->copy_out(out, output), one.name);
  MC_TRY_VOID(device_->release(in), one.name);
  MC_TRY_VOID(device_->release(out), one.name);
  if (!report) return report.error();
  if (!report->findings.empty()) return invalid(describe(report->findings[0]));
  return output;
}

Result<std::vector<uint8_t>> CaseRunner::run_reference(const Case& one) const {
  std::vector<ReferenceMemory> memory = {{kInputAddress, one.input}, {kOutputAddress, {}}};
  memory[1].bytes.resize(static_cast<size_t>(one.output_bytes));
  const Arguments arguments = Arguments().add(kInputAddress).add(kOutputAddress);
  MC_TRY_VOID(ptx::run_reference({.module = *parsed_,
                                  .kernel = one.name,
                                  .grid = one.grid,
                                  .block = one.block,
                                  .parameters = arguments.bytes()},
                                 memory),
              one.name);
  return std::move(memory[1].bytes);
}

}  // namespace mc::ptx
