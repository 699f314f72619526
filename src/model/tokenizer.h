// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE from a Hugging Face tokenizer.json: the tokenizers of GPT-2, Llama 3, Qwen and
// SmolLM2, and those that tools/make_tokenizer.py trains.
//
//   Text → added tokens cut out → NFC where the file asks for it → pre-tokens by regular
//   expressions → bytes as characters → merges in the order of their rank → ids
//
// Agrees with the `tokenizers` package on what it reads (tests/tokenizer_test.py); a file of
// another kind (WordPiece, Unigram, another normaliser) is refused by name.  No token is added that
// the text does not hold: neither a first nor a last one.
//
//   MC_TRY(Tokenizer tokenizer, Tokenizer::load(folder / "tokenizer.json"), "load the model");
//   std::vector<int32_t> ids = tokenizer.encode("hello");
//
// Thread-safe after construction.
#ifndef MC_MODEL_TOKENIZER_H_
#define MC_MODEL_TOKENIZER_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::model {

class Tokenizer {
 public:
  // kNotFound, or kInvalidInput with the part of the file that is wrong or not supported.
  static Result<Tokenizer> load(const std::filesystem::path& path);
  static Result<Tokenizer> parse(std::string_view json);
  Tokenizer(Tokenizer&& other) noexcept;
  Tokenizer& operator=(Tokenizer&& other) noexcept;
  ~Tokenizer();

  // Bytes that are not UTF-8 are read as U+FFFD.
  std::vector<int32_t> encode(std::string_view text) const;
  // The bytes that the tokens stand for, special ones included; a character that was cut is cut.
  // An id that is none stands for nothing.
  std::string decode(std::span<const int32_t> ids) const;
  // The id of the token with exactly this text (an added token's content, or a vocabulary entry).
  std::optional<int32_t> id_of(std::string_view token) const;
  // One more than the largest id.
  int64_t size() const;

 private:
  struct State;
  explicit Tokenizer(std::unique_ptr<const State> state);
  std::unique_ptr<const State> state_;
};

// `text` with each run of bytes that is not UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace mc::model

#endif  // MC_MODEL_TOKENIZER_H_
