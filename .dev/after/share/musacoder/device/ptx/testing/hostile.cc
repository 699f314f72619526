// SPDX-License-Identifier: Apache-2.0
#include "ptx/testing/hostile.h"

#include <array>
#include <cctype>
#include <random>
#include <utility>
#include <vector>

#include "ptx/device.h"

namespace mc::ptx {
namespace {

constexpr size_t kDeviceBytes = 8 << 20;
constexpr size_t kArrayBytes = 4096;
constexpr int kKernelsMax = 4;
constexpr int64_t kStepsMax = 2;  // In thousands.

constexpr const char* kWords[] = {
    ".v4",      ".v2",        ".u8",      ".b64",       ".f16x2",      ".shared",
    ".global",  ".local",     ".param",   ".sat",       ".ftz",        ".s8",
    ".f64",     ".volatile",  ".wide",    ".hi",        ".relu",       ".x4",
    ".trans",   ".cc",        ".and",     ".popc",      "-1",          "%p1",
    "%r1",      "%rd1",       "%tid.x",   "ret",        "bra",         "@%p1",
    "@!%p1",    "bar.sync",   "call",     "brx.idx",    "trap",        "vprintf",
    "malloc",   "4294967295", "0",        "31",         "_",           "[",
    "]",        "{",          "}",        "(",          ")",           ";",
    ",",        "|",          "!",        "+",          "-",           ":",
    "<",        ">",          "mma.sync", "atom",       "shfl.up",     "cp.async",
    "stmatrix", ".e4m3x2",    ".e5m2",    ".satfinite", "st.volatile", "0x7fffffffffffffff"};

class Mutator {
 public:
  Mutator(uint64_t seed, size_t size_max) : generator_(seed), size_max_(size_max) {}

  std::string run(std::string text) {
    for (size_t k = 1 + below(4); k > 0 && !text.empty(); --k) change(text);
    if (text.size() > size_max_) text.resize(size_max_);
    return text;
  }

 private:
  size_t below(size_t count) { return generator_() % count; }

  void change(std::string& text) {
    const size_t at = below(text.size());
    switch (below(8)) {
      case 0:
        text[at] = static_cast<char>(32 + below(95));
        break;
      case 1:
        text.erase(at, below(8));
        break;
      case 2:
        change_digit(text, text.find_first_of("0123456789", at));
        break;
      case 3:
        replace_word(text, text.find_first_of(".%", at), kWords[below(std::size(kWords))]);
        break;
      case 4:
        copy_word(text, text.find('%', at), text.find('%', below(text.size())));
        break;
      case 5:
        copy_word(text, text.find('.', at), text.find('.', below(text.size())));
        break;
      case 6:
        erase_line(text, at);
        break;
      default:
        copy_line(text, at, below(text.size()));
    }
  }

  void change_digit(std::string& text, size_t at) {
    if (at != std::string::npos) text[at] = static_cast<char>('0' + below(10));
  }

  static size_t word_size(const std::string& text, size_t at) {
    size_t size = 1;
    while (at + size < text.size() && std::isalnum(static_cast<unsigned char>(text[at + size]))) {
      ++size;
    }
    return size;
  }

  static void replace_word(std::string& text, size_t at, const std::string& word) {
    if (at != std::string::npos) text.replace(at, word_size(text, at), word);
  }

  static void copy_word(std::string& text, size_t to, size_t from) {
    if (from == std::string::npos) return;
    replace_word(text, to, text.substr(from, word_size(text, from)));
  }

  static std::pair<size_t, size_t> line_at(const std::string& text, size_t at) {
    const size_t before = text.rfind('\n', at), end = text.find('\n', at);
    const size_t begin = before == std::string::npos ? 0 : before;
    return {begin, end == std::string::npos || end <= begin ? begin : end};
  }

  static void erase_line(std::string& text, size_t at) {
    const auto [begin, end] = line_at(text, at);
    text.erase(begin, end - begin);
  }

  void copy_line(std::string& text, size_t to, size_t from) const {
    const auto [begin, end] = line_at(text, from);
    const std::string line = text.substr(begin, end - begin);
    if (text.size() + line.size() <= size_max_) text.insert(line_at(text, to).first, line);
  }

  std::mt19937_64 generator_;
  size_t size_max_;
};

// Pointers, small numbers, and bytes enough for structures.
Arguments arguments_of(std::mt19937_64& random, uint64_t memory) {
  Arguments arguments;
  for (int k = 0; k < 6; ++k) arguments.add(random() % 5 > 0 ? memory : random() % 200);
  const std::array<uint8_t, 512> rest = {3, 0, 0, 0, 2};
  arguments.add_bytes(rest.data(), rest.size(), 8);
  return arguments;
}

LaunchOptions launch_of(std::mt19937_64& random, ModuleId module, const std::string& kernel,
                        uint64_t memory) {
  LaunchOptions launch;
  launch.module = module;
  launch.kernel = kernel;
  launch.grid = {1 + static_cast<uint32_t>(random() % 3), 1, 1};
  launch.block = {1 + static_cast<uint32_t>(random() % 80), 1 + static_cast<uint32_t>(random() % 2),
                  1};
  launch.shared_bytes = random() % 2 > 0 ? 1024 : 0;
  launch.arguments = arguments_of(random, memory);
  launch.steps_max = kStepsMax;
  return launch;
}

}  // namespace

HostileOutcome run_hostile(std::string_view text, uint64_t seed) {
  std::mt19937_64 random(seed);
  HostileOutcome outcome;
  DeviceOptions options;
  options.memory_bytes = kDeviceBytes;
  options.lanes = random() % 8 == 0 ? 128 : 32;
  options.workers = random() % 8 == 0 ? 2 : 1;
  Result<std::unique_ptr<Device>> device = Device::create(options);
  if (!device) return outcome;
  const Result<ModuleId> module = (*device)->load(text);
  const Result<uint64_t> memory = (*device)->allocate(kArrayBytes, "memory");
  outcome.is_loaded = static_cast<bool>(module);
  if (!module || !memory) return outcome;
  const std::vector<std::string> kernels = (*device)->kernels(*module);
  const size_t first = kernels.empty() ? 0 : random() % kernels.size();
  for (size_t k = 0; k < kernels.size() && k < kKernelsMax; ++k) {
    const std::string& kernel = kernels[(first + k) % kernels.size()];
    if (!(*device)->decode(*module, kernel)) continue;
    ++outcome.num_decoded;
    const auto report = (*device)->launch(launch_of(random, *module, kernel, *memory));
    outcome.num_launched += report ? 1 : 0;
  }
  return outcome;
}

std::string mutate(std::string text, uint64_t seed, size_t size_max) {
  return Mutator(seed, size_max).run(std::move(text));
}

}  // namespace mc::ptx
