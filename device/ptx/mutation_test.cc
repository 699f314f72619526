// SPDX-License-Identifier: Apache-2.0
//
// Hostile text: modules of the tests with some characters, words and lines changed. Whatever comes
// of them is an error, a finding or a result, and ends. The seed is in the test's output; more of
// them run with MC_PTX_MUTATIONS=count.
#include <gmock/gmock.h>

#include <cstdlib>

#include "ptx/test_device.h"

namespace mc::ptx {
namespace {

constexpr const char* kWords[] = {".v4",        ".v2",
                                  ".u8",        ".b64",
                                  ".f16x2",     ".shared",
                                  ".global",    ".local",
                                  ".param",     ".sat",
                                  ".ftz",       ".s8",
                                  ".f64",       "-1",
                                  "%p1",        "%r1",
                                  "%rd1",       "ret",
                                  "bra",        ";",
                                  "4294967295", "0x7fffffffffffffff"};

class Mutator {
 public:
  explicit Mutator(unsigned seed) : generator_(seed) {}

  std::string mutate(std::string text) {
    for (size_t k = 1 + below(4); k > 0 && text.size() > 100; --k) once(text);
    return text;
  }

  size_t below(size_t count) { return generator_() % count; }

 private:
  void once(std::string& text) {
    const size_t at = below(text.size());
    switch (below(6)) {
      case 0:
        text[at] = static_cast<char>(32 + below(95));
        break;
      case 1:
        text.erase(at, below(8));
        break;
      case 2: {
        const size_t digit = text.find_first_of("0123456789", at);
        if (digit != std::string::npos) text[digit] = static_cast<char>('0' + below(10));
        break;
      }
      case 3:
        replace_word(text, text.find_first_of(".%", at), kWords[below(std::size(kWords))]);
        break;
      case 4: {
        const size_t other = text.find('%', below(text.size()));
        if (other != std::string::npos) {
          replace_word(text, text.find('%', at), text.substr(other, word_size(text, other)));
        }
        break;
      }
      default:
        copy_line(text, at, below(text.size()));
    }
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

  static void copy_line(std::string& text, size_t to, size_t from) {
    const size_t begin = text.rfind('\n', from), end = text.find('\n', from);
    to = text.find('\n', to);
    if (begin == std::string::npos || end == std::string::npos || to == std::string::npos) return;
    if (begin < end) text.insert(to, text.substr(begin, end - begin));
  }

  std::mt19937 generator_;
};

// Launches some of a module's kernels with pointers and small numbers.
int launch_some(Device& device, ModuleId module, Mutator& random) {
  int launches = 0;
  const uint64_t memory = device.allocate(4096, "memory").value();
  for (const std::string& kernel : device.kernels(module)) {
    if (random.below(4) != 0) continue;
    Arguments arguments;
    for (int k = 0; k < 6; ++k) arguments.add(random.below(5) > 0 ? memory : random.below(200));
    arguments.add_bytes(std::string(512, '\3').data(), 512, 8);
    const auto report = device.launch({.module = module,
                                       .kernel = kernel,
                                       .grid = {1 + static_cast<uint32_t>(random.below(3)), 1, 1},
                                       .block = {1 + static_cast<uint32_t>(random.below(80)), 1, 1},
                                       .shared_bytes = random.below(2) > 0 ? 1024U : 0U,
                                       .arguments = arguments,
                                       .steps_max = 20});
    launches += report ? 1 : 0;
  }
  return launches;
}

TEST(PtxMutations, EndInAnErrorAFindingOrAResult) {
  const char* wanted = std::getenv("MC_PTX_MUTATIONS");
  const int count = wanted == nullptr ? 300 : std::atoi(wanted);
  const std::string texts[] = {read_testdata("basic.ptx"), read_testdata("features.ptx"),
                               read_testdata("faults.ptx"), read_testdata("matrix.ptx")};
  int loaded = 0, launched = 0;
  for (int seed = 0; seed < count; ++seed) {
    SCOPED_TRACE(seed);
    Mutator random(static_cast<unsigned>(seed));
    DeviceOptions options;
    options.memory_bytes = 8 << 20;
    auto device = Device::create(options).value();
    const Result<ModuleId> module = device->load(random.mutate(texts[seed % 4]));
    if (!module) continue;
    ++loaded;
    launched += launch_some(*device, *module, random);
  }
  EXPECT_GT(loaded, count / 4);
  EXPECT_GT(launched, count / 4);
}

}  // namespace
}  // namespace mc::ptx
