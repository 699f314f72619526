// SPDX-License-Identifier: Apache-2.0
#include "ptx/decode.h"

#include <algorithm>

#include "core/check.h"
#include "ptx/decoder.h"

namespace mc::ptx {
namespace {

// Unused bytes between shared arrays, so that an access beyond an array's end is detected.
constexpr uint32_t kSharedGap = 64;
constexpr int64_t kSharedBytesMax = 256 << 10;
constexpr size_t kTextMax = 300;  // The limit of a part of a message.

// Opcodes at which lanes may wait. A guard on such an instruction is decoded as a branch.
constexpr std::string_view kMayWait[] = {"bar",   "barrier",  "call",    "shfl", "vote",
                                         "match", "redux",    "elect",   "trap", "mma",
                                         "wmma",  "ldmatrix", "stmatrix"};

// The opcodes of the ISA (PTX 9.0), in words between spaces. Others do not exist.
constexpr std::string_view kOpcodes =
    " abs activemask add addc alloca and applypriority atom bar barrier bfe bfi bfind bmsk "
    "bra brev brkpt brx call clusterlaunchcontrol clz cnot copysign cos cp createpolicy cvt "
    "cvta discard div dp2a dp4a elect ex2 exit fence fma fns getctarank griddepcontrol "
    "isspacep istypep ld ldmatrix ldu lg2 lop3 mad mad24 madc mapa match max mbarrier "
    "membar min mma mov movmatrix mul mul24 multimem nanosleep neg not or pmevent popc "
    "prefetch prefetchu prmt rcp red redux rem ret rsqrt sad selp set setmaxnreg setp shf "
    "shfl shl shr sin slct sqrt st stackrestore stacksave stmatrix sub subc suld suq sured "
    "sust szext tanh tcgen05 tensormap testp tex tld4 trap txq vabsdiff vabsdiff2 vabsdiff4 "
    "vadd vadd2 vadd4 vavrg2 vavrg4 vmad vmax vmax2 vmax4 vmin vmin2 vmin4 vote vset vset2 "
    "vset4 vshl vshr vsub vsub2 vsub4 wgmma wmma xor ";

bool is_opcode(const std::string& name) {
  return kOpcodes.find(" " + name + " ") != std::string_view::npos;
}

bool may_wait(const Instruction& one) {
  if (may_pause(one)) return true;
  return std::find(std::begin(kMayWait), std::end(kMayWait), one.opcode) != std::end(kMayWait);
}

bool has_target(const Instruction& one) {
  return one.opcode == "bra" || one.opcode == "ret" || one.opcode == "exit";
}

// Names that a function's instructions mention.
void collect_names(const Operand& operand, std::set<std::string>& names) {
  if (!operand.name.empty()) names.insert(operand.name);
  for (const Operand& part : operand.parts) collect_names(part, names);
}

// Functions that a kernel can reach: by their names, or by a table of pointers.
std::vector<const Function*> reachable(const Module& module, const Function& kernel) {
  std::vector<const Function*> all = {&kernel};
  std::set<const Function*> seen = {&kernel};
  auto add = [&](const std::string& name) {
    const Function* one = module.find_function(name);
    if (one != nullptr && !one->is_declaration && seen.insert(one).second) all.push_back(one);
  };
  for (const Variable& variable : module.variables) {
    for (const Relocation& relocation : variable.relocations) add(relocation.symbol);
  }
  for (size_t k = 0; k < all.size(); ++k) {
    std::set<std::string> names;
    for (const Instruction& one : all[k]->instructions) {
      for (const Operand& operand : one.operands) collect_names(operand, names);
    }
    for (const std::string& name : names) add(name);
  }
  return all;
}

// Places of shared variables, the dynamic ones behind all others.
class SharedLayout {
 public:
  explicit SharedLayout(ProgramBuilder& builder) : builder_(builder) {}

