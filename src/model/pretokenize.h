// SPDX-License-Identifier: Apache-2.0
//
// Splitting text into pre-tokens by regular expressions, as the pre-tokenisers "Split", "Digits"
// and "ByteLevel" of tokenizer.json do.  PCRE2 runs the expressions with Unicode properties; \s is
// the Unicode property White_Space, as in the engine that those files are written for.
#ifndef MC_MODEL_PRETOKENIZE_H_
#define MC_MODEL_PRETOKENIZE_H_

#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"

namespace mc::model {

// GPT-2's expression, which "ByteLevel" uses by itself.
extern const std::string_view kGpt2Pattern;

class Splitter {
 public:
  // The fate of the text that matches: a piece of its own, or nothing.  The text between two
  // matches is a piece of its own too.
  enum class Behavior { kIsolated, kRemoved };

  // kInvalidInput when the expression does not compile.
  static Result<Splitter> create(std::string_view pattern, Behavior behavior);
  Splitter(Splitter&& other) noexcept;
  Splitter& operator=(Splitter&& other) noexcept;
  ~Splitter();

  // Appends the pieces of `text`, which is valid UTF-8; none is empty.  They point into `text`.
  void split(std::string_view text, std::vector<std::string_view>& pieces) const;

 private:
  struct Code;
  Splitter(std::unique_ptr<Code> code, Behavior behavior);
  std::unique_ptr<Code> code_;
  Behavior behavior_;
};

}  // namespace mc::model

#endif  // MC_MODEL_PRETOKENIZE_H_
