// SPDX-License-Identifier: Apache-2.0
#include "legality/extract.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <variant>

#include "legality/testing/extract_properties.h"

namespace mc::legality {
namespace {

// A module with a name in it, so that a test can identify the extracted one.
std::string module(const std::string& name) {
  return "import torch\nname = \"" + name + "\"\nclass ModelNew(torch.nn.Module):\n    pass\n";
}

std::string fenced(const std::string& info, const std::string& text) {
  return "```" + info + "\n" + text + "```\n";
}

std::string extracted(std::string_view answer) {
  const Extraction extraction = extract(answer);
  if (const auto* found = std::get_if<Extracted>(&extraction)) return found->module;
  return "refused: " + std::get<task::Unextractable>(extraction).reason;
}

struct Row {
  std::string answer;
  std::string expected;
};

class Extract : public ::testing::TestWithParam<Row> {};

TEST_P(Extract, ReturnsTheResultOfTheTable) {
  EXPECT_EQ(extracted(GetParam().answer), GetParam().expected) << GetParam().answer;
}

const std::string kA = module("a");
const std::string kB = module("b");
const std::string kSnippet = "class ModelNew(nn.Module):\n    ...\n";

INSTANTIATE_TEST_SUITE_P(
    Fences, Extract,
    ::testing::Values(
        Row{"Here:\n" + fenced("python", kA) + "It is fast.\n", kA}, Row{fenced("py", kA), kA},
        Row{fenced("", kA), kA}, Row{fenced(" Python title=\"x\"", kA), kA},
        Row{"~~~python\n" + kA + "~~~\n", kA}, Row{"~~~\n" + kA + "```\n~~~\n", kA + "```\n"},
        Row{"Here:\n```python\n" + kA, kA},
        Row{"1. Do:\n   ```python\n   import torch\n   class ModelNew:\n       x = 1\n   ```\n",
            "import torch\nclass ModelNew:\n    x = 1\n"},
        Row{"````python\n\"\"\"\n```\n\"\"\"\n" + kA + "````\n", "\"\"\"\n```\n\"\"\"\n" + kA},
        Row{"Use ```ModelNew``` so:\n" + fenced("python", kA), kA},
        Row{"```python\r\nimport torch\r\nclass ModelNew:\r\n  x = 1\r\n```\r\n",
            "import torch\nclass ModelNew:\n  x = 1\n"},
        Row{"````markdown\n# Answer\n" + fenced("python", kA) + "````\n", kA},
        Row{"```markdown\n# Answer\n" + fenced("python", kA) + "```\n", kA}));

INSTANTIATE_TEST_SUITE_P(
    SeveralBlocks, Extract,
    ::testing::Values(
        Row{fenced("python", kA) + "Better:\n" + fenced("python", kB), kB},
        Row{fenced("cpp", "__global__ void k() {}\n") + fenced("python", kA), kA},
        Row{fenced("python", kA) + fenced("python", "model = ModelNew()\nprint(model)\n"), kA},
        Row{fenced("python", kA) + "The heart:\n" + fenced("python", kSnippet), kA},
        Row{fenced("python", kSnippet), kSnippet},
        Row{fenced("python", "class Model:\n  pass\n# class ModelNew:\n") + fenced("", kA), kA},
        Row{"Draft:\n```python\n" + kA + "Final:\n" + fenced("python", kB), kB},
        Row{fenced("python", "x = \"\"\"broken\n" + kA) + fenced("python", kB), kB}));

INSTANTIATE_TEST_SUITE_P(
    FencesInStrings, Extract,
    ::testing::Values(Row{fenced("python", "\"\"\"Use:\n```\nModelNew()\n```\n\"\"\"\n" + kA),
                          "\"\"\"Use:\n```\nModelNew()\n```\n\"\"\"\n" + kA},
                      Row{fenced("python", "\"\"\"Use:\n```python\nModelNew()\n```\n\"\"\"\n" + kA),
                          "\"\"\"Use:\n```python\nModelNew()\n```\n\"\"\"\n" + kA},
                      Row{"\"\"\"Use:\n```\nModelNew()\n\"\"\"\n" + kA,
                          "\"\"\"Use:\n```\nModelNew()\n\"\"\"\n" + kA}));

INSTANTIATE_TEST_SUITE_P(
    Reasoning, Extract,
    ::testing::Values(
        Row{"<think>\n" + fenced("python", kA) + "</think>\n" + fenced("python", kB), kB},
        Row{"<think>\n" + fenced("python", kA) + "</think>\nNo code.", "refused: no_code"},
        Row{fenced("python", kA) + "So.</think>\n" + fenced("python", kB), kB},
        Row{"<think>I am still\n" + fenced("python", kA), "refused: unfinished_reasoning"},
        Row{fenced("python", kA) + "<think>\n" + fenced("python", kB), kA},
        Row{"<think>a <think> b</think> c</think>\n" + fenced("python", kA), kA},
        Row{"<reasoning>x</reasoning>" + fenced("python", kA), kA},
        Row{"I <think> so:\n" + fenced("python", kA), kA}));

INSTANTIATE_TEST_SUITE_P(
    NoFence, Extract,
    ::testing::Values(Row{kA, kA}, Row{"# A module.\n\n" + kA, "# A module.\n\n" + kA},
                      Row{"Here is the module:\n\n" + kA, kA},
                      Row{kA + "\nThis kernel uses shared memory.\n", kA + "\n"},
                      Row{kA + "Notes:\n- it is fast\n", kA}, Row{kA + "1. It is fast.\n", kA},
                      Row{kA + "x = 1 if kA else 2\nprint(\"two words here\")\n",
                          kA + "x = 1 if kA else 2\nprint(\"two words here\")\n"},
                      Row{kA + "text = \"\"\"two words\nin a row\n\"\"\"\n",
                          kA + "text = \"\"\"two words\nin a row\n\"\"\"\n"},
                      Row{kA + "s = 'it\\'s two words'\n", kA + "s = 'it\\'s two words'\n"},
                      Row{kA + "```\nThat was it.\n", kA}, Row{"\xEF\xBB\xBF" + kA, kA},
                      Row{"from the start I say no.", "refused: no_code"},
                      Row{"text = '''\nclass ModelNew(nn.Module):\n'''\n", "refused: no_code"}));

INSTANTIATE_TEST_SUITE_P(
    Refusals, Extract,
    ::testing::Values(
        Row{"", "refused: empty"}, Row{" \r\n\t\n", "refused: empty"},
        Row{"I cannot do that.", "refused: no_code"},
        Row{fenced("python", "class Model:\n    pass\n"), "refused: no_model_new"},
        Row{fenced("python", "x = '''\nclass ModelNew:\n'''\n"), "refused: no_model_new"},
        Row{"import torch\nclass Model:\n    pass\n", "refused: no_model_new"},
        // Kept, so that the parser can report where the string begins.
        Row{fenced("python", "import torch\nx = '''\nclass ModelNew:\n    pass\n"),
            "import torch\nx = '''\nclass ModelNew:\n    pass\n"},
        Row{"import torch\nx = '''\nclass ModelNew:\n", "import torch\nx = '''\nclass ModelNew:\n"},
        Row{"\xFF\xFE garbage", "refused: invalid_utf8"},
        Row{fenced("python", kA + "x = '\xC3('\n"), "refused: invalid_utf8"},
        Row{fenced("python", kA + std::string("\0", 1)), "refused: nul_byte"},
        Row{fenced("python", kA + "x = " + std::string(1001, '(') + "\n"), "refused: too_deep"}));

TEST(ExtractLimits, AcceptAModuleAtTheLimitAndRefuseOneByteMore) {
  const std::string start = kA + "# ";
  const std::string full = start + std::string(task::kCandidateBytesMax - start.size() - 1, 'x');
  EXPECT_EQ(extracted(full + "\n").size(), task::kCandidateBytesMax);
  EXPECT_EQ(extracted(full + "x\n"), "refused: too_large");
}

TEST(ExtractLimits, RefuseAHugeAnswerWithoutReadingIt) {
  const std::string answer(50'000'000, '`');
  EXPECT_EQ(extracted(answer), "refused: too_large");
}

TEST(ExtractLimits, HoldTimeLinearForAnswersOfManyFencesAndQuotes) {
  std::string answer;
  for (int i = 0; i < 200'000; ++i) answer += "```python\nx = \"\"\"\n";
  EXPECT_EQ(extracted(answer), "refused: no_model_new");
}

TEST(ExtractProperties, HoldForRandomAnswers) {
  for (std::uint64_t seed = 0; seed < 20'000; ++seed) {
    SCOPED_TRACE(seed);
    check_extraction(random_answer(seed, 25));
  }
}

}  // namespace
}  // namespace mc::legality
