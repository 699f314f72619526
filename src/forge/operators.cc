// SPDX-License-Identifier: Apache-2.0
#include "forge/operators.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numeric>

namespace mc::forge {
namespace {

double sigmoid(double v) { return 1 / (1 + std::exp(-v)); }
double softplus(double v) { return std::max(v, 0.0) + std::log1p(std::exp(-std::abs(v))); }
double clamp(double v, double low, double high) { return std::min(std::max(v, low), high); }

using Row = std::span<const double>;
using Out = std::span<double>;

double sum_of(Row row) { return std::accumulate(row.begin(), row.end(), 0.0); }
double mean_of(Row row) { return sum_of(row) / static_cast<double>(row.size()); }
double max_of(Row row) { return *std::ranges::max_element(row); }
double squares_of(Row row, double centre) {
  double sum = 0;
  for (const double v : row) sum += (v - centre) * (v - centre);
  return sum;
}
double exponentials_of(Row row) {
  double sum = 0;
  for (const double v : row) sum += std::exp(v - max_of(row));
  return sum;
}

constexpr double kEps = 1e-5;

// The row operators in double precision.

double mean_square_of(Row row, double centre) {
  return squares_of(row, centre) / static_cast<double>(row.size());
}
double norm_scale_of(Row row, double centre) {
  return 1 / std::sqrt(mean_square_of(row, centre) + kEps);
}

void eval_sum(Row row, Row, Row, Out out) { out[0] = sum_of(row); }
void eval_mean(Row row, Row, Row, Out out) { out[0] = mean_of(row); }
void eval_max(Row row, Row, Row, Out out) { out[0] = max_of(row); }
void eval_min(Row row, Row, Row, Out out) { out[0] = *std::ranges::min_element(row); }
void eval_norm(Row row, Row, Row, Out out) { out[0] = std::sqrt(squares_of(row, 0)); }
void eval_l1_norm(Row row, Row, Row, Out out) {
  out[0] = 0;
  for (const double v : row) out[0] += std::abs(v);
}
void eval_mean_square(Row row, Row, Row, Out out) { out[0] = mean_square_of(row, 0); }
void eval_var(Row row, Row, Row, Out out) { out[0] = mean_square_of(row, mean_of(row)); }
void eval_logsumexp(Row row, Row, Row, Out out) {
  out[0] = max_of(row) + std::log(exponentials_of(row));
}
void eval_softmax(Row row, Row, Row, Out out) {
  const double top_v = max_of(row), sum = exponentials_of(row);
  for (size_t j = 0; j < row.size(); ++j) out[j] = std::exp(row[j] - top_v) / sum;
}
void eval_log_softmax(Row row, Row, Row, Out out) {
  const double shift = max_of(row) + std::log(exponentials_of(row));
  for (size_t j = 0; j < row.size(); ++j) out[j] = row[j] - shift;
}
void eval_softmin(Row row, Row, Row, Out out) {
  const double low = *std::ranges::min_element(row);
  double sum = 0;
  for (const double v : row) sum += std::exp(low - v);
  for (size_t j = 0; j < row.size(); ++j) out[j] = std::exp(low - row[j]) / sum;
}
void eval_layer_norm(Row row, Row g, Row h, Out out) {
  const double mean_v = mean_of(row);
  const double scale = norm_scale_of(row, mean_v);
  for (size_t j = 0; j < row.size(); ++j) out[j] = (row[j] - mean_v) * scale * g[j] + h[j];
}
void eval_plain_layer_norm(Row row, Row, Row, Out out) {
  const double mean_v = mean_of(row);
  const double scale = norm_scale_of(row, mean_v);
  for (size_t j = 0; j < row.size(); ++j) out[j] = (row[j] - mean_v) * scale;
}
void eval_rms_norm(Row row, Row g, Row, Out out) {
  const double scale = norm_scale_of(row, 0);
  for (size_t j = 0; j < row.size(); ++j) out[j] = row[j] * scale * g[j];
}
void eval_normalize(Row row, Row, Row, Out out) {
  const double norm = std::max(std::sqrt(squares_of(row, 0)), 1e-12);
  for (size_t j = 0; j < row.size(); ++j) out[j] = row[j] / norm;
}
void eval_center(Row row, Row, Row, Out out) {
  const double mean_v = mean_of(row);
  for (size_t j = 0; j < row.size(); ++j) out[j] = row[j] - mean_v;
}

// clang-format off

// A pointwise operator in double precision: operands v and u, literals c and d.
#define MC_POINT(value)                                                                \
  []([[maybe_unused]] double v, [[maybe_unused]] double u, [[maybe_unused]] double c, \
     [[maybe_unused]] double d) -> double { return value; }

std::vector<Pointwise> make_pointwise() {
  const std::vector<const char*> scalars = {"0.5", "2.0", "1.5", "0.25", "3.0", "0.1", "0.75"};
  const std::vector<const char*> slopes = {"0.1", "0.2", "0.01", "0.3"};
  const std::vector<const char*> alphas = {"1.0", "0.5", "2.0", "1.5"};
  return {
      // name, PyTorch, layer, CUDA, value, formula, literals, domain, is_binary
      {"relu", {"torch.relu({x})", "F.relu({x})", "{x}.relu()"}, "nn.ReLU()", "fmaxf(v, 0.0f)",
       MC_POINT(std::max(v, 0.0)), "max(v, 0)", {}},
      {"sigmoid", {"torch.sigmoid({x})", "{x}.sigmoid()"}, "nn.Sigmoid()",
       "1.0f / (1.0f + expf(-v))", MC_POINT(sigmoid(v)), "1 / (1 + exp(-v))", {}},
      {"tanh", {"torch.tanh({x})", "{x}.tanh()"}, "nn.Tanh()", "tanhf(v)", MC_POINT(std::tanh(v)),
       "tanh(v)", {}},
      {"mul_scalar", {"{x} * {c}", "torch.mul({x}, {c})"}, "", "v * {c}", MC_POINT(v * c),
       "v * {c}", scalars},
      {"add_scalar", {"{x} + {c}", "torch.add({x}, {c})"}, "", "v + {c}", MC_POINT(v + c),
       "v + {c}", scalars},
      {"sub_scalar", {"{x} - {c}", "torch.sub({x}, {c})"}, "", "v - {c}", MC_POINT(v - c),
       "v - {c}", scalars},
      {"rsub_scalar", {"{c} - {x}"}, "", "{c} - v", MC_POINT(c - v), "{c} - v", scalars},
      {"div_scalar", {"{x} / {c}", "torch.div({x}, {c})"}, "", "v / {c}", MC_POINT(v / c),
       "v / {c}", scalars},
      {"neg", {"-{x}", "torch.neg({x})"}, "", "-v", MC_POINT(-v), "-v", {}},
      {"abs", {"torch.abs({x})", "{x}.abs()"}, "", "fabsf(v)", MC_POINT(std::abs(v)), "|v|", {}},
      {"square", {"torch.square({x})", "{x} ** 2"}, "", "v * v", MC_POINT(v * v), "v * v", {}},
      {"exp", {"torch.exp({x})", "{x}.exp()"}, "", "expf(v)", MC_POINT(std::exp(v)), "exp(v)", {},
       Domain::kModerate},
      {"expm1", {"torch.expm1({x})"}, "", "expm1f(v)", MC_POINT(std::expm1(v)), "exp(v) - 1", {},
       Domain::kModerate},
      {"sqrt", {"torch.sqrt({x})", "{x}.sqrt()"}, "", "sqrtf(v)", MC_POINT(std::sqrt(v)), "sqrt(v)",
       {}, Domain::kNotNegative},
      {"log1p", {"torch.log1p({x})"}, "", "log1pf(v)", MC_POINT(std::log1p(v)), "log(1 + v)", {},
       Domain::kNotNegative},
      {"log", {"torch.log({x})", "{x}.log()"}, "", "logf(v)", MC_POINT(std::log(v)), "log(v)", {},
       Domain::kPositive},
      {"rsqrt", {"torch.rsqrt({x})"}, "", "rsqrtf(v)", MC_POINT(1 / std::sqrt(v)), "1 / sqrt(v)",
       {}, Domain::kPositive},
      {"reciprocal", {"torch.reciprocal({x})", "1.0 / {x}"}, "", "1.0f / v", MC_POINT(1 / v),
       "1 / v", {}, Domain::kPositive},
      {"sin", {"torch.sin({x})"}, "", "sinf(v)", MC_POINT(std::sin(v)), "sin(v)", {},
       Domain::kModerate},
      {"cos", {"torch.cos({x})"}, "", "cosf(v)", MC_POINT(std::cos(v)), "cos(v)", {},
       Domain::kModerate},
      {"leaky_relu", {"F.leaky_relu({x}, {c})", "F.leaky_relu({x}, negative_slope={c})"},
       "nn.LeakyReLU({c})", "v > 0.0f ? v : v * {c}", MC_POINT(v > 0 ? v : v * c),
       "v if v > 0 else {c} * v", slopes},
      {"elu", {"F.elu({x}, {c})", "F.elu({x}, alpha={c})"}, "nn.ELU({c})",
       "v > 0.0f ? v : {c} * expm1f(v)", MC_POINT(v > 0 ? v : c * std::expm1(v)),
       "v if v > 0 else {c} * (exp(v) - 1)", alphas},
      {"celu", {"F.celu({x}, {c})"}, "nn.CELU({c})",
       "fmaxf(v, 0.0f) + fminf(0.0f, {c} * expm1f(v / {c}))",
       MC_POINT(std::max(v, 0.0) + std::min(0.0, c * std::expm1(v / c))),
       "max(v, 0) + min(0, {c} * (exp(v / {c}) - 1))", {"0.5", "2.0", "1.5"}},
      {"selu", {"F.selu({x})", "torch.selu({x})"}, "nn.SELU()",
       "1.0507009873554805f * (v > 0.0f ? v : 1.6732632423543772f * expm1f(v))",
       MC_POINT(1.0507009873554804934193349852946 *
                (v > 0 ? v : 1.6732632423543772848170429916717 * std::expm1(v))),
       "1.0507 * (v if v > 0 else 1.6733 * (exp(v) - 1))", {}},
      {"silu", {"F.silu({x})", "{x} * torch.sigmoid({x})"}, "nn.SiLU()", "v / (1.0f + expf(-v))",
       MC_POINT(v * sigmoid(v)), "v / (1 + exp(-v))", {}},
      {"gelu", {"F.gelu({x})"}, "nn.GELU()", "0.5f * v * (1.0f + erff(v * 0.70710678f))",
       MC_POINT(0.5 * v * (1 + std::erf(v / std::sqrt(2.0)))), "v * (1 + erf(v / sqrt(2))) / 2",
       {}},
      {"gelu_tanh", {"F.gelu({x}, approximate=\"tanh\")"}, "nn.GELU(approximate=\"tanh\")",
       "0.5f * v * (1.0f + tanhf(0.79788456f * (v + 0.044715f * v * v * v)))",
       MC_POINT(0.5 * v * (1 + std::tanh(std::sqrt(2 / M_PI) * (v + 0.044715 * v * v * v)))),
       "v * (1 + tanh(sqrt(2 / pi) * (v + 0.044715 * v^3))) / 2", {}},
      {"softplus", {"F.softplus({x})"}, "nn.Softplus()", "fmaxf(v, 0.0f) + log1pf(expf(-fabsf(v)))",
       MC_POINT(softplus(v)), "max(v, 0) + log(1 + exp(-|v|))", {}},
      {"logsigmoid", {"F.logsigmoid({x})"}, "nn.LogSigmoid()",
       "fminf(v, 0.0f) - log1pf(expf(-fabsf(v)))", MC_POINT(-softplus(-v)),
       "min(v, 0) - log(1 + exp(-|v|))", {}},
      {"softsign", {"F.softsign({x})"}, "nn.Softsign()", "v / (1.0f + fabsf(v))",
       MC_POINT(v / (1 + std::abs(v))), "v / (1 + |v|)", {}},
      {"mish", {"F.mish({x})"}, "nn.Mish()", "v * tanhf(fmaxf(v, 0.0f) + log1pf(expf(-fabsf(v))))",
       MC_POINT(v * std::tanh(softplus(v))), "v * tanh(max(v, 0) + log(1 + exp(-|v|)))", {}},
      {"tanhshrink", {"F.tanhshrink({x})", "{x} - torch.tanh({x})"}, "nn.Tanhshrink()",
       "v - tanhf(v)", MC_POINT(v - std::tanh(v)), "v - tanh(v)", {}},
      {"hardtanh", {"F.hardtanh({x})"}, "nn.Hardtanh()", "fminf(fmaxf(v, -1.0f), 1.0f)",
       MC_POINT(clamp(v, -1, 1)), "min(max(v, -1), 1)", {}},
      {"clamp", {"torch.clamp({x}, {c}, {d})", "{x}.clamp({c}, {d})"}, "",
       "fminf(fmaxf(v, {c}), {d})", MC_POINT(clamp(v, c, d)), "min(max(v, {c}), {d})",
       {"-0.5,0.5", "-1.0,2.0", "-0.25,1.5", "-2.0,0.75"}},
      {"relu6", {"F.relu6({x})"}, "nn.ReLU6()", "fminf(fmaxf(v, 0.0f), 6.0f)",
       MC_POINT(clamp(v, 0, 6)), "min(max(v, 0), 6)", {}},
      {"hardsigmoid", {"F.hardsigmoid({x})"}, "nn.Hardsigmoid()",
       "fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f", MC_POINT(clamp(v + 3, 0, 6) / 6),
       "min(max(v + 3, 0), 6) / 6", {}},
      {"hardswish", {"F.hardswish({x})"}, "nn.Hardswish()",
       "v * fminf(fmaxf(v + 3.0f, 0.0f), 6.0f) / 6.0f", MC_POINT(v * clamp(v + 3, 0, 6) / 6),
       "v * min(max(v + 3, 0), 6) / 6", {}},
      {"erf", {"torch.erf({x})"}, "", "erff(v)", MC_POINT(std::erf(v)), "erf(v)", {}},
      {"add", {"{x} + {u}", "torch.add({x}, {u})"}, "", "v + {u}", MC_POINT(v + u), "v + {u}", {},
       Domain::kAny, true},
      {"sub", {"{x} - {u}", "torch.sub({x}, {u})"}, "", "v - {u}", MC_POINT(v - u), "v - {u}", {},
       Domain::kAny, true},
      {"mul", {"{x} * {u}", "torch.mul({x}, {u})"}, "", "v * {u}", MC_POINT(v * u), "v * {u}", {},
       Domain::kAny, true},
      {"maximum", {"torch.maximum({x}, {u})"}, "", "fmaxf(v, {u})", MC_POINT(std::max(v, u)),
       "max(v, {u})", {}, Domain::kAny, true},
      {"minimum", {"torch.minimum({x}, {u})"}, "", "fminf(v, {u})", MC_POINT(std::min(v, u)),
       "min(v, {u})", {}, Domain::kAny, true},
  };
}
#undef MC_POINT

std::vector<RowOperator> make_rows() {
  const auto kRed = Family::kReduction;
  const auto kSoft = Family::kSoftmax;
  const auto kNorm = Family::kNormalisation;
  const Pass mean{Combine::kSum, "v", "a / m"};
  const Pass top{Combine::kMax, "v", ""};
  const Pass exponentials{Combine::kSum, "expf(v - a)", ""};
  const Pass variance{Combine::kSum, "(v - a) * (v - a)", "b / m"};
  return {
      // name, family, PyTorch, layer, passes, out, reduces, parameters, value, formula
      {"sum", kRed, {"{x}.sum(dim=-1)", "torch.sum({x}, dim=-1)"}, "", {{Combine::kSum, "v", ""}},
       "a", true, 0, eval_sum, "sum of v over the row"},
      {"mean", kRed, {"{x}.mean(dim=-1)", "torch.mean({x}, dim=-1)"}, "", {mean}, "a", true, 0,
       eval_mean, "sum of v over the row, divided by m"},
      {"max", kRed, {"{x}.amax(dim=-1)", "torch.amax({x}, dim=-1)", "{x}.max(dim=-1).values"}, "",
       {top}, "a", true, 0, eval_max, "largest v of the row"},
      {"min", kRed, {"{x}.amin(dim=-1)", "torch.amin({x}, dim=-1)"}, "", {{Combine::kMin, "v", ""}},
       "a", true, 0, eval_min, "smallest v of the row"},
      {"norm", kRed, {"torch.linalg.vector_norm({x}, dim=-1)", "{x}.norm(dim=-1)"}, "",
       {{Combine::kSum, "v * v", ""}}, "sqrtf(a)", true, 0, eval_norm,
       "square root of the sum of v * v over the row"},
      {"l1_norm", kRed, {"{x}.abs().sum(dim=-1)", "torch.linalg.vector_norm({x}, ord=1, dim=-1)"},
       "", {{Combine::kSum, "fabsf(v)", ""}}, "a", true, 0, eval_l1_norm,
       "sum of |v| over the row"},
      {"mean_square", kRed, {"{x}.square().mean(dim=-1)", "({x} ** 2).mean(dim=-1)"}, "",
       {{Combine::kSum, "v * v", ""}}, "a / m", true, 0, eval_mean_square,
       "sum of v * v over the row, divided by m"},
      {"var", kRed, {"torch.var({x}, dim=-1, correction=0)", "{x}.var(dim=-1, correction=0)"}, "",
       {mean, variance}, "b", true, 0, eval_var, "mean of (v - mean)^2 over the row"},
      {"logsumexp", kRed, {"torch.logsumexp({x}, dim=-1)", "{x}.logsumexp(dim=-1)"}, "",
       {top, exponentials}, "a + logf(b)", true, 0, eval_logsumexp,
       "max + log of the sum of exp(v - max) over the row"},
      {"softmax", kSoft,
       {"torch.softmax({x}, dim=-1)", "F.softmax({x}, dim=-1)", "{x}.softmax(dim=-1)"},
       "nn.Softmax(dim=-1)", {top, exponentials}, "expf(v - a) / b", false, 0, eval_softmax,
       "exp(v - max) / sum of exp(v - max) over the row"},
      {"log_softmax", kSoft, {"torch.log_softmax({x}, dim=-1)", "F.log_softmax({x}, dim=-1)"},
       "nn.LogSoftmax(dim=-1)", {top, exponentials}, "v - a - logf(b)", false, 0, eval_log_softmax,
       "v - max - log of the sum of exp(v - max) over the row"},
      {"softmin", kSoft, {"F.softmin({x}, dim=-1)", "torch.softmax(-{x}, dim=-1)"}, "",
       {{Combine::kMin, "v", ""}, {Combine::kSum, "expf(a - v)", ""}}, "expf(a - v) / b", false, 0,
       eval_softmin, "exp(min - v) / sum of exp(min - v) over the row"},
      {"layer_norm", kNorm, {}, "nn.LayerNorm({m})", {mean, variance},
       "(v - a) * rsqrtf(b + 1e-5f) * g[j] + h[j]", false, 2, eval_layer_norm,
       "(v - mean) / sqrt(var + 1e-5) * g[j] + h[j]"},
      {"plain_layer_norm", kNorm, {"F.layer_norm({x}, {x}.shape[-1:])"}, "", {mean, variance},
       "(v - a) * rsqrtf(b + 1e-5f)", false, 0, eval_plain_layer_norm,
       "(v - mean) / sqrt(var + 1e-5)"},
      {"rms_norm", kNorm, {}, "nn.RMSNorm({m}, eps=1e-5)", {{Combine::kSum, "v * v", "a / m"}},
       "v * rsqrtf(a + 1e-5f) * g[j]", false, 1, eval_rms_norm,
       "v / sqrt(mean of v * v + 1e-5) * g[j]"},
      {"normalize", kNorm, {"F.normalize({x}, dim=-1)"}, "", {{Combine::kSum, "v * v", ""}},
       "v / fmaxf(sqrtf(a), 1e-12f)", false, 0, eval_normalize,
       "v / max(square root of the sum of v * v, 1e-12)"},
      {"center", kNorm, {"{x} - {x}.mean(dim=-1, keepdim=True)"}, "", {mean}, "v - a", false, 0,
       eval_center, "v - mean of the row"},
  };
}

// clang-format on

template <typename Table>
auto find_in(const Table& table, std::string_view name) -> decltype(table.data()) {
  const auto found =
      std::ranges::find(table, name, [](const auto& row) { return std::string_view(row.name); });
  return found == table.end() ? nullptr : &*found;
}

}  // namespace

const char* family_name(Family family) {
  switch (family) {
    case Family::kElementwise:
      return "elementwise";
    case Family::kBroadcast:
      return "broadcast";
    case Family::kReduction:
      return "reduction";
    case Family::kSoftmax:
      return "softmax";
    case Family::kNormalisation:
      return "normalisation";
    case Family::kMatmul:
      return "matmul";
  }
  return "";
}

const std::vector<Pointwise>& pointwise_operators() {
  static const std::vector<Pointwise> table = make_pointwise();
  return table;
}

const std::vector<RowOperator>& row_operators() {
  static const std::vector<RowOperator> table = make_rows();
  return table;
}

const std::vector<Head>& heads() {
  static const std::vector<Head> table = {
      {"outer_add", Family::kBroadcast, "{x} + {u}", "x[i] + y[j]"},
      {"outer_mul", Family::kBroadcast, "{x} * {u}", "x[i] * y[j]"},
      {"outer_sub", Family::kBroadcast, "{x} - {u}", "x[i] - y[j]"},
      {"matmul", Family::kMatmul, "torch.matmul({x}, {u})", "sum over l of x[i][l] * y[l][j]"},
      {"matmul_t", Family::kMatmul, "torch.matmul({x}, {u}.t())",
       "sum over l of x[i][l] * y[j][l]"},
      {"linear", Family::kMatmul, "", "sum over l of x[i][l] * w[j][l], plus b[j]"},
      {"linear_no_bias", Family::kMatmul, "", "sum over l of x[i][l] * w[j][l]"},
  };
  return table;
}

const Pointwise* find_pointwise(std::string_view name) {
  return find_in(pointwise_operators(), name);
}
const RowOperator* find_row_operator(std::string_view name) {
  return find_in(row_operators(), name);
}

std::string substituted(std::string text, std::string_view key, std::string_view value) {
  for (size_t at = 0; (at = text.find(key, at)) != std::string::npos; at += value.size()) {
    text.replace(at, key.size(), value);
  }
  return text;
}

}  // namespace mc::forge
