// SPDX-License-Identifier: Apache-2.0
//
// Small cases; tests/learn/tokenizer_test.py compares with the `tokenizers` package.
#include "model/tokenizer.h"

#include <limits>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "model/bpe.h"
#include "model/chat.h"

namespace mc::model {
namespace {

using testing::HasSubstr;

// A slow reference implementation: searches for the best pair again after every merge.
std::vector<int32_t> merge_slowly(const Merges& merges, std::vector<int32_t> symbols) {
  while (true) {
    int32_t best = std::numeric_limits<int32_t>::max();
    size_t place = 0;
    for (size_t i = 0; i + 1 < symbols.size(); ++i) {
      const auto found = merges.find(merge_key(symbols[i], symbols[i + 1]));
      if (found == merges.end() || found->second.rank >= best) continue;
      best = found->second.rank;
      place = i;
    }
    if (best == std::numeric_limits<int32_t>::max()) return symbols;
    symbols[place] = merges.at(merge_key(symbols[place], symbols[place + 1])).id;
    symbols.erase(symbols.begin() + static_cast<std::ptrdiff_t>(place) + 1);
  }
}

TEST(Bpe, MergesLikeTheSlowReference) {
  std::mt19937 random(3);
  const auto below = [&](int32_t n) {
    return static_cast<int32_t>(random() % static_cast<uint32_t>(n));
  };
  for (int round = 0; round < 300; ++round) {
    Merges merges;
    for (int32_t rank = 0; rank < 12; ++rank) {
      merges.try_emplace(merge_key(below(4 + rank), below(4 + rank)), Merge{rank, 4 + rank});
    }
    std::vector<int32_t> symbols(static_cast<size_t>(below(40)));
    for (int32_t& symbol : symbols) symbol = below(4);
    EXPECT_EQ(merge_all(merges, symbols), merge_slowly(merges, symbols)) << "round " << round;
  }
}

std::string json_with(const std::string& model, const std::string& rest = "") {
  return R"({"pre_tokenizer":{"type":"ByteLevel","add_prefix_space":false},"model":)" + model +
         rest + "}";
}

TEST(Tokenizer, AnotherKindIsRejectedByName) {
  const std::pair<std::string, const char*> cases[] = {
      {"[]", "no tokenizer.json"},
      {json_with(R"({"type":"WordPiece","vocab":{}})"), "WordPiece"},
      {json_with(R"({"type":"Unigram","vocab":[]})"), "Unigram"},
      {json_with(R"({"type":"BPE","vocab":{},"merges":[],"byte_fallback":true})"), "byte_fallback"},
      {json_with(R"({"type":"BPE","vocab":{"a":0},"merges":["a b"]})"), "merge 0"},
      {json_with(R"({"type":"BPE","vocab":{"a":-1},"merges":[]})"), "an id"},
      {json_with(R"({"type":"BPE","vocab":{},"merges":[]})",
                 R"(,"normalizer":{"type":"Lowercase"})"),
       "Lowercase"},
      {R"({"pre_tokenizer":{"type":"Whitespace"},"model":{"type":"BPE","vocab":{},"merges":[]}})",
       "Whitespace"},
      {R"({"pre_tokenizer":{"type":"Split","pattern":{"Regex":"("},"behavior":"Isolated"},)"
       R"("model":{"type":"BPE","vocab":{},"merges":[]}})",
       "does not compile"},
  };
  for (const auto& [json, reason] : cases) {
    const auto tokenizer = Tokenizer::parse(json);
    ASSERT_FALSE(tokenizer) << json;
    EXPECT_THAT(tokenizer.error().message, HasSubstr(reason));
  }
}

TEST(Tokenizer, BytesThatAreNotUtf8BecomeReplacementCharacters) {
  EXPECT_EQ(valid_utf8("a\xC3(\xE2\x82z"), "a\xEF\xBF\xBD(\xEF\xBF\xBDz");
  EXPECT_EQ(valid_utf8("caf\xC3\xA9"), "caf\xC3\xA9");
}

TEST(Chat, APromptEndsWhereTheAssistantBegins) {
  const std::vector<Message> messages = {{"system", "s"}, {"user", "u\n"}};
  EXPECT_EQ(render_chatml(messages, ChatEnd::kPrompt),
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu\n<|im_end|>\n"
            "<|im_start|>assistant\n");
}

}  // namespace
}  // namespace mc::model
