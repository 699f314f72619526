// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <bit>
#include <charconv>
#include <cstdlib>
#include <unordered_set>

#include "ptx/parser.h"

namespace mc::ptx {
namespace {

constexpr int kInitialDepthMax = 8;
constexpr int64_t kAlignMax = 1 << 20;

bool is_digit(char c) { return c >= '0' && c <= '9'; }

Space space_of(std::string_view directive) {
  if (directive == ".shared") return Space::kShared;
  if (directive == ".const") return Space::kConst;
  return Space::kGlobal;
}

bool is_variable_directive(std::string_view word) {
  return word == ".shared" || word == ".const" || word == ".global";
}

}  // namespace

Result<Module> parse(std::string_view text, const ParseLimits& limits) {
  if (static_cast<int64_t>(text.size()) > limits.text_bytes_max) {
    return invalid("a PTX module of " + std::to_string(text.size()) + " bytes, the limit is " +
                   std::to_string(limits.text_bytes_max));
  }
  // Drivers get such texts with a zero at the end.
  text = text.substr(0, text.find('\0'));
  return Parser(text, limits).run();
}

Result<Module> Parser::run() {
  while (!ended()) top_level();
  if (!error_) check_symbols();
  if (error_) return *error_;
  return std::move(module_);
}

Token Parser::next() {
  if (ended()) {
    fail("the text ends too early");
    return {};
  }
  last_line_ = lexer_.peek().line;
  return lexer_.next();
}

bool Parser::take(std::string_view word) {
  if (peek() != word || ended()) return false;
  next();
  return true;
}

void Parser::expect(std::string_view word) {
  if (take(word)) return;
  const std::string found = ended() ? "the end of the text" : '"' + std::string(peek()) + '"';
  fail("expected \"" + std::string(word) + "\", found " + found);
}

void Parser::fail(const std::string& what) {
  if (error_) return;
  const int line = lexer_.peek().text.empty() ? last_line_ : lexer_.peek().line;
  error_ = invalid("PTX line " + std::to_string(line) + ": " + what.substr(0, 400));
}

std::string Parser::name() {
  const Token token = next();
  const bool is_name =
      !token.text.empty() && (std::isalpha(static_cast<unsigned char>(token.text[0])) ||
                              token.text[0] == '_' || token.text[0] == '$' || token.text[0] == '%');
  if (!is_name) fail("expected a name, found \"" + std::string(token.text) + '"');
  return std::string(token.text);
}

bool Parser::number(std::string_view word, Operand& operand) {
  const bool is_bits = word.size() > 2 && word[0] == '0' &&
                       std::string_view("fFdD").find(word[1]) != std::string_view::npos;
  const bool is_hex = word.starts_with("0x") || word.starts_with("0X");
  const bool is_binary = word.starts_with("0b") || word.starts_with("0B");
  const bool is_decimal = word.find('.') != std::string_view::npos;
  operand.kind = is_bits || is_decimal ? Operand::Kind::kFloat : Operand::Kind::kInteger;
  if (is_decimal && !is_bits) {
    char* end = nullptr;
    const std::string text(word);
    operand.type = Type::kF64;
    operand.value = std::bit_cast<int64_t>(std::strtod(text.c_str(), &end));
    return end == text.c_str() + text.size();
  }
  if (is_bits) operand.type = std::tolower(word[1]) == 'f' ? Type::kF32 : Type::kF64;
  if (!is_bits && !is_hex && (word.ends_with('U') || word.ends_with('u'))) word.remove_suffix(1);
  const bool is_octal = !is_bits && !is_hex && !is_binary && word.size() > 1 && word[0] == '0';
  const int base = is_bits || is_hex ? 16 : is_binary ? 2 : is_octal ? 8 : 10;
  word.remove_prefix(is_bits || is_hex || is_binary ? 2 : 0);
  if (is_hex && (word.ends_with('U') || word.ends_with('u'))) word.remove_suffix(1);
  uint64_t value = 0;
  const auto [end, status] = std::from_chars(word.begin(), word.end(), value, base);
  operand.value = static_cast<int64_t>(value);
  const bool fits = operand.type != Type::kF32 || value <= UINT32_MAX;
  return status == std::errc() && end == word.end() && fits;
}

int64_t Parser::integer(int64_t least, int64_t most, std::string_view what) {
  const Token token = next();
  Operand operand;
  const bool is_integer = !token.text.empty() && is_digit(token.text[0]) &&
                          number(token.text, operand) && operand.kind == Operand::Kind::kInteger;
  if (is_integer && operand.value >= least && operand.value <= most) return operand.value;
  fail(std::string(what) + ": expected an integer from " + std::to_string(least) + " to " +
       std::to_string(most) + ", found \"" + std::string(token.text) + '"');
  return least;
}

void Parser::skip_to(std::string_view word) {
  while (!ended() && peek() != word) next();
  expect(word);
}

void Parser::count_part() {
  if (++num_parts_ > limits_.parts_max) fail("a module of too many parts");
}

void Parser::top_level() {
  const Token token = next();
  const std::string_view word = token.text;
  if (word == ".entry" || word == ".func") return function(word == ".entry");
  if (word == ".file") return file_directive();
  if (word == ".section") return section();
  if (word == ".version" || word == ".target" || word == ".address_size") {
    return lexer_.skip_line(token.line);
  }
  if (word == ".pragma" || word == ".alias") return skip_to(";");
  if (word == ".extern" || word == ".visible" || word == ".weak" || word == ".common") {
    if (!is_variable_directive(peek())) return;
    const Token directive = next();
    module_.variables.push_back(variable(space_of(directive.text)));
    module_.variables.back().is_external = word == ".extern";
    return expect(";");
  }
  if (is_variable_directive(word)) {
    module_.variables.push_back(variable(space_of(word)));
    return expect(";");
  }
  if (word == ";" || word.starts_with("@@")) return;
  fail("the directive \"" + std::string(word) + "\" is unknown");
}

void Parser::file_directive() {
  const int64_t index = integer(0, INT32_MAX, ".file");
  const Token path = next();
  if (path.text.size() < 2 || path.text[0] != '"') return fail(".file: expected a path in quotes");
  if (std::ssize(path.text) > limits_.path_bytes_max) return fail(".file: the path is too long");
  count_part();
  module_.files[static_cast<int>(index)] = path.text.substr(1, path.text.size() - 2);
  lexer_.skip_line(path.line);
}

void Parser::section() {
  next();
  expect("{");
  skip_to("}");
}

Variable Parser::variable(Space space) {
  count_part();
  Variable variable;
  variable.space = space;
  variable_attributes(variable);
  variable.name = name();
  variable_size(variable);
  if (take("=")) initial_value(variable);
  return variable;
}

// `.align 16 .b8`, `.v4 .f32`, `.ptr .global .align 4`, `.attribute(.managed)`
void Parser::variable_attributes(Variable& variable) {
  int64_t elements = 1;
  while (peek().starts_with('.')) {
    const std::string_view word = next().text;
    if (word == ".align") {
      // A pointer's own alignment comes behind `.ptr` and is not the variable's.
      const int64_t align = integer(1, kAlignMax, ".align");
      if (!std::has_single_bit(static_cast<uint64_t>(align))) fail(".align: no power of two");
      if (variable.type == Type::kNone) variable.align = align;
    } else if (word == ".v2" || word == ".v4") {
      elements = word == ".v2" ? 2 : 4;
    } else if (word == ".attribute") {
      skip_to(")");
    } else if (const Type type = type_of(word.substr(1)); type != Type::kNone) {
      variable.type = type;
    } else if (word == ".texref" || word == ".surfref" || word == ".samplerref") {
      return fail("textures and surfaces are not supported");
    }
  }
  if (bytes_of(variable.type) == 0) fail("a variable has no type that memory can hold");
  variable.bytes = elements * bytes_of(variable.type);
  variable.align = std::max<int64_t>(variable.align, variable.bytes);
}

void Parser::variable_size(Variable& variable) {
  while (take("[")) {
    if (take("]")) {
      variable.is_dynamic = true;
      variable.bytes = 0;
      continue;
    }
    const int64_t count = integer(0, limits_.variable_bytes_max, "a size");
    if (variable.bytes > 0 && count > limits_.variable_bytes_max / variable.bytes) {
      fail("the variable \"" + variable.name + "\" is too large");
      return;
    }
    variable.bytes *= count;
    expect("]");
  }
}

void Parser::initial_value(Variable& variable) {
  int64_t at = 0;
  if (variable.is_dynamic) return fail("an array without a size has initial values");
  initial_element(variable, at, 0);
}

void Parser::initial_element(Variable& variable, int64_t& at, int depth) {
  if (depth > kInitialDepthMax) return fail("initial values are nested too deeply");
  if (take("{")) {
    while (!ended() && peek() != "}") {
      initial_element(variable, at, depth + 1);
      if (!take(",")) break;
    }
    return expect("}");
  }
  const int width = bytes_of(variable.type);
  if (at + width > variable.bytes) return fail("more initial values than the variable holds");
  const bool is_negative = take("-");
  const std::string word(next().text);
  Operand value;
  if (word.empty()) return fail("expected an initial value");
  if (!is_digit(word[0])) {
    initial_symbol(variable, at, word);
  } else if (!number(word, value)) {
    fail("\"" + word + "\" is no number");
  } else if (peek() == "(") {
    return fail("a masked address as an initial value is not supported");
  } else {
    uint64_t bits = static_cast<uint64_t>(value.value);
    if (value.kind == Operand::Kind::kFloat && value.type == Type::kF64 && width == 4) {
      bits = std::bit_cast<uint32_t>(static_cast<float>(std::bit_cast<double>(bits)));
    }
    put_bytes(variable, at, is_negative ? 0 - bits : bits);
  }
  at += width;
}

void Parser::initial_symbol(Variable& variable, int64_t at, std::string symbol) {
  Relocation relocation;
  relocation.at = at;
  relocation.bytes = bytes_of(variable.type);
  relocation.is_generic = symbol == "generic";
  if (relocation.is_generic) {
    expect("(");
    symbol = name();
    expect(")");
  }
  if (relocation.bytes != 4 && relocation.bytes != 8) fail("an address needs 4 or 8 bytes");
  relocation.symbol = std::move(symbol);
  if (take("+")) relocation.offset = integer(0, limits_.variable_bytes_max, "an offset");
  if (take("-")) relocation.offset = -integer(0, limits_.variable_bytes_max, "an offset");
  put_bytes(variable, at, 0);
  variable.relocations.push_back(std::move(relocation));
}

void Parser::put_bytes(Variable& variable, int64_t at, uint64_t bits) {
  variable.initial.resize(static_cast<size_t>(at + bytes_of(variable.type)));
  for (int byte = 0; byte < std::min(bytes_of(variable.type), 8); ++byte) {
    variable.initial[static_cast<size_t>(at + byte)] = static_cast<uint8_t>(bits >> (8 * byte));
  }
}

void Parser::check_symbols() {
  std::unordered_set<std::string_view> names;
  std::unordered_set<std::string_view> declared;
  for (const Variable& one : module_.variables) {
    if (!names.insert(one.name).second) return fail("\"" + one.name + "\" is there twice");
  }
  for (size_t k = 0; k < module_.functions.size(); ++k) {
    const Function& one = module_.functions[k];
    if (one.is_declaration) {
      module_.function_index.emplace(one.name, k);
    } else {
      module_.function_index[one.name] = k;
    }
    const bool is_new = names.insert(one.name).second || one.is_declaration;
    if (!is_new && !declared.contains(one.name)) return fail("\"" + one.name + "\" is there twice");
    if (one.is_declaration) {
      declared.insert(one.name);
    } else {
      declared.erase(one.name);
    }
  }
  for (const Variable& one : module_.variables) {
    for (const Relocation& relocation : one.relocations) {
      if (names.contains(relocation.symbol)) continue;
      fail("the initial value of \"" + one.name + "\" names \"" + relocation.symbol +
           "\", which is not declared");
    }
  }
}

}  // namespace mc::ptx
