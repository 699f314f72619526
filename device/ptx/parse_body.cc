// SPDX-License-Identifier: Apache-2.0
#include <algorithm>
#include <charconv>

#include "ptx/parser.h"

namespace mc::ptx {
namespace {

constexpr int kVectorDepthMax = 4;
constexpr int64_t kOffsetMax = int64_t{1} << 40;
constexpr int64_t kParametersMax = 4096;
constexpr int64_t kParameterBytesMax = 32 << 10;

// Assigns each parameter its offset behind the previous parameters.
void place_parameters(std::vector<Variable>& parameters) {
  int64_t at = 0;
  for (Variable& one : parameters) {
    at = (at + one.align - 1) / one.align * one.align;
    one.offset = at;
    at += one.bytes;
  }
}

// "%r12" is 12 of the family "%r"; -1 where no digits follow.
int64_t index_in_family(std::string_view word, std::string_view& family) {
  size_t digits = word.size();
  while (digits > 0 && word[digits - 1] >= '0' && word[digits - 1] <= '9') --digits;
  family = word.substr(0, digits);
  int64_t index = -1;
  const std::string_view text = word.substr(digits);
  const bool is_canonical = text.size() == 1 || (text.size() > 1 && text[0] != '0');
  if (!is_canonical) return -1;
  const auto [end, status] = std::from_chars(text.begin(), text.end(), index);
  return status == std::errc() && end == text.end() ? index : -1;
}

}  // namespace

void Parser::function(bool is_kernel) {
  Function function;
  count_part();
  function.is_kernel = is_kernel;
  function.text_line = last_line_;
  while (peek() == ".attribute") skip_to(")");
  if (peek() == "(") function.results = parameter_list();
  function.name = name();
  if (peek() == "(") function.parameters = parameter_list();
  place_parameters(function.parameters);
  place_parameters(function.results);
  function_directives(function);
  if (take(";")) {
    function.is_declaration = true;
  } else {
    body(function);
  }
  module_.functions.push_back(std::move(function));
}

std::vector<Variable> Parser::parameter_list() {
  std::vector<Variable> parameters;
  int64_t bytes = 0;
  expect("(");
  while (!ended() && peek() != ")") {
    if (!take(".param") && !take(".reg")) fail("expected .param");
    parameters.push_back(variable(Space::kParam));
    bytes += parameters.back().bytes;
    if (std::ssize(parameters) > kParametersMax || bytes > kParameterBytesMax) {
      fail("a function has too many parameters");
    }
    if (!take(",")) break;
  }
  expect(")");
  return parameters;
}

void Parser::function_directives(Function& function) {
  while (!ended() && peek() != "{" && peek() != ";") {
    const std::string_view word = next().text;
    if (word == ".maxntid" || word == ".reqntid") {
      std::vector<int64_t> sizes;
      do sizes.push_back(integer(1, 1024, word));
      while (take(",") && sizes.size() < 3);
      function.threads_max = 1;
      for (const int64_t size : sizes) function.threads_max *= size;
      if (word == ".reqntid") function.threads_required = sizes;
    } else if (word == ".pragma") {
      skip_to(";");
    } else if (word == ".minnctapersm" || word == ".maxnreg" || word == ".maxnctapersm") {
      integer(0, INT32_MAX, word);
    } else if (word.starts_with(".reqnctapercluster") || word == ".explicitcluster" ||
               word == ".maxclusterrank") {
      fail("clusters of blocks are not supported (" + std::string(word) + ")");
    } else if (word != ".noreturn" && word != ".blocksareclusters") {
      fail("the directive \"" + std::string(word) + "\" of a function is unknown");
    }
  }
}

void Parser::body(Function& function) {
  function_ = &function;
  scopes_.assign(1, {});
  branches_.clear();
  scope_ = depth_ = 0;
  location_ = {};
  main_file_ = 0;
  inlined_.clear();
  expect("{");
  for (depth_ = 1; depth_ > 0 && !ended();) body_item();
  if (depth_ > 0) fail("the text ends in a function");
  resolve_labels();
  resolve_branch_targets();
  function_ = nullptr;
}

void Parser::body_item() {
  const std::string_view word = peek();
  if (take("{")) {
    if (++depth_ > limits_.scopes_max) return fail("blocks are nested too deeply");
    count_part();
    scopes_.push_back({scope_, {}, {}, {}, {}});
    scope_ = static_cast<int>(scopes_.size()) - 1;
  } else if (take("}")) {
    --depth_;
    scope_ = std::max(0, scopes_[static_cast<size_t>(scope_)].parent);
  } else if (word == ".loc") {
    location_directive();
  } else if (take(".reg")) {
    register_directive();
  } else if (take(".shared")) {
    body_variable(Space::kShared);
  } else if (take(".local")) {
    body_variable(Space::kLocal);
  } else if (take(".param")) {
    body_variable(Space::kParam);
  } else if (word == ".global" || word == ".const") {
    next();
    module_.variables.push_back(variable(word == ".const" ? Space::kConst : Space::kGlobal));
    expect(";");
  } else if (take(".pragma")) {
    skip_to(";");
  } else if (word.starts_with('.')) {
    fail("the directive \"" + std::string(word) + "\" is unknown");
  } else if (word != "@" && lexer_.character_after() == ':') {
    label(name());
  } else if (!take(";")) {
    statement();
  }
}

// `.loc 1 12 5, function_name $L__info_string0, inlined_at 1 40 3`
//
// Code from a header that was inlined into the main file gets the line of the main file where it
// was inlined, also through several functions of headers: a compiler writes the outer functions
// first.
void Parser::location_directive() {
  const Token directive = next();
  const Location previous = location_;
  const SourcePosition own = source_position();
  location_ = own.location;
  // Code that compilers merged from several lines has line 0.
  if (location_.line == 0) location_ = previous;
  if (main_file_ == 0) main_file_ = location_.file;
  while (!error_ && !ended() && lexer_.peek().line == directive.line) {
    if (next().text != "inlined_at") continue;
    const SourcePosition caller = source_position();
    if (location_.file == main_file_) continue;
    const auto outer = inlined_.find(caller.key());
    if (caller.location.file == main_file_) {
      location_ = caller.location;
    } else if (outer != inlined_.end()) {
      location_ = outer->second;
    }
    if (location_.file == main_file_) inlined_[own.key()] = location_;
  }
}

Parser::SourcePosition Parser::source_position() {
  SourcePosition position;
  position.location.file = static_cast<int>(integer(0, INT32_MAX, ".loc"));
  position.location.line = static_cast<int>(integer(0, INT32_MAX, ".loc"));
  position.column = static_cast<int>(integer(0, INT32_MAX, ".loc"));
  return position;
}

void Parser::register_directive() {
  while (peek() == ".v2" || peek() == ".v4") return fail("vectors of registers are not supported");
  const std::string_view word = next().text;
  const Type type = word.empty() ? Type::kNone : type_of(word.substr(1));
  if (type == Type::kNone) return fail("a register of the unknown type " + std::string(word));
  do {
    std::string base = name();
    RegisterFamily family{type, -1, {}};
    if (take("<")) {
      base += '<';  // A register may have the name of a family.
      family.count = integer(0, INT32_MAX, "a count of registers");
      expect(">");
    }
    scopes_[static_cast<size_t>(scope_)].registers[base] = std::move(family);
  } while (take(","));
  expect(";");
}

void Parser::body_variable(Space space) {
  do {
    Variable one = variable(space);
    const std::string in_text = one.name;
    if (scope_ > 0) one.name += "@" + std::to_string(scope_);
    auto& variables = scopes_[static_cast<size_t>(scope_)].variables;
    if (!variables.emplace(in_text, one.name).second) fail("\"" + in_text + "\" is there twice");
    function_->variables.push_back(std::move(one));
  } while (take(","));
  expect(";");
}

void Parser::label(const std::string& label) {
  expect(":");
  if (peek() == ".branchtargets") return branch_target_list(label);
  if (peek() == ".callprototype" || peek() == ".calltargets") return skip_to(";");
  const int at = static_cast<int>(function_->instructions.size());
  if (!scopes_[static_cast<size_t>(scope_)].labels.emplace(label, at).second) {
    fail("the label \"" + label + "\" is there twice");
  }
}

void Parser::branch_target_list(const std::string& label) {
  next();
  std::vector<std::string>& targets = scopes_[static_cast<size_t>(scope_)].branch_targets[label];
  do {
    count_part();
    targets.push_back(name());
  } while (take(","));
  expect(";");
}

void Parser::statement() {
  Instruction one;
  if (take("@")) {
    one.is_guard_negated = take("!");
    one.guard = find_register(next().text);
    if (one.guard < 0) return fail("the guard of an instruction is no register");
    if (function_->registers[static_cast<size_t>(one.guard)].type != Type::kPred) {
      return fail("the guard of an instruction is no predicate");
    }
  }
  std::string_view word = next().text;
  one.text_line = last_line_;
  one.location = location_;
  one.opcode = word.substr(0, word.find('.'));
  if (one.opcode.empty() || !std::islower(static_cast<unsigned char>(one.opcode[0]))) {
    return fail("expected an instruction, found \"" + std::string(word) + '"');
  }
  while (word.find('.') != std::string_view::npos) {
    word.remove_prefix(word.find('.') + 1);
    one.modifiers.emplace_back(word.substr(0, word.find('.')));
    const Type type = type_of(one.modifiers.back());
    if (type != Type::kNone) one.types.push_back(type);
    if (std::ssize(one.modifiers) > limits_.modifiers_max) return fail("too many modifiers");
  }
  count_part();
  while (!ended() && peek() != ";") {
    one.operands.push_back(operand(0));
    if (std::ssize(one.operands) > limits_.operands_max) return fail("too many operands");
    if (!take(",")) break;
  }
  expect(";");
  // The list of targets is the last operand for the flow of control, and the second one otherwise.
  const bool has_one = one.opcode == "bra", has_two = one.opcode == "brx";
  if ((has_one && one.operands.size() != 1) || (has_two && one.operands.size() != 2)) {
    return fail("a branch has a wrong number of operands");
  }
  if (std::ssize(function_->instructions) >= limits_.instructions_max) {
    return fail("a function has too many instructions");
  }
  if (has_one || has_two) branches_.push_back({function_->instructions.size(), scope_});
  function_->instructions.push_back(std::move(one));
}

Operand Parser::operand(int depth) {
  count_part();
  if (depth > kVectorDepthMax) {
    fail("operands are nested too deeply");
    return {};
  }
  if (take("{")) return vector_operand("}", depth);
  if (take("(")) return vector_operand(")", depth);
  if (take("[")) return address_operand();
  const bool is_negated = take("!");
  Operand one = word_operand(next().text);
  one.is_negated = is_negated;
  if (is_negated && one.kind != Operand::Kind::kRegister) fail("\"!\" needs a predicate");
  if (!take("|")) return one;
  Operand pair;
  pair.kind = Operand::Kind::kVector;
  pair.parts = {std::move(one), operand(depth + 1)};
  return pair;
}

Operand Parser::vector_operand(std::string_view close, int depth) {
  Operand one;
  one.kind = Operand::Kind::kVector;
  while (!ended() && peek() != close) {
    one.parts.push_back(operand(depth + 1));
    if (std::ssize(one.parts) > limits_.operands_max) fail("a vector has too many parts");
    if (!take(",")) break;
  }
  expect(close);
  return one;
}

Operand Parser::address_operand() {
  Operand one = word_operand(next().text);
  const bool has_base = one.kind == Operand::Kind::kRegister ||
                        one.kind == Operand::Kind::kInteger || one.kind == Operand::Kind::kSymbol;
  if (!has_base) fail("an address has no base");
  one.kind = Operand::Kind::kAddress;
  operand_offset(one);
  if (peek() == ",") fail("an address of several parts (a texture or a tensor) is not supported");
  expect("]");
  return one;
}

// `+4`, `+-4`, `-4`
void Parser::operand_offset(Operand& operand) {
  while (peek() == "+" || peek() == "-") {
    const bool plus = take("+");
    const bool is_negative = take("-");
    if (!plus && !is_negative) return;
    const int64_t offset = integer(0, kOffsetMax, "an offset");
    operand.value += is_negative ? -offset : offset;
  }
}

Operand Parser::word_operand(std::string_view word) {
  Operand one;
  if (word == "-" || (!word.empty() && word[0] >= '0' && word[0] <= '9')) {
    const bool is_negative = word == "-";
    if (!number(is_negative ? next().text : word, one)) fail("a number is malformed");
    const uint64_t bits = static_cast<uint64_t>(one.value);
    const uint64_t sign = one.type == Type::kF32 ? uint64_t{1} << 31 : uint64_t{1} << 63;
    if (is_negative) {
      const bool is_float = one.kind == Operand::Kind::kFloat;
      one.value = static_cast<int64_t>(is_float ? bits ^ sign : 0 - bits);
    }
    return one;
  }
  if (word == "_") return one;
  one.id = find_register(word);
  if (one.id >= 0) {
    one.kind = Operand::Kind::kRegister;
    one.type = function_->registers[static_cast<size_t>(one.id)].type;
    return one;
  }
  one.name = find_variable_name(word);
  if (word.starts_with('%') || word == "WARP_SZ") {
    one.kind = Operand::Kind::kSpecial;
    return one;
  }
  if (word.empty() ||
      !(std::isalpha(static_cast<unsigned char>(word[0])) || word[0] == '_' || word[0] == '$')) {
    fail("expected an operand, found \"" + std::string(word) + '"');
    return one;
  }
  one.kind = Operand::Kind::kSymbol;
  if (peek() == "+") operand_offset(one);
  return one;
}

int Parser::find_register(std::string_view word) {
  std::string_view base;
  const int64_t index = index_in_family(word, base);
  for (int scope = scope_; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
    auto& registers = scopes_[static_cast<size_t>(scope)].registers;
    if (auto one = registers.find(std::string(word));
        one != registers.end() && one->second.count < 0) {
      return register_in(one->second, -1, word);
    }
    if (auto many = registers.find(std::string(base) + '<');
        index >= 0 && many != registers.end()) {
      if (index < many->second.count) return register_in(many->second, index, word);
    }
  }
  return -1;
}

int Parser::register_in(RegisterFamily& family, int64_t index, std::string_view word) {
  const auto [found, is_new] =
      family.ids.emplace(index, static_cast<int>(function_->registers.size()));
  if (is_new) function_->registers.push_back({std::string(word), family.type});
  return found->second;
}

std::string Parser::find_variable_name(std::string_view word) const {
  for (int scope = scope_; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
    const auto& variables = scopes_[static_cast<size_t>(scope)].variables;
    const auto found = variables.find(std::string(word));
    if (found != variables.end()) return found->second;
  }
  return std::string(word);
}

void Parser::resolve_labels() {
  for (const Branch& branch : branches_) {
    Instruction& one = function_->instructions[branch.instruction];
    if (one.operands.empty()) return fail("a branch has no target");
    Operand& target = one.operands.back();
    if (target.kind != Operand::Kind::kSymbol) return fail("the target of a branch is no label");
    if (one.opcode == "brx") continue;
    target.kind = Operand::Kind::kLabel;
    target.value = find_label(branch.scope, target.name, one.text_line);
  }
}

int Parser::find_label(int scope, const std::string& label, int line) {
  for (; scope >= 0; scope = scopes_[static_cast<size_t>(scope)].parent) {
    const auto& labels = scopes_[static_cast<size_t>(scope)].labels;
    const auto found = labels.find(label);
    if (found != labels.end()) return found->second;
  }
  if (!error_) {
    error_ = invalid("PTX line " + std::to_string(line) + ": there is no label \"" +
                     label.substr(0, 200) + '"');
  }
  return 0;
}

void Parser::resolve_branch_targets() {
  for (size_t scope = 0; scope < scopes_.size(); ++scope) {
    for (const auto& [list, labels] : scopes_[scope].branch_targets) {
      std::vector<int>& targets = function_->branch_targets[list];
      for (const std::string& label : labels) {
        targets.push_back(find_label(static_cast<int>(scope), label, function_->text_line));
      }
    }
  }
}

}  // namespace mc::ptx
