// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation: a block is a row of Threads, each with a stack of Frames. step() executes
// one instruction of one thread. At a collective instruction a thread enters the state kWaits
// without advancing; meet() finds complete groups of waiting threads, executes the instruction for
// all of them and lets them continue after it.
#include "ptx/testing/reference.h"

#include <algorithm>
#include <bit>
#include <cstring>
#include <map>
#include <optional>
#include <span>

#include "ptx/testing/reference_matrix.h"
#include "ptx/testing/reference_values.h"

namespace mc::ptx {
namespace {

constexpr uint64_t kSharedWindow = 0x7'0000'0000'0000;
constexpr uint64_t kLocalWindow = 0x6'0000'0000'0000;
constexpr uint64_t kVariableBase = 0x5'0000'0000'0000;
constexpr uint64_t kFunctionBase = 0x4'0000'0000'0000;
constexpr uint64_t kWindowBytes = 0x1'0000'0000'0000;
constexpr size_t kLocalBytes = 64 << 10;
constexpr size_t kFramesMax = 200;
constexpr uint32_t kLanes = 32;

using Kind = Operand::Kind;

struct Frame {
  const Function* function = nullptr;
  size_t next = 0;  // A position in Function::instructions.
  std::vector<uint64_t> registers;
  std::map<std::string, std::vector<uint8_t>> parameters;  // With calls' arguments and results.
  std::map<std::string, uint64_t> locals;                  // Offsets in the thread's local memory.
  size_t local_top = 0;
  bool carry = false;
};

enum class State { kRuns, kWaits, kEnded };

struct Thread {
  uint32_t number = 0;
  State state = State::kRuns;
  std::vector<Frame> frames;
  std::vector<uint8_t> local;
  uint32_t lane() const { return number % kLanes; }
};

// Instructions that all lanes of a warp execute together, without a mask.
bool is_matrix(const Instruction& one) {
  return one.opcode == "mma" || one.opcode == "ldmatrix" || one.opcode == "stmatrix";
}

// True for instructions at which a thread waits for other threads of its warp.
bool is_warp_meeting(const Instruction& one) {
  const std::string& op = one.opcode;
  return op == "shfl" || op == "vote" || op == "match" || op == "redux" || op == "activemask" ||
         is_matrix(one) || (op == "bar" && one.has("warp"));
}

bool is_barrier(const Instruction& one) {
  return (one.opcode == "bar" && !one.has("warp")) || one.opcode == "barrier";
}

class Reference {
 public:
  Reference(const ReferenceLaunch& launch, std::vector<ReferenceMemory>& memory)
      : launch_(launch), memory_(memory) {}

  Status run() {
    kernel_ = launch_.module.find_function(launch_.kernel);
    if (kernel_ == nullptr || kernel_->is_declaration) return invalid("reference: no such kernel");
    place_variables();
    const uint32_t blocks = launch_.grid[0] * launch_.grid[1] * launch_.grid[2];
    for (block_ = 0; block_ < blocks && !error_; ++block_) run_block();
    if (error_) return *error_;
    return ok();
  }

 private:
  void fail(const std::string& what, ErrorCode code = ErrorCode::kInvalidInput) {
    if (error_) return;
    const std::string at = present_ == nullptr
                               ? ""
                               : " at \"" + present_->full_name() + "\", PTX line " +
                                     std::to_string(present_->text_line);
    error_ = Error{code, "reference: " + what + at};
  }

  // Variables.

  void place_variables() {
    uint64_t at = kVariableBase;
    for (const Variable& one : launch_.module.variables) {
      if (one.space == Space::kShared) {
        place_shared(one);
        continue;
      }
      at = (at + 255) / 256 * 256;
      addresses_[one.name] = at;
      variables_.push_back({at, one.initial});
      variables_.back().bytes.resize(static_cast<size_t>(one.bytes));
      at += static_cast<uint64_t>(one.bytes);
    }
    for (const Function& function : launch_.module.functions) {
      for (const Variable& one : function.variables) {
        if (one.space == Space::kShared) place_shared(one);
      }
    }
    shared_bytes_ = (shared_bytes_ + 127) / 128 * 128;
    for (const Variable* one : dynamic_) addresses_[one->name] = shared_bytes_;
    shared_bytes_ += launch_.shared_bytes;
    size_t index = 0;
    for (const Variable& one : launch_.module.variables) {
      if (one.space == Space::kShared) continue;
      for (const Relocation& relocation : one.relocations) {
        const uint64_t value =
            address_of(relocation.symbol) + static_cast<uint64_t>(relocation.offset);
        std::memcpy(variables_[index].bytes.data() + relocation.at, &value,
                    static_cast<size_t>(relocation.bytes));
      }
      ++index;
    }
  }

