// SPDX-License-Identifier: Apache-2.0
//
// Splits text into pre-tokens by regular expressions, like the pre-tokenizers "Split", "Digits" and
// "ByteLevel" of tokenizer.json.  PCRE2 runs the expressions with Unicode properties; \s means the
// Unicode property White_Space, as in the engine for which those files are written.
#ifndef MC_MODEL_PRETOKENIZE_H_
#define MC_MODEL_PRETOKENIZE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::model {

// The expression of GPT-2, which "ByteLevel" uses by default.
extern const std::string_view kGpt2Pattern;

class Splitter {
 public:
  // The treatment of text that matches: a piece of its own, or removed.  The text between two
  // matches is always a piece.
  enum class Behavior { kIsolated, kRemoved };

  // kInvalidInput if the expression does not compile.
  static Result<Splitter> create(std::string_view pattern, Behavior behavior);
  Splitter(Splitter&& other) noexcept;
  Splitter& operator=(Splitter&& other) noexcept;
  ~Splitter();

  // Appends the pieces of `text`, which is valid UTF-8.  No piece is empty.  They are views into
  // `text`.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Code;
  Splitter(std::unique_ptr<Code> code, Behavior behavior);
  std::unique_ptr<Code> code_;
  Behavior behavior_;
};

}  // namespace mc::model

#endif  // MC_MODEL_PRETOKENIZE_H_
