// SPDX-License-Identifier: Apache-2.0
#include "forge/expr.h"

#include <algorithm>
#include <cmath>
#include <cstdint>
#include <limits>
#include <map>
#include <set>

#include <fmt/format.h>

#include "core/check.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

using Kind = Expr::Kind;

const std::set<std::string, std::less<>> kFloats = {"v", "u", "w", "a", "b",
                                                    "s", "f", "c", "d", "inf"};

struct Level {
  std::string_view sign;
  int precedence;
};
// A longer operator precedes its prefixes.
constexpr Level kLevels[] = {{"||", 2}, {"&&", 3}, {"|", 4},  {"^", 5},  {"&", 6},  {"==", 7},
                             {"!=", 7}, {"<<", 9}, {">>", 9}, {"<=", 8}, {">=", 8}, {"<", 8},
                             {">", 8},  {"+", 10}, {"-", 10}, {"*", 11}, {"/", 11}, {"%", 11}};
constexpr int kComparisonPrecedence = 8;
constexpr int kSelectPrecedence = 1;
constexpr int kUnaryPrecedence = 12;
constexpr int kPrimaryPrecedence = 13;

// The operator with which a text begins, or null.
const Level* level_at(std::string_view text) {
  for (const Level& level : kLevels) {
    if (text.starts_with(level.sign)) return &level;
  }
  return nullptr;
}

int precedence_of(std::string_view sign) {
  for (const Level& level : kLevels) {
    if (level.sign == sign) return level.precedence;
  }
  return kPrimaryPrecedence;
}

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

class Parser {
 public:
  Parser(std::string_view text, const std::set<std::string>& integers)
      : text_(text), integers_(integers) {}

  Result<Expr> run() {
    Expr expr = select();
    skip();
    if (is_wrong_ || at_ != text_.size()) {
      return invalid(fmt::format("\"{}\" is not a formula: look at character {}", text_, at_ + 1));
    }
    return expr;
  }

 private:
  void skip() {
    while (at_ < text_.size() && text_[at_] == ' ') ++at_;
  }
  bool take(std::string_view sign) {
    skip();
    if (!text_.substr(at_).starts_with(sign)) return false;
    at_ += sign.size();
    return true;
  }
  void need(std::string_view sign) { is_wrong_ = is_wrong_ || !take(sign); }

  Expr select() {
    Expr condition = binary(2);
    if (!take("?")) return condition;
    Expr yes = select();
    need(":");
    Expr no = select();
    const bool is_int = yes.is_int && no.is_int;
    return {Kind::kSelect, "?", {std::move(condition), std::move(yes), std::move(no)}, is_int};
  }

  Expr binary(int precedence) {
    if (precedence >= kUnaryPrecedence) return unary();
    Expr left = binary(precedence + 1);
    for (;;) {
      skip();
      const Level* found = level_at(text_.substr(at_));
      if (found == nullptr || found->precedence != precedence || is_default() || is_wrong_) {
        return left;
      }
      at_ += found->sign.size();
      Expr right = binary(precedence + 1);
      const bool is_int = (left.is_int && right.is_int) || precedence <= kComparisonPrecedence;
      left = {Kind::kBinary, std::string(found->sign), {std::move(left), std::move(right)}, is_int};
    }
  }

  // True at the bar of an access, after which the default value follows: "x[n - 1 | 0.0]".
  bool is_default() const { return text_.substr(at_, 1) == "|" && num_accesses_ > 0; }

  Expr unary() {
    if (take("-")) {
      Expr inner = unary();
      const bool is_int = inner.is_int;
      return {Kind::kUnary, "-", {std::move(inner)}, is_int};
    }
    if (take("(")) {
      Expr inner = select();
      need(")");
      return inner;
    }
    skip();
    if (at_ < text_.size() && std::isdigit(static_cast<unsigned char>(text_[at_])) != 0) {
      return number();
    }
    return named();
  }

