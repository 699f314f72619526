// SPDX-License-Identifier: Apache-2.0
//
// Small cases; tests/learn/tokenizer_test.py compares with the `tokenizers` package.
#include "model/tokenizer.h"

#include <limits>
#include <optional>
#include <random>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "model/bpe.h"
#include "model/chat.h"
#include "model/pretokenize.h"
#include "model/testing/small_model.h"

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

// A tokenizer of the letters a to e, the space (Ġ), digits, and the merges ab, abc and de.
std::string letters_json(const std::string& pre_tokenizer, const std::string& rest = "",
                         const std::string& of_model = "") {
  return R"({"pre_tokenizer":)" + pre_tokenizer + rest +
         R"(,"model":{"type":"BPE","vocab":{"a":0,"b":1,"c":2,"d":3,"e":4,"\u0120":5,"ab":6,)"
         R"("abc":7,"de":8,"\u0120a":9,"1":10,"2":11,"12":12,"\u00c3":13,"\u00a9":14,"cd":15},)"
         R"("merges":["a b",["ab","c"],"d e","\u0120 a","1 2"])" +
         of_model + "}}";
}

constexpr const char* kBytes = R"({"type":"ByteLevel","add_prefix_space":false,"use_regex":false})";

std::vector<int32_t> encoded(const std::string& json, std::string_view text) {
  const auto tokenizer = Tokenizer::parse(json);
  EXPECT_TRUE(tokenizer) << (tokenizer ? "" : tokenizer.error().message);
  return tokenizer ? tokenizer->encode(text) : std::vector<int32_t>();
}

using Ids = std::vector<int32_t>;

TEST(Tokenizer, MergesWithinAPiece) {
  EXPECT_EQ(encoded(letters_json(kBytes), "abcde ab"), (Ids{7, 8, 5, 6}));
  EXPECT_EQ(encoded(letters_json(kBytes), " a"), Ids{9});
  EXPECT_EQ(encoded(letters_json(kBytes), "azb"),
            Ids{6});  // No token is for the byte z, which is left out.
  EXPECT_EQ(encoded(letters_json(kBytes, "", R"(,"unk_token":"e")"), "azb"), (Ids{0, 4, 1}));
  EXPECT_EQ(encoded(letters_json(kBytes), ""), Ids{});
  EXPECT_EQ(encoded(letters_json(kBytes), "\u00e9"), (Ids{13, 14}));
}

TEST(Tokenizer, APieceInTheVocabularyMayIgnoreTheMerges) {
  EXPECT_EQ(encoded(letters_json(kBytes), "cd"), (Ids{2, 3}));
  EXPECT_EQ(encoded(letters_json(kBytes, "", R"(,"ignore_merges":true)"), "cd"), Ids{15});
  EXPECT_EQ(encoded(letters_json(kBytes, "", R"(,"ignore_merges":true)"), "cdd"), (Ids{2, 3, 3}));
}

TEST(Tokenizer, PiecesAreSplitBeforeMerges) {
  const std::string gpt2 = R"({"type":"ByteLevel","add_prefix_space":false})";
  EXPECT_EQ(encoded(letters_json(gpt2), "ab1 a"), (Ids{6, 10, 9}));
  const std::string spaced = R"({"type":"ByteLevel"})";
  EXPECT_EQ(encoded(letters_json(spaced), "a a"), (Ids{9, 9}));
  EXPECT_EQ(encoded(letters_json(spaced), " a"), Ids{9});
  const auto sequence = [](const std::string& step) {
    return R"({"type":"Sequence","pretokenizers":[)" + step + "," + kBytes + "]}";
  };
  EXPECT_EQ(encoded(letters_json(sequence(R"({"type":"Digits","individual_digits":true})")), "12"),
            (Ids{10, 11}));
  EXPECT_EQ(encoded(letters_json(sequence(R"({"type":"Digits"})")), "a12b"), (Ids{0, 12, 1}));
  const auto split = [&](const std::string& behavior, const std::string& more = "") {
    return letters_json(sequence(R"({"type":"Split","pattern":{"Regex":"b"},"behavior":")" +
                                 behavior + "\"" + more + "}"));
  };
  EXPECT_EQ(encoded(split("Isolated"), "abc"), (Ids{0, 1, 2}));
  EXPECT_EQ(encoded(split("Removed"), "abca"), (Ids{0, 2, 0}));
  EXPECT_FALSE(Tokenizer::parse(split("Merged")));
  EXPECT_FALSE(Tokenizer::parse(split("Isolated", R"(,"invert":true)")));
  EXPECT_FALSE(Tokenizer::parse(letters_json(sequence(kBytes))));  // A step after ByteLevel.
  EXPECT_FALSE(Tokenizer::parse(letters_json(R"({"type":"Sequence","pretokenizers":[)"
                                             R"({"type":"Digits"},{"type":"ByteLevel"}]})")));
  EXPECT_FALSE(Tokenizer::parse(letters_json(R"({"type":"Digits"})")));
}

