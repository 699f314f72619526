// SPDX-License-Identifier: Apache-2.0
//
// ptx_table: the table of instructions and generated kernels, for the executor, the reference and a
// GPU.
//
//   ptx_table --check                 executor against reference
//   ptx_table --write DIR             NAME.ptx and NAME.in for each module, and index.json
//   python3 lab/gpu/ptx_table.py DIR       on a machine with a GPU: makes NAME.out
//   ptx_table --compare DIR           executor and reference against NAME.out
//
// --seed N and --count N choose the generated kernels (1 and 1000), each --without TEXT a form that
// they do not have, --only TEXT the cases whose names or modules contain a text. --write and
// --compare need the same options. The exit status is 1 if results differ, 2 for a wrong command
// line or unusable files.
//
// Inputs and outputs of a module's kernels follow one another in NAME.in and NAME.out, each at the
// offset that index.json gives, which is a multiple of 256.
#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <map>
#include <string>
#include <vector>

#include "ptx/testing/case.h"

namespace mc::ptx {
namespace {

constexpr int64_t kAlign = 256;

struct Options {
  std::string write, compare, only, dump;
  std::vector<std::string> without;
  uint64_t seed = 1;
  int count = 1000;
};

int64_t aligned(int64_t size) { return (size + kAlign - 1) / kAlign * kAlign; }

bool write_file(const std::filesystem::path& path, const void* data, size_t size) {
  std::ofstream file(path, std::ios::binary);
  file.write(static_cast<const char*>(data), static_cast<std::streamsize>(size));
  file.close();
  if (!file) std::fprintf(stderr, "error: cannot write %s\n", path.c_str());
  return static_cast<bool>(file);
}

std::vector<uint8_t> read_file(const std::filesystem::path& path) {
  std::ifstream file(path, std::ios::binary);
  return {std::istreambuf_iterator<char>(file), {}};
}

std::vector<uint8_t> joined_inputs(const CaseModule& module) {
  std::vector<uint8_t> all;
  for (const Case& one : module.cases) {
    all.insert(all.end(), one.input.begin(), one.input.end());
    all.resize(static_cast<size_t>(aligned(std::ssize(all))));
  }
  return all;
}

std::string shape(const std::array<uint32_t, 3>& sizes) {
  return "[" + std::to_string(sizes[0]) + ", " + std::to_string(sizes[1]) + ", " +
         std::to_string(sizes[2]) + "]";
}

// The entry of a module in index.json.
std::string index_of(const CaseModule& module) {
  int64_t in = 0, out = 0;
  std::string kernels;
  for (const Case& one : module.cases) {
    kernels += (kernels.empty() ? "" : ",\n   ") + std::string("{\"name\": \"") + one.name +
               "\", \"grid\": " + shape(one.grid) + ", \"block\": " + shape(one.block) +
               ", \"in\": " + std::to_string(in) + ", \"out\": " + std::to_string(out) + "}";
    in += aligned(std::ssize(one.input));
    out += aligned(one.output_bytes);
  }
  return "{\"name\": \"" + module.name + "\", \"in_bytes\": " + std::to_string(in) +
         ", \"out_bytes\": " + std::to_string(out) + ", \"kernels\": [\n   " + kernels + "]}";
}

int write(const std::vector<CaseModule>& modules, const std::filesystem::path& directory) {
  std::error_code ignored;
  std::filesystem::create_directories(directory, ignored);
  std::string index;
  size_t total = 0, num_kernels = 0;
  for (const CaseModule& module : modules) {
    const std::string text = module.text();
    const std::vector<uint8_t> input = joined_inputs(module);
    if (!write_file(directory / (module.name + ".ptx"), text.data(), text.size()) ||
        !write_file(directory / (module.name + ".in"), input.data(), input.size())) {
      return 2;
    }
    index += (index.empty() ? "" : ",\n  ") + index_of(module);
    total += text.size() + input.size();
    num_kernels += module.cases.size();
  }
  index = "{\"modules\": [\n  " + index + "]}\n";
  if (!write_file(directory / "index.json", index.data(), index.size())) return 2;
  std::printf("%zu modules, %zu kernels, %zu bytes in %s\n", modules.size(), num_kernels, total,
              directory.c_str());
  return 0;
}

// Counts and prints the differences between two machines.
class Comparison {
 public:
  explicit Comparison(std::string name) : name_(std::move(name)) {}

  void add(const Case& one, const Result<std::vector<uint8_t>>& expected,
           const Result<std::vector<uint8_t>>& actual) {
    ++num_cases_;
    std::string difference;
    if (!expected || !actual) {
      ++num_refused_;
      difference = one.name + ": " + (expected ? actual : expected).error().message;
    } else {
      difference = describe_difference(one, *expected, *actual);
      if (difference.empty()) return;
      ++num_different_;
    }
    std::printf("%s: %s\n", name_.c_str(), difference.c_str());
  }