  void place_shared(const Variable& one) {
    if (one.is_dynamic || one.is_external) {
      dynamic_.push_back(&one);
      return;
    }
    const uint64_t align = static_cast<uint64_t>(std::max<int64_t>(one.align, 16));
    shared_bytes_ = (shared_bytes_ + align - 1) / align * align;
    addresses_[one.name] = shared_bytes_;
    shared_bytes_ += static_cast<uint64_t>(one.bytes);
  }

  uint64_t address_of(const std::string& symbol) {
    const auto found = addresses_.find(symbol);
    if (found != addresses_.end()) return found->second;
    const Function* function = launch_.module.find_function(symbol);
    if (function == nullptr) {
      fail("the symbol " + symbol + " is unknown");
      return 0;
    }
    return kFunctionBase + 16 * static_cast<uint64_t>(function - launch_.module.functions.data());
  }

  // Memory.

  uint8_t* in_list(std::vector<ReferenceMemory>& list, uint64_t address, size_t size) {
    for (ReferenceMemory& one : list) {
      const uint64_t offset = address - one.address;
      if (address >= one.address && offset + size <= one.bytes.size()) {
        return one.bytes.data() + offset;
      }
    }
    return nullptr;
  }

  // The bytes at an address, or null and an error.
  uint8_t* bytes_at(Thread& thread, Space space, uint64_t address, size_t size) {
    if (space == Space::kGeneric) {
      if (address - kSharedWindow < kWindowBytes) {
        space = Space::kShared;
        address -= kSharedWindow;
      } else if (address - kLocalWindow < kWindowBytes) {
        space = Space::kLocal;
        address -= kLocalWindow;
      }
    }
    uint8_t* found = nullptr;
    if (address % size != 0) {
      fail("a misaligned access");
    } else if (space == Space::kShared) {
      found = address + size <= shared_.size() ? shared_.data() + address : nullptr;
    } else if (space == Space::kLocal) {
      found = address + size <= thread.local.size() ? thread.local.data() + address : nullptr;
    } else {
      found = in_list(memory_, address, size);
      if (found == nullptr) found = in_list(variables_, address, size);
    }
    if (found == nullptr) fail("an access out of bounds");
    return found;
  }

  static Space space_of(const Instruction& one) {
    // The space may carry a suffix: shared::cta, param::func.
    for (const std::string& modifier : one.modifiers) {
      if (modifier.starts_with("global")) return Space::kGlobal;
      if (modifier.starts_with("shared")) return Space::kShared;
      if (modifier == "local") return Space::kLocal;
      if (modifier == "const") return Space::kConst;
      if (modifier.starts_with("param")) return Space::kParam;
    }
    return Space::kGeneric;
  }

  // The bytes that an address operand names.
  uint8_t* bytes_of_operand(Thread& thread, Space space, const Operand& operand, size_t size) {
    Frame& frame = thread.frames.back();
    if (space == Space::kParam) {
      const auto found = frame.parameters.find(operand.name);
      const uint64_t at = static_cast<uint64_t>(operand.value);
      if (found == frame.parameters.end() || at + size > found->second.size()) {
        fail("an access out of bounds of a parameter");
        return nullptr;
      }
      return found->second.data() + at;
    }
    uint64_t address = static_cast<uint64_t>(operand.value);
    if (operand.id >= 0) {
      address += frame.registers[static_cast<size_t>(operand.id)];
    } else if (!operand.name.empty()) {
      address += symbol(thread, operand.name);
    }
    return bytes_at(thread, space, address, size);
  }

  uint64_t symbol(Thread& thread, const std::string& name) {
    const Frame& frame = thread.frames.back();
    const auto local = frame.locals.find(name);
    return local != frame.locals.end() ? local->second : address_of(name);
  }

  // Operands.

  uint64_t special(const Thread& thread, const std::string& name) {
    const auto& b = launch_.block;
    const auto& g = launch_.grid;
    const uint32_t t = thread.number, lane = thread.lane();
    const uint32_t threads = b[0] * b[1] * b[2];
    const std::map<std::string, uint64_t> values = {
        {"%tid.x", t % b[0]},
        {"%tid.y", t / b[0] % b[1]},
        {"%tid.z", t / b[0] / b[1]},
        {"%ntid.x", b[0]},
        {"%ntid.y", b[1]},
        {"%ntid.z", b[2]},
        {"%ctaid.x", block_ % g[0]},
        {"%ctaid.y", block_ / g[0] % g[1]},
        {"%ctaid.z", block_ / g[0] / g[1]},
        {"%nctaid.x", g[0]},
        {"%nctaid.y", g[1]},
        {"%nctaid.z", g[2]},
        {"%laneid", lane},
        {"%warpid", t / kLanes},
        {"%nwarpid", (threads + kLanes - 1) / kLanes},
        {"%lanemask_eq", 1U << lane},
        {"%lanemask_lt", (1U << lane) - 1},
        {"%lanemask_le", (2ULL << lane) - 1},
        {"%lanemask_ge", ~((1U << lane) - 1) & 0xFFFFFFFFU},
        {"%lanemask_gt", ~((2ULL << lane) - 1) & 0xFFFFFFFFU},
        {"%dynamic_smem_size", launch_.shared_bytes},
        {"WARP_SZ", kLanes},
    };
    const auto found = values.find(name);
    if (found == values.end())
      fail("the register " + name + " is unknown", ErrorCode::kUnsupported);
    return found == values.end() ? 0 : found->second;
  }

