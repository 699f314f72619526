// SPDX-License-Identifier: Apache-2.0
//
// Decoder: one function of a program. Its parts: the frame and the operands (decode_frame.cc),
// arithmetic (decode_arithmetic.cc), memory (decode_memory.cc), matrices (decode_matrix.cc),
// control flow and collective operations of lanes (decode_flow.cc).
//
// Only the first error is kept, and decoding stops at the next instruction. Until then a wrong
// operand refers to the row of zeros, so the functions need no check after each operand.
#ifndef MC_PTX_DECODER_H_
#define MC_PTX_DECODER_H_

#include <array>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <tuple>
#include <utility>
#include <vector>

#include "ptx/counts.h"
#include "ptx/decode.h"
#include "ptx/flow_graph.h"
#include "ptx/operations.h"

namespace mc::ptx {

// False for a modifier whose effect no handler may implement.
bool is_known_modifier(std::string_view modifier);

// True for loads and stores that order threads: volatile, relaxed, acquiring and releasing.
bool is_strong(const Instruction& one);
// True for stores and atomics before which the scheduler may run other blocks.
bool may_pause(const Instruction& one);
std::string shared_key(const Function& function, const std::string& variable);

// The state that the functions of a program share while it is decoded.
struct ProgramBuilder {
  Program& program;
  const Addresses& addresses;
  const Variant& variant;
  Counting counting = Counting::kOff;
  std::map<std::string, uint32_t> shared;  // Offsets of shared variables.
  std::map<const Function*, Code*> codes;
  std::vector<const Function*> to_decode;

  // The code of a function, to be decoded later if it is new.
  Code* code_of(const Function& function);
};

// The index of the name that is a modifier of the instruction; -1 if there is none.
template <size_t N>
int64_t position_of(const Instruction& one, const std::string_view (&names)[N]) {
  for (size_t k = 0; k < N; ++k) {
    if (one.has(names[k])) return static_cast<int64_t>(k);
  }
  return -1;
}

// Bit types: moves need no others.
inline Type bits_type(int width) {
  return width == 8 ? Type::kB64 : width == 4 ? Type::kB32 : Type::kB16;
}

class Decoder {
 public:
  Decoder(ProgramBuilder& builder, Code& code)
      : builder_(builder),
        variant_(builder.variant),
        function_(*code.function),
        code_(code),
        lanes_(static_cast<uint32_t>(builder.program.lanes)) {}

  Status run();

  // Rows and columns of a fragment of wmma, and its words in a step.
  struct Shape {
    int rows = 0, columns = 0;
    Type type = Type::kNone;
    uint32_t dimensions(size_t registers) const;
    uint32_t kind() const;
  };

 private:
  // ---- The frame: decode_frame.cc
  void lay_out_frame();
  void lay_out_variables();
  void fold_values();
  bool folds(const Instruction& one, FrameValue& value);
  void share_rows();
  uint32_t row(int width);
  uint32_t value_offset(FrameValue value);
  uint32_t constant(uint64_t bits, int width);
  uint32_t special(Source source, int width);

  // ---- Operands: decode_frame.cc
  const Operand& operand(const Instruction& one, size_t index);
  // A step with the frame offsets of an instruction's operands. The form has one word per operand:
  // the field (a to e, or i for the immediate) and the width, which is a number of bytes, `w` for
  // the type's width or `x` for twice that; `p` is a predicate, and `n` a constant. The field d,
  // or one after a `|`, is a result.
  Step operands(const Instruction& one, std::string_view form);
  Step operands(const Instruction& one, std::string_view form, Type type);
  void set_field(Step& step, std::string_view word, const Operand& operand, int width);
  // The frame offset of an operand. A register of another width is an error.
  uint32_t source(const Operand& operand, int width);
  uint32_t source(const Instruction& one, size_t index, int width);
  uint32_t register_source(const Operand& operand, int width);
  uint32_t offset_of_register(int id) const;
  uint32_t special_source(const std::string& name, int width);
  uint32_t symbol_source(const std::string& name, int64_t offset, int width);
  // The frame offset of a result. Discarded results share one row.
  uint32_t result(const Operand& operand, int width);
  uint32_t predicate_source(const Operand& operand);
  uint32_t predicate_result(const Operand& operand);
  int width_of(const Operand& operand) const;
  // The register and the offset of an address.
  Step address(const Operand& operand);
  const ParamArea* param_area(const std::string& name) const;

  // ---- Instructions
  void block(size_t index);
  void instruction(const Instruction& one);
  void decode_one(const Instruction& one);
  void decode_known(const Instruction& one);
  void guarded_branch(const Instruction& one);
  void guarded_steps(const Instruction& one);
  bool try_flow(const Instruction& one);
  bool try_meeting(const Instruction& one);
  bool try_memory(const Instruction& one);
  bool try_move(const Instruction& one);
  bool try_arithmetic(const Instruction& one);
  bool try_matrix(const Instruction& one);

