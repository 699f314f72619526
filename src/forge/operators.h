// SPDX-License-Identifier: Apache-2.0
//
// The operator table: one row holds all that is known of an operator, and all that is rendered of
// it comes from its row: PyTorch in several spellings, CUDA, double precision, its literals.
//
// In texts `{x}` is the value, `{u}` the other operand, `{c}` and `{d}` literals; in CUDA the value
// is the variable `v`.
#ifndef MC_FORGE_OPERATORS_H_
#define MC_FORGE_OPERATORS_H_

#include <span>
#include <string>
#include <string_view>
#include <vector>

namespace mc::forge {

enum class Family { kElementwise, kBroadcast, kReduction, kSoftmax, kNormalisation, kMatmul };
inline constexpr Family kFamilies[] = {Family::kElementwise,   Family::kBroadcast,
                                       Family::kReduction,     Family::kSoftmax,
                                       Family::kNormalisation, Family::kMatmul};
const char* family_name(Family family);

// What a pointwise operator asks of its operand's values.
enum class Domain { kAny, kNotNegative, kPositive, kModerate };

// An operator that acts on each element by itself.
struct Pointwise {
  const char* name;
  std::vector<const char*> torch;  // Spellings, the plainest first.
  const char* layer;               // "nn.ReLU()", or "": usable as a layer of its own.
  const char* cuda;                // An expression of v (and {u}).
  double (*eval)(double v, double u, double c, double d);
  const char* text;                   // Its formula for people.
  std::vector<const char*> literals;  // Choices for c, or "c,d"; empty: it has none.
  Domain domain = Domain::kAny;
  bool is_binary = false;
};

enum class Combine { kSum, kMax, kMin };

// One pass over a row: a (or b) = finish(combine over j of element(v)).
struct Pass {
  Combine combine;
  const char* element;  // In v, and in `a` of the pass before.
  const char* finish;   // In the variable itself, m (the row's length); "" for none.
};

// An operator that looks at whole rows: passes, then an expression for each row (reductions) or
// each element (softmax, norms) in v, a, b, and the parameters g[j], h[j].
struct RowOperator {
  const char* name;
  Family family;
  std::vector<const char*> torch;
  const char* layer;  // With {m} for the row's length: "nn.LayerNorm({m})"; "" for none.
  std::vector<Pass> passes;
  const char* out;
  bool reduces;
  int num_parameters;  // 0, 1 (g) or 2 (g, h).
  void (*eval)(std::span<const double> row, std::span<const double> g, std::span<const double> h,
               std::span<double> out);
  const char* text;
};

// What stands at the beginning of a graph instead of one input.
struct Head {
  const char* name;
  Family family;
  const char* torch;  // Of {x} and {u}.
  const char* text;
};

const std::vector<Pointwise>& pointwise_operators();
const std::vector<RowOperator>& row_operators();
const std::vector<Head>& heads();

// Null where there is none of that name.
const Pointwise* find_pointwise(std::string_view name);
const RowOperator* find_row_operator(std::string_view name);

// `text` with every `key` replaced.
std::string substituted(std::string text, std::string_view key, std::string_view value);

}  // namespace mc::forge

#endif  // MC_FORGE_OPERATORS_H_
