// SPDX-License-Identifier: Apache-2.0
// Inline PTX: the texts of asm statements, parsed.
//
// A text is parsed once and executed by ptx_execute.cc, one instruction at a time, for one thread.
// What is not understood parses as an instruction with `problem` set: a kernel that reaches it is
// not supported.
#ifndef MC_EMU_RUNTIME_PTX_H_
#define MC_EMU_RUNTIME_PTX_H_

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace mc::emu::ptx {

enum class Type : uint8_t {
  kNone,
  kPred,
  kB8,
  kB16,
  kB32,
  kB64,
  kB128,
  kU8,
  kU16,
  kU32,
  kU64,
  kS8,
  kS16,
  kS32,
  kS64,
  kF16,
  kF16x2,
  kBf16,
  kBf16x2,
  kTf32,
  kF32,
  kF64
};

size_t size_of(Type type);
bool is_signed(Type type);
bool is_real(Type type);

// The type that a suffix names, or kNone.
Type type_named(std::string_view name);

struct Argument {
  enum class Kind : uint8_t { kRegister, kImmediate, kSpecial, kAddress, kVector, kLabel, kSink };
  Kind kind = Kind::kSink;
  int index = 0;            // The register's index; that of an address's base, or -1.
  int64_t value = 0;        // Immediate bits, or the offset of an address.
  bool is_negated = false;  // !p
  std::string name;         // A special register or a label.
  std::vector<Argument> parts;
  int other = -1;  // The second register of d|p.
};

struct Instruction {
  std::string name;                // "ld"
  std::vector<std::string> parts;  // The suffixes, in order.
  std::vector<Type> types;         // Those of them that are types.
  std::vector<Argument> arguments;
  int predicate = -1;
  bool is_predicate_negated = false;
  std::string text;
  bool has(std::string_view part) const;
  Type type() const { return types.empty() ? Type::kNone : types.back(); }
};

// Registers 0 to num_operands - 1 are the statement's operands; the text's own follow.
struct Program {
  std::vector<Instruction> instructions;
  std::vector<std::pair<std::string, size_t>> labels;  // To the index of an instruction.
  int num_registers = 0;
  std::string problem;  // The part that could not be parsed.
};

Program parse(std::string_view text, int num_operands, bool is_basic);

}  // namespace mc::emu::ptx

#endif  // MC_EMU_RUNTIME_PTX_H_
