// SPDX-License-Identifier: Apache-2.0
//
// ptx_run: one launch of a kernel of a module of PTX, with arrays from files.
//
//   ptx_run FILE KERNEL [--grid X,Y,Z] [--block X,Y,Z] [--shared BYTES] [--workers N]
//       [--lanes 32|128] ARGUMENT...
//
// An argument is i32:5, i64:5, f32:0.5 or array:PATH, a pointer to the file's bytes, which are
// written back after the launch, or null:, a null pointer. The kernel's text goes to the standard
// output, followed by the findings, one per line. The exit status is 1 if there are findings, 2 if
// the launch could not begin.
#include <array>
#include <cstdio>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "ptx/device.h"

namespace mc::ptx {
namespace {

struct Array {
  std::string path;
  uint64_t address = 0;
  std::vector<uint8_t> bytes;
};

struct Run {
  std::string path;
  DeviceOptions device;
  LaunchOptions launch;
  std::vector<std::pair<std::string, std::string>> arguments;  // `i32` and `5`.
};

Error invalid_word(const std::string& word) {
  return {ErrorCode::kInvalidInput, "\"" + word + "\" is not understood"};
}

Result<std::vector<uint8_t>> read_file(const std::string& path) {
  std::ifstream file(path, std::ios::binary);
  if (!file) return Error{ErrorCode::kIo, "cannot read " + path};
  return std::vector<uint8_t>{std::istreambuf_iterator<char>(file), {}};
}

std::array<uint32_t, 3> sizes_of(const std::string& text) {
  std::array<uint32_t, 3> sizes = {1, 1, 1};
  const char* at = text.c_str();
  for (uint32_t& size : sizes) {
    char* end = nullptr;
    size = static_cast<uint32_t>(std::strtoul(at, &end, 10));
    if (*end != ',') break;
    at = end + 1;
  }
  return sizes;
}

bool set_option(Run& run, const std::string& name, const std::string& value) {
  if (name == "--grid") {
    run.launch.grid = sizes_of(value);
  } else if (name == "--block") {
    run.launch.block = sizes_of(value);
  } else if (name == "--shared") {
    run.launch.shared_bytes = sizes_of(value)[0];
  } else if (name == "--workers") {
    run.device.workers = static_cast<int>(sizes_of(value)[0]);
  } else if (name == "--lanes") {
    run.device.lanes = static_cast<int>(sizes_of(value)[0]);
  } else {
    return false;
  }
  return true;
}

Result<Run> read_command(const std::vector<std::string>& words) {
  if (words.size() < 2) return Error{ErrorCode::kInvalidInput, "a file and a kernel are missing"};
  Run run;
  run.path = words[0];
  run.launch.kernel = words[1];
  for (size_t k = 2; k < words.size(); ++k) {
    if (k + 1 < words.size() && set_option(run, words[k], words[k + 1])) {
      ++k;
      continue;
    }
    const size_t colon = words[k].find(':');
    if (colon == std::string::npos) return invalid_word(words[k]);
    run.arguments.emplace_back(words[k].substr(0, colon), words[k].substr(colon + 1));
  }
  return run;
}

Result<Array> load_array(Device& device, const std::string& path) {
  Array array;
  array.path = path;
  MC_TRY(array.bytes, read_file(path), "array");
  MC_TRY(array.address, device.allocate(array.bytes.size(), path), "array");
  MC_TRY_VOID(device.copy_in(array.address, array.bytes), "array");
  return array;
}

Status add_argument(Run& run, Device& device, std::vector<Array>& arrays, const std::string& kind,
                    const std::string& value) {
  if (kind == "i32") {
    run.launch.arguments.add(static_cast<int32_t>(std::strtoll(value.c_str(), nullptr, 10)));
  } else if (kind == "i64") {
    run.launch.arguments.add(static_cast<int64_t>(std::strtoll(value.c_str(), nullptr, 10)));
  } else if (kind == "f32") {
    run.launch.arguments.add(std::strtof(value.c_str(), nullptr));
  } else if (kind == "null") {
    run.launch.arguments.add(uint64_t{0});
  } else if (kind == "array") {
    MC_TRY(Array array, load_array(device, value), "argument");
    run.launch.arguments.add(array.address);
    arrays.push_back(std::move(array));
  } else {
    return invalid_word(kind + ":" + value);
  }
  return ok();
}

Status write_back(const Device& device, Array& array) {
  MC_TRY_VOID(device.copy_out(array.address, array.bytes), array.path);
  std::ofstream file(array.path, std::ios::binary);
  file.write(reinterpret_cast<const char*>(array.bytes.data()), std::ssize(array.bytes));
  file.close();
  return file ? ok() : Status(Error{ErrorCode::kIo, "cannot write " + array.path});
}

Result<LaunchReport> execute(const std::vector<std::string>& words) {
  MC_TRY(Run run, read_command(words), "command line");
  MC_TRY(const std::vector<uint8_t> text, read_file(run.path), "module");
  MC_TRY(const std::unique_ptr<Device> device, Device::create(run.device), "device");
  const std::string_view characters(reinterpret_cast<const char*>(text.data()), text.size());
  MC_TRY(run.launch.module, device->load(characters), run.path);
  std::vector<Array> arrays;
  for (const auto& [kind, value] : run.arguments) {
    MC_TRY_VOID(add_argument(run, *device, arrays, kind, value), "argument");
  }
  MC_TRY(LaunchReport report, device->launch(run.launch), run.path);
  for (Array& array : arrays) MC_TRY_VOID(write_back(*device, array), "result");
  return report;
}

int run(const std::vector<std::string>& words) {
  const Result<LaunchReport> report = execute(words);
  if (!report) {
    std::fprintf(stderr, "error: %s\n", report.error().message.c_str());
    return 2;
  }
  std::printf("%s", report->printed.c_str());
  for (const Finding& finding : report->findings) std::printf("%s\n", describe(finding).c_str());
  return report->findings.empty() ? 0 : 1;
}

}  // namespace
}  // namespace mc::ptx

int main(int argc, char** argv) { return mc::ptx::run({argv + 1, argv + argc}); }
