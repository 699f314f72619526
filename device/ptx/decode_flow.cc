// SPDX-License-Identifier: Apache-2.0
//
// Flow of control, and what lanes and threads do together.
#include <algorithm>

#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

// Instructions without effect on values: the executor has no caches, and its memory is consistent.
constexpr std::string_view kNothing[] = {"membar",         "fence",     "prefetch", "prefetchu",
                                         "nanosleep",      "discard",   "pmevent",  "applypriority",
                                         "griddepcontrol", "setmaxnreg"};
constexpr size_t kBuiltinArguments = 8;

bool is_builtin(std::string_view name) {
  return name == "vprintf" || name == "__assertfail" || name == "malloc" || name == "free";
}

int64_t vote_kind(const Instruction& one) {
  return one.has("ballot") ? 0 : one.has("all") ? 1 : one.has("any") ? 2 : 3;
}

int64_t redux_kind(const Instruction& one) {
  constexpr std::string_view kKinds[] = {"add", "min", "max", "and", "or", "xor"};
  for (size_t k = 0; k < std::size(kKinds); ++k) {
    if (one.has(kKinds[k])) return static_cast<int64_t>(k);
  }
  return 0;
}

uint32_t shuffle_mode(const Instruction& one) {
  return one.has("up") ? 0 : one.has("down") ? 1 : one.has("bfly") ? 2 : 3;
}

}  // namespace

bool Decoder::try_flow(const Instruction& one) {
  const std::string& op = one.opcode;
  if (op == "bra") {
    branch(one);
  } else if (op == "brx") {
    indexed_branch(one);
  } else if (op == "ret" || op == "exit") {
    leave(one);
  } else if (op == "trap") {
    emit(variant_.plain.trap);
  } else if (op == "brkpt") {
    emit(variant_.plain.nothing);
  } else if (op == "call") {
    call(one);
  } else if (op == "createpolicy") {
    emit(variant_.arithmetic({Op::kMov, Type::kB64})).d = result(operand(one, 0), 8);
    code_.steps.back().a = zeros_;
  } else if (std::find(std::begin(kNothing), std::end(kNothing), op) != std::end(kNothing)) {
    if (one.has("cluster")) lack("clusters of blocks are not supported");
    if ((op == "fence" || op == "membar") && !one.has("cta")) emit(variant_.plain.fence);
  } else {
    return false;
  }
  return true;
}

void Decoder::branch(const Instruction& one) {
  const int target = static_cast<int>(operand(one, 0).value);
  const auto block =
      std::lower_bound(graph_.begin(), graph_.end() - 1, target,
                       [](const BasicBlock& left, int at) { return left.begin < at; });
  links_.push_back({code_.steps.size(), static_cast<int>(block - graph_.begin()),
                    graph_[static_cast<size_t>(present_block_)].join});
  Step& step = emit(variant_.plain.branch);
  step.flags = one.guard < 0 ? kAlways : one.is_guard_negated ? kNegated : 0;
  if (one.guard >= 0) step.a = places_[static_cast<size_t>(one.guard)];
}

void Decoder::indexed_branch(const Instruction& one) {
  const auto targets = function_.branch_targets.find(operand(one, 1).name);
  if (targets == function_.branch_targets.end()) return fail("its list of targets is missing");
  const uint32_t index = source(one, 0, 4);
  links_.push_back({code_.steps.size(), -1, graph_[static_cast<size_t>(present_block_)].join});
  const auto& next = graph_[static_cast<size_t>(present_block_)].next;
  index_links_.push_back(
      {code_.steps.size(), {next.begin(), next.begin() + std::ssize(targets->second)}});
  emit(variant_.plain.indexed_branch).a = index;
}

