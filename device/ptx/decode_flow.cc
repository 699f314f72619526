// SPDX-License-Identifier: Apache-2.0
//
// Control flow, and collective operations of lanes and threads.
#include <algorithm>

#include "core/check.h"
#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

// Instructions without effect on values: the executor has no caches, and its memory is consistent.
constexpr std::string_view kNothing[] = {"membar",        "fence",          "prefetch",
                                         "prefetchu",     "discard",        "pmevent",
                                         "applypriority", "griddepcontrol", "setmaxnreg"};
constexpr size_t kBuiltinArguments = 8;

bool is_builtin(std::string_view name) {
  return name == "vprintf" || name == "__assertfail" || name == "malloc" || name == "free";
}

constexpr std::string_view kShuffles[] = {"up", "down", "bfly", "idx"};
constexpr std::string_view kVotes[] = {"ballot", "all", "any", "uni"};
constexpr std::string_view kReductions[] = {"add", "min", "max", "and", "or", "xor"};

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
  } else if (op == "nanosleep") {
    emit(variant_.plain.sleep, {.a = source(one, 0, 4)});
  } else if (op == "createpolicy") {
    emit(variant_.arithmetic({Op::kMov, Type::kB64}),
         {.d = result(operand(one, 0), 8), .a = zeros_});
  } else if (std::find(std::begin(kNothing), std::end(kNothing), op) != std::end(kNothing)) {
    if (one.has("cluster")) mark_unsupported("clusters of blocks are not supported");
    const bool is_fence = op == "fence" || op == "membar";
    if (is_fence) emit(one.has("cta") ? variant_.plain.fence_of_block : variant_.plain.fence);
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
  MC_CHECK(block->begin == target);  // A block begins at each target.
  links_.push_back({code_.steps.size(), static_cast<int>(block - graph_.begin()),
                    graph_[static_cast<size_t>(present_block_)].join});
  guarded(one, variant_.plain.branch);
}

void Decoder::indexed_branch(const Instruction& one) {
  if (one.guard >= 0) return mark_unsupported("brx with a guard");
  const auto targets = function_.branch_targets.find(operand(one, 1).name);
  if (targets == function_.branch_targets.end()) return fail("its list of targets is missing");
  links_.push_back({code_.steps.size(), -1, graph_[static_cast<size_t>(present_block_)].join});
  const auto& next = graph_[static_cast<size_t>(present_block_)].next;
  MC_CHECK(next.size() >= targets->second.size());
  index_links_.push_back(
      {code_.steps.size(), {next.begin(), next.begin() + std::ssize(targets->second)}});
  emit(variant_.plain.indexed_branch, {.a = source(one, 0, 4)});
}

void Decoder::leave(const Instruction& one) {
  const bool leaves_kernel = one.opcode == "exit" || function_.is_kernel;
  guarded(one, leaves_kernel ? variant_.plain.leave : variant_.plain.give_back);
}

// A step for the lanes of the instruction's guard.
void Decoder::guarded(const Instruction& one, Handler handler) {
  if (one.guard < 0) {
    emit(handler, {.flags = kAlways});
  } else {
    emit(handler,
         {.a = offset_of_register(one.guard), .flags = one.is_guard_negated ? kNegated : 0});
  }
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
    Step& step = emit(variant_.plain.indirect_call, {.a = source(*target, 8)});
    call_arguments(step, *results, *arguments);
    emit(variant_.plain.join);
    return;
  }
  const Function* callee = builder_.program.module->find_function(target->name);
  if (callee == nullptr) return fail("the function \"" + target->name + "\" is not declared");
  if (callee->is_kernel) return mark_unsupported("a kernel that calls a kernel is not supported");
  if (callee->is_declaration) {
    if (!is_builtin(callee->name)) {
      return mark_unsupported("the function \"" + callee->name + "\" is not in the module");
    }
    const int64_t number = callee - builder_.program.module->functions.data();
    Step& step = emit(variant_.plain.builtin_call, {.immediate = number});
    call_arguments(step, *results, *arguments);
    if (step.c > kBuiltinArguments) fail("too many arguments");
    return;
  }
  call_arguments(emit(variant_.plain.call, {.callee = builder_.code_of(*callee)}), *results,
                 *arguments);
}

