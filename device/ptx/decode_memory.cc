// SPDX-License-Identifier: Apache-2.0
//
// Loads, stores and their relatives.
#include <algorithm>

#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

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

bool is_strong(const Instruction& one) {
  return one.has("volatile") || one.has("relaxed") || one.has("acquire") || one.has("release") ||
         one.has("mmio");
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
                        op == "cp" || op == "ldmatrix" || op == "cvta" || op == "isspacep";
  if (!is_known) return false;
  for (const std::string& modifier : one.modifiers) {
    if (modifier == "shared::cluster" || modifier == "bulk" || modifier == "mbarrier") {
      lack("copies by TMA and memory of clusters are not supported");
      return true;
    }
  }
  if (one.has("release") || one.has("acq_rel")) emit(variant_.plain.fence);
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
  } else {
    convert_address(one);
  }
  return true;
}

uint32_t Decoder::space_flags(const Instruction& one) {
  return static_cast<uint32_t>(space_of(one)) | (is_strong(one) ? kStrong : 0);
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
  std::vector<uint32_t> places;
  for (const Operand& part : parts) {
    places.push_back(is_result ? result(part, width) : source(one, part, width));
  }
  return places;
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
  int width = 0;
  const std::vector<uint32_t> places = register_row(one, operand(one, 0), true, width);
  if (error_) return;
  Step step;
  address(one, from, step);
  Step& load = emit(variant_.load(
      {bytes_of(one.type()), is_signed(one.type()), width, static_cast<int>(places.size())}));
  load.d = places[0];
  load.a = step.a;
  load.immediate = step.immediate;
  load.flags = step.flags | space_flags(one);
  load.site = builder_.program.num_sites++;
  if (places.size() > 1) list(places);
}

// A kernel's parameter at a known place is a value of the frame.
void Decoder::parameter_load(const Instruction& one, const Variable& parameter) {
  const Operand& from = operand(one, 1);
  int width = 0;
  const std::vector<uint32_t> places = register_row(one, operand(one, 0), true, width);
  const int bytes = bytes_of(one.type());
  const int64_t end = from.value + bytes * std::ssize(places);
  if (from.value < 0 || end > parameter.bytes || bytes == 0 || bytes > width) {
    return fail("it reads beyond the parameter");
  }
  for (size_t k = 0; k < places.size(); ++k) {
    FrameValue value;
    value.source = Source::kParameter;
    value.width = width;
    value.bytes = bytes;
    value.is_signed = is_signed(one.type());
    value.bits =
        static_cast<uint64_t>(parameter.offset + from.value) + k * static_cast<size_t>(bytes);
    const uint32_t place = value_place(value);
    const Type type = width == 8 ? Type::kB64 : width == 4 ? Type::kB32 : Type::kB16;
    Step& step = emit(variant_.arithmetic({Op::kMov, type}));
    step.d = places[k];
    step.a = place;
  }
}

void Decoder::frame_access(const Instruction& one, const ParamArea& area, bool is_load) {
  const Operand& memory = operand(one, is_load ? 1 : 0);
  int width = 0;
  const std::vector<uint32_t> places =
      register_row(one, operand(one, is_load ? 0 : 1), is_load, width);
  const int bytes = bytes_of(one.type());
  const int64_t end = memory.value + bytes * std::ssize(places);
  if (memory.value < 0 || end > area.bytes || bytes == 0 || bytes > 8 ||
      (!is_load && bytes > width)) {
    return fail("it is beyond the .param variable");
  }
  Step& step = emit(is_load ? variant_.plain.frame_load : variant_.plain.frame_store);
  step.a = area.place;
  step.b = static_cast<uint32_t>(bytes);
  step.c = area.bytes;
  step.d = static_cast<uint32_t>(places.size());
  step.e = static_cast<uint32_t>(width);
  step.immediate = memory.value;
  step.flags = is_signed(one.type()) ? 1 : 0;
  list(places);
}

void Decoder::store(const Instruction& one) {
  const Operand& to = operand(one, 0);
  if (const ParamArea* area = param_area(to.name); area != nullptr && to.id < 0) {
    return frame_access(one, *area, false);
  }
  int width = 0;
  const std::vector<uint32_t> places = register_row(one, operand(one, 1), false, width);
  if (error_) return;
  Step step;
  address(one, to, step);
  Step& store =
      emit(variant_.store({bytes_of(one.type()), false, width, static_cast<int>(places.size())}));
  store.d = places[0];
  store.a = step.a;
  store.immediate = step.immediate;
  store.flags = step.flags | space_flags(one);
  store.site = builder_.program.num_sites++;
  if (places.size() > 1) list(places);
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
  if (one.has("v2") || one.has("v4") || one.has("v8")) return lack("atomics of vectors");
  Step step;
  address(one, operand(one, first), step);
  const uint32_t b = source(one, first + 1, width);
  const uint32_t c = op == Op::kCas ? source(one, first + 2, width) : zeros_;
  const bool is_discarded = has_result && operand(one, 0).kind == Operand::Kind::kDiscard;
  const uint32_t d = has_result && !is_discarded ? result(operand(one, 0), width) : 0;
  Step& atomic = emit(variant_.atomic({op, one.type()}));
  atomic.a = step.a;
  atomic.b = b;
  atomic.c = c;
  atomic.d = d;
  atomic.immediate = step.immediate;
  atomic.flags = step.flags | space_flags(one);
  atomic.site = builder_.program.num_sites++;
}

