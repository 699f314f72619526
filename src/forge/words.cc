// SPDX-License-Identifier: Apache-2.0
#include "forge/words.h"

#include <nlohmann/json.hpp>

#include "core/check.h"
#include "forge/sentences.h"
#include "forge/text.h"

namespace mc::forge {

const Grammar& grammar() {
  static const Grammar kGrammar = nlohmann::json::parse(kSentences).get<Grammar>();
  return kGrammar;
}

std::string phrased(std::string_view sentence, const Slots& slots, Random& random) {
  const auto found = grammar().find(sentence);
  MC_CHECK(found != grammar().end());
  std::string text = random.pick(found->second);
  for (const auto& [name, value] : slots) {
    text = substituted(std::move(text), "{" + name + "}", value);
  }
  MC_CHECK(!text.empty());
  // A plan may begin a sentence.
  const bool begins_with_plan = text.starts_with("a ") || text.starts_with("one ") ||
                                text.starts_with("blocks ") || text.starts_with("vectors ");
  if (begins_with_plan) text.front() = upper(text.substr(0, 1)).front();
  return text;
}

}  // namespace mc::forge