  uint64_t read(Thread& thread, const Operand& operand, Type type) {
    const Frame& frame = thread.frames.back();
    switch (operand.kind) {
      case Kind::kRegister: {
        const uint64_t value = frame.registers[static_cast<size_t>(operand.id)];
        return operand.is_negated ? value ^ 1 : value;
      }
      case Kind::kInteger:
        return static_cast<uint64_t>(operand.value);
      case Kind::kFloat: {
        const uint64_t value = static_cast<uint64_t>(operand.value);
        const bool narrows = operand.type == Type::kF64 && type == Type::kF32;
        return narrows ? encode(float_as(value, Type::kF64), type, RoundingMode::kNearest) : value;
      }
      case Kind::kSpecial:
        return special(thread, operand.name);
      case Kind::kSymbol:
        return symbol(thread, operand.name) + static_cast<uint64_t>(operand.value);
      default:
        fail("an operand of an unexpected kind");
        return 0;
    }
  }

  void write(Thread& thread, const Operand& operand, uint64_t value) {
    if (operand.kind == Kind::kDiscard) return;
    if (operand.kind != Kind::kRegister) return fail("a result that is no register");
    Frame& frame = thread.frames.back();
    const auto id = static_cast<size_t>(operand.id);
    const Type type = frame.function->registers[id].type;
    frame.registers[id] = type == Type::kPred ? (value != 0 ? 1 : 0) : bits_as(value, type);
  }

  // Blocks.

  Frame frame_of(const Function& function, size_t local_top) {
    Frame frame;
    frame.function = &function;
    frame.registers.assign(function.registers.size(), 0);
    for (const auto* list : {&function.parameters, &function.results, &function.variables}) {
      for (const Variable& one : *list) {
        if (one.space == Space::kParam) {
          frame.parameters[one.name].resize(static_cast<size_t>(one.bytes));
        } else if (one.space == Space::kLocal) {
          local_top = (local_top + 15) / 16 * 16;
          frame.locals[one.name] = local_top;
          local_top += static_cast<size_t>(one.bytes);
        }
      }
    }
    frame.local_top = local_top;
    return frame;
  }

  void run_block() {
    const uint32_t count = launch_.block[0] * launch_.block[1] * launch_.block[2];
    shared_.assign(static_cast<size_t>(shared_bytes_), 0);
    arrived_.clear();
    threads_.assign(count, {});
    for (uint32_t t = 0; t < count; ++t) {
      Thread& thread = threads_[t];
      thread.number = t;
      thread.local.assign(kLocalBytes, 0);
      thread.frames.push_back(frame_of(*kernel_, 0));
      for (const Variable& one : kernel_->parameters) {
        const auto at = static_cast<size_t>(one.offset), size = static_cast<size_t>(one.bytes);
        if (at + size > launch_.parameters.size()) return fail("too few arguments");
        std::memcpy(thread.frames[0].parameters[one.name].data(), &launch_.parameters[at], size);
      }
    }
    while (!error_) {
      for (Thread& thread : threads_) {
        while (thread.state == State::kRuns && !error_) step(thread);
      }
      if (std::all_of(threads_.begin(), threads_.end(),
                      [](const Thread& one) { return one.state == State::kEnded; })) {
        return;
      }
      if (!error_ && !meet()) fail("no thread can go on");
    }
  }

  const Instruction& instruction_of(const Thread& thread) const {
    const Frame& frame = thread.frames.back();
    return frame.function->instructions[frame.next];
  }

  void step(Thread& thread) {
    Frame& frame = thread.frames.back();
    if (frame.next >= frame.function->instructions.size()) return give_back(thread);
    const Instruction& one = frame.function->instructions[frame.next];
    present_ = &one;
    if (++steps_ > launch_.steps_max) return fail("too many steps");
    if (one.guard >= 0) {
      const bool is_set = frame.registers[static_cast<size_t>(one.guard)] != 0;
      if (is_set == one.is_guard_negated) {
        ++frame.next;
        return;
      }
    }
    if (is_warp_meeting(one)) {
      thread.state = State::kWaits;
    } else if (is_barrier(one)) {
      thread.state = State::kWaits;
      if (one.has("arrive")) {
        ++arrived_[barrier_of(thread)];
        thread.state = State::kRuns;
        ++frame.next;
      }
    } else if (!flow(thread, one)) {
      ++frame.next;
      if (!memory(thread, one) && !move(thread, one)) arithmetic(thread, one);
    }
  }

