// SPDX-License-Identifier: Apache-2.0
//
// Parser: what parse() in module.h runs. Its two halves are the module's declarations (parse.cc)
// and the bodies of functions (parse_body.cc).
//
// The parser throws no exceptions: it stores the first error, after which each token is empty, as
// at the end of the text. Every loop must therefore end at an empty token.
#ifndef MC_PTX_PARSER_H_
#define MC_PTX_PARSER_H_

#include <array>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "ptx/lexer.h"
#include "ptx/module.h"

namespace mc::ptx {

// A family of registers, as `.reg .b32 %r<12>` declares one. Its members get their numbers among
// the function's registers when they are first named, so that a huge count costs nothing.
struct RegisterFamily {
  Type type = Type::kNone;
  int64_t count = -1;  // -1: one register with the family's own name.
  std::unordered_map<int64_t, int> ids;
};

// A block in braces: names in it hide those outside.
struct Scope {
  int parent = -1;
  std::unordered_map<std::string, RegisterFamily> registers;
  std::unordered_map<std::string, std::string> variables;  // Names in the text to unique ones.
  std::unordered_map<std::string, int> labels;
  std::unordered_map<std::string, std::vector<std::string>> branch_targets;
};

class Parser {
 public:
  Parser(std::string_view text, const ParseLimits& limits) : lexer_(text), limits_(limits) {}

  Result<Module> run();

 private:
  // Words.
  std::string_view peek() const { return error_ ? std::string_view() : lexer_.peek().text; }
  bool ended() const { return peek().empty(); }
  Token next();
  bool take(std::string_view word);
  void expect(std::string_view word);
  void fail(const std::string& what);
  std::string name();
  int64_t integer(int64_t least, int64_t most, std::string_view what);
  // A number's value or bits; false if the word is not a number.
  bool number(std::string_view word, Operand& operand);
  void skip_to(std::string_view word);
  // Counts one more part of the module.
  void count_part();

  // Declarations of a module.
  void top_level();
  void file_directive();
  void section();
  Variable variable(Space space);
  void variable_attributes(Variable& variable);
  void variable_size(Variable& variable);
  void initial_value(Variable& variable);
  void initial_element(Variable& variable, int64_t& at, int depth);
  void initial_symbol(Variable& variable, int64_t at, std::string symbol);
  void put_bytes(Variable& variable, int64_t at, uint64_t bits);
  void check_symbols();

  // Functions.
  // A position in the source, as `.loc` gives it.
  struct SourcePosition {
    Location location;
    int column = 0;
    std::array<int, 3> key() const { return {location.file, location.line, column}; }
  };
  void function(bool is_kernel);
  std::vector<Variable> parameter_list();
  void function_directives(Function& function);
  void body(Function& function);
  void body_item();
  void location_directive();
  SourcePosition source_position();
  void register_directive();
  void body_variable(Space space);
  void label(const std::string& label);
  void branch_target_list(const std::string& label);
  void statement();
  Operand operand(int depth);
  Operand vector_operand(std::string_view close, int depth);
  Operand address_operand();
  Operand word_operand(std::string_view word);
  void operand_offset(Operand& operand);
  int find_register(std::string_view word);
  int register_in(RegisterFamily& family, int64_t index, std::string_view word);
  std::string find_variable_name(std::string_view word) const;
  void resolve_labels();
  int find_label(int scope, const std::string& label, int line);
  void resolve_branch_targets();

  Lexer lexer_;
  ParseLimits limits_;
  Module module_;
  std::optional<Error> error_;
  int last_line_ = 1;
  int64_t num_parts_ = 0;

  // The function that is being parsed.
  struct Branch {
    size_t instruction;
    int scope;
  };
  Function* function_ = nullptr;
  std::vector<Scope> scopes_;
  std::vector<Branch> branches_;
  int scope_ = 0;
  int depth_ = 0;
  Location location_;
  int main_file_ = 0;  // The file of the function's first line.
  // Places in other files, and the lines of the main file into which their code was inlined.
  std::map<std::array<int, 3>, Location> inlined_;
};

}  // namespace mc::ptx

#endif  // MC_PTX_PARSER_H_
