// SPDX-License-Identifier: Apache-2.0
//
// The layout of the frame, and the offsets of operands in it.
#include <algorithm>
#include <bit>

#include "core/check.h"
#include "ptx/decoder.h"
#include "ptx/device.h"

namespace mc::ptx {
namespace {

constexpr uint32_t kFrameBytesMax = 1 << 20;
constexpr uint32_t kRowAlign = 32;

struct SpecialName {
  std::string_view name;
  Source source;
};

constexpr SpecialName kSpecials[] = {
#define MC_SPECIAL(source, name, value) {name, Source::source},
#include "ptx/specials.inc"
#undef MC_SPECIAL
};

// Registers about the thread's location on the GPU, which are zero here.
constexpr std::string_view kZeroSpecials[] = {
    "%gridid",      "%cluster_ctarank", "%clusterid.x",     "%clusterid.y",
    "%clusterid.z", "%cluster_ctaid.x", "%cluster_ctaid.y", "%cluster_ctaid.z"};
constexpr std::string_view kOneSpecials[] = {"%cluster_nctarank", "%cluster_nctaid.x",
                                             "%cluster_nctaid.y", "%cluster_nctaid.z"};

int register_width(Type type) {
  const int bytes = bytes_of(type);
  return bytes == 1 ? 2 : bytes;
}

// True for the element sizes that rows of the frame have.
bool is_lane_width(int width) { return width == 2 || width == 4 || width == 8; }

template <size_t N>
bool contains(const std::string_view (&names)[N], std::string_view name) {
  return std::find(std::begin(names), std::end(names), name) != std::end(names);
}

}  // namespace

uint32_t Decoder::row(int width) {
  // A predicate is a mask.
  const uint32_t bytes = width == 0 ? lanes_ / 8 : static_cast<uint32_t>(width) * lanes_;
  const uint32_t align = width == 0 ? 16 : kRowAlign;
  const uint32_t offset = (top_ + align - 1) / align * align;
  top_ = offset + bytes;
  if (top_ > kFrameBytesMax) {
    mark_unsupported("its registers need too much memory");
    top_ = offset;
  }
  return offset;
}

void Decoder::lay_out_frame() {
  MC_CHECK(top_ == 0 && code_.values.empty());
  MC_CHECK(lives_.size() == function_.registers.size());
  top_ = 32;  // Offset 0 means that the variable has none.
  zeros_ = row(8);
  discarded_ = row(8);
  offsets_.assign(function_.registers.size(), 0);
  folded_.assign(function_.registers.size(), std::nullopt);
  lay_out_variables();
  fold_values();
  share_rows();
}

// Local variables, and the .param variables of calls.
void Decoder::lay_out_variables() {
  int64_t local = 0;
  for (const Variable& one : function_.variables) {
    if (one.space == Space::kLocal) {
      local = (local + one.align - 1) / one.align * one.align;
      local_[one.name] = static_cast<uint32_t>(local);
      local += one.bytes;
      if (local > 16 << 20)
        return mark_unsupported("more than 16 MiB of local memory for a thread");
    }
    if (one.space == Space::kParam) {
      if (one.bytes > 4096) return mark_unsupported("a call's argument of more than 4096 bytes");
      const uint32_t bytes = static_cast<uint32_t>(one.bytes);
      areas_[one.name] = {row(static_cast<int>(std::max(bytes, 1U))), bytes};
    }
  }
  code_.local_bytes = static_cast<uint32_t>((local + 15) / 16 * 16);
  if (function_.is_kernel) return;
  for (const auto* variables : {&function_.parameters, &function_.results}) {
    auto& areas = variables == &function_.parameters ? code_.parameters : code_.results;
    for (const Variable& one : *variables) {
      const uint32_t bytes = static_cast<uint32_t>(one.bytes);
      areas.push_back({row(static_cast<int>(std::max(bytes, 1U))), bytes});
      areas_[one.name] = areas.back();
    }
  }
}

// A move of a constant, parameter or special register needs no step if the register has no other
// value.
void Decoder::fold_values() {
  for (const Instruction& one : function_.instructions) {
    if (one.guard >= 0 || one.operands.size() != 2) continue;
    const Operand& to = one.operands[0];
    if (to.kind != Operand::Kind::kRegister || to.type == Type::kPred) continue;
    const Life& life = lives_[static_cast<size_t>(to.id)];
    if (life.writes != 1 || life.is_unset) continue;
    FrameValue value;
    value.width = register_width(to.type);
    if (folds(one, value)) folded_[static_cast<size_t>(to.id)] = value;
  }
}

bool Decoder::folds(const Instruction& one, FrameValue& value) {
  const Operand& from = one.operands[1];
  if (one.opcode == "ld" && one.has("param") && function_.is_kernel) {
    const Variable* parameter = function_.find_parameter(from.name);
    if (parameter == nullptr || from.id >= 0) return false;
    value.bytes = bytes_of(one.type());
    value.is_signed = is_signed(one.type());
    value.source = Source::kParameter;
    value.bits = static_cast<uint64_t>(parameter->offset + from.value);
    return from.value >= 0 && value.bytes <= value.width &&
           from.value + value.bytes <= parameter->bytes;
  }
  const bool is_global = one.opcode == "cvta" && one.has("global");
  if ((one.opcode != "mov" && !is_global) || bytes_of(one.type()) != value.width) return false;
  if (from.kind == Operand::Kind::kInteger) {
    value.bits = static_cast<uint64_t>(from.value);
    if (value.width < 8) value.bits &= (uint64_t{1} << (8 * value.width)) - 1;
    return true;
  }
  if (from.kind == Operand::Kind::kFloat) {
    value.bits = static_cast<uint64_t>(from.value);
    return bytes_of(from.type) == value.width;
  }
  if (from.kind == Operand::Kind::kSpecial) {
    for (const SpecialName& special : kSpecials) {
      if (special.name != from.name) continue;
      value.source = special.source;
      return true;
    }
  }
  const bool is_register = from.kind == Operand::Kind::kRegister;
  if (!is_register || !folded_[static_cast<size_t>(from.id)]) return false;
  const FrameValue& other = *folded_[static_cast<size_t>(from.id)];
  if (other.width != value.width) return false;
  value = other;
  return true;
}

// Linear scan: a register takes the offset of a register whose live range has ended.
void Decoder::share_rows() {
  std::vector<int> order;
  for (size_t id = 0; id < lives_.size(); ++id) {
    if (lives_[id].last >= 0 && !folded_[id]) order.push_back(static_cast<int>(id));
  }
  std::stable_sort(order.begin(), order.end(), [&](int x, int y) {
    return lives_[static_cast<size_t>(x)].first < lives_[static_cast<size_t>(y)].first;
  });
  std::map<int, std::vector<uint32_t>> spare;  // The key is a width.
  std::set<std::pair<int, int>> active;        // Ends of live ranges, and their registers.
  for (const int id : order) {
    const Life& life = lives_[static_cast<size_t>(id)];
    MC_CHECK(life.first <= life.last);
    while (!active.empty() && active.begin()->first < life.first) {
      const size_t over = static_cast<size_t>(active.begin()->second);
      MC_CHECK(offsets_[over] != 0);
      spare[register_width(function_.registers[over].type)].push_back(offsets_[over]);
      active.erase(active.begin());
    }
    const Type type = function_.registers[static_cast<size_t>(id)].type;
    const int width = register_width(type);
    if (width > 8) return mark_unsupported("registers of 128 bits");
    std::vector<uint32_t>& offsets = spare[width];
    if (offsets.empty()) offsets.push_back(row(width));
    offsets_[static_cast<size_t>(id)] = offsets.back();
    offsets.pop_back();
    active.insert({life.last, id});
    if (!life.is_unset) continue;
    FrameValue value;
    value.offset = offsets_[static_cast<size_t>(id)];
    value.width = width;
    value.source = Source::kUnset;
    code_.values.push_back(value);
  }
}

uint32_t Decoder::value_offset(FrameValue value) {
  MC_CHECK(error_ || is_lane_width(value.width));
  const auto key =
      std::make_tuple(value.source, value.bits, value.width, value.bytes, value.is_signed);
  const auto found = values_.find(key);
  if (found != values_.end()) return found->second;
  value.offset = row(value.width);
  code_.values.push_back(value);
  return values_[key] = value.offset;
}

uint32_t Decoder::constant(uint64_t bits, int width) {
  if (width < 8) bits &= (uint64_t{1} << (8 * width)) - 1;
  if (bits == 0) return zeros_;
  FrameValue value;
  value.bits = bits;
  value.width = width;
  return value_offset(value);
}

uint32_t Decoder::special(Source source, int width) {
  FrameValue value;
  value.source = source;
  value.width = width;
  return value_offset(value);
}

const Operand& Decoder::operand(const Instruction& one, size_t index) {
  static const Operand kNone;
  if (index < one.operands.size()) return one.operands[index];
  fail("an operand is missing");
  return kNone;
}

int Decoder::width_of(const Operand& operand) const {
  return operand.kind == Operand::Kind::kRegister ? register_width(operand.type) : 0;
}

uint32_t Decoder::source(const Instruction& one, size_t index, int width) {
  return source(operand(one, index), width);
}

uint32_t Decoder::source(const Operand& operand, int width) {
  if (!is_lane_width(width)) {
    mark_unsupported("operands of this width");
    return zeros_;
  }
  switch (operand.kind) {
    case Operand::Kind::kRegister:
      return register_source(operand, width);
    case Operand::Kind::kSpecial:
      return special_source(operand.name, width);
    case Operand::Kind::kInteger:
      return constant(static_cast<uint64_t>(operand.value), width);
    case Operand::Kind::kFloat: {
      const uint64_t bits = static_cast<uint64_t>(operand.value);
      if (bytes_of(operand.type) == width) return constant(bits, width);
      if (width != 4) break;
      const float rounded = static_cast<float>(std::bit_cast<double>(bits));
      return constant(std::bit_cast<uint32_t>(rounded), width);
    }
    case Operand::Kind::kSymbol:
      return symbol_source(operand.name, operand.value, width);
    case Operand::Kind::kDiscard:
      return zeros_;
    default:
      break;
  }
  fail("an operand is of the wrong kind");
  return zeros_;
}

uint32_t Decoder::register_source(const Operand& operand, int width) {
  const size_t id = static_cast<size_t>(operand.id);
  if (operand.type == Type::kPred || width_of(operand) != width) {
    fail("the register " + function_.registers[id].name + " has the wrong width");
    return zeros_;
  }
  return folded_[id] ? value_offset(*folded_[id]) : offset_of_register(operand.id);
}

// The offset of a register that is not folded: each register that an instruction names has one.
uint32_t Decoder::offset_of_register(int id) const {
  MC_CHECK(id >= 0 && static_cast<size_t>(id) < offsets_.size());
  const uint32_t offset = offsets_[static_cast<size_t>(id)];
  MC_CHECK(offset != 0);
  return offset;
}

uint32_t Decoder::special_source(const std::string& name, int width) {
  for (const SpecialName& one : kSpecials) {
    if (one.name == name) return special(one.source, width);
  }
  if (name == "WARP_SZ") return constant(lanes_, width);
  if (name == "%nsmid") return constant(kMultiprocessors, width);
  if (contains(kZeroSpecials, name)) return zeros_;
  if (contains(kOneSpecials, name)) return constant(1, width);
  if (name.starts_with("%envreg") || name.starts_with("%pm")) return zeros_;
  fail("the register " + name + " is not declared");
  return zeros_;
}

uint32_t Decoder::symbol_source(const std::string& name, int64_t offset, int width) {
  const uint64_t added = static_cast<uint64_t>(offset);
  if (name == "WARP_SZ") return constant(lanes_, width);
  for (const std::string& key : {shared_key(function_, name), name}) {
    const auto shared = builder_.shared.find(key);
    if (shared != builder_.shared.end()) return constant(shared->second + added, width);
  }
  if (const auto local = local_.find(name); local != local_.end()) {
    FrameValue value;
    value.source = Source::kLocalAddress;
    value.bits = local->second + added;
    value.width = width;
    return value_offset(value);
  }
  if (const auto global = builder_.addresses.find(name); global != builder_.addresses.end()) {
    return constant(global->second + added, width);
  }
  if (const Variable* parameter = function_.find_parameter(name);
      parameter != nullptr && function_.is_kernel) {
    return constant(kParamWindow + static_cast<uint64_t>(parameter->offset) + added, width);
  }
  const Function* called = builder_.program.module->find_function(name);
  if (called == nullptr) {
    fail("\"" + name + "\" is not declared");
    return zeros_;
  }
  const auto& functions = builder_.program.module->functions;
  return constant(function_address(static_cast<size_t>(called - functions.data())), width);
}

Step Decoder::operands(const Instruction& one, std::string_view form) {
  return operands(one, form, one.type());
}

Step Decoder::operands(const Instruction& one, std::string_view form, Type type) {
  static const Operand kNone;
  Step step;
  size_t index = 0;
  for (; !form.empty(); ++index) {
    const std::string_view word = form.substr(0, form.find(' '));
    MC_CHECK(word.size() == 2 || word.size() == 5);  // `d4`, or a pair: `d4|cp`.
    form.remove_prefix(std::min(form.size(), word.size() + 1));
    const Operand& given = operand(one, index);
    if (word.size() == 2) {
      set_field(step, word, given, bytes_of(type));
      continue;
    }
    const bool is_pair = given.kind == Operand::Kind::kVector && given.parts.size() == 2;
    set_field(step, word.substr(0, 2), is_pair ? given.parts[0] : given, bytes_of(type));
    set_field(step, word.substr(2), is_pair ? given.parts[1] : kNone, bytes_of(type));
  }
  if (one.operands.size() > index) fail("a wrong number of operands");
  return step;
}

void Decoder::set_field(Step& step, std::string_view word, const Operand& operand, int width) {
  const bool is_result = word[0] == 'd' || word[0] == '|';
  if (word[0] == '|') word.remove_prefix(1);
  MC_CHECK(word.size() == 2);
  const char field = word[0], kind = word[1];
  MC_CHECK(field == 'i' || (field >= 'a' && field <= 'e'));
  uint32_t value = 0;
  if (kind == 'n') {
    value = static_cast<uint32_t>(operand.value);
  } else if (kind == 'p') {
    value = is_result ? predicate_result(operand) : predicate_source(operand);
    if (operand.is_negated) step.flags |= field == 'b' ? kNegatedSecond : kNegated;
  } else {
    MC_CHECK(kind == 'w' || kind == 'x' || (kind > '0' && kind <= '8'));
    width = kind == 'w' ? width : kind == 'x' ? 2 * width : kind - '0';
    value = is_result ? result(operand, width) : source(operand, width);
  }
  uint32_t* const fields[] = {&step.a, &step.b, &step.c, &step.d, &step.e};
  field == 'i' ? step.immediate = value : *fields[field - 'a'] = value;
}

uint32_t Decoder::result(const Operand& operand, int width) {
  if (operand.kind == Operand::Kind::kDiscard && is_lane_width(width)) return discarded_;
  if (operand.kind != Operand::Kind::kRegister || width_of(operand) != width ||
      !is_lane_width(width)) {
    fail("the result's register has the wrong width");
    return discarded_;
  }
  const uint32_t offset = offsets_[static_cast<size_t>(operand.id)];
  return offset == 0 ? discarded_ : offset;
}

uint32_t Decoder::predicate_source(const Operand& operand) {
  if (operand.kind == Operand::Kind::kInteger) {
    // A predicate that always holds has all bits of a row.
    return operand.value != 0 ? constant(~uint64_t{0}, 8) : zeros_;
  }
  if (operand.kind != Operand::Kind::kRegister || operand.type != Type::kPred) {
    fail("a predicate is missing");
    return zeros_;
  }
  return offset_of_register(operand.id);
}

uint32_t Decoder::predicate_result(const Operand& operand) {
  if (operand.kind == Operand::Kind::kDiscard) return 0;
  if (operand.kind != Operand::Kind::kRegister || operand.type != Type::kPred) {
    fail("the result is no predicate");
    return 0;
  }
  return offset_of_register(operand.id);
}

Step Decoder::address(const Operand& operand) {
  Step step = {.a = zeros_, .flags = kWideAddress, .immediate = operand.value};
  if (operand.kind != Operand::Kind::kAddress) {
    fail("an address is missing");
  } else if (operand.id >= 0) {
    Operand base = operand;
    base.kind = Operand::Kind::kRegister;
    const int width = width_of(base);
    if (width != 4 && width != 8) fail("the register of an address has the wrong width");
    if (width == 4) step.flags = 0;
    step.a = source(base, width);
  } else if (!operand.name.empty()) {
    step.a = symbol_source(operand.name, 0, 8);
  }
  return step;
}

const ParamArea* Decoder::param_area(const std::string& name) const {
  const auto found = areas_.find(name);
  return found == areas_.end() ? nullptr : &found->second;
}

}  // namespace mc::ptx