void Decoder::call_arguments(Step& step, const Operand& results, const Operand& arguments) {
  std::vector<uint32_t> offsets;
  for (const Operand* parts : {&results, &arguments}) {
    for (const Operand& part : parts->parts) {
      const ParamArea* area = param_area(part.name);
      if (area == nullptr) return mark_unsupported("an argument that is no .param variable");
      offsets.push_back(area->offset);
      offsets.push_back(area->bytes);
    }
  }
  step.b = static_cast<uint32_t>(results.parts.size());
  step.c = static_cast<uint32_t>(arguments.parts.size());
  list(std::move(offsets));
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
    emit(variant_.plain.elect, operands(one, "d4|cp e4"));
  } else if (op == "activemask") {
    Step step = operands(one, "d4");
    step.flags = whole_warp(one);
    emit(variant_.plain.active_mask, step);
  } else {
    return false;
  }
  return true;
}

uint32_t Decoder::whole_warp(const Instruction& one) const {
  if (lanes_ == 32 || one.operands.empty() || one.operands.back().id < 0) return 0;
  const size_t mask = static_cast<size_t>(one.operands.back().id);
  return function_.registers[mask].name == kWarpMask ? kWholeWarp : 0;
}

// `bar.sync a {, b}`, `bar.arrive a, b`, `bar.red.popc.u32 d, a {, b}, p`, `bar.warp.sync m`
void Decoder::barrier(const Instruction& one) {
  if (one.has("cluster")) return mark_unsupported("clusters of blocks are not supported");
  if (one.has("warp")) {
    Step step = operands(one, "a4");
    step.flags = whole_warp(one);
    emit(variant_.plain.warp_barrier, step);
    return;
  }
  const bool reduces = one.has("red");
  const size_t first = reduces ? 1 : 0, last = one.operands.size() - (reduces ? 1 : 0);
  if (reduces && one.operands.size() < 3) return fail("an operand is missing");
  const bool counts = last > first + 1;
  Step step = {.b = counts ? source(one, first + 1, 4) : 0,
               .c = one.operands.empty() ? zeros_ : source(one, first, 4),
               .flags = (counts ? kBarrierCounts : 0) | (one.has("arrive") ? kBarrierArrives : 0)};
  if (reduces) {
    const Operand &to = operand(one, 0), &condition = one.operands.back();
    step.flags |= kBarrierReduces | (condition.is_negated ? kNegated : 0);
    step.a = predicate_source(condition);
    step.immediate = one.has("popc") ? kBarrierPopc : one.has("and") ? kBarrierAnd : kBarrierOr;
    step.d = one.has("popc") ? result(to, 4) : predicate_result(to);
  }
  emit(variant_.plain.barrier, step);
}

void Decoder::shuffle(const Instruction& one) {
  Step step = operands(one, "d4|ip a4 b4 c4 e4");
  step.flags = static_cast<uint32_t>(position_of(one, kShuffles)) | whole_warp(one);
  emit(one.has("sync") ? variant_.plain.shuffle : nullptr, step);
}

void Decoder::vote(const Instruction& one) {
  Step step = operands(one, one.has("ballot") ? "d4 ap e4" : "dp ap e4");
  step.immediate = position_of(one, kVotes);
  step.flags |= whole_warp(one);
  emit(one.has("sync") ? variant_.plain.vote : nullptr, step);
}

void Decoder::match(const Instruction& one) {
  Step step = operands(one, "d4|cp aw e4");
  step.immediate = bytes_of(one.type());
  step.flags = (one.has("all") ? 1 : 0) | whole_warp(one);
  emit(variant_.plain.match, step);
}

void Decoder::redux(const Instruction& one) {
  Step step = operands(one, "d4 a4 e4");
  step.immediate = position_of(one, kReductions);
  step.flags = (one.type() == Type::kS32 ? 1 : 0) | whole_warp(one);
  emit(one.type() == Type::kF32 ? nullptr : variant_.plain.redux, step);
}

}  // namespace mc::ptx