  // Branches, calls and returns: these choose the next instruction themselves.
  bool flow(Thread& thread, const Instruction& one) {
    Frame& frame = thread.frames.back();
    const std::string& op = one.opcode;
    if (op == "bra") {
      frame.next = static_cast<size_t>(one.operands[0].value);
    } else if (op == "brx") {
      const std::vector<int>& targets = frame.function->branch_targets.at(one.operands[1].name);
      const uint64_t index = read(thread, one.operands[0], Type::kU32);
      if (index >= targets.size()) {
        fail("an index beyond the targets of a branch");
        return true;
      }
      frame.next = static_cast<size_t>(targets[index]);
    } else if (op == "call") {
      ++frame.next;
      call(thread, one);
    } else if (op == "ret") {
      give_back(thread);
    } else if (op == "exit") {
      thread.state = State::kEnded;
    } else {
      return false;
    }
    return true;
  }

  // `call (result), f, (parameters)`, without results, without both, or by a register.
  void call(Thread& thread, const Instruction& one) {
    const bool has_results = one.operands[0].kind == Kind::kVector;
    const Operand& target = one.operands[has_results ? 1 : 0];
    const size_t arguments_at = has_results ? 2 : 1;
    const Function* function = nullptr;
    if (target.kind == Kind::kRegister) {
      const uint64_t index = (read(thread, target, Type::kU64) - kFunctionBase) / 16;
      if (index < launch_.module.functions.size()) function = &launch_.module.functions[index];
    } else {
      function = launch_.module.find_function(target.name);
    }
    if (function == nullptr || function->is_declaration) {
      return fail("the function " + target.name + " is unknown", ErrorCode::kUnsupported);
    }
    if (thread.frames.size() > kFramesMax) return fail("calls are nested too deeply");
    Frame frame = frame_of(*function, thread.frames.back().local_top);
    if (frame.local_top > kLocalBytes) return fail("too much local memory");
    if (one.operands.size() > arguments_at && one.operands[arguments_at].kind == Kind::kVector) {
      const std::vector<Operand>& parts = one.operands[arguments_at].parts;
      for (size_t k = 0; k < parts.size() && k < function->parameters.size(); ++k) {
        frame.parameters[function->parameters[k].name] =
            thread.frames.back().parameters[parts[k].name];
      }
    }
    thread.frames.push_back(std::move(frame));
  }

  void give_back(Thread& thread) {
    if (thread.frames.size() == 1) {
      thread.state = State::kEnded;
      return;
    }
    const Frame callee = std::move(thread.frames.back());
    thread.frames.pop_back();
    Frame& frame = thread.frames.back();
    const Instruction& one = frame.function->instructions[frame.next - 1];
    if (one.operands[0].kind != Kind::kVector) return;
    const std::vector<Operand>& parts = one.operands[0].parts;
    for (size_t k = 0; k < parts.size() && k < callee.function->results.size(); ++k) {
      frame.parameters[parts[k].name] = callee.parameters.at(callee.function->results[k].name);
    }
  }

  // Loads and stores.

  bool memory(Thread& thread, const Instruction& one) {
    const std::string& op = one.opcode;
    if (op == "ld" || op == "ldu") {
      load(thread, one);
    } else if (op == "st") {
      store(thread, one);
    } else if (op == "atom" || op == "red") {
      atomic(thread, one);
    } else if (op == "cp") {
      copy(thread, one);
    } else if (op == "membar" || op == "fence" || op == "nanosleep" || op == "prefetch" ||
               op == "discard") {
      return true;
    } else if (op == "trap") {
      fail("a trap");
    } else {
      return false;
    }
    return true;
  }

  static std::span<const Operand> parts_of(const Operand& operand) {
    if (operand.kind == Kind::kVector) return operand.parts;
    return {&operand, 1};
  }

  void load(Thread& thread, const Instruction& one) {
    const std::span<const Operand> parts = parts_of(one.operands[0]);
    const size_t width = static_cast<size_t>(bytes_of(one.type()));
    const uint8_t* bytes =
        bytes_of_operand(thread, space_of(one), one.operands[1], width * parts.size());
    if (bytes == nullptr) return;
    for (size_t k = 0; k < parts.size(); ++k) {
      uint64_t value = 0;
      std::memcpy(&value, bytes + k * width, width);
      if (is_signed(one.type())) value = static_cast<uint64_t>(integer_as(value, one.type()));
      write(thread, parts[k], value);
    }
  }

