// SPDX-License-Identifier: Apache-2.0
//
// A third visitor of a verdict's fields, beside those of verdict_json.cc: it sets each field to a
// random value of its type, or, where the schema lists the values, to one of these.
#include "task/testing/verdict_generator.h"

#include <array>
#include <cmath>
#include <map>
#include <optional>
#include <random>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "core/check.h"
#include "task/verdict_fields.h"

namespace mc::task {
namespace {

class Generator {
 public:
  Generator(uint64_t seed, size_t outcome_index) : random_(seed), outcome_index_(outcome_index) {}

  template <typename T>
  void operator()(std::string_view name, T& value) {
    if constexpr (std::is_same_v<T, std::string>) {
      if (const std::vector<std::string>* names = names_for(name)) {
        value = (*names)[below(names->size())];
        return;
      }
    }
    fill(value);
    if constexpr (std::is_same_v<T, double>) {
      if (name == "q") value = static_cast<double>(below(5)) / 5;
      if (name == "generality") value = static_cast<double>(below(5)) / 4;
    }
  }

 private:
  // The values of a field that the schema restricts to a list.
  static const std::vector<std::string>* names_for(std::string_view field) {
    static const std::map<std::string_view, std::vector<std::string>> kNames = {
        {"inputs", input_sets()},
        {"mode", modes()},
        {"precision", precisions()},
        {"timing", {"full", "quick", "none"}},
        {"grade", {"", "good", "weak", "trivial"}},
        {"state", {"off", "clean", "found", "not_run", "not_needed"}}};
    const auto found = kNames.find(field);
    return found == kNames.end() ? nullptr : &found->second;
  }

  size_t below(size_t n) { return random_() % n; }

  void fill(bool& value) { value = below(2) == 0; }
  void fill(int& value) { value = static_cast<int>(below(1000)); }
  void fill(int64_t& value) { value = static_cast<int64_t>(random_()); }
  void fill(WideRef& ref) { ref.value = random_(); }
  void fill(Backend& value) { value = static_cast<Backend>(below(3)); }
  void fill(Dialect& value) { value = kDialects[below(2)]; }
  void fill(double& value) {
    const auto mantissa = static_cast<double>(static_cast<int64_t>(random_()));
    value = std::ldexp(mantissa, static_cast<int>(below(200)) - 160);
  }
  void fill(std::string& value) {
    static const std::vector<std::string> kParts = {
        "row_sum",  " ",   "\n",       "\t", "\"",         "\\",  std::string(1, '\0'),
        "\x1b[31m", "é",   "カーネル", "😀", "<|im_end|>", "```", "}",
        "-0",       "\x7f"};
    for (size_t n = below(6); n > 0; --n) value += kParts[below(kParts.size())];
  }
  void fill(std::map<std::string, int64_t>& values) {
    for (size_t n = below(3); n > 0; --n) {
      std::string key;
      fill(key);
      fill(values[key]);
    }
  }
  void fill(std::array<int64_t, 3>& values) {
    for (int64_t& value : values) fill(value);
  }
  template <typename T>
  void fill(std::vector<T>& values) {
    values.resize(below(3));
    for (T& value : values) fill(value);
  }
  template <typename T>
  void fill(std::optional<T>& value) {
    if (below(2) == 0) fill(value.emplace());
  }
  void fill(Outcome& outcome) { fill_alternative<0>(outcome); }
  template <typename T>
    requires std::is_class_v<T>
  void fill(T& value) {
    fields(*this, value);
  }

  template <size_t I>
  void fill_alternative(Outcome& outcome) {
    if constexpr (I < std::variant_size_v<Outcome>) {
      if (outcome_index_ != I) return fill_alternative<I + 1>(outcome);
      fill(outcome.emplace<I>());
    }
  }

  std::mt19937_64 random_;
  const size_t outcome_index_;
};

}  // namespace

Verdict generate_verdict(uint64_t seed, size_t outcome_index) {
  MC_CHECK(outcome_index < std::variant_size_v<Outcome>);
  Generator generator(seed, outcome_index);
  Verdict verdict;
  fields(generator, verdict);
  return verdict;
}

}  // namespace mc::task