void Decoder::leave(const Instruction& one) {
  const bool leaves_kernel = one.opcode == "exit" || function_.is_kernel;
  Step& step = emit(leaves_kernel ? variant_.plain.leave : variant_.plain.give_back);
  step.flags = one.guard < 0 ? kAlways : one.is_guard_negated ? kNegated : 0;
  if (one.guard >= 0) step.a = places_[static_cast<size_t>(one.guard)];
}

// `call (results), name, (arguments), prototype`; each part but the name may be missing.
void Decoder::call(const Instruction& one) {
  const Operand none;
  const Operand *results = &none, *arguments = &none, *target = nullptr;
  for (const Operand& part : one.operands) {
    if (part.kind == Operand::Kind::kVector) {
      (target == nullptr ? results : arguments) = &part;
    } else if (target == nullptr) {
      target = &part;
    }
  }
  if (target == nullptr) return fail("it has no target");
  if (target->kind == Operand::Kind::kRegister) {
    const uint32_t place = source(one, *target, 8);
    Step& step = emit(variant_.plain.indirect_call);
    step.a = place;
    call_arguments(one, step, *results, *arguments);
    emit(variant_.plain.join);
    return;
  }
  const Function* callee = builder_.program.module->find_function(target->name);
  if (callee == nullptr) return fail("the function \"" + target->name + "\" is not declared");
  if (callee->is_kernel) return lack("a kernel that calls a kernel is not supported");
  if (callee->is_declaration) {
    if (!is_builtin(callee->name)) {
      return lack("the function \"" + callee->name + "\" is not in the module");
    }
    Step& step = emit(variant_.plain.builtin_call);
    step.immediate = static_cast<int64_t>(callee - builder_.program.module->functions.data());
    call_arguments(one, step, *results, *arguments);
    if (step.c > kBuiltinArguments) fail("too many arguments");
    return;
  }
  Step& step = emit(variant_.plain.call);
  step.callee = builder_.code_of(*callee);
  call_arguments(one, step, *results, *arguments);
}

void Decoder::call_arguments(const Instruction&, Step& step, const Operand& results,
                             const Operand& arguments) {
  std::vector<uint32_t> places;
  for (const Operand* parts : {&results, &arguments}) {
    for (const Operand& part : parts->parts) {
      const ParamArea* area = param_area(part.name);
      if (area == nullptr) return lack("an argument that is no .param variable");
      places.push_back(area->place);
      places.push_back(area->bytes);
    }
  }
  step.b = static_cast<uint32_t>(results.parts.size());
  step.c = static_cast<uint32_t>(arguments.parts.size());
  list(std::move(places));
}

bool Decoder::try_meeting(const Instruction& one) {
  const std::string& op = one.opcode;
  if (op == "bar" || op == "barrier") {
    barrier(one);
  } else if (op == "shfl") {
    shuffle(one);
  } else if (op == "vote") {
    vote(one);
  } else if (op == "match") {
    match(one);
  } else if (op == "redux") {
    redux(one);
  } else if (op == "elect") {
    elect(one);
  } else if (op == "activemask") {
    emit(variant_.plain.active_mask).d = result(operand(one, 0), 4);
  } else {
    return false;
  }
  return true;
}

// `bar.sync a {, b}`, `bar.arrive a, b`, `bar.red.popc.u32 d, a {, b}, p`, `bar.warp.sync m`
void Decoder::barrier(const Instruction& one) {
  if (one.has("cluster")) return lack("clusters of blocks are not supported");
  if (one.has("warp")) {
    const uint32_t mask = source(one, 0, 4);
    emit(variant_.plain.warp_barrier).a = mask;
    return;
  }
  const bool reduces = one.has("red");
  const size_t first = reduces ? 1 : 0, last = one.operands.size() - (reduces ? 1 : 0);
  if (last <= first && !one.operands.empty()) return fail("an operand is missing");
  const uint32_t number = one.operands.empty() ? zeros_ : source(one, first, 4);
  const bool counts = last > first + 1;
  const uint32_t threads = counts ? source(one, first + 1, 4) : 0;
  Step& step = emit(variant_.plain.barrier);
  step.c = number;
  step.b = threads;
  if (counts) step.flags |= kBarrierCounts;
  if (one.has("arrive")) step.flags |= kBarrierArrives;
  if (!reduces) return;
  const Operand& condition = one.operands.back();
  step.flags |= kBarrierReduces | (condition.is_negated ? kNegated : 0);
  step.a = predicate_source(condition);
  step.immediate = one.has("popc") ? kBarrierPopc : one.has("and") ? kBarrierAnd : kBarrierOr;
  const Operand& to = operand(one, 0);
  step.d = one.has("popc") ? result(to, 4) : predicate_result(to);
}

