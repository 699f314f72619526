// SPDX-License-Identifier: Apache-2.0
//
// For tests: a device with a module of testdata/, and arrays on it.
#ifndef MC_PTX_TESTING_TEST_DEVICE_H_
#define MC_PTX_TESTING_TEST_DEVICE_H_

#include <gmock/gmock.h>

#include <cstdlib>
#include <fstream>
#include <memory>
#include <random>
#include <span>
#include <sstream>
#include <string>
#include <vector>

#include "ptx/device.h"

namespace mc::ptx {

// A file of testdata/, or of the folder $MC_PTX_TESTDATA with modules that a compiler made anew.
inline std::string read_testdata(const std::string& name) {
  const char* other = std::getenv("MC_PTX_TESTDATA");
  const std::string folder = other != nullptr ? other : std::string(MC_PTX_DIR) + "/testdata";
  std::ifstream file(folder + "/" + name);
  std::ostringstream text;
  text << file.rdbuf();
  return text.str();
}

inline std::vector<std::string> lines_of(const std::vector<Finding>& findings) {
  std::vector<std::string> lines;
  for (const Finding& one : findings) lines.push_back(describe(one));
  return lines;
}

// A device with a module, and arrays of floats on it.
class Kernels : public testing::Test {
 protected:
  void open(const std::string& text, DeviceOptions options = {}) {
    options.memory_bytes = 256 << 20;
    Result<std::unique_ptr<Device>> device = Device::create(options);
    ASSERT_TRUE(device) << device.error().message;
    device_ = std::move(device).value();
    Result<ModuleId> module = device_->load(text);
    ASSERT_TRUE(module) << module.error().message;
    module_ = *module;
  }

  template <class T>
  uint64_t put(const std::vector<T>& values, const std::string& name) {
    const auto bytes = std::as_bytes(std::span(values));
    Result<uint64_t> address = device_->allocate(bytes.size(), name);
    EXPECT_TRUE(address) << address.error().message;
    const auto* data = reinterpret_cast<const uint8_t*>(bytes.data());
    EXPECT_TRUE(device_->copy_in(*address, {data, bytes.size()}));
    return *address;
  }

  template <class T>
  std::vector<T> get(uint64_t address, size_t count) {
    std::vector<T> values(count);
    auto* data = reinterpret_cast<uint8_t*>(values.data());
    EXPECT_TRUE(device_->copy_out(address, {data, count * sizeof(T)}));
    return values;
  }

  LaunchReport launch(LaunchOptions options) {
    options.module = module_;
    Result<LaunchReport> report = device_->launch(options);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : LaunchReport{};
  }

  std::vector<float> random(size_t count, unsigned seed) {
    std::mt19937 generator(seed);
    std::normal_distribution<float> normal;
    std::vector<float> values(count);
    for (float& value : values) value = normal(generator);
    return values;
  }

  std::unique_ptr<Device> device_;
  ModuleId module_ = 0;
};

}  // namespace mc::ptx

#endif  // MC_PTX_TESTING_TEST_DEVICE_H_