  void store(Thread& thread, const Instruction& one) {
    const std::span<const Operand> parts = parts_of(one.operands[1]);
    const size_t width = static_cast<size_t>(bytes_of(one.type()));
    uint8_t* bytes = bytes_of_operand(thread, space_of(one), one.operands[0], width * parts.size());
    if (bytes == nullptr) return;
    for (size_t k = 0; k < parts.size(); ++k) {
      const uint64_t value = read(thread, parts[k], one.type());
      std::memcpy(bytes + k * width, &value, width);
    }
  }

  void atomic(Thread& thread, const Instruction& one) {
    const size_t has_result = one.opcode == "atom" ? 1 : 0;
    const size_t width = static_cast<size_t>(bytes_of(one.type()));
    uint8_t* bytes = bytes_of_operand(thread, space_of(one), one.operands[has_result], width);
    if (bytes == nullptr) return;
    uint64_t old = 0, result = 0;
    std::memcpy(&old, bytes, width);
    const uint64_t b = read(thread, one.operands[has_result + 1], one.type());
    const bool has_third = one.operands.size() > has_result + 2;
    const uint64_t c = has_third ? read(thread, one.operands[has_result + 2], one.type()) : 0;
    if (!combine(one, old, b, c, result)) return lack();
    std::memcpy(bytes, &result, width);
    if (has_result != 0) write(thread, one.operands[0], old);
  }

  // `cp.async.ca.shared.global [to], [from], size{, used}`, whose copy takes place at once.
  void copy(Thread& thread, const Instruction& one) {
    if (one.has("commit_group") || one.has("wait_group") || one.has("wait_all")) return;
    if (!one.has("async") || one.has("bulk")) return lack();
    const auto size = static_cast<size_t>(one.operands[2].value);
    const bool has_used = one.operands.size() > 3;
    const size_t used =
        has_used ? std::min<size_t>(size, read(thread, one.operands[3], Type::kU32)) : size;
    uint8_t* to = bytes_of_operand(thread, Space::kShared, one.operands[0], size);
    if (to == nullptr) return;
    std::memset(to, 0, size);
    if (used == 0) return;
    const uint8_t* from = bytes_of_operand(thread, Space::kGlobal, one.operands[1], size);
    if (from != nullptr) std::memcpy(to, from, used);
  }

  // Moves, comparisons and addresses.

  bool move(Thread& thread, const Instruction& one) {
    const std::string& op = one.opcode;
    if (op == "mov") {
      pack(thread, one);
    } else if (op == "cvta") {
      convert_address(thread, one);
    } else if (op == "setp" || op == "set") {
      set(thread, one);
    } else if (op == "isspacep") {
      const uint64_t address = read(thread, one.operands[1], Type::kU64);
      const Space space = address - kSharedWindow < kWindowBytes  ? Space::kShared
                          : address - kLocalWindow < kWindowBytes ? Space::kLocal
                                                                  : Space::kGlobal;
      write(thread, one.operands[0], space == space_of(one) ? 1 : 0);
    } else if (op == "createpolicy") {
      write(thread, one.operands[0], 0);
    } else {
      return false;
    }
    return true;
  }

  // A mov, also between a register and a vector of narrower ones, the first of which is the lowest.
  void pack(Thread& thread, const Instruction& one) {
    const std::span<const Operand> to = parts_of(one.operands[0]), from = parts_of(one.operands[1]);
    const int width = 8 * bytes_of(one.type());
    if (one.type() == Type::kPred || (to.size() == 1 && from.size() == 1)) {
      return write(thread, to[0], read(thread, from[0], one.type()));
    }
    uint64_t value = 0;
    const int from_width = width / static_cast<int>(from.size());
    for (size_t k = 0; k < from.size(); ++k) {
      const uint64_t part = read(thread, from[k], one.type());
      const uint64_t mask = from_width == 64 ? ~0ULL : (1ULL << from_width) - 1;
      value |= (part & mask) << (from_width * static_cast<int>(k));
    }
    const int to_width = width / static_cast<int>(to.size());
    for (size_t k = 0; k < to.size(); ++k) {
      write(thread, to[k], value >> (to_width * static_cast<int>(k)));
    }
  }

  void convert_address(Thread& thread, const Instruction& one) {
    const Space space = space_of(one);
    const uint64_t window = space == Space::kShared  ? kSharedWindow
                            : space == Space::kLocal ? kLocalWindow
                                                     : 0;
    const uint64_t address = read(thread, one.operands[1], Type::kU64);
    write(thread, one.operands[0], one.has("to") ? address - window : address + window);
  }

