// SPDX-License-Identifier: Apache-2.0
//
// Module: the text of a PTX module, parsed.
//
// PTX is the assembly language that NVIDIA's and Triton's compilers generate. A module comes from a
// process that may be hostile, so parse() checks all that can be checked without deciding how
// instructions run: brackets, counts, sizes, and that each register and label is declared. The
// decoder checks names of variables and functions, and the operands of instructions.
//
//   MC_TRY(const Module module, parse(text), "load a module");
//   const Function* kernel = module.find_function("add");
//   for (const Instruction& instruction : kernel->instructions) ...
//
// Positions in Function::instructions are the targets of labels. Nothing here changes after
// parse(); any number of threads may read a module.
#ifndef MC_PTX_MODULE_H_
#define MC_PTX_MODULE_H_

#include <cstdint>
#include <functional>
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "ptx/types.h"

namespace mc::ptx {

enum class Space : uint8_t { kGeneric, kGlobal, kShared, kLocal, kConst, kParam };

// A line of the source, from `.loc`: file is a key of Module::files, and 0 if unknown.
struct Location {
  int file = 0;
  int line = 0;
};

struct Operand {
  enum class Kind : uint8_t {
    kRegister,  // %r1: id.
    kSpecial,   // %tid.x, WARP_SZ: name.
    kInteger,   // 42: value.
    kFloat,     // 0f3F800000, 0d..., 1.5: value holds the bits, type is kF32 or kF64.
    kSymbol,    // A variable or a function, with an offset: name, value.
    kAddress,   // [%rd1+4], [x+4], [16]: id or name or none of them, value.
    kVector,    // {%f1, %f2}, (param0, param1), %r1|%p1: parts.
    kLabel,     // $L__BB0_2: value is a position in Function::instructions.
    kDiscard,   // _
  };
  Kind kind = Kind::kDiscard;
  Type type = Type::kNone;
  bool is_negated = false;  // !%p1
  int id = -1;              // A position in Function::registers, or -1.
  int64_t value = 0;
  std::string name;
  std::vector<Operand> parts;
};

struct Instruction {
  // "ld" of `ld.global.v2.f32`.
  std::string opcode;
  // "global", "v2" and "f32" of `ld.global.v2.f32`, in their order.
  std::vector<std::string> modifiers;
  // The types among the modifiers, in order.
  std::vector<Type> types;
  std::vector<Operand> operands;
  int guard = -1;  // A position in Function::registers, or -1.
  bool is_guard_negated = false;
  Location location;
  int text_line = 0;  // In the module's text, from 1.

  bool has(std::string_view modifier) const;
  // The last type, which most instructions compute in. kNone if the instruction names no type.
  Type type() const { return types.empty() ? Type::kNone : types.back(); }
  // `ld.global.v2.f32`, for messages.
  std::string full_name() const;
};

// A pointer in the initial bytes of a variable.
struct Relocation {
  int64_t at = 0;
  int bytes = 8;
  std::string symbol;
  int64_t offset = 0;
  bool is_generic = false;  // generic(symbol)
};

struct Variable {
  std::string name;
  Space space = Space::kGlobal;
  Type type = Type::kNone;
  int64_t bytes = 0;
  int64_t align = 1;
  int64_t offset = 0;       // A parameter's offset among its function's parameters.
  bool is_dynamic = false;  // A launch gives the size of `extern .shared x[]`.
  bool is_external = false;
  std::vector<uint8_t> initial;  // The first ones; zeros follow.
  std::vector<Relocation> relocations;
};

struct Register {
  std::string name;
  Type type = Type::kNone;
};

struct Function {
  std::string name;
  bool is_kernel = false;
  bool is_declaration = false;  // It has no body in this module.
  std::vector<Variable> parameters;
  std::vector<Variable> results;
  // The variables of its body, with names that are unique in it: shared, local, param.
  std::vector<Variable> variables;
  std::vector<Register> registers;
  std::vector<Instruction> instructions;
  // Targets of brx.idx by their list's name: positions in instructions.
  std::map<std::string, std::vector<int>> branch_targets;
  int64_t threads_max = 1024;             // .maxntid or .reqntid
  std::vector<int64_t> threads_required;  // .reqntid: up to three, or none
  int text_line = 0;

  const Variable* find_variable(std::string_view variable) const;
  const Variable* find_parameter(std::string_view parameter) const;
};

struct Module {
  std::vector<Function> functions;
  std::vector<Variable> variables;  // The global, const and shared ones of all functions.
  std::map<int, std::string> files;
  // Positions of functions with a body, or of declarations where there is no body.
  std::map<std::string, size_t, std::less<>> function_index;

  // The function with a body, otherwise its declaration, or null.
  const Function* find_function(std::string_view function) const;
  const Variable* find_variable(std::string_view variable) const;
};

struct ParseLimits {
  int64_t text_bytes_max = 32 << 20;
  int64_t variable_bytes_max = int64_t{1} << 32;
  int64_t instructions_max = 1 << 19;
  int scopes_max = 64;     // Nested blocks of a function.
  int operands_max = 512;  // Operands of an instruction, or parts of a vector.
  int modifiers_max = 32;
  int64_t path_bytes_max = 4096;
  // Instructions, operands, blocks, variables and functions of a module, which take about 200 bytes
  // each.
  int64_t parts_max = 1 << 21;
};

// The module, or kInvalidInput with the line of the text and what was wrong there. Directives for
// debuggers (.section, @@dwarf) are skipped.
Result<Module> parse(std::string_view text, const ParseLimits& limits = {});

}  // namespace mc::ptx

#endif  // MC_PTX_MODULE_H_
