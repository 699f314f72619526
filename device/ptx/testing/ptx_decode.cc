// SPDX-License-Identifier: Apache-2.0
//
// ptx_decode: parses and decodes PTX modules without running them.
//
//   ptx_decode FILE...            a line for each module or kernel that is refused, and the counts
//   ptx_decode --forms FILE...    the forms of their instructions (`ld.global.f32`) by frequency
//
// The exit status is 1 if a module or a kernel is refused, 2 if a file cannot be read.
#include <algorithm>
#include <cstdio>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "ptx/device.h"
#include "ptx/module.h"

namespace mc::ptx {
namespace {

struct Counts {
  int modules = 0, kernels = 0, refused_modules = 0, refused_kernels = 0;
};

void decode_module(const std::string& path, const std::string& text, Counts& counts) {
  ++counts.modules;
  const auto device = Device::create({}).value();
  const Result<ModuleId> module = device->load(text);
  if (!module) {
    ++counts.refused_modules;
    std::printf("%s: %s\n", path.c_str(), module.error().message.c_str());
    return;
  }
  for (const std::string& kernel : device->kernels(*module)) {
    ++counts.kernels;
    const Result<KernelFacts> facts = device->decode(*module, kernel);
    if (facts) continue;
    ++counts.refused_kernels;
    std::printf("%s: %s\n", path.c_str(), facts.error().message.c_str());
  }
}

void count_forms(const std::string& text, std::map<std::string, int64_t>& forms) {
  const Result<Module> module = parse(text);
  if (!module) return;
  for (const Function& function : module->functions) {
    for (const Instruction& one : function.instructions) ++forms[one.full_name()];
  }
}

void print_forms(const std::map<std::string, int64_t>& forms) {
  std::vector<std::pair<std::string, int64_t>> rows(forms.begin(), forms.end());
  std::stable_sort(rows.begin(), rows.end(),
                   [](const auto& x, const auto& y) { return x.second > y.second; });
  for (const auto& [form, count] : rows) {
    std::printf("%8lld %s\n", static_cast<long long>(count), form.c_str());
  }
}

int run(std::vector<std::string> paths) {
  const bool wants_forms = !paths.empty() && paths[0] == "--forms";
  if (wants_forms) paths.erase(paths.begin());
  if (paths.empty()) {
    std::fprintf(stderr, "usage: ptx_decode [--forms] FILE...\n");
    return 2;
  }
  Counts counts;
  std::map<std::string, int64_t> forms;
  for (const std::string& path : paths) {
    std::ifstream file(path, std::ios::binary);
    const std::string text{std::istreambuf_iterator<char>(file), {}};
    if (!file) {
      std::fprintf(stderr, "error: cannot read %s\n", path.c_str());
      return 2;
    }
    wants_forms ? count_forms(text, forms) : decode_module(path, text, counts);
  }
  if (wants_forms) {
    print_forms(forms);
    return 0;
  }
  std::printf("%d modules, %d refused; %d kernels, %d refused\n", counts.modules,
              counts.refused_modules, counts.kernels, counts.refused_kernels);
  return counts.refused_modules + counts.refused_kernels == 0 ? 0 : 1;
}

}  // namespace
}  // namespace mc::ptx

int main(int argc, char** argv) { return mc::ptx::run({argv + 1, argv + argc}); }