TEST(Tokenizer, AddedTokensAreCutOutOfTheText) {
  const auto with_token = [](const std::string& members) {
    return letters_json(kBytes, R"(,"added_tokens":[{"id":20,"content":"<x>")" + members +
                                    R"(},{"id":21,"content":"<x>y"},{"id":22,"content":""}])");
  };
  EXPECT_EQ(encoded(with_token(""), "a<x>b"), (Ids{0, 20, 1}));
  EXPECT_EQ(encoded(with_token(""), "a <x> b<x>"), (Ids{0, 5, 20, 5, 1, 20}));
  EXPECT_EQ(encoded(with_token(""), "<x>y<x"), Ids{21});  // The longest one is taken.
  EXPECT_EQ(encoded(with_token(R"(,"lstrip":true)"), "a \n <x> b"), (Ids{0, 20, 5, 1}));
  EXPECT_EQ(encoded(with_token(R"(,"rstrip":true)"), "a <x> \t b"), (Ids{0, 5, 20, 1}));
  EXPECT_EQ(encoded(with_token(R"(,"lstrip":true,"rstrip":true)"), " <x>\u2003<x> "),
            (Ids{20, 20}));
  const std::string word = with_token(R"(,"single_word":true)");
  EXPECT_EQ(encoded(word, "<x>"), Ids{20});
  EXPECT_EQ(encoded(word, "a <x> b"), (Ids{0, 5, 20, 5, 1}));
  EXPECT_EQ(encoded(word, "a<x> b"), (Ids{0, 5, 1}));
  EXPECT_EQ(encoded(word, "a <x>b"), (Ids{0, 5, 1}));
  EXPECT_EQ(encoded(word, "-<x>_"), Ids{});
  EXPECT_EQ(encoded(word, "-<x>-"), Ids{20});
  EXPECT_FALSE(Tokenizer::parse(letters_json(kBytes, R"(,"added_tokens":1)")));
  EXPECT_FALSE(Tokenizer::parse(letters_json(kBytes, R"(,"added_tokens":[1])")));
  EXPECT_FALSE(
      Tokenizer::parse(letters_json(kBytes, R"(,"added_tokens":[{"id":16777217,"content":"z"}])")));
}

TEST(Tokenizer, NfcComposesBeforeNormalizedTokens) {
  const std::string decomposed = "e\xCC\x81";  // é as two characters.
  const std::string nfc = R"(,"normalizer":{"type":"NFC"})";
  const std::string tokens = R"(,"added_tokens":[{"id":20,"content":"\u00e9","normalized":true},)"
                             R"({"id":21,"content":"e\u0301b","normalized":false}])";
  EXPECT_EQ(encoded(letters_json(kBytes, nfc), decomposed), (Ids{13, 14}));
  EXPECT_EQ(encoded(letters_json(kBytes), decomposed), Ids{4});
  EXPECT_EQ(encoded(letters_json(kBytes, nfc + tokens), decomposed), Ids{20});
  EXPECT_EQ(encoded(letters_json(kBytes, nfc + tokens), decomposed + "b"), Ids{21});
  EXPECT_EQ(encoded(letters_json(kBytes, tokens), decomposed), Ids{4});
  const std::string list =
      R"(,"normalizer":{"type":"Sequence","normalizers":[{"type":"NFC"},null]})";
  EXPECT_EQ(encoded(letters_json(kBytes, list), decomposed), (Ids{13, 14}));
}

TEST(Tokenizer, DecodesBytesAndAddedTokens) {
  const auto tokenizer =
      Tokenizer::parse(letters_json(kBytes, R"(,"added_tokens":[{"id":20,"content":"<\u00e9>"}])"));
  ASSERT_TRUE(tokenizer);
  EXPECT_EQ(tokenizer->decode(Ids{7, 5, 13, 14, 20}), "abc \u00e9<\u00e9>");
  EXPECT_EQ(tokenizer->decode(Ids{-1, 17, 21, 1}), "b");  // Ids without a token.
  EXPECT_EQ(tokenizer->size(), 21);
  EXPECT_EQ(tokenizer->id_of("abc"), 7);
  EXPECT_EQ(tokenizer->id_of("<\u00e9>"), 20);
  EXPECT_EQ(tokenizer->id_of("z"), std::nullopt);
}

// Each byte has its own character in a vocabulary, and comes back.
TEST(Tokenizer, EveryByteIsReadBack) {
  const Model model = small_model();
  std::string text;
  for (int32_t code = 1; code < 0x800; ++code) {
    if (code < 0x80) {
      text += static_cast<char>(code);
    } else {
      text += {static_cast<char>(0xC0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3F))};
    }
  }
  const Ids ids = model.tokenizer.encode(text);
  EXPECT_EQ(ids.size(), text.size());
  for (size_t i = 0; i < ids.size(); ++i) {
    ASSERT_EQ(ids[i], static_cast<unsigned char>(text[i])) << i;
  }
  EXPECT_EQ(model.tokenizer.decode(ids), text);
}

TEST(Splitter, SpacesAreThoseOfUnicode) {
  const auto pieces = [](std::string_view pattern, std::string_view text) {
    const auto splitter = Splitter::create(pattern, Splitter::Behavior::kIsolated);
    EXPECT_TRUE(splitter);
    std::vector<std::string_view> found;
    splitter->split(text, found);
    return std::vector<std::string>(found.begin(), found.end());
  };
  using Texts = std::vector<std::string>;
  EXPECT_EQ(pieces("\\s", "a\u2003b"), (Texts{"a", "\u2003", "b"}));
  EXPECT_EQ(pieces("\\s", "a\u180eb"), Texts{"a\u180eb"});
  EXPECT_EQ(pieces("\\S+", " ab c"), (Texts{" ", "ab", " ", "c"}));
  EXPECT_EQ(pieces("\\.", "a.b"), (Texts{"a", ".", "b"}));
  EXPECT_EQ(pieces("x*", "ab"), Texts{"ab"});  // An empty match is no piece.
}

TEST(Chat, APromptEndsWhereTheAssistantBegins) {
  const std::vector<Message> messages = {{"system", "s"}, {"user", "u\n"}};
  EXPECT_EQ(render_chatml(messages, ChatEnd::kPrompt),
            "<|im_start|>system\ns<|im_end|>\n<|im_start|>user\nu\n<|im_end|>\n"
            "<|im_start|>assistant\n");
}

}  // namespace
}  // namespace mc::model
