// SPDX-License-Identifier: Apache-2.0
//
// Byte-level BPE from a Hugging Face tokenizer.json: the tokenizers of GPT-2, Llama 3, Qwen and
// SmolLM2, and those that tools/make_tokenizer.py trains.
//
//   Text → added tokens cut out → NFC if the file requires it → pre-tokens by regular
//   expressions → bytes as characters → merges in the order of their rank → ids
//
// The results agree with the `tokenizers` package for all files that are supported
// (tests/tokenizer_test.py); a file of another kind (WordPiece, Unigram, another normalizer) is
// rejected by name.  No token is added that the text does not contain: neither at the start nor at
// the end.
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
  // kNotFound, or kInvalidInput, which names the part of the file that is wrong or not supported.
  static Result<Tokenizer> load(const std::filesystem::path& path);
  static Result<Tokenizer> parse(std::string_view json);
  Tokenizer(Tokenizer&& other) noexcept;
  Tokenizer& operator=(Tokenizer&& other) noexcept;
  ~Tokenizer();

  // Encodes a text; bytes that are not valid UTF-8 are read as U+FFFD.
  std::vector<int32_t> encode(std::string_view text) const;
  // The bytes of the tokens, including special ones; the result may begin or end within a
  // character. Unknown ids are skipped.
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

// `text` with each run of invalid UTF-8 replaced by U+FFFD.
std::string valid_utf8(std::string_view text);

}  // namespace mc::model

#endif  // MC_MODEL_TOKENIZER_H_