  bool report() const {
    std::printf("%s: %d cases, %d differ, %d did not run\n", name_.c_str(), num_cases_,
                num_different_, num_refused_);
    return num_different_ + num_refused_ == 0;
  }

 private:
  std::string name_;
  int num_cases_ = 0, num_different_ = 0, num_refused_ = 0;
};

int check(const std::vector<CaseModule>& modules) {
  Comparison comparison("executor against reference");
  for (const CaseModule& module : modules) {
    const Result<CaseRunner> runner = CaseRunner::create(module);
    if (!runner) {
      std::fprintf(stderr, "error: %s\n", runner.error().message.c_str());
      return 2;
    }
    for (const Case& one : module.cases) {
      comparison.add(one, runner->run_reference(one), runner->run_executor(one));
    }
  }
  return comparison.report() ? 0 : 1;
}

int compare_with_files(const std::vector<CaseModule>& modules,
                       const std::filesystem::path& directory) {
  Comparison executor("GPU against executor"), reference("GPU against reference");
  for (const CaseModule& module : modules) {
    const std::vector<uint8_t> all = read_file(directory / (module.name + ".out"));
    if (read_file(directory / (module.name + ".in")) != joined_inputs(module)) {
      std::fprintf(stderr, "error: %s.in was written with other options or by another version\n",
                   module.name.c_str());
      return 2;
    }
    const Result<CaseRunner> runner = CaseRunner::create(module);
    if (!runner) {
      std::fprintf(stderr, "error: %s\n", runner.error().message.c_str());
      return 2;
    }
    int64_t at = 0;
    for (const Case& one : module.cases) {
      if (at + one.output_bytes > std::ssize(all)) {
        std::fprintf(stderr, "error: %s.out is missing or too short\n", module.name.c_str());
        return 2;
      }
      const std::vector<uint8_t> output(all.begin() + at, all.begin() + at + one.output_bytes);
      executor.add(one, output, runner->run_executor(one));
      reference.add(one, output, runner->run_reference(one));
      at += aligned(one.output_bytes);
    }
  }
  const bool executor_agrees = executor.report(), reference_agrees = reference.report();
  return executor_agrees && reference_agrees ? 0 : 1;
}

// Prints the text of one kernel.
int dump(const std::vector<CaseModule>& modules, const std::string& name) {
  for (const CaseModule& module : modules) {
    for (const Case& one : module.cases) {
      if (one.name == name) std::printf("%s%s", module.head.c_str(), one.text.c_str());
    }
  }
  return 0;
}

void keep_only(std::vector<CaseModule>& modules, const std::string& text) {
  for (CaseModule& module : modules) {
    if (module.name.find(text) != std::string::npos) continue;
    std::erase_if(module.cases,
                  [&](const Case& one) { return one.name.find(text) == std::string::npos; });
  }
  std::erase_if(modules, [](const CaseModule& one) { return one.cases.empty(); });
}

int usage() {
  std::fprintf(stderr,
               "usage: ptx_table --check | --write DIR | --compare DIR | --dump KERNEL\n"
               "                 [--seed N] [--count N] [--without TEXT]... [--only TEXT]\n");
  return 2;
}

int run(const std::vector<std::string>& words) {
  Options options;
  bool checks = false;
  for (size_t k = 0; k < words.size(); ++k) {
    if (words[k] == "--check") {
      checks = true;
      continue;
    }
    if (k + 1 == words.size()) return usage();
    const std::string& value = words[++k];
    if (words[k - 1] == "--write") {
      options.write = value;
    } else if (words[k - 1] == "--compare") {
      options.compare = value;
    } else if (words[k - 1] == "--dump") {
      options.dump = value;
    } else if (words[k - 1] == "--only") {
      options.only = value;
    } else if (words[k - 1] == "--without") {
      options.without.push_back(value);
    } else if (words[k - 1] == "--seed") {
      options.seed = std::strtoull(value.c_str(), nullptr, 10);
    } else if (words[k - 1] == "--count") {
      options.count = std::atoi(value.c_str());
    } else {
      return usage();
    }
  }
  std::vector<CaseModule> modules = table_cases();
  std::vector<CaseModule> generated =
      generate_cases({options.seed, options.count, options.without});
  std::move(generated.begin(), generated.end(), std::back_inserter(modules));
  if (!options.only.empty()) keep_only(modules, options.only);
  std::printf("seed %llu, %d generated kernels\n", static_cast<unsigned long long>(options.seed),
              options.count);
  if (!options.dump.empty()) return dump(modules, options.dump);
  if (!options.write.empty()) return write(modules, options.write);
  if (!options.compare.empty()) return compare_with_files(modules, options.compare);
  return checks ? check(modules) : usage();
}

}  // namespace
}  // namespace mc::ptx

int main(int argc, char** argv) { return mc::ptx::run({argv + 1, argv + argc}); }