  static uint64_t true_of(Type type) {
    const std::pair<Type, uint64_t> rows[] = {{Type::kF32, 0x3F800000}, {Type::kF16, 0x3C00},
                                              {Type::kF16x2, 0x3C00},   {Type::kBf16, 0x3F80},
                                              {Type::kBf16x2, 0x3F80},  {Type::kU16, 0xFFFF},
                                              {Type::kS16, 0xFFFF}};
    for (const auto& [one, value] : rows) {
      if (one == type) return value;
    }
    return 0xFFFFFFFF;
  }

  // `setp.lt.and.s32 p|q, a, b, c` and `set.lt.u32.s32 d, a, b`.
  void set(Thread& thread, const Instruction& one) {
    const Type type = one.type();
    const uint64_t a = read(thread, one.operands[1], type);
    const uint64_t b = read(thread, one.operands[2], type);
    auto combined = [&](bool value) {
      if (one.operands.size() < 4) return value;
      const bool c = read(thread, one.operands[3], Type::kPred) != 0;
      const std::string& name = one.modifiers[1];
      return name == "and" ? value && c : name == "or" ? value || c : value != c;
    };
    if (type == Type::kF16x2 || type == Type::kBf16x2) {
      const Type half = type == Type::kF16x2 ? Type::kF16 : Type::kBf16;
      const uint64_t yes = true_of(one.types[0]) & 0xFFFF;
      const uint64_t low = combined(compare(one, half, a & 0xFFFF, b & 0xFFFF)) ? yes : 0;
      const uint64_t high = combined(compare(one, half, a >> 16, b >> 16)) ? yes : 0;
      return write(thread, one.operands[0], high << 16 | low);
    }
    const bool holds = compare(one, type, a, b);
    if (one.opcode == "set") {
      return write(thread, one.operands[0], combined(holds) ? true_of(one.types[0]) : 0);
    }
    const std::span<const Operand> to = parts_of(one.operands[0]);
    const bool first = combined(holds), second = combined(!holds);
    write(thread, to[0], first ? 1 : 0);
    if (to.size() > 1) write(thread, to[1], second ? 1 : 0);
  }

  void arithmetic(Thread& thread, const Instruction& one) {
    std::vector<uint64_t> sources;
    for (size_t k = 1; k < one.operands.size(); ++k) {
      sources.push_back(read(thread, one.operands[k], one.type()));
    }
    uint64_t result = 0;
    if (!compute(one, sources, thread.frames.back().carry, result)) return lack();
    write(thread, one.operands[0], result);
  }

  void lack() { fail("an unknown instruction", ErrorCode::kUnsupported); }

  // Meetings.

  bool meet() {
    bool any = false;
    const size_t count = threads_.size();
    for (size_t begin = 0; begin < count && !error_; begin += kLanes) {
      any |= meet_warp({threads_.data() + begin, std::min<size_t>(kLanes, count - begin)});
    }
    return any || meet_barrier();
  }

  uint32_t mask_of(Thread& thread) {
    const Instruction& one = instruction_of(thread);
    if (one.opcode == "activemask" || is_matrix(one)) return 0xFFFFFFFF;
    return static_cast<uint32_t>(read(thread, one.operands.back(), Type::kB32));
  }

  // Groups of a warp whose members are all at one instruction, with one mask.
  bool meet_warp(std::span<Thread> warp) {
    bool any = false;
    for (Thread& first : warp) {
      if (first.state != State::kWaits || is_barrier(instruction_of(first))) continue;
      const Instruction& one = instruction_of(first);
      const uint32_t mask = mask_of(first);
      std::vector<Thread*> group;
      bool is_complete = true;
      for (Thread& other : warp) {
        if ((mask >> other.lane() & 1) == 0 || other.state == State::kEnded) continue;
        const bool is_there = other.state == State::kWaits && &instruction_of(other) == &one &&
                              mask_of(other) == mask;
        if (is_there) group.push_back(&other);
        is_complete &= is_there || one.opcode == "activemask";
      }
      if (!is_complete) continue;
      present_ = &one;
      exchange(group, one);
      for (Thread* member : group) {
        ++member->frames.back().next;
        member->state = State::kRuns;
      }
      any = true;
    }
    return any;
  }

