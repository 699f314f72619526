// SPDX-License-Identifier: Apache-2.0
//
// These tests check only the grammar; lab/texts/text_truth.py checks whether generated texts are
// true.
#include "forge/words.h"

#include <algorithm>
#include <set>

#include <gmock/gmock.h>

#include "forge/lessons.h"
#include "forge/mix.h"

namespace mc::forge {
namespace {

std::set<std::string> slots_of(const std::string& form) {
  std::set<std::string> names;
  for (size_t at = 0; (at = form.find('{', at)) != std::string::npos; ++at) {
    names.insert(form.substr(at, form.find('}', at) - at));
  }
  return names;
}

TEST(Words, HaveSixFormsWithTheSameSlots) {
  for (const auto& [name, forms] : grammar()) {
    EXPECT_GE(forms.size(), 6U) << name;
    EXPECT_EQ(std::set(forms.begin(), forms.end()).size(), forms.size()) << name;
    for (const std::string& form : forms)
      EXPECT_EQ(slots_of(form), slots_of(forms.front())) << form;
  }
}

TEST(Words, FillEverySlot) {
  for (const auto& [name, forms] : grammar()) {
    Slots slots;
    for (const std::string& slot : slots_of(forms.front())) slots[slot.substr(1)] = "7";
    for (uint64_t number = 0; number < 12; ++number) {
      Random random(1, "test", number);
      EXPECT_EQ(phrased(name, slots, random).find('{'), std::string::npos) << name;
    }
  }
}

TEST(Questions, AreDeterminedByTheirNumberAndCoverEveryTopic) {
  std::set<std::string> topics;
  for (uint64_t number = 0; number < 300; ++number) {
    const Question question = question_of(3, number);
    topics.insert(question.topic);
    EXPECT_EQ(question.told, question_of(3, number).told);
  }
  EXPECT_EQ(topics.size(), 8U);
}

TEST(Mix, RaisesWeakFamiliesAndLowersStableOnes) {
  const Weights weights =
      weights_of({{"softmax", {0, 40}}, {"reduction", {40, 40}}}, {"softmax", "reduction", "scan"});
  EXPECT_GT(weights.at("softmax"), 1.5);
  EXPECT_LT(weights.at("reduction"), 0.5);
  EXPECT_NEAR(weights.at("softmax") + weights.at("reduction") + weights.at("scan"), 3, 0.01);
  std::map<std::string, int> drawn;
  Random random(1, "mix", 0);
  for (int i = 0; i < 3000; ++i) ++drawn[drawn_family(weights, random)];
  EXPECT_NEAR(drawn["softmax"], 1000 * weights.at("softmax"), 100);
}

}  // namespace
}  // namespace mc::forge
