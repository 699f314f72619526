// SPDX-License-Identifier: Apache-2.0
#include "forge/musa_rows.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>

#include <nlohmann/json.hpp>

#include "forge/variants.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;
using ::testing::HasSubstr;
using ::testing::Not;

const std::string kModule =
    "import torch\nfrom torch.utils.cpp_extension import load_inline\n"
    "src = r\"\"\"\n#include <cuda_runtime.h>\n"
    "void f() { cudaDeviceSynchronize(); }\n\"\"\"\n"
    "ext = load_inline(name=\"e\", cpp_sources=\"void f();\", cuda_sources=src)\n";

const MusaRows& rows() {
  static const MusaRows kRows =
      MusaRows::create(std::filesystem::path(MC_SOURCE_DIR) / "data/musify").value();
  return kRows;
}

std::string row(const std::string& module, const std::string& kind = "generation") {
  const Json json = {
      {"id", "a"},
      {"kind", kind},
      {"messages",
       {{{"role", "user"}, {"content", "Write a CUDA kernel.\n```python\nx = 1\n```\n"}},
        {{"role", "assistant"}, {"content", "By cudaMalloc.\n```python\n" + module + "```\n"}}}}};
  return json.dump();
}

TEST(MusaRows, PortsCodeAndNamesInMessages) {
  const Json json = Json::parse(rows().port(row(kModule)).value());
  EXPECT_EQ(json["id"], "a-musa");
  EXPECT_EQ(json["dialect"], "musa");
  EXPECT_EQ(json["messages"][0]["content"], "Write a MUSA kernel.\n```python\nx = 1\n```\n");
  const std::string answer = json["messages"][1]["content"];
  EXPECT_THAT(answer, HasSubstr("By musaMalloc.\n```python\nimport torch\n"));
  EXPECT_THAT(answer, HasSubstr("musaDeviceSynchronize();"));
  EXPECT_THAT(answer, HasSubstr("musa_sources=src"));
  EXPECT_THAT(answer, Not(HasSubstr("cuda")));
  EXPECT_TRUE(answer.ends_with("```\n"));
}

TEST(MusaRows, PortsEachCodeOfVariants) {
  Json json = Json::parse(row(kModule, "variants"));
  const Variant one = {{}, {"By cudaMalloc."}, kModule};
  json["messages"][1]["content"] = variants_text({one, {one}, std::nullopt, one});
  const Json musa = Json::parse(rows().port(json.dump()).value());
  const Variants read = read_variants(musa["messages"][1]["content"].get<std::string>()).value();
  for (const Variant* each : all_of(read)) {
    EXPECT_EQ(each->reason.front(), "By musaMalloc.");
    EXPECT_THAT(each->code, HasSubstr("musaDeviceSynchronize();"));
  }
  EXPECT_EQ(all_of(read).size(), 3u);
}

TEST(MusaRows, ShiftsLinesOfTheAnswerWithTheModule) {
  Json json = Json::parse(row(kModule));
  json["messages"].push_back({{"role", "user"}, {"content", "Found it at candidate:5."}});
  json["messages"].push_back({{"role", "assistant"}, {"content", "Cause: x\nLine 5: void f()\n"}});
  const Json musa = Json::parse(rows().port(json.dump()).value());
  const std::string answer = musa["messages"][1]["content"];
  const auto lines = [](const std::string& text) {
    return std::ranges::count(text.substr(0, text.find("r\"\"\"")), '\n');
  };
  const auto shift = lines(answer) - 1 - lines(kModule) - 1;
  ASSERT_GT(shift, 0);
  EXPECT_EQ(musa["messages"][2]["content"],
            "Found it at candidate:" + std::to_string(5 + shift) + ".");
  EXPECT_THAT(musa["messages"][3]["content"].get<std::string>(),
              HasSubstr("Line " + std::to_string(5 + shift) + ": void f()"));
}

TEST(MusaRows, WritesTheDialectWhereEachTrainerReadsIt) {
  Json json = Json::parse(row(kModule));
  json["metadata"] = json["extra_info"] = {{"dialect", "cuda"}};
  const Json musa = Json::parse(rows().port(json.dump()).value());
  EXPECT_EQ(musa["metadata"]["dialect"], "musa");
  EXPECT_EQ(musa["extra_info"]["dialect"], "musa");
}

TEST(MusaRows, LeavesOutRowsWithoutAReversiblePort) {
  EXPECT_FALSE(rows().port(row("S = r'''#include <cuda/barrier>\n'''\n")));
  // The port is not reversible.
  EXPECT_FALSE(rows().port(row("x.cuda()  # MUSIFY_EXCL_LINE\nx.musa()\n")));
}

TEST(MusaRows, CreatesARowThatTeachesThePort) {
  const Json json = Json::parse(rows().lesson(row(kModule)).value());
  EXPECT_EQ(json["kind"], "port");
  EXPECT_THAT(json["messages"][0]["content"], HasSubstr("cudaDeviceSynchronize"));
  const std::string answer = json["messages"][1]["content"];
  EXPECT_THAT(answer, HasSubstr("cudaDeviceSynchronize -> musaDeviceSynchronize\n"));
  EXPECT_THAT(answer, HasSubstr("musa_sources=src"));
  EXPECT_FALSE(rows().lesson(row(kModule, "repair")));
}

}  // namespace
}  // namespace mc::forge