  Expr number() {
    const size_t begin = at_;
    while (at_ < text_.size()) {
      const bool is_exponent =
          at_ > begin && (text_[at_ - 1] == 'e') && (text_[at_] == '-' || text_[at_] == '+');
      if (!is_word(text_[at_]) && text_[at_] != '.' && !is_exponent) break;
      ++at_;
    }
    Expr expr;
    expr.text = text_.substr(begin, at_ - begin);
    expr.is_int = expr.text.find_first_of(".e") == std::string::npos;
    try {
      expr.number = std::stod(expr.text);
    } catch (const std::exception&) {
      is_wrong_ = true;
    }
    return expr;
  }

  Expr named() {
    const size_t begin = at_;
    while (at_ < text_.size() && is_word(text_[at_])) ++at_;
    Expr expr;
    expr.kind = Kind::kName;
    expr.text = text_.substr(begin, at_ - begin);
    is_wrong_ = is_wrong_ || expr.text.empty();
    if (is_wrong_) return expr;
    if (take("(")) {
      expr.kind = Kind::kCall;
      do expr.args.push_back(select());
      while (take(","));
      need(")");
      expr.is_int = expr.text == "int" ||
                    ((expr.text == "max" || expr.text == "min") &&
                     std::ranges::all_of(expr.args, [](const Expr& arg) { return arg.is_int; }));
    } else if (take("[")) {
      expr.kind = Kind::kAccess;
      ++num_accesses_;
      do expr.args.push_back(select());
      while (take(","));
      --num_accesses_;
      if (take("|")) {
        expr.has_default = true;
        expr.args.push_back(select());
      }
      need("]");
      expr.is_int = expr.text.starts_with("index");
    } else {
      expr.is_int = !kFloats.contains(expr.text) || integers_.contains(expr.text);
    }
    return expr;
  }

  std::string_view text_;
  const std::set<std::string>& integers_;
  size_t at_ = 0;
  int num_accesses_ = 0;  // The number of open accesses.
  bool is_wrong_ = false;
};

double call(const std::string& name, double x, double y) {
  using Function = double (*)(double, double);
  static const std::map<std::string, Function, std::less<>> kFunctions = {
      {"exp", [](double v, double) { return std::exp(v); }},
      {"log", [](double v, double) { return std::log(v); }},
      {"sqrt", [](double v, double) { return std::sqrt(v); }},
      {"rsqrt", [](double v, double) { return 1 / std::sqrt(v); }},
      {"tanh", [](double v, double) { return std::tanh(v); }},
      {"erf", [](double v, double) { return std::erf(v); }},
      {"abs", [](double v, double) { return std::abs(v); }},
      {"sin", [](double v, double) { return std::sin(v); }},
      {"cos", [](double v, double) { return std::cos(v); }},
      {"atan", [](double v, double) { return std::atan(v); }},
      {"sinh", [](double v, double) { return std::sinh(v); }},
      {"cosh", [](double v, double) { return std::cosh(v); }},
      {"asinh", [](double v, double) { return std::asinh(v); }},
      {"log1p", [](double v, double) { return std::log1p(v); }},
      {"expm1", [](double v, double) { return std::expm1(v); }},
      {"log2", [](double v, double) { return std::log2(v); }},
      {"exp2", [](double v, double) { return std::exp2(v); }},
      {"pow", [](double v, double u) { return std::pow(v, u); }},
      {"atan2", [](double v, double u) { return std::atan2(v, u); }},
      {"hypot", [](double v, double u) { return std::hypot(v, u); }},
      {"max", [](double v, double u) { return std::max(v, u); }},
      {"min", [](double v, double u) { return std::min(v, u); }},
      {"int", [](double v, double) { return std::trunc(v); }},
      {"float", [](double v, double) { return v; }},
  };
  const auto found = kFunctions.find(name);
  MC_CHECK(found != kFunctions.end());
  return found->second(x, y);
}

bool is_literal(const Expr& expr) {
  if (expr.kind == Kind::kUnary) return is_literal(expr.args[0]);
  const bool is_named = expr.kind == Kind::kName && (expr.text == "c" || expr.text == "d");
  return expr.kind == Kind::kNumber || is_named;
}