  void exchange(const std::vector<Thread*>& group, const Instruction& one) {
    if (one.opcode == "mma") return multiply(group, one);
    if (one.opcode == "ldmatrix") return load_matrices(group, one);
    if (one.opcode == "stmatrix") return store_matrices(group, one);
    std::map<uint32_t, uint64_t> values;  // The key is a lane.
    const Type type = one.opcode == "vote" ? Type::kPred : one.type();
    if (one.operands.size() > 1) {
      for (Thread* member : group) values[member->lane()] = read(*member, one.operands[1], type);
    }
    for (Thread* member : group) {
      if (one.opcode == "shfl") {
        shuffle(*member, one, values);
      } else if (one.opcode == "vote") {
        write(*member, one.operands[0], vote(one, values));
      } else if (one.opcode == "match") {
        match(*member, one, values);
      } else if (one.opcode == "redux") {
        write(*member, one.operands[0], reduce(one, values));
      } else if (one.opcode == "activemask") {
        uint64_t mask = 0;
        for (const Thread* other : group) mask |= 1ULL << other->lane();
        write(*member, one.operands[0], mask);
      }
    }
  }

  void multiply(const std::vector<Thread*>& group, const Instruction& one) {
    std::array<Fragments, kLanes> lanes;
    if (group.size() != kLanes) return fail("a product of matrices by a part of a warp");
    for (Thread* member : group) {
      Fragments& own = lanes[member->lane()];
      std::vector<uint64_t>* lists[] = {&own.a, &own.b, &own.c};
      for (size_t k = 0; k < 3; ++k) {
        for (const Operand& part : parts_of(one.operands[k + 1])) {
          lists[k]->push_back(read(*member, part, Type::kB64));
        }
      }
    }
    if (!multiply_matrices(one, lanes)) return lack();
    for (Thread* member : group) {
      const std::span<const Operand> to = parts_of(one.operands[0]);
      const std::vector<uint64_t>& result = lanes[member->lane()].d;
      for (size_t k = 0; k < to.size() && k < result.size(); ++k) write(*member, to[k], result[k]);
    }
  }

  // Lanes 8 m to 8 m + 7 have the addresses of the rows of matrix m. A lane gets two neighbours of
  // the row lane / 4, or with .trans of the column.
  void load_matrices(const std::vector<Thread*>& group, const Instruction& one) {
    const size_t count = parts_of(one.operands[0]).size();
    if (group.size() != kLanes) return fail("a load of matrices by a part of a warp");
    for (size_t matrix = 0; matrix < count; ++matrix) {
      uint16_t elements[8][8] = {};
      for (size_t row = 0; row < 8; ++row) {
        Thread& owner = *group[8 * matrix + row];
        const uint8_t* bytes = bytes_of_operand(owner, space_of(one), one.operands[1], 16);
        if (bytes == nullptr) return;
        std::memcpy(elements[row], bytes, 16);
      }
      for (Thread* member : group) {
        const uint32_t line = member->lane() / 4, first = member->lane() % 4 * 2;
        const bool is_column = one.has("trans");
        const uint64_t low = is_column ? elements[first][line] : elements[line][first];
        const uint64_t high = is_column ? elements[first + 1][line] : elements[line][first + 1];
        write(*member, parts_of(one.operands[0])[matrix], low | high << 16);
      }
    }
  }

  // Each lane puts its two elements where load_matrices would find them.
  void store_matrices(const std::vector<Thread*>& group, const Instruction& one) {
    if (group.size() != kLanes) return fail("a store of matrices by a part of a warp");
    for (Thread* member : group) {
      const uint32_t line = member->lane() / 4, first = member->lane() % 4 * 2;
      const std::span<const Operand> from = parts_of(one.operands[1]);
      for (size_t matrix = 0; matrix < from.size(); ++matrix) {
        const uint64_t pair = read(*member, from[matrix], Type::kB32);
        for (uint32_t k = 0; k < 2; ++k) {
          const uint32_t row = one.has("trans") ? first + k : line;
          const uint32_t column = one.has("trans") ? line : first + k;
          Thread& owner = *group[8 * matrix + row];
          uint8_t* bytes = bytes_of_operand(owner, space_of(one), one.operands[0], 16);
          if (bytes == nullptr) return;
          const auto element = static_cast<uint16_t>(pair >> (16 * k));
          std::memcpy(bytes + 2 * column, &element, 2);
        }
      }
    }
  }

  void shuffle(Thread& thread, const Instruction& one, const std::map<uint32_t, uint64_t>& values) {
    const auto b = static_cast<int>(read(thread, one.operands[2], Type::kB32) & 31);
    const auto c = static_cast<int>(read(thread, one.operands[3], Type::kB32));
    const int lane = static_cast<int>(thread.lane()), clamp = c & 31, segment = (c >> 8) & 31;
    const int last = (lane & segment) | (clamp & ~segment), first = lane & segment;
    int from = lane;
    bool is_inside = false;
    if (one.has("up")) {
      from = lane - b;
      is_inside = from >= last;
    } else {
      from = one.has("down") ? lane + b : one.has("bfly") ? lane ^ b : first | (b & ~segment);
      is_inside = from <= last;
    }
    if (!is_inside) from = lane;
    const auto found = values.find(static_cast<uint32_t>(from));
    if (found == values.end()) return fail("a shuffle from a lane that does not take part");
    const std::span<const Operand> to = parts_of(one.operands[0]);
    write(thread, to[0], found->second);
    if (to.size() > 1) write(thread, to[1], is_inside ? 1 : 0);
  }

