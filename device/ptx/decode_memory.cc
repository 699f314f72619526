// SPDX-License-Identifier: Apache-2.0
//
// Loads, stores and their relatives.
#include <algorithm>

#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

// A limit against modules made to be slow: compilers move a value once or twice.
constexpr int kMovesMax = 8;

struct AtomicName {
  std::string_view name;
  Op op;
};

constexpr AtomicName kAtomics[] = {{"add", Op::kAdd}, {"min", Op::kMin},   {"max", Op::kMax},
                                   {"and", Op::kAnd}, {"or", Op::kOr},     {"xor", Op::kXor},
                                   {"cas", Op::kCas}, {"exch", Op::kExch}, {"inc", Op::kInc},
                                   {"dec", Op::kDec}};

Space space_of(const Instruction& one) {
  if (one.has("global") || one.has("const")) return Space::kGlobal;
  if (one.has("shared") || one.has("shared::cta")) return Space::kShared;
  if (one.has("local")) return Space::kLocal;
  if (one.has("param") || one.has("param::entry")) return Space::kParam;
  return Space::kGeneric;
}

// These loads use a cache that may contain the word's old value.
bool is_read_only(const Instruction& one) {
  return one.has("nc") || one.has("const") || one.opcode == "ldu";
}

uint64_t window_of(const Instruction& one) {
  if (one.has("shared") || one.has("shared::cta")) return kSharedWindow;
  if (one.has("local")) return kLocalWindow;
  return one.has("param") ? kParamWindow : 0;
}

}  // namespace

bool Decoder::try_memory(const Instruction& one) {
  const std::string& op = one.opcode;
  const bool is_known = op == "ld" || op == "ldu" || op == "st" || op == "atom" || op == "red" ||
                        op == "cp" || op == "ldmatrix" || op == "stmatrix" || op == "cvta" ||
                        op == "isspacep";
  if (!is_known) return false;
  for (const std::string& modifier : one.modifiers) {
    if (modifier == "shared::cluster" || modifier == "bulk" || modifier == "mbarrier") {
      mark_unsupported("copies by TMA and memory of clusters are not supported");
      return true;
    }
  }
  const bool is_store = op == "st" || (one.has("exch") && is_unread(one));
  if (may_pause(one)) emit(variant_.plain.pause, {.flags = is_store ? kAlways : 0});
  if (one.has("release") || one.has("acq_rel")) {
    emit(one.has("cta") ? variant_.plain.fence_of_block : variant_.plain.fence);
  }
  if (op == "ld" || op == "ldu") {
    load(one);
  } else if (op == "st") {
    store(one);
  } else if (op == "atom" || op == "red") {
    atomic(one);
  } else if (op == "cp") {
    copy_async(one);
  } else if (op == "ldmatrix") {
    load_matrix(one);
  } else if (op == "stmatrix") {
    store_matrix(one);
  } else {
    convert_address(one);
  }
  return true;
}

// The registers of a load's or store's data, which have one width.
std::vector<uint32_t> Decoder::register_row(const Instruction& one, const Operand& data,
                                            bool is_result, int& width) {
  const std::vector<Operand> single = {data};
  const auto& parts = data.kind == Operand::Kind::kVector ? data.parts : single;
  const size_t wanted = one.has("v2") ? 2 : one.has("v4") ? 4 : one.has("v8") ? 8 : 1;
  if (parts.size() != wanted) {
    fail("it has " + std::to_string(parts.size()) + " registers in place of " +
         std::to_string(wanted));
    return {};
  }
  width = 0;
  for (const Operand& part : parts) width = std::max(width, width_of(part));
  if (width == 0) width = std::max(bytes_of(one.type()), 2);
  std::vector<uint32_t> offsets;
  for (const Operand& part : parts) {
    offsets.push_back(is_result ? result(part, width) : source(part, width));
  }
  return offsets;
}