double bits(const std::string& sign, int64_t x, int64_t y) {
  if (sign == "&") return static_cast<double>(x & y);
  if (sign == "|") return static_cast<double>(x | y);
  if (sign == "^") return static_cast<double>(x ^ y);
  return static_cast<double>(sign == "<<" ? x << y : x >> y);
}

double combined(const Expr& expr, double x, double y) {
  const std::string& sign = expr.text;
  if (sign == "+") return x + y;
  if (sign == "-") return x - y;
  if (sign == "*") return x * y;
  const bool is_whole = expr.args[0].is_int && expr.args[1].is_int;
  if (sign == "/") return is_whole ? (y == 0 ? 0 : std::trunc(x / y)) : x / y;
  if (sign == "%") return y == 0 ? 0 : std::fmod(x, y);
  if (sign == "<") return x < y ? 1 : 0;
  if (sign == ">") return x > y ? 1 : 0;
  if (sign == "<=") return x <= y ? 1 : 0;
  if (sign == ">=") return x >= y ? 1 : 0;
  if (sign == "==") return x == y ? 1 : 0;
  if (sign == "!=") return x != y ? 1 : 0;
  if (sign == "&&") return x != 0 && y != 0 ? 1 : 0;
  if (sign == "||") return x != 0 || y != 0 ? 1 : 0;
  return bits(sign, static_cast<int64_t>(x), static_cast<int64_t>(y));
}

// The evaluator for both kinds of environments.
template <typename Name, typename Access>
double evaluated(const Expr& expr, const Name& name, const Access& access) {
  const auto inner = [&](size_t i) { return evaluated(expr.args[i], name, access); };
  switch (expr.kind) {
    case Kind::kNumber:
      return expr.number;
    case Kind::kName:
      return expr.text == "inf" ? std::numeric_limits<double>::infinity() : name(expr);
    case Kind::kUnary:
      return -inner(0);
    case Kind::kBinary:
      return combined(expr, inner(0), inner(1));
    case Kind::kSelect:
      return inner(0) != 0 ? inner(1) : inner(2);
    case Kind::kCall:
      return call(expr.text, inner(0), expr.args.size() > 1 ? inner(1) : 0);
    case Kind::kAccess:
      return access(expr);
  }
  MC_CHECK(false);
}

class Printer {
 public:
  explicit Printer(const Spelling& spelling) : spelling_(spelling) {}

  std::string print(const Expr& expr, int outer) const {
    const auto [text, precedence] = printed(expr);
    return precedence < outer ? "(" + text + ")" : text;
  }

 private:
  struct Printed {
    std::string text;
    int precedence;
  };

  Printed printed(const Expr& expr) const {
    switch (expr.kind) {
      case Kind::kNumber:
        return {expr.is_int ? expr.text : expr.text + "f", kPrimaryPrecedence};
      case Kind::kName:
        return name(expr);
      case Kind::kUnary:
        return {"-" + print(expr.args[0], kUnaryPrecedence), kUnaryPrecedence};
      case Kind::kBinary:
        return binary(expr);
      case Kind::kSelect:
        return {fmt::format("{} ? {} : {}", print(expr.args[0], 2), print(expr.args[1], 1),
                            print(expr.args[2], 1)),
                kSelectPrecedence};
      case Kind::kCall:
        return {called(expr), kPrimaryPrecedence};
      case Kind::kAccess: {
        std::string text = spelling_.access(expr);
        const bool is_choice = text.find(" ? ") != std::string::npos;
        return {std::move(text), is_choice ? kSelectPrecedence : kPrimaryPrecedence};
      }
    }
    MC_CHECK(false);
  }

  Printed name(const Expr& expr) const {
    if (expr.text == "inf") return {"INFINITY", kPrimaryPrecedence};
    std::string text = spelling_.name(expr.text);
    const bool is_word = text.find(' ') == std::string::npos;
    return {std::move(text), is_word ? kPrimaryPrecedence : kSelectPrecedence};
  }

  Printed binary(const Expr& expr) const {
    const int precedence = precedence_of(expr.text);
    const bool is_sum_or_product = expr.text == "+" || expr.text == "*";
    return {fmt::format("{} {} {}", print(expr.args[0], precedence), expr.text,
                        print(expr.args[1], precedence + (is_sum_or_product ? 0 : 1))),
            precedence};
  }