  // decode_flow.cc
  void branch(const Instruction& one);
  void indexed_branch(const Instruction& one);
  void leave(const Instruction& one);
  void guarded(const Instruction& one, Handler handler);
  void call(const Instruction& one);
  void call_arguments(Step& step, const Operand& results, const Operand& arguments);
  // kWholeWarp if the instruction's last operand, its mask, is the register kWarpMask.
  uint32_t whole_warp(const Instruction& one) const;
  void barrier(const Instruction& one);
  void shuffle(const Instruction& one);
  void vote(const Instruction& one);
  void match(const Instruction& one);
  void redux(const Instruction& one);

  // decode_memory.cc
  void load(const Instruction& one);
  void store(const Instruction& one);
  void parameter_load(const Instruction& one, const Variable& parameter);
  void frame_access(const Instruction& one, const ParamArea& area, bool is_load);
  std::vector<uint32_t> register_row(const Instruction& one, const Operand& data, bool is_result,
                                     int& width);
  void access(const Instruction& one, size_t data, size_t memory);
  // Adds a step that counts the access at the address of `access`, if the program counts.
  void count_access(const Instruction& one, Step access, uint32_t bytes, uint32_t lanes = 0);
  // The same for ldmatrix and stmatrix.
  void count_rows(const Instruction& one, Step access);
  // A step with an address, its space and a new site number.
  Step memory_step(const Instruction& one, const Operand& memory);
  void find_compared();
  // True for a register whose value atom.cas compares with memory.
  bool is_compared(const Operand& data) const;
  void atomic(const Instruction& one);
  // True for an atomic whose result no instruction reads.
  bool is_unread(const Instruction& one) const;
  void copy_async(const Instruction& one);
  void load_matrix(const Instruction& one);
  void store_matrix(const Instruction& one);
  void convert_address(const Instruction& one);

  // decode_arithmetic.cc
  void convert(const Instruction& one);
  void convert_pair(const Instruction& one);
  void convert_fp8(const Instruction& one);
  void set_predicate(const Instruction& one);
  void set_value(const Instruction& one);
  Step& compare(const Instruction& one, const std::string& results);
  void choose(const Instruction& one);
  void predicate_logic(const Instruction& one);
  void pack(const Instruction& one);
  void carry(const Instruction& one);
  void arithmetic(const Instruction& one, Op op, std::string_view form);
  void round_next(const Instruction& one);

  // decode_matrix.cc
  void matrix_product(const Instruction& one);
  void fragment_load(const Instruction& one);
  void fragment_store(const Instruction& one);
  void fragment_product(const Instruction& one);
  void fragment_access(const Instruction& one, const Shape& shape, size_t data, size_t memory,
                       Handler handler);
  std::vector<uint32_t> fragment(const Instruction& one, size_t operand, int width, bool is_result);

  // ---- Steps
  // Adds a step with the fields of `step`, this handler and the current instruction.
  Step& emit(Handler handler, Step step = {});
  void list(std::vector<uint32_t> offsets);
  void resolve();
  void fail(const std::string& what);
  void mark_unsupported(const std::string& what);
  void stop(ErrorCode code, const std::string& what);

  ProgramBuilder& builder_;
  const Variant& variant_;
  const Function& function_;
  Code& code_;
  const uint32_t lanes_;
  std::optional<Error> error_;
  const Instruction* present_ = nullptr;
  int present_index_ = 0;

  std::vector<BasicBlock> graph_;
  std::vector<Life> lives_;
  std::vector<bool> compared_;                     // Registers; see is_compared().
  std::vector<uint32_t> offsets_;                  // Places of registers; 0: none.
  std::vector<std::optional<FrameValue>> folded_;  // Registers that are a value of the frame.
  std::map<std::tuple<Source, uint64_t, int, int, bool>, uint32_t> values_;
  std::map<std::string, ParamArea> areas_;
  std::map<std::string, uint32_t> local_;
  uint32_t top_ = 0, zeros_ = 0, discarded_ = 0, carries_ = 0;
  std::array<uint32_t, 3> second_{};  // Rows between the steps of one instruction.

  struct Link {
    size_t step;
    int target;  // A block, or -1.
    int join;    // A block, or -1 for the end.
  };
  std::vector<Link> links_;
  std::vector<std::pair<size_t, size_t>> step_links_;  // Steps whose target and join are steps.
  std::vector<std::pair<size_t, size_t>> list_links_;
  std::vector<std::pair<size_t, std::vector<int>>> index_links_;
  std::vector<size_t> block_steps_;
  std::set<int> joins_;
  int present_block_ = 0;
};

}  // namespace mc::ptx

#endif  // MC_PTX_DECODER_H_