void Decoder::load(const Instruction& one) {
  const Operand& from = operand(one, 1);
  if (const ParamArea* area = param_area(from.name); area != nullptr && from.id < 0) {
    return frame_access(one, *area, true);
  }
  const Variable* parameter = function_.find_parameter(from.name);
  if (parameter != nullptr && function_.is_kernel && from.id < 0) {
    return parameter_load(one, *parameter);
  }
  access(one, 0, 1);
}

// A load or a store of the registers and the address at these operands.
void Decoder::access(const Instruction& one, size_t data, size_t memory) {
  int width = 0;
  const bool is_load = data == 0;
  std::vector<uint32_t> offsets = register_row(one, operand(one, data), is_load, width);
  if (error_) return;
  const AccessKey key = {bytes_of(one.type()), is_load && is_signed(one.type()), width,
                         static_cast<int>(offsets.size())};
  Step step = memory_step(one, operand(one, memory));
  step.d = offsets[0];
  count_access(one, step, static_cast<uint32_t>(key.bytes * key.elements));
  // The first read of an atom.cas loop does not count as a plain read: only the atomic acts on it.
  const bool is_look = is_load && space_of(one) == Space::kShared && is_compared(operand(one, 0));
  if (is_look) step.flags |= kStrong;
  emit(is_load ? variant_.load(key) : variant_.store(key), step);
  if (offsets.size() > 1) list(std::move(offsets));
}

bool Decoder::is_unread(const Instruction& one) const {
  if (one.operands.empty()) return false;
  const Operand& to = one.operands[0];
  const bool is_register = one.opcode == "atom" && to.kind == Operand::Kind::kRegister;
  return !is_register || lives_[static_cast<size_t>(to.id)].reads == 0;
}

void Decoder::find_compared() {
  compared_.assign(function_.registers.size(), false);
  const auto mark = [&](const Instruction& one, size_t index) {
    const bool is_new = one.operands.size() > index && one.operands[index].id >= 0 &&
                        !is_compared(one.operands[index]);
    if (is_new) compared_[static_cast<size_t>(one.operands[index].id)] = true;
    return is_new;
  };
  bool changes = true;
  for (int pass = 0; pass < kMovesMax && changes; ++pass) {
    changes = false;
    for (const Instruction& one : function_.instructions) {
      const bool is_update = one.opcode == "atom" && one.has("cas");
      const bool is_copy =
          one.opcode == "mov" && !one.operands.empty() && is_compared(one.operands[0]);
      if (is_update) changes |= mark(one, 2);
      if (is_copy) changes |= mark(one, 1);
    }
  }
}

bool Decoder::is_compared(const Operand& data) const {
  return data.id >= 0 && compared_[static_cast<size_t>(data.id)];
}

// Constant accesses are cached and move no sectors.
void Decoder::count_access(const Instruction& one, Step access, uint32_t bytes, uint32_t lanes) {
  if (builder_.counting == Counting::kOff || one.has("const")) return;
  const bool is_store = one.opcode == "st" || one.opcode == "stmatrix";
  const bool is_atomic = one.opcode == "atom" || one.opcode == "red";
  const Counted kind = is_store ? Counted::kStore : is_atomic ? Counted::kAtomic : Counted::kLoad;
  emit(variant_.plain.count_access, {.a = access.a,
                                     .b = lanes,
                                     .c = bytes,
                                     .e = static_cast<uint32_t>(kind),
                                     .flags = access.flags,
                                     .immediate = access.immediate});
}

Step Decoder::memory_step(const Instruction& one, const Operand& memory) {
  Step step = address(memory);
  step.flags |= static_cast<uint32_t>(space_of(one)) | (is_strong(one) ? kStrong : 0) |
                (is_read_only(one) ? kReadOnly : 0) | (one.has("cta") ? kBlockScope : 0) |
                (one.has("volatile") ? kVolatile : 0);
  step.site = builder_.program.num_sites++;
  return step;
}