  std::string called(const Expr& expr) const {
    static const std::map<std::string, std::string, std::less<>> kNames = {{"abs", "fabsf"},
                                                                           {"max", "fmaxf"},
                                                                           {"min", "fminf"},
                                                                           {"int", "(int)"},
                                                                           {"float", "(float)"}};
    std::string name = expr.text + "f";
    if (const auto found = kNames.find(expr.text); found != kNames.end()) name = found->second;
    if (expr.is_int && expr.text != "int") name = expr.text;
    const bool is_choice = !expr.is_int && (expr.text == "max" || expr.text == "min");
    if (is_choice && !is_literal(expr.args[0]) && !is_literal(expr.args[1])) {
      name = expr.text == "max" ? "larger" : "smaller";
    }
    if (name.starts_with("(")) return name + print(expr.args[0], kUnaryPrecedence);
    std::string arguments;
    for (const Expr& arg : expr.args) {
      arguments += (arguments.empty() ? "" : ", ") + print(arg, 0);
    }
    const bool is_shifted = expr.text == "exp" && expr.args[0].kind == Kind::kBinary &&
                            expr.args[0].args[1].text == "a";
    return fmt::format("{}({})", name, is_shifted ? site("shift", arguments) : arguments);
  }

  const Spelling& spelling_;
};

}  // namespace

Result<Expr> parse_expr(std::string_view text, const std::set<std::string>& integers) {
  return Parser(text, integers).run();
}

Status bind_names(Expr& expr, std::vector<std::string>& names,
                  const std::vector<std::string>& tensors) {
  if (expr.kind == Kind::kName) {
    auto found = std::ranges::find(names, expr.text);
    if (found == names.end()) found = names.insert(names.end(), expr.text);
    expr.slot = static_cast<int>(found - names.begin());
  }
  if (expr.kind == Kind::kAccess) {
    const auto found = std::ranges::find(tensors, expr.text);
    if (found == tensors.end()) {
      return invalid("there is no operand " + expr.text);
    }
    expr.slot = static_cast<int>(found - tensors.begin());
  }
  for (Expr& arg : expr.args) MC_TRY_VOID(bind_names(arg, names, tensors), "formula");
  return ok();
}

double evaluate(const Expr& expr, std::span<const double> values, const ReadElement& read) {
  const auto name = [&](const Expr& found) { return values[static_cast<size_t>(found.slot)]; };
  const std::function<double(const Expr&)> access = [&](const Expr& found) {
    int index[8];
    const size_t count = found.args.size() - (found.has_default ? 1 : 0);
    for (size_t i = 0; i < count; ++i) {
      index[i] = static_cast<int>(evaluated(found.args[i], name, access));
    }
    if (const auto value = read(found.slot, std::span(index, count))) return *value;
    return found.has_default ? evaluated(found.args.back(), name, access)
                             : std::numeric_limits<double>::quiet_NaN();
  };
  return evaluated(expr, name, access);
}

double evaluate_with(const Expr& expr, const std::function<double(const std::string&)>& value) {
  return evaluated(
      expr, [&](const Expr& found) { return value(found.text); }, [](const Expr&) { return 0.0; });
}

std::string cuda_text(const Expr& expr, const Spelling& spelling) {
  return Printer(spelling).print(expr, 0);
}

std::string choice_functions(std::string_view cuda) {
  std::string text;
  for (const auto& [name, sign] : {std::pair("larger", '>'), std::pair("smaller", '<')}) {
    if (!has_word(cuda, name)) continue;
    text += fmt::format(
        "__device__ float {}(float a, float v) {{ return v {} a || v != v ? v : a; }}\n", name,
        sign);
  }
  return text;
}

bool mentions(const Expr& expr, std::string_view name) {
  if (expr.kind == Kind::kName && expr.text == name) return true;
  return std::ranges::any_of(expr.args, [&](const Expr& arg) { return mentions(arg, name); });
}

}  // namespace mc::forge