// `cp.async.ca.shared.global [to], [from], bytes {, bytes that are read}`
void Decoder::copy_async(const Instruction& one) {
  if (!one.has("async")) return lack("this copy is not supported");
  if (one.has("mbarrier")) return lack("mbarriers are not supported");
  if (one.has("commit_group")) {
    emit(variant_.plain.copy_async_commit);
    return;
  }
  if (one.has("wait_group") || one.has("wait_all")) {
    const int64_t newest = one.has("wait_all") ? -1 : operand(one, 0).value;
    emit(variant_.plain.copy_async_wait).immediate = newest;
    return;
  }
  Step to, from;
  address(one, operand(one, 0), to);
  address(one, operand(one, 1), from);
  const Operand& bytes = operand(one, 2);
  const bool is_size = bytes.kind == Operand::Kind::kInteger &&
                       (bytes.value == 4 || bytes.value == 8 || bytes.value == 16);
  if (!is_size) return fail("a copy has 4, 8 or 16 bytes");
  // The last operand is the policy of a cache, where there is one.
  const size_t hint = one.has("L2::cache_hint") ? 1 : 0;
  const bool has_size = one.operands.size() > 3 + hint;
  if (has_size && operand(one, 3).type == Type::kPred) return lack("ignore-src is not supported");
  const uint32_t read = has_size ? source(one, 3, 4) : 0;
  const uint32_t offset = constant(static_cast<uint64_t>(from.immediate), 8);
  Step& step = emit(variant_.plain.copy_async);
  step.d = to.a;
  step.immediate = to.immediate;
  step.flags = (to.flags & kWideAddress) | (from.flags & kWideAddress ? kFromWide : 0);
  step.a = from.a;
  step.b = offset;
  step.c = static_cast<uint32_t>(bytes.value);
  step.e = read;
  step.site = builder_.program.num_sites++;
}

// `ldmatrix.sync.aligned.m8n8.x4{.trans}.shared.b16 {d...}, [a]`
void Decoder::load_matrix(const Instruction& one) {
  const Operand& to = operand(one, 0);
  const size_t count = one.has("x4") ? 4 : one.has("x2") ? 2 : 1;
  if (!one.has("m8n8") || !one.has("b16")) return lack("this matrix is not supported");
  const bool is_row = to.kind == Operand::Kind::kVector ? to.parts.size() == count : count == 1;
  if (!is_row) return fail("a wrong number of registers");
  std::vector<uint32_t> places;
  if (to.kind == Operand::Kind::kVector) {
    for (const Operand& part : to.parts) places.push_back(result(part, 4));
  } else {
    places.push_back(result(to, 4));
  }
  Step step;
  address(one, operand(one, 1), step);
  Step& load =
      emit(one.has("trans") ? variant_.plain.load_matrix_transposed : variant_.plain.load_matrix);
  load.a = step.a;
  load.immediate = step.immediate;
  load.flags = step.flags;
  load.c = static_cast<uint32_t>(count);
  list(places);
}

// cvta{.to}.space and isspacep.space
void Decoder::convert_address(const Instruction& one) {
  const uint64_t window = window_of(one);
  if (one.opcode == "isspacep") {
    const uint32_t a = source(one, 1, 8), d = predicate_result(operand(one, 0));
    Step& step = emit(variant_.plain.is_space);
    step.d = d;
    step.a = a;
    step.immediate = static_cast<int64_t>(window);
    return;
  }
  const int width = bytes_of(one.type());
  if (width != 8) return lack("addresses of 32 bits");
  const uint32_t a = source(one, 1, 8), d = result(operand(one, 0), 8);
  const bool is_to = one.has("to");
  const uint64_t other = is_to ? (uint64_t{1} << kWindowShift) - 1 : window;
  const uint32_t b = window == 0 ? zeros_ : constant(other, 8);
  const Op op = window == 0 ? Op::kMov : is_to ? Op::kAnd : Op::kOr;
  Step& step = emit(variant_.arithmetic({op, Type::kB64}));
  step.d = d;
  step.a = a;
  step.b = b;
}

}  // namespace mc::ptx
