// SPDX-License-Identifier: Apache-2.0
#include "model/testing/small_model.h"

#include <cstdlib>
#include <string>
#include <utility>

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "model/chat.h"

namespace mc::model {
namespace {

constexpr int kStart = 256;  // The token <|im_start|>; the tokens below it are the bytes.
constexpr int kEnd = 257;    // The token <|im_end|>.

std::string utf8(int code) {
  if (code < 128) return {static_cast<char>(code)};
  return {static_cast<char>(0xc0 | (code >> 6)), static_cast<char>(0x80 | (code & 0x3f))};
}

// Byte-level tokenizers write a printable byte as the character of its number, and any other byte
// as the next character from number 256 on.
nlohmann::json byte_vocabulary() {
  nlohmann::json vocabulary;
  int next = 256;
  for (int byte = 0; byte < 256; ++byte) {
    const bool is_printable = (byte > 32 && byte < 127) || (byte > 160 && byte != 173);
    vocabulary[utf8(is_printable ? byte : next++)] = byte;
  }
  return vocabulary;
}

}  // namespace

Config small_config() {
  Config config;
  config.family = Family::kQwen3;
  config.vocab = kEnd + 1;
  config.hidden = 16;
  config.ffn = 24;
  config.layers = 2;
  config.heads = 2;
  config.kv_heads = 1;
  config.head_dim = 8;
  config.positions_max = 256;
  config.ends = {kEnd};
  return config;
}

Model small_model(const Config& config, uint64_t seed) {
  const auto added = [](int id, std::string_view text) {
    return nlohmann::json{{"id", id}, {"content", text}, {"special", true}};
  };
  const std::string json = nlohmann::json{
      {"model",
       {{"type", "BPE"}, {"vocab", byte_vocabulary()}, {"merges", nlohmann::json::array()}}},
      {"pre_tokenizer", {{"type", "ByteLevel"}, {"add_prefix_space", false}, {"use_regex", false}}},
      {"added_tokens",
       {added(kStart, kTurnStart),
        added(kEnd,
              kTurnEnd)}}}.dump();
  auto tokenizer = Tokenizer::parse(json);
  MC_CHECK(tokenizer);
  return {.config = config,
          .flat = random_weights(config, seed),
          .tokenizer = std::move(*tokenizer),
          .tokenizer_json = json};
}

}  // namespace mc::model