  Status run(const std::vector<const Function*>& functions) {
    std::set<std::string> names;
    for (const Function* function : functions) {
      for (const Instruction& one : function->instructions) {
        for (const Operand& operand : one.operands) collect_names(operand, names);
      }
    }
    std::vector<const Variable*> dynamic;
    for (const Variable& one : builder_.program.module->variables) {
      if (one.space != Space::kShared || !names.contains(one.name)) continue;
      one.is_dynamic || one.is_external ? dynamic.push_back(&one) : put(one, one.name);
    }
    for (const Function* function : functions) {
      for (const Variable& one : function->variables) {
        if (one.space != Space::kShared) continue;
        one.is_dynamic ? dynamic.push_back(&one) : put(one, shared_key(*function, one.name));
      }
    }
    if (at_ > kSharedBytesMax) return invalid("more than 256 KiB of shared memory");
    Program& program = builder_.program;
    program.shared_bytes = static_cast<uint32_t>((at_ + 127) / 128 * 128);
    for (const Variable* one : dynamic) builder_.shared[one->name] = program.shared_bytes;
    const std::string name = dynamic.empty() ? "" : dynamic.front()->name;
    program.shared_arrays.push_back({program.shared_bytes, UINT32_MAX, name});
    return ok();
  }

 private:
  void put(const Variable& one, const std::string& key) {
    if (at_ > kSharedBytesMax) return;
    const int64_t align = std::max<int64_t>(one.align, 4);
    if (!builder_.program.shared_arrays.empty()) at_ += kSharedGap;  // An array may have no bytes.
    at_ = (at_ + align - 1) / align * align;
    const uint32_t begin = static_cast<uint32_t>(at_);
    at_ += one.bytes;
    if (at_ > kSharedBytesMax) return;
    const std::vector<SharedArray>& before = builder_.program.shared_arrays;
    MC_CHECK(before.empty() || before.back().end + kSharedGap <= begin);
    builder_.shared[key] = begin;
    builder_.program.shared_arrays.push_back({begin, static_cast<uint32_t>(at_), one.name});
  }

