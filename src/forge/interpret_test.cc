// SPDX-License-Identifier: Apache-2.0
#include "forge/interpret.h"

#include <set>

#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "compile/pytorch.h"
#include "compile/tool.h"
#include "core/file.h"
#include "forge/draw.h"
#include "forge/render.h"

namespace mc::forge {
namespace {

// Every graph that brings a spelling that was not there before.
TEST(Interpreter, AgreesWithPyTorchOnEveryOperatorInEverySpelling) {
  if (!compile::find_pytorch(compile::default_python())) GTEST_SKIP() << "no PyTorch";
  DrawOptions options;
  options.families = {std::begin(kFamilies), std::end(kFamilies)};
  options.style = Style::kFull;
  std::set<std::string> seen, operators;
  std::string lines;
  for (uint64_t i = 0; i < 6000; ++i) {
    const auto graph = draw_graph(1, i, options);
    if (!graph) continue;
    bool is_new = false;
    for (const Node& node : graph->nodes) {
      const std::string how = node.is_layer ? "layer" : std::to_string(node.spelling);
      is_new |= !seen.contains(node.name() + (" " + how));
    }
    const std::string probe = probe_json(*graph);
    if (!is_new || probe.find("null") != std::string::npos) continue;  // Out of its domain.
    for (const Node& node : graph->nodes) {
      operators.insert(node.name());
      seen.insert(node.name() + (" " + (node.is_layer ? "layer" : std::to_string(node.spelling))));
    }
    lines +=
        nlohmann::json{{"source", render_module(*graph)}, {"probe", nlohmann::json::parse(probe)}}
            .dump() +
        "\n";
  }
  EXPECT_EQ(operators.size(),
            pointwise_operators().size() + row_operators().size() + heads().size());
  const auto folder = TemporaryDirectory::create("probes");
  ASSERT_TRUE(folder);
  const auto path = folder->path() / "probes.jsonl";
  ASSERT_TRUE(write_file_atomically(path, lines));
  const auto done =
      compile::run_tool({compile::default_python().string(),
                         MC_SOURCE_DIR "/harness/forge/check_probes.py", path.string()});
  EXPECT_TRUE(done) << done.error().message;
}

}  // namespace
}  // namespace mc::forge