// A kernel's parameter at a constant offset is a value of the frame.
void Decoder::parameter_load(const Instruction& one, const Variable& parameter) {
  const Operand& from = operand(one, 1);
  int width = 0;
  const std::vector<uint32_t> offsets = register_row(one, operand(one, 0), true, width);
  const int bytes = bytes_of(one.type());
  const int64_t end = from.value + bytes * std::ssize(offsets);
  if (from.value < 0 || end > parameter.bytes || bytes == 0 || bytes > width) {
    return fail("it reads beyond the parameter");
  }
  for (size_t k = 0; k < offsets.size(); ++k) {
    FrameValue value;
    value.source = Source::kParameter;
    value.width = width;
    value.bytes = bytes;
    value.is_signed = is_signed(one.type());
    value.bits =
        static_cast<uint64_t>(parameter.offset + from.value) + k * static_cast<size_t>(bytes);
    emit(variant_.arithmetic({Op::kMov, bits_type(width)}),
         {.d = offsets[k], .a = value_offset(value)});
  }
}

void Decoder::frame_access(const Instruction& one, const ParamArea& area, bool is_load) {
  const Operand& memory = operand(one, is_load ? 1 : 0);
  int width = 0;
  const std::vector<uint32_t> offsets =
      register_row(one, operand(one, is_load ? 0 : 1), is_load, width);
  const int bytes = bytes_of(one.type());
  const int64_t end = memory.value + bytes * std::ssize(offsets);
  if (memory.value < 0 || end > area.bytes || bytes == 0 || bytes > 8 ||
      (!is_load && bytes > width)) {
    return fail("it is beyond the .param variable");
  }
  emit(is_load ? variant_.plain.frame_load : variant_.plain.frame_store,
       {.d = static_cast<uint32_t>(offsets.size()),
        .a = area.offset,
        .b = static_cast<uint32_t>(bytes),
        .c = area.bytes,
        .e = static_cast<uint32_t>(width),
        .flags = is_signed(one.type()) ? 1U : 0U,
        .immediate = memory.value});
  list(offsets);
}

void Decoder::store(const Instruction& one) {
  const Operand& to = operand(one, 0);
  if (const ParamArea* area = param_area(to.name); area != nullptr && to.id < 0) {
    return frame_access(one, *area, false);
  }
  access(one, 1, 0);
}

// `atom d, [a], b {, c}` and `red [a], b`
void Decoder::atomic(const Instruction& one) {
  const bool has_result = one.opcode == "atom";
  const size_t first = has_result ? 1 : 0;
  Op op = Op::kNone;
  for (const AtomicName& name : kAtomics) {
    if (one.has(name.name)) op = name.op;
  }
  const int width = bytes_of(one.type());
  if (one.has("v2") || one.has("v4") || one.has("v8"))
    return mark_unsupported("atomics of vectors");
  Step step = memory_step(one, operand(one, first));
  step.b = source(one, first + 1, width);
  step.c = op == Op::kCas ? source(one, first + 2, width) : zeros_;
  const bool is_discarded = !has_result || operand(one, 0).kind == Operand::Kind::kDiscard;
  if (is_unread(one)) step.flags |= kUnread;
  count_access(one, step, static_cast<uint32_t>(width));
  step.d = is_discarded ? 0 : result(operand(one, 0), width);
  emit(variant_.atomic({op, one.type()}), step);
}