void Decoder::shuffle(const Instruction& one) {
  const Operand& to = operand(one, 0);
  const bool has_predicate = to.kind == Operand::Kind::kVector && to.parts.size() == 2;
  const uint32_t a = source(one, 1, 4), b = source(one, 2, 4), c = source(one, 3, 4);
  // Without .sync all lanes that are there take part.
  const uint32_t e = one.has("sync") ? source(one, 4, 4) : constant(0xFFFFFFFF, 4);
  if (!one.has("sync")) return lack("shfl without .sync is not supported");
  const uint32_t d = result(has_predicate ? to.parts[0] : to, 4);
  const uint32_t p = has_predicate ? predicate_result(to.parts[1]) : 0;
  Step& step = emit(variant_.plain.shuffle);
  step.d = d;
  step.a = a;
  step.b = b;
  step.c = c;
  step.e = e;
  step.immediate = p;
  step.flags = shuffle_mode(one);
}

void Decoder::vote(const Instruction& one) {
  if (!one.has("sync")) return lack("vote without .sync is not supported");
  const Operand& condition = operand(one, 1);
  const uint32_t a = predicate_source(condition), e = source(one, 2, 4);
  const bool is_ballot = one.has("ballot");
  const uint32_t d = is_ballot ? result(operand(one, 0), 4) : predicate_result(operand(one, 0));
  Step& step = emit(variant_.plain.vote);
  step.d = d;
  step.a = a;
  step.e = e;
  step.immediate = vote_kind(one);
  step.flags = condition.is_negated ? kNegated : 0;
}

void Decoder::match(const Instruction& one) {
  const Operand& to = operand(one, 0);
  const bool is_pair = to.kind == Operand::Kind::kVector && to.parts.size() == 2;
  const int width = bytes_of(one.type());
  const uint32_t a = source(one, 1, width), e = source(one, 2, 4);
  const uint32_t d = result(is_pair ? to.parts[0] : to, 4);
  const uint32_t p = is_pair ? predicate_result(to.parts[1]) : 0;
  Step& step = emit(variant_.plain.match);
  step.d = d;
  step.a = a;
  step.c = p;
  step.e = e;
  step.immediate = width;
  step.flags = one.has("all") ? 1 : 0;
}

void Decoder::redux(const Instruction& one) {
  if (one.type() == Type::kF32) return lack("redux of floats is not supported");
  const uint32_t a = source(one, 1, 4), e = source(one, 2, 4), d = result(operand(one, 0), 4);
  Step& step = emit(variant_.plain.redux);
  step.d = d;
  step.a = a;
  step.e = e;
  step.immediate = redux_kind(one);
  step.flags = one.type() == Type::kS32 ? 1 : 0;
}

void Decoder::elect(const Instruction& one) {
  const Operand& to = operand(one, 0);
  if (to.kind != Operand::Kind::kVector || to.parts.size() != 2) return fail("two results");
  const uint32_t e = source(one, 1, 4), p = predicate_result(to.parts[1]);
  const uint32_t d = to.parts[0].kind == Operand::Kind::kDiscard ? 0 : result(to.parts[0], 4);
  Step& step = emit(variant_.plain.elect);
  step.d = d;
  step.c = p;
  step.e = e;
}

}  // namespace mc::ptx