  static uint64_t vote(const Instruction& one, const std::map<uint32_t, uint64_t>& values) {
    uint64_t ballot = 0, members = 0;
    for (const auto& [lane, value] : values) {
      members |= 1ULL << lane;
      if (value != 0) ballot |= 1ULL << lane;
    }
    if (one.has("ballot")) return ballot;
    if (one.has("all")) return ballot == members ? 1 : 0;
    if (one.has("any")) return ballot != 0 ? 1 : 0;
    return ballot == members || ballot == 0 ? 1 : 0;
  }

  void match(Thread& thread, const Instruction& one, const std::map<uint32_t, uint64_t>& values) {
    const uint64_t own = bits_as(values.at(thread.lane()), one.type());
    uint64_t equal = 0;
    for (const auto& [lane, value] : values) {
      if (bits_as(value, one.type()) == own) equal |= 1ULL << lane;
    }
    const bool all = std::popcount(equal) == static_cast<int>(values.size());
    const std::span<const Operand> to = parts_of(one.operands[0]);
    write(thread, to[0], one.has("any") || all ? equal : 0);
    if (to.size() > 1) write(thread, to[1], all ? 1 : 0);
  }

  uint64_t reduce(const Instruction& one, const std::map<uint32_t, uint64_t>& values) {
    uint64_t total = values.begin()->second;
    for (auto at = std::next(values.begin()); at != values.end(); ++at) {
      if (!combine(one, total, at->second, 0, total)) lack();
    }
    return total;
  }

  // Barriers.

  uint64_t barrier_of(Thread& thread) {
    const Instruction& one = instruction_of(thread);
    const size_t at = one.has("red") ? 1 : 0;
    return one.operands.size() > at ? read(thread, one.operands[at], Type::kU32) : 0;
  }

  // The threads that a barrier waits for; 0: all that have not ended.
  uint64_t count_of(Thread& thread) {
    const Instruction& one = instruction_of(thread);
    const bool reduces = one.has("red");
    const size_t at = reduces ? 2 : 1;
    const bool has_count = one.operands.size() > (reduces ? 3 : 1);
    return has_count ? read(thread, one.operands[at], Type::kU32) : 0;
  }

  bool meet_barrier() {
    std::map<uint64_t, std::vector<Thread*>> waiting;
    uint64_t present = 0;
    for (Thread& thread : threads_) {
      if (thread.state != State::kEnded) ++present;
      if (thread.state != State::kWaits || !is_barrier(instruction_of(thread))) continue;
      waiting[barrier_of(thread)].push_back(&thread);
    }
    for (auto& [barrier, group] : waiting) {
      uint64_t count = count_of(*group[0]);
      if (count == 0) count = present;
      if (group.size() + arrived_[barrier] < count) continue;
      arrived_[barrier] = 0;
      pass_barrier(group);
      return true;
    }
    return false;
  }

  void pass_barrier(const std::vector<Thread*>& group) {
    uint64_t num_true = 0;
    for (Thread* member : group) {
      const Instruction& one = instruction_of(*member);
      if (one.has("red")) num_true += read(*member, one.operands.back(), Type::kPred);
    }
    for (Thread* member : group) {
      const Instruction& one = instruction_of(*member);
      if (one.has("popc")) write(*member, one.operands[0], num_true);
      if (one.has("and")) write(*member, one.operands[0], num_true == group.size() ? 1 : 0);
      if (one.has("or")) write(*member, one.operands[0], num_true != 0 ? 1 : 0);
      ++member->frames.back().next;
      member->state = State::kRuns;
    }
  }

  const ReferenceLaunch& launch_;
  std::vector<ReferenceMemory>& memory_;
  std::vector<ReferenceMemory> variables_;
  std::map<std::string, uint64_t> addresses_;
  std::vector<const Variable*> dynamic_;
  uint64_t shared_bytes_ = 0;
  const Function* kernel_ = nullptr;
  std::optional<Error> error_;
  const Instruction* present_ = nullptr;
  int64_t steps_ = 0;

  // State of the current block.
  uint32_t block_ = 0;
  std::vector<Thread> threads_;
  std::vector<uint8_t> shared_;
  std::map<uint64_t, uint64_t> arrived_;  // Threads of bar.arrive, which do not wait.
};

}  // namespace

Status run_reference(const ReferenceLaunch& launch, std::vector<ReferenceMemory>& memory) {
  return Reference(launch, memory).run();
}

}  // namespace mc::ptx