// `cp.async.ca.shared.global [to], [from], bytes {, bytes that are read}`
void Decoder::copy_async(const Instruction& one) {
  if (!one.has("async")) return mark_unsupported("this copy is not supported");
  if (one.has("mbarrier")) return mark_unsupported("mbarriers are not supported");
  if (one.has("commit_group")) {
    emit(variant_.plain.copy_async_commit);
    return;
  }
  if (one.has("wait_group") || one.has("wait_all")) {
    const int64_t newest = one.has("wait_all") ? -1 : operand(one, 0).value;
    emit(variant_.plain.copy_async_wait, {.immediate = newest});
    return;
  }
  const Step to = address(operand(one, 0)), from = address(operand(one, 1));
  const Operand& bytes = operand(one, 2);
  const bool is_size = bytes.kind == Operand::Kind::kInteger &&
                       (bytes.value == 4 || bytes.value == 8 || bytes.value == 16);
  if (!is_size) return fail("a copy has 4, 8 or 16 bytes");
  // The last operand is the cache policy, if there is one.
  const size_t hint = one.has("L2::cache_hint") ? 1 : 0;
  const bool has_size = one.operands.size() > 3 + hint;
  if (has_size && operand(one, 3).type == Type::kPred)
    return mark_unsupported("ignore-src is not supported");
  Step source_step = from, target_step = to;
  source_step.flags |= static_cast<uint32_t>(Space::kGlobal);
  target_step.flags |= static_cast<uint32_t>(Space::kShared);
  count_access(one, source_step, static_cast<uint32_t>(bytes.value));
  count_access(one, target_step, static_cast<uint32_t>(bytes.value));
  emit(variant_.plain.copy_async, {.d = to.a,
                                   .a = from.a,
                                   .b = constant(static_cast<uint64_t>(from.immediate), 8),
                                   .c = static_cast<uint32_t>(bytes.value),
                                   .e = has_size ? source(one, 3, 4) : 0,
                                   .flags = to.flags | (from.flags != 0 ? kFromWide : 0),
                                   .immediate = to.immediate,
                                   .site = builder_.program.num_sites++});
}

// Lanes 8k to 8k + 7 give the rows of matrix k.
void Decoder::count_rows(const Instruction& one, Step access) {
  access.flags |= static_cast<uint32_t>(Space::kShared);
  count_access(one, access, 16, 8 * access.c);
}

// `ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 {d...}, [a]`
void Decoder::load_matrix(const Instruction& one) {
  const size_t count = one.has("x4") ? 4 : one.has("x2") ? 2 : 1;
  if (!one.has("m8n8") || !one.has("b16")) return mark_unsupported("this matrix is not supported");
  std::vector<uint32_t> offsets = fragment(one, 0, 4, true);
  if (offsets.size() != count) return fail("a wrong number of registers");
  Step step = address(operand(one, 1));
  step.c = static_cast<uint32_t>(count);
  count_rows(one, step);
  emit(one.has("trans") ? variant_.plain.load_matrix_transposed : variant_.plain.load_matrix, step);
  list(std::move(offsets));
}

// `stmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 [a], {d...}`
void Decoder::store_matrix(const Instruction& one) {
  const size_t count = one.has("x4") ? 4 : one.has("x2") ? 2 : 1;
  if (!one.has("m8n8") || !one.has("b16")) return mark_unsupported("this matrix is not supported");
  std::vector<uint32_t> offsets = fragment(one, 1, 4, false);
  if (offsets.size() != count) return fail("a wrong number of registers");
  Step step = address(operand(one, 0));
  step.c = static_cast<uint32_t>(count);
  count_rows(one, step);
  emit(one.has("trans") ? variant_.plain.store_matrix_transposed : variant_.plain.store_matrix,
       step);
  list(std::move(offsets));
}

// cvta{.to}.space and isspacep.space
void Decoder::convert_address(const Instruction& one) {
  const uint64_t window = window_of(one);
  if (one.opcode == "isspacep") {
    Step step = operands(one, "dp a8");
    step.immediate = static_cast<int64_t>(window);
    emit(variant_.plain.is_space, step);
    return;
  }
  if (bytes_of(one.type()) != 8) return mark_unsupported("addresses of 32 bits");
  const bool is_to = one.has("to");
  const uint64_t other = is_to ? (uint64_t{1} << kWindowShift) - 1 : window;
  const Op op = window == 0 ? Op::kMov : is_to ? Op::kAnd : Op::kOr;
  Step step = operands(one, "d8 a8");
  step.b = constant(other, 8);
  emit(variant_.arithmetic({op, Type::kB64}), step);
}

}  // namespace mc::ptx
