// SPDX-License-Identifier: Apache-2.0
//
// Ports of many texts, in both directions: the candidates of the corpus, the same with random
// bytes deleted and inserted, and random words.  The golden file has a hash of each text's ports
// and findings, so that no change of a rule's code is unintended.
#include <cstdint>
#include <cstdlib>
#include <filesystem>
#include <map>
#include <random>
#include <string>
#include <vector>

#include <gtest/gtest.h>

#include "core/file.h"
#include "core/hash.h"
#include "lex/testing/random_text.h"
#include "musify/port.h"
#include "musify/rules.h"

namespace mc::musify {
namespace {

namespace fs = std::filesystem;

constexpr size_t kHashDigits = 16;

std::string text_of_location(const Location& location) {
  return " " + std::to_string(location.line) + ":" + std::to_string(location.column) + " ";
}

std::string text_of_findings(const char* kind, const std::vector<Finding>& findings) {
  std::string text;
  for (const Finding& finding : findings) {
    text += kind + text_of_location(finding.location) + finding.message + finding.rule + "\n";
  }
  return text;
}

// All that the ports of a text say, under all options.
std::string ports_of(const std::string& text) {
  static const fs::path kFolder = fs::path(MC_SOURCE_DIR) / "data/musify";
  static const Rules kToMusa = load_rules(kFolder, Target::kMusa).value();
  static const Rules kToCuda = load_rules(kFolder, Target::kCuda).value();
  std::string all;
  for (const Rules* rules : {&kToMusa, &kToCuda}) {
    const Rules& back = rules == &kToMusa ? kToCuda : kToMusa;
    for (const Language language : {Language::kCpp, Language::kPython}) {
      for (const Lines lines : {Lines::kMayGo, Lines::kStay}) {
        for (const Embedded embedded : {Embedded::kUnits, Embedded::kLiterals}) {
          PortOptions options;
          options.lines = lines;
          options.embedded = embedded;
          if (lines == Lines::kStay) options.architecture = "mp_22";
          const Port port = port_source(text, language, *rules, options);
          all += port.text + name_of(port.status()) + "\n";
          for (const Change& change : port.changes) {
            all += text_of_location(change.location) + change.before + " -> " + change.after +
                   change.rule + "\n";
          }
          all += text_of_findings("refused", port.refusals) +
                 text_of_findings("left over", port.remnants) +
                 text_of_findings("warning", port.warnings);
          if (const auto loss = first_loss(text, port, language, back, options)) {
            all += "lost" + text_of_location(*loss) + "\n";
          }
        }
      }
    }
    all += port_message(text, *rules) + "\n";
  }
  return all;
}

// Deletes and repeats random bytes of a text.
std::string damaged(std::string text, std::mt19937& random) {
  for (int k = 0; k < 3 && !text.empty(); ++k) {
    const std::size_t at = random() % text.size();
    const std::size_t size = random() % 40;
    if (random() % 2 == 0) {
      text.erase(at, size);
    } else {
      text.insert(at, text.substr(random() % text.size(), size));
    }
  }
  return text;
}

// Random words of CUDA and MUSA, and marks of C++ and Python.
std::string random_words(std::mt19937& random) {
  static const std::vector<std::string> kWords = {"cudaMalloc",
                                                  "musaMalloc",
                                                  "CUDA_R_32F",
                                                  "torch",
                                                  ".",
                                                  "cuda",
                                                  "musa",
                                                  "import",
                                                  "from",
                                                  "torch_musa",
                                                  "as",
                                                  "def",
                                                  "class",
                                                  "struct",
                                                  "enum",
                                                  "auto",
                                                  "const",
                                                  "int",
                                                  "float",
                                                  "*",
                                                  "&",
                                                  "(",
                                                  ")",
                                                  "[",
                                                  "]",
                                                  "{",
                                                  "}",
                                                  ",",
                                                  ";",
                                                  ":",
                                                  "=",
                                                  "==",
                                                  ">=",
                                                  "<",
                                                  ">",
                                                  "::",
                                                  "->",
                                                  "\n",
                                                  "\n",
                                                  " ",
                                                  " ",
                                                  "\n#define ",
                                                  "\n#if ",
                                                  "\n#include <cuda.h>\n",
                                                  "\n#include \"a.cuh\"\n",
                                                  "__CUDA_ARCH__",
                                                  "__MUSA_ARCH__",
                                                  "800",
                                                  "220",
                                                  "32",
                                                  "0xffffffff",
                                                  "__shfl_sync",
                                                  "__ballot_sync",
                                                  "__syncwarp",
                                                  "asm",
                                                  "\"mov.u32 %0, %1;\"",
                                                  "\"LSU.LD\"",
                                                  "'cuda'",
                                                  "\"cuda:0\"",
                                                  "f'cuda:{i}'",
                                                  "'musa'",
                                                  "'''#include <cuda_runtime.h>\ncudaFree(p);'''",
                                                  "r\"cudaFree\\n\"",
                                                  "cuda_sources",
                                                  "musa_sources",
                                                  "cpp_sources",
                                                  "extra_cuda_cflags",
                                                  "extra_musa_cflags",
                                                  "'-O3'",
                                                  "'--use_fast_math'",
                                                  "'--offload-arch=mp_31'",
                                                  "load_inline",
                                                  "return",
                                                  "for",
                                                  "in",
                                                  "self",
                                                  "x",
                                                  "y",
                                                  "kCUDA",
                                                  "at",
                                                  "c10",
                                                  "getCurrentCUDAStream",
                                                  "CUDAGuard",
                                                  "nccl",
                                                  "cublasSgemm",
                                                  "mublasSgemm",
                                                  "typename",
                                                  "template",
                                                  "namespace",
                                                  "using",
                                                  "# cuda\n",
                                                  "// cuda\n",
                                                  "/* MUSIFY_EXCL_LINE */",
                                                  "importlib",
                                                  "import_module",
                                                  "__import__",
                                                  "'torch_musa'",
                                                  "is_cuda",
                                                  "is_musa",
                                                  "device",
                                                  "\\\n",
                                                  "TORCH_LIBRARY_IMPL",
                                                  "CUDA",
                                                  "PrivateUse1",
                                                  "1",
                                                  "#",
                                                  "\t",
                                                  "lambda",
                                                  "no_implicit_headers"};
  std::string text;
  for (int i = 0; i < 60; ++i) {
    text += kWords[random() % kWords.size()];
    if (random() % 3 != 0) text += ' ';
  }
  return text;
}

TEST(Ports, OfManyTextsAreGolden) {
  const fs::path root = MC_SOURCE_DIR;
  std::map<std::string, std::string> texts;  // The texts by name, in a fixed order.
  for (const auto& entry : fs::recursive_directory_iterator(root / "tests/corpus")) {
    const std::string suffix = entry.path().extension();
    const bool is_of_a_set = entry.path().parent_path() != root / "tests/corpus";
    if (!is_of_a_set || (suffix != ".py" && suffix != ".cu")) continue;
    texts[entry.path().lexically_relative(root)] = read_file(entry.path(), 1 << 20).value();
  }
  std::string golden;
  const auto add = [&](const std::string& name, const std::string& ports) {
    golden += name + " " + content_hash({ports}).substr(0, kHashDigits) + "\n";
  };
  for (const auto& [name, text] : texts) {
    // The hash of the name takes one text of ten, and chooses what is damaged.
    const uint64_t seed = derive_seed(11, name);
    std::mt19937 random(static_cast<std::uint32_t>(seed));
    if (seed % 10 == 0) add(name, ports_of(text) + ports_of(damaged(text, random)));
  }
  std::mt19937 random(11);
  for (int group = 0; group < 40; ++group) {
    std::string ports;
    for (int i = 0; i < 6; ++i) ports += ports_of(random_words(random));
    for (std::uint64_t i = 0; i < 2; ++i) {
      ports += ports_of(lex::random_text(static_cast<std::uint64_t>(group) * 2 + i, 60));
    }
    add("random " + std::to_string(group), ports);
  }
  const fs::path path = root / "src/musify/testdata/ports.txt";
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, golden));
  }
  EXPECT_EQ(golden, read_file(path, 1 << 20).value()) << "UPDATE_GOLDEN=1 renews the file.";
}

}  // namespace
}  // namespace mc::musify