  ProgramBuilder& builder_;
  int64_t at_ = 0;
};

bool is_memory(const Instruction& one) {
  return one.opcode == "ld" || one.opcode == "st" || one.opcode == "atom" || one.opcode == "red" ||
         one.opcode == "cp" || one.opcode == "ldu" || one.opcode == "wmma";
}

// Notes properties that the whole program needs before its first step.
void note(Program& program, const Instruction& one) {
  const bool is_fence =
      one.opcode == "fence" || one.opcode == "membar" || one.has("release") || one.has("acq_rel");
  if (is_fence && !one.has("cta")) program.has_fences = true;
  if (one.opcode == "call") {
    // Calls of the runtime's functions (printf, malloc) have an order, too.
    program.has_calls = program.blocks_communicate = true;
  }
  if (!is_memory(one) || one.has("param") || one.has("local")) return;
  const bool is_global = !one.has("shared") && !one.has("const");
  const bool is_atomic = one.opcode == "atom" || one.opcode == "red";
  if (is_global && (is_atomic || is_strong(one))) program.blocks_communicate = true;
  // An exchange may be a store.
  if (is_atomic ? one.has("exch") : is_strong(one)) program.has_strong_words = true;
  const int bytes = one.opcode == "cp" ? 4 : bytes_of(one.type());
  if (bytes == 1) program.granule_shift = 0;
  if (bytes == 2) program.granule_shift = std::min(program.granule_shift, 1);
}

}  // namespace

bool may_pause(const Instruction& one) {
  const bool is_update = one.opcode == "atom" || one.opcode == "red";
  return !one.has("shared") && (is_update || (one.opcode == "st" && is_strong(one)));
}

bool is_strong(const Instruction& one) {
  return one.has("volatile") || one.has("relaxed") || one.has("acquire") || one.has("release") ||
         one.has("mmio");
}

std::string shared_key(const Function& function, const std::string& variable) {
  return function.name + '/' + variable;
}

Code* ProgramBuilder::code_of(const Function& function) {
  Code*& code = codes[&function];
  if (code == nullptr) {
    program.codes.push_back(std::make_unique<Code>());
    code = program.codes.back().get();
    code->function = &function;
    to_decode.push_back(&function);
  }
  return code;
}

Result<std::unique_ptr<Program>> decode(std::shared_ptr<const Module> module,
                                        const Function& kernel, const Addresses& addresses,
                                        const Variant& variant, Counting counting) {
  MC_CHECK(kernel.is_kernel && !kernel.is_declaration);
  auto program = std::make_unique<Program>();
  program->module = module;
  program->kernel = &kernel;
  program->lanes = variant.lanes;
  ProgramBuilder builder{*program, addresses, variant, counting, {}, {}, {}};
  const std::vector<const Function*> functions = reachable(*module, kernel);
  MC_TRY_VOID(SharedLayout(builder).run(functions), "kernel " + kernel.name);
  for (const Function* function : functions) {
    for (const Instruction& one : function->instructions) note(*program, one);
  }
  if (!kernel.parameters.empty()) {
    const Variable& last = kernel.parameters.back();
    program->parameter_bytes = static_cast<uint32_t>(last.offset + last.bytes);
  }
  program->callable.assign(module->functions.size(), nullptr);
  for (const Function* function : functions) {
    const Code* code = builder.code_of(*function);
    if (function->is_kernel) continue;
    const size_t number = static_cast<size_t>(function - module->functions.data());
    MC_CHECK(number < program->callable.size());
    program->callable[number] = code;
  }
  for (const auto& code : program->codes) {
    const std::string& name = code->function->name;
    const std::string inner = code->function == &kernel ? "" : ", function " + name;
    MC_TRY_VOID(Decoder(builder, *code).run(), "kernel " + kernel.name + inner);
    program->frame_bytes_max = std::max(program->frame_bytes_max, code->frame_bytes);
  }
  return program;
}

Status Decoder::run() {
  MC_CHECK(code_.steps.empty());
  MC_TRY(graph_, flow_graph(function_), "flow of control");
  MC_TRY(lives_, lives_of(function_, graph_), "registers");
  for (const BasicBlock& one : graph_) {
    if (one.next.size() > 1 && one.join >= 0) joins_.insert(one.join);
  }
  lay_out_frame();
  find_compared();
  for (size_t index = 0; index + 1 < graph_.size() && !error_; ++index) block(index);
  if (error_) return *error_;
  MC_CHECK(block_steps_.size() + 1 == graph_.size());
  // Lanes that run past the last instruction return.
  block_steps_.push_back(code_.steps.size());
  present_ = nullptr;
  emit(function_.is_kernel ? variant_.plain.leave : variant_.plain.give_back).flags = kAlways;
  code_.frame_bytes = top_ + 8 * lanes_;
  resolve();
  return ok();
}

void Decoder::block(size_t index) {
  present_block_ = static_cast<int>(index);
  block_steps_.push_back(code_.steps.size());
  if (joins_.contains(present_block_)) emit(variant_.plain.join);
  for (int i = graph_[index].begin; i < graph_[index].end && !error_; ++i) {
    present_index_ = i;
    instruction(function_.instructions[static_cast<size_t>(i)]);
  }
}

void Decoder::instruction(const Instruction& one) {
  present_ = &one;
  const bool has_operands = !one.operands.empty();
  if (has_operands && one.guard < 0 && one.operands[0].kind == Operand::Kind::kRegister &&
      folded_[static_cast<size_t>(one.operands[0].id)] &&
      (one.opcode == "mov" || one.opcode == "ld" || one.opcode == "cvta")) {
    return;
  }
  if (one.guard < 0 || has_target(one)) {
    decode_one(one);
  } else if (may_wait(one)) {
    guarded_branch(one);
  } else {
    guarded_steps(one);
  }
}

// An unsupported instruction is reported only if a thread reaches it.
void Decoder::decode_one(const Instruction& one) {
  const size_t steps = code_.steps.size(), lists = code_.lists.size();
  const size_t links = links_.size(), step_links = step_links_.size();
  const size_t list_links = list_links_.size(), index_links = index_links_.size();
  if (builder_.counting == Counting::kOn) emit(variant_.plain.count_instruction);
  decode_known(one);
  if (!error_ || error_->code != ErrorCode::kUnsupported) return;
  MC_CHECK(code_.steps.size() >= steps && code_.lists.size() >= lists);
  code_.steps.resize(steps);
  code_.lists.resize(lists);
  links_.resize(links);
  step_links_.resize(step_links);
  list_links_.resize(list_links);
  index_links_.resize(index_links);
  std::vector<std::string>& unsupported = builder_.program.unsupported;
  emit(variant_.plain.unsupported, {.c = static_cast<uint32_t>(unsupported.size())});
  unsupported.push_back(error_->message);
  error_.reset();
}

void Decoder::decode_known(const Instruction& one) {
  const bool is_known = try_flow(one) || try_meeting(one) || try_memory(one) || try_matrix(one) ||
                        try_move(one) || try_arithmetic(one);
  if (!is_known && !is_opcode(one.opcode)) fail("there is no such instruction");
  if (!is_known) mark_unsupported("this instruction is not supported");
  for (const std::string& modifier : one.modifiers) {
    if (!is_known_modifier(modifier)) mark_unsupported("." + modifier + " is not supported");
  }
}

void Decoder::guarded_branch(const Instruction& one) {
  const size_t around = code_.steps.size();
  emit(variant_.plain.branch,
       {.a = offset_of_register(one.guard), .flags = one.is_guard_negated ? 0 : kNegated});
  decode_one(one);
  step_links_.push_back({around, code_.steps.size()});
  emit(variant_.plain.join);
}

void Decoder::guarded_steps(const Instruction& one) {
  const size_t guard = code_.steps.size();
  emit(variant_.plain.guard,
       {.a = offset_of_register(one.guard), .flags = one.is_guard_negated ? kNegated : 0});
  decode_one(one);
  MC_CHECK(code_.steps.size() > guard);
  code_.steps[guard].c = static_cast<uint32_t>(code_.steps.size() - guard - 1);
}

Step& Decoder::emit(Handler handler, Step step) {
  if (handler == nullptr) {
    mark_unsupported("this form of the instruction is not supported");
    handler = variant_.plain.nothing;
  }
  step.run = handler;
  step.instruction = present_ == nullptr ? INT32_MAX : present_index_;
  code_.steps.push_back(step);
  return code_.steps.back();
}

void Decoder::list(std::vector<uint32_t> offsets) {
  MC_CHECK(!code_.steps.empty());
  list_links_.push_back({code_.steps.size() - 1, code_.lists.size()});
  code_.lists.push_back(std::move(offsets));
}

// Resolves links between steps to pointers, once all steps exist.
void Decoder::resolve() {
  std::vector<Step>& steps = code_.steps;
  auto step_of = [&](int block) {
    MC_CHECK(block >= 0 && static_cast<size_t>(block) < block_steps_.size());
    return &steps[block_steps_[static_cast<size_t>(block)]];
  };
  const int exit = static_cast<int>(graph_.size()) - 1;
  for (const Link& link : links_) {
    MC_CHECK(link.step < steps.size());
    Step& step = steps[link.step];
    if (link.target >= 0) step.target = step_of(link.target);
    if (step.target != nullptr && step.target <= &step) {
      builder_.program.has_loops = true;
      step.c = 1 + static_cast<uint32_t>((&step - step.target) / kStepsOfBranch);
    }
    if (link.join >= 0 && link.join != exit) step.join = step_of(link.join);
  }
  for (const auto& [from, to] : step_links_) {
    MC_CHECK(from < to && to < steps.size());
    steps[from].target = steps[from].join = &steps[to];
  }
  for (const auto& [step, index] : list_links_) {
    MC_CHECK(step < steps.size() && index < code_.lists.size());
    steps[step].list = code_.lists[index].data();
  }
  for (const auto& [step, blocks] : index_links_) {
    steps[step].c = static_cast<uint32_t>(code_.targets.size());
    code_.targets.emplace_back();
    for (const int block : blocks) code_.targets.back().push_back(step_of(block));
  }
}

void Decoder::stop(ErrorCode code, const std::string& what) {
  if (error_) return;
  std::string message = what;
  if (present_ != nullptr) {
    message = "PTX line " + std::to_string(present_->text_line) + ": " +
              present_->full_name().substr(0, kTextMax) + ": " + what.substr(0, kTextMax);
    const Location& at = present_->location;
    const auto& files = builder_.program.module->files;
    const auto file = files.find(at.file);
    if (file != files.end()) message += " (" + file->second + ":" + std::to_string(at.line) + ")";
  }
  error_ = Error{code, message};
}

void Decoder::fail(const std::string& what) { stop(ErrorCode::kInvalidInput, what); }
void Decoder::mark_unsupported(const std::string& what) { stop(ErrorCode::kUnsupported, what); }

}  // namespace mc::ptx
