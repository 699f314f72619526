// SPDX-License-Identifier: Apache-2.0
//
// Theory of operation: a kernel has a pool of registers of each kind (forms.h), which its input
// fills and its output shows. Statements read and write these at random: forms of instructions,
// conditions, switches and loops around other statements, memory of the thread's own, calls, and,
// where all threads of the block are together, exchanges through shared memory and meetings of
// warps. Four rules keep results exact and defined:
//   - An approximation's result is stored and not read again.
//   - The bits of a NaN never become an integer; moves replace NaNs by one of them.
//   - Floats are added and multiplied with a rounding mode only, so that no compiler contracts
//   them.
//   - testp, and set with a float as its result, have no guards, which ptxas compiles wrongly.
#include <algorithm>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "ptx/testing/case.h"
#include "ptx/testing/forms.h"

namespace mc::ptx {
namespace {

constexpr size_t kKernelsOfModule = 50;
constexpr int kDepthMax = 3;
constexpr int64_t kSlotBytes = 4;

// Registers of each kind. Predicates are p.
constexpr std::pair<char, int> kPool[] = {{'l', 3}, {'d', 3}, {'r', 5}, {'f', 5}, {'E', 2},
                                          {'G', 1}, {'h', 3}, {'e', 2}, {'g', 2}};
constexpr int kNumPredicates = 4;

constexpr char kHead[] = R"(.version 8.7
.target sm_90
.address_size 64

.func (.param .b32 result) mix(.param .b32 x, .param .b32 y)
{
.reg .b32 %x, %y, %n;
.reg .pred %p;
ld.param.b32 %x, [x];
ld.param.b32 %y, [y];
and.b32 %n, %y, 3;
$next:
shf.l.wrap.b32 %x, %x, %y, 7;
mad.lo.u32 %y, %x, 1664525, %y;
setp.eq.u32 %p, %n, 0;
@%p bra $end;
add.u32 %n, %n, -1;
bra $next;
$end:
xor.b32 %x, %x, %y;
st.param.b32 [result], %x;
ret;
}

.func (.param .f32 result) blend(.param .f32 x, .param .b64 y, .param .f32 z)
{
.reg .f32 %x, %y, %z;
.reg .b64 %l;
.reg .pred %p;
ld.param.f32 %x, [x];
ld.param.b64 %l, [y];
ld.param.f32 %z, [z];
cvt.rn.f32.s64 %y, %l;
setp.gt.f32 %p, %x, %z;
@%p bra $swap;
fma.rn.f32 %x, %x, %y, %z;
st.param.f32 [result], %x;
ret;
$swap:
fma.rn.f32 %x, %z, 0f3F000000, %x;
st.param.f32 [result], %x;
ret;
}

)";

// Sums and products without a rounding mode may be contracted; the sign of a NaN is open, which
// copysign would show.
bool is_exact_alone(const Form& form) {
  const std::string name = form.name();
  const bool is_float_result =
      form.kinds[0] == 'f' || form.kinds[0] == 'd' || form.kinds[0] == 'e' || form.kinds[0] == 'E';
  const std::string op = name.substr(0, name.find('.'));
  if (op == "copysign") return false;
  const bool is_sum = op == "add" || op == "sub" || op == "mul";
  const bool has_mode =
      name.find(".rn") != std::string::npos || name.find(".rz") != std::string::npos ||
      name.find(".rm") != std::string::npos || name.find(".rp") != std::string::npos;
  return !is_sum || !is_float_result || has_mode;
}

// The compiler ptxas drops the guard of testp. Where the guard of a set with a float as its result
// is false, its code takes the register's old bits for an integer and converts them.
bool may_have_guard(const std::string& text) {
  if (text.starts_with("{") || text.starts_with("testp")) return false;
  const std::string name = text.substr(0, text.find(' '));
  const bool is_float_result =
      name.find(".f32.") != std::string::npos || name.find(".f16.") != std::string::npos;
  return !name.starts_with("set.") || !is_float_result;
}

// The forms by opcode, so that each opcode is as likely as another.
class FormSet {
 public:
  explicit FormSet(const std::vector<std::string>& without) {
    for (Form& form : instruction_forms()) {
      const std::string name = form.name(), op = name.substr(0, name.find('.'));
      const bool is_out = std::any_of(without.begin(), without.end(), [&](const std::string& one) {
        return form.text.find(one) != std::string::npos;
      });
      if (is_exact_alone(form) && !is_out && !form.is_table_only)
        by_opcode_[op].push_back(std::move(form));
    }
    for (const auto& entry : by_opcode_) opcodes_.push_back(entry.first);
  }

  const Form& draw(Random& random) const {
    // Conversions are a third of all forms, and comparisons steer the flow.
    const uint64_t roll = random.below(100);
    const std::string& op = roll < 12   ? kConversion
                            : roll < 18 ? kComparison
                                        : opcodes_[random.below(opcodes_.size())];
    const std::vector<Form>& forms = by_opcode_.at(op);
    return forms[random.below(forms.size())];
  }

 private:
  inline static const std::string kConversion = "cvt", kComparison = "setp";
  std::map<std::string, std::vector<Form>> by_opcode_;
  std::vector<std::string> opcodes_;
};

std::string number(int64_t value) { return std::to_string(value); }

class Kernel {
 public:
  Kernel(uint64_t seed, const std::string& name, const FormSet& forms, bool has_atomics)
      : random_(seed), forms_(forms), has_atomics_(has_atomics) {
    one_.name = name;
    choose_shape();
    lay_out();
    const int statements = 8 + static_cast<int>(random_.below(24));
    block(statements, 0, true);
    finish();
  }

  Case take() { return std::move(one_); }

 private:
  // Shape and records.

  void choose_shape() {
    const uint64_t roll = random_.below(100);
    threads_ = roll < 55 ? 32 : roll < 85 ? 64 : 40;
    one_.block[0] = static_cast<uint32_t>(threads_);
    one_.grid[0] = roll < 85 ? 1 : 2;
    if (threads_ == 64 && random_.has_chance(40)) one_.block = {16, 2, 2};
    one_.num_records = threads_ * one_.grid[0];
    warps_are_full_ = threads_ % 32 == 0;
  }

  // Input and output records begin with the pools, the widest kinds first.
  void lay_out() {
    int64_t at = 0;
    for (const auto& [kind, count] : kPool) {
      const KindTraits& traits = traits_of(kind);
      for (int k = 0; k < count; ++k) {
        const std::string name = std::string("%") + kind + number(k);
        const Column column = {name, traits.type, at, 0, {}};
        one_.operands.push_back(column);
        one_.results.push_back(column);
        at += bytes_of(traits.type);
      }
    }
    in_stride_ = (at + 7) / 8 * 8;
    predicates_at_ = (at + 3) / 4 * 4;
    one_.results.push_back({"predicates", Type::kB32, predicates_at_, 0, {}});
    slots_at_ = predicates_at_ + 4;
    for (Column& column : one_.operands) column.stride = in_stride_;
    one_.input.resize(static_cast<size_t>(one_.num_records * in_stride_));
    for (int64_t record = 0; record < one_.num_records; ++record) {
      for (const Column& column : one_.operands) {
        const uint64_t value = random_value(column.name[1], random_);
        std::memcpy(one_.input.data() + column.offset + record * in_stride_, &value,
                    static_cast<size_t>(bytes_of(column.type)));
      }
    }
  }

  void finish() {
    scratch_at_ = (slots_at_ + kSlotBytes * num_slots_ + 15) / 16 * 16;
    const int64_t stride = scratch_at_ + 32;
    for (Column& column : one_.results) column.stride = stride;
    one_.output_bytes = stride * one_.num_records;
    one_.text = head(stride) + body_ + tail();
  }

  std::string head(int64_t stride) const {
    const std::string& name = one_.name;
    std::string text = ".visible .entry " + name + "(.param .u64 in, .param .u64 out)\n{\n";
    text +=
        ".reg .b64 %in, %out, %scratch, %tl;\n.reg .b32 %thread, %gid, %x, %y, %tr, %sa, %sb;\n"
        ".reg .b16 %th;\n.reg .f32 %q;\n.reg .pred %k, %p<4>;\n.reg .b32 %c<99>, %n<99>;\n";
    for (const auto& [kind, count] : kPool) {
      text += ".reg " + std::string(traits_of(kind).declared) + " %" + kind + "<" + number(count) +
              ">;\n";
    }
    text += ".shared .align 16 .b8 sm_" + name + "[" + number(8 * threads_ + 16) + "];\n";
    text += ".local .align 16 .b8 lm_" + name + "[64];\n";
    text +=
        "ld.param.u64 %in, [in];\nld.param.u64 %out, [out];\n"
        "mov.u32 %thread, %tid.z;\nmov.u32 %x, %ntid.y;\nmov.u32 %y, %tid.y;\n"
        "mad.lo.u32 %thread, %thread, %x, %y;\nmov.u32 %x, %ntid.x;\nmov.u32 %y, %tid.x;\n"
        "mad.lo.u32 %thread, %thread, %x, %y;\nmov.u32 %x, %ctaid.x;\n";
    text += "mad.lo.u32 %gid, %x, " + number(threads_) + ", %thread;\n";
    text += "mad.wide.u32 %in, %gid, " + number(in_stride_) + ", %in;\n";
    text += "mad.wide.u32 %out, %gid, " + number(stride) + ", %out;\n";
    text += "add.u64 %scratch, %out, " + number(scratch_at_) + ";\n";
    text += "mov.u32 %sb, sm_" + name + ";\nmad.lo.u32 %sa, %thread, 8, %sb;\n";
    for (int k = 0; k < 8; ++k) {
      text += "st.local.b64 [lm_" + name + "+" + number(8 * k) + "], " + number(3 * k) + ";\n";
    }
    for (const Column& column : one_.operands) {
      text += "ld.global" + std::string(traits_of(column.name[1]).loaded) + " " + column.name +
              ", [%in+" + number(column.offset) + "];\n";
    }
    for (int k = 0; k < kNumPredicates; ++k) {
      text += "and.b32 %x, %r0, " + number(1 << k) + ";\nsetp.ne.u32 %p" + number(k) + ", %x, 0;\n";
    }
    return text;
  }

  std::string tail() const {
    std::string text;
    for (const Column& column : one_.operands) {
      text += "st.global" + std::string(traits_of(column.name[1]).loaded) + " [%out+" +
              number(column.offset) + "], " + column.name + ";\n";
    }
    text += "mov.u32 %x, 0;\n";
    for (int k = 0; k < kNumPredicates; ++k) {
      text += "selp.u32 %y, " + number(1 << k) + ", 0, %p" + number(k) + ";\nor.b32 %x, %x, %y;\n";
    }
    return text + "st.global.u32 [%out+" + number(predicates_at_) + "], %x;\nret;\n}\n\n";
  }

  // Names.

  void line(const std::string& text) { body_ += text + "\n"; }

  std::string any(char kind) {
    if (kind == 'p') return "%p" + number(static_cast<int64_t>(random_.below(kNumPredicates)));
    // Registers are the same whatever values a form wants.
    const std::pair<char, char> others[] = {{'s', 'r'}, {'m', 'h'}, {'n', 'f'}, {'N', 'E'}};
    for (const auto& [one, other] : others) kind = kind == one ? other : kind;
    for (const auto& [one, count] : kPool) {
      if (one == kind) {
        return std::string("%") + kind +
               number(static_cast<int64_t>(random_.below(static_cast<uint64_t>(count))));
      }
    }
    return "";
  }

  std::string label(const std::string& sort, int id) const { return "$" + sort + number(id); }

  // Statements.

  void block(int statements, int depth, bool is_together) {
    for (int k = 0; k < statements; ++k) statement(depth, is_together);
  }

  void statement(int depth, bool is_together) {
    const uint64_t roll = random_.below(100);
    const bool is_deep = depth >= kDepthMax || num_labels_ > 60;
    if (roll < 60) {
      form();
    } else if (roll < 68) {
      is_deep ? form() : condition(depth, is_together);
    } else if (roll < 74) {
      is_deep || depth > 1 ? form() : loop(depth, is_together);
    } else if (roll < 76) {
      is_deep ? form() : choice(depth);
    } else if (roll < 80) {
      local_memory();
    } else if (roll < 83) {
      global_memory();
    } else if (roll < 87) {
      reinterpret();
    } else if (roll < 90) {
      call();
    } else if (is_together) {
      together();
    } else {
      form();
    }
  }

  std::string filled(const Form& form, const std::string& result) {
    std::string sources[10], text;
    for (size_t k = 1; k < form.kinds.size(); ++k) {
      const char kind = form.kinds[k];
      sources[k] = kind == 'q' ? any('f') : any(kind);
      if (kind == 'q') {
        // Sines and cosines are bounded from -pi to pi only.
        line("min.f32 %q, " + sources[k] + ", 0f40490E56;\nmax.f32 %q, %q, 0fC0490E56;");
        sources[k] = "%q";
      } else if (k == 2 && form.has_divisor) {
        const std::string temporary = std::string("%t") + kind;
        line("or" + std::string(traits_of(kind).declared) + " " + temporary + ", " + sources[k] +
             ", 1;");
        sources[k] = temporary;
      }
    }
    for (size_t k = 0; k < form.text.size(); ++k) {
      if (form.text[k] != '$') {
        text += form.text[k];
      } else {
        const int index = form.text[++k] - '0';
        text += index == 0 ? result : sources[index];
      }
    }
    return text;
  }

  void form() {
    const Form& drawn = forms_.draw(random_);
    if (drawn.is_approximate) return approximation(drawn);
    std::string text = filled(drawn, any(drawn.kinds[0]));
    if (text[0] != '{' && random_.has_chance(15)) {
      const std::string guard = (random_.has_chance(50) ? "@" : "@!") + any('p') + " ";
      if (may_have_guard(text)) text = guard + text;
    }
    line(text);
  }

  void approximation(const Form& drawn) {
    const KindTraits& traits = traits_of(drawn.kinds[0]);
    const std::string at = number(slots_at_ + kSlotBytes * num_slots_++);
    one_.results.push_back({drawn.text, traits.type, std::stoll(at), 0, drawn.tolerance});
    line("{ .reg " + std::string(traits.declared) + " %d;");
    line(filled(drawn, "%d"));
    line("st.global" + std::string(traits.loaded) + " [%out+" + at + "], %d; }");
  }

  void condition(int depth, bool is_together) {
    const int id = num_labels_++;
    // A condition of the whole grid leaves its threads together.
    const bool is_uniform = is_together && random_.has_chance(25);
    if (is_uniform) {
      line("mov.u32 %x, %ntid.x;\nsetp.gt.u32 %k, %x, " + number(random_.has_chance(50) ? 16 : 48) +
           ";\n@%k bra " + label("else", id) + ";");
    } else {
      line(std::string(random_.has_chance(50) ? "@" : "@!") + any('p') + " bra " +
           label("else", id) + ";");
    }
    block(1 + static_cast<int>(random_.below(5)), depth + 1, is_uniform);
    if (random_.has_chance(60)) {
      line("bra " + label("end", id) + ";\n" + label("else", id) + ":");
      block(1 + static_cast<int>(random_.below(4)), depth + 1, is_uniform);
    } else {
      line(label("else", id) + ":");
    }
    line(label("end", id) + ":");
  }

  void loop(int depth, bool is_together) {
    const int id = num_labels_++;
    const std::string counter = "%c" + number(id), limit = "%n" + number(id);
    const bool is_uniform = random_.has_chance(40);
    if (is_uniform) {
      line("mov.u32 " + limit + ", " + number(2 + static_cast<int64_t>(random_.below(3))) + ";");
    } else {
      line("and.b32 " + limit + ", " + any('r') + ", 3;");
    }
    line("mov.u32 " + counter + ", 0;\n" + label("loop", id) + ":");
    block(1 + static_cast<int>(random_.below(5)), depth + 1, is_together && is_uniform);
    if (!is_uniform && random_.has_chance(40)) {
      line("@" + any('p') + " bra " + label("leave", id) + ";");
      form();
    }
    line("add.u32 " + counter + ", " + counter + ", 1;\nsetp.lt.u32 %k, " + counter + ", " + limit +
         ";\n@%k bra " + label("loop", id) + ";\n" + label("leave", id) + ":");
  }

  void choice(int depth) {
    const int id = num_labels_++;
    const std::string list = label("list", id), end = label("done", id);
    line("and.b32 %x, " + any('r') + ", 3;");
    line(list + ": .branchtargets $way" + number(id) + "_0, $way" + number(id) + "_1, $way" +
         number(id) + "_2, $way" + number(id) + "_1;\nbrx.idx %x, " + list + ";");
    for (int way = 0; way < 3; ++way) {
      line("$way" + number(id) + "_" + number(way) + ":");
      block(1 + static_cast<int>(random_.below(3)), depth + 1, false);
      if (way < 2) line("bra " + end + ";");
    }
    line(end + ":");
  }

  void local_memory() {
    const std::string base = "lm_" + one_.name;
    line("{ .reg .b64 %b; mov.u64 %b, " + base + "; and.b32 %x, " + any('r') +
         ", 7;\nmad.wide.u32 %b, %x, 8, %b;");
    switch (random_.below(4)) {
      case 0:
        line("st.local.b64 [%b], " + any('l') + "; }");
        break;
      case 1:
        line("st.local.b32 [%b+4], " + any('r') + "; }");
        break;
      case 2:
        line("cvta.local.u64 %b, %b; ld.s16 " + any('l') + ", [%b+2]; }");
        break;
      default:
        line("ld.local.b64 " + any('l') + ", [%b]; }");
        break;
    }
  }

  // Accesses the thread's own 32 bytes behind its record: 16 for integers and 16 for floats.
  void global_memory() {
    switch (random_.below(has_atomics_ ? 9 : 6)) {
      case 0:
        return line("st.global.v4.b32 [%scratch], {" + any('r') + ", " + any('r') + ", " +
                    any('r') + ", " + any('r') + "};");
      case 1:
        return line("st.global.v2.b64 [%scratch], {" + any('l') + ", " + any('l') + "};");
      case 2:
        return line("ld.global.v2.b32 {%r0, %r3}, [%scratch+8];");
      case 3:
        return line("ld.v2.b64 {%l0, %l2}, [%scratch];");
      case 4:
        return line("st.v2.f32 [%scratch+16], {" + any('f') + ", " + any('f') + "};");
      case 5:
        return line("ld.global.v4.f32 {%f3, %f0, %f1, %f2}, [%scratch+16];");
      case 6:
        return line("atom.global.add.u32 " + any('r') + ", [%scratch+4], " + any('r') + ";");
      case 7:
        return line("atom.global.cas.b32 " + any('r') + ", [%scratch], " + any('r') + ", " +
                    any('r') + ";");
      default:
        return line("red.global.max.s64 [%scratch+8], " + any('l') + ";");
    }
  }

  // Bits between kinds. NaNs become one NaN on their way to an integer.
  void reinterpret() {
    switch (random_.below(8)) {
      case 0:
        return line("mov.b32 " + any('f') + ", " + any('r') + ";");
      case 1:
        return line("mov.b64 " + any('d') + ", " + any('l') + ";");
      case 2: {
        const std::string f = any('f'), r = any('r');
        return line("setp.nan.f32 %k, " + f + ", " + f + ";\nmov.b32 " + r + ", " + f +
                    ";\nselp.b32 " + r + ", 0x7FC00000, " + r + ", %k;");
      }
      case 3: {
        const std::string d = any('d'), l = any('l');
        return line("setp.nan.f64 %k, " + d + ", " + d + ";\nmov.b64 " + l + ", " + d +
                    ";\nselp.b64 " + l + ", 0x7FF8000000000000, " + l + ", %k;");
      }
      case 4: {
        const std::string e = any('e');
        return line("setp.nan.f16 %k, " + e + ", " + e + ";\nselp.b16 " + any('h') + ", 0x7E00, " +
                    e + ", %k;");
      }
      case 5:
        return line("mov.b32 " + any('E') + ", {" + any('e') + ", " + any('e') + "};");
      case 6:
        return line("mov.b32 {%e0, %e1}, " + any('E') + ";");
      default:
        return line("mov.b32 {%h2, %h0}, " + any('r') + ";");
    }
  }

  void call() {
    if (random_.has_chance(50)) {
      line("{ .param .b32 x; .param .b32 y; .param .b32 z;\nst.param.b32 [x], " + any('r') +
           ";\nst.param.b32 [y], " + any('r') + ";\ncall (z), mix, (x, y);\nld.param.b32 " +
           any('r') + ", [z]; }");
    } else {
      line("{ .param .f32 x; .param .b64 y; .param .f32 z; .param .f32 w;\nst.param.f32 [x], " +
           any('f') + ";\nst.param.b64 [y], " + any('l') + ";\nst.param.f32 [z], " + any('f') +
           ";\ncall (w), blend, (x, y, z);\nld.param.f32 " + any('f') + ", [w]; }");
    }
  }

  // The collective operations of all threads of the block.
  void together() {
    const uint64_t roll = random_.below(10);
    if (roll < 3 || !warps_are_full_) return roll == 1 ? barrier_vote() : exchange();
    if (roll < 6) return shuffle();
    if (roll == 6) return shuffle_of_some();
    if (roll == 7) return vote();
    if (roll == 8) return match();
    has_atomics_ ? shared_sum() : barrier_vote();
  }

  std::string barrier() {
    const uint64_t id = random_.below(16);
    const char* name = random_.has_chance(70) ? "bar.sync " : "barrier.sync ";
    const bool has_count = threads_ % 32 == 0 && random_.has_chance(30);
    return name + number(static_cast<int64_t>(id)) + (has_count ? ", " + number(threads_) : "") +
           ";";
  }

  void exchange() {
    const char kinds[] = {'r', 'l', 'f', 'd', 'h', 'e'};
    const char kind = kinds[random_.below(sizeof kinds)];
    const std::string type(traits_of(kind).loaded);
    const auto distance = static_cast<int64_t>(random_.below(static_cast<uint64_t>(threads_)));
    line("st.shared" + type + " [%sa], " + any(kind) + ";\n" + barrier() +
         "\nadd.u32 %x, %thread, " + number(distance) + ";\nsetp.ge.u32 %k, %x, " +
         number(threads_) + ";\n@%k sub.u32 %x, %x, " + number(threads_) +
         ";\nmad.lo.u32 %x, %x, 8, %sb;\nld.shared" + type + " " + any(kind) + ", [%x];\n" +
         barrier());
  }

  void barrier_vote() {
    switch (random_.below(3)) {
      case 0:
        return line("bar.red.popc.u32 " + any('r') + ", 0, " + any('p') + ";");
      case 1:
        return line("bar.red.and.pred " + any('p') + ", 1, " + any('p') + ";");
      default:
        return line("bar.red.or.pred " + any('p') + ", 2, !" + any('p') + ";");
    }
  }

  // A butterfly may leave its segment for a lower one, which some masks do not have.
  std::string shuffle_text(const std::string& mask, int width) {
    const char* modes[] = {"up", "down", "bfly", "idx"};
    const std::string mode = modes[random_.below(4)];
    const std::string c = number((32 - width) * 256 + (mode == "up" ? 0 : 31));
    const char kind = random_.has_chance(30) ? 'f' : 'r';
    const bool is_free = mode == "idx" || (mode == "bfly" && mask == "-1");
    const uint64_t distance_end = mode == "bfly" ? static_cast<uint64_t>(width) : 32;
    const std::string from = is_free && random_.has_chance(50)
                                 ? any('r')
                                 : number(static_cast<int64_t>(random_.below(distance_end)));
    return "shfl.sync." + mode + ".b32 " + any(kind) +
           (random_.has_chance(60) ? "|" + any('p') : "") + ", " + any(kind) + ", " + from + ", " +
           c + ", " + mask + ";";
  }

  void shuffle() { line(shuffle_text("-1", 32 >> random_.below(4))); }

  // Only some groups of eight lanes, each of which shuffles within itself.
  void shuffle_of_some() {
    const int id = num_labels_++;
    uint32_t mask = 0;
    for (int group = 0; group < 4; ++group) {
      if (random_.has_chance(50)) mask |= 0xFFU << (8 * group);
    }
    if (mask == 0) mask = 0xFF00;
    line("and.b32 %x, %thread, 31;\nshr.u32 %x, " + number(mask) +
         ", %x;\nand.b32 %x, %x, 1;\nsetp.eq.u32 %k, %x, 0;\n@%k bra " + label("outside", id) +
         ";");
    line(shuffle_text(number(mask), 8 >> random_.below(2)));
    if (random_.has_chance(50)) {
      line("vote.sync.ballot.b32 " + any('r') + ", " + any('p') + ", " + number(mask) + ";");
    }
    line(label("outside", id) + ":");
  }

  void vote() {
    switch (random_.below(4)) {
      case 0:
        return line("vote.sync.all.pred " + any('p') + ", " + any('p') + ", -1;");
      case 1:
        return line("vote.sync.any.pred " + any('p') + ", !" + any('p') + ", -1;");
      case 2:
        return line("vote.sync.uni.pred " + any('p') + ", " + any('p') + ", -1;");
      default:
        return line("vote.sync.ballot.b32 " + any('r') + ", " + any('p') + ", -1;");
    }
  }

  void match() {
    const char* operations[] = {"add.u32", "min.s32", "max.u32", "and.b32", "xor.b32"};
    switch (random_.below(3)) {
      case 0:
        return line("and.b32 %x, " + any('r') + ", 3;\nmatch.any.sync.b32 " + any('r') +
                    ", %x, -1;");
      case 1:
        return line("match.all.sync.b64 " + any('r') + "|" + any('p') + ", " + any('l') + ", -1;");
      default:
        return line(std::string("redux.sync.") + operations[random_.below(5)] + " " + any('r') +
                    ", " + any('r') + ", -1;");
    }
  }

  // A word behind the exchange's, which all threads change in any order with one result.
  void shared_sum() {
    const char* operations[] = {"add.u32", "max.s32", "xor.b32", "or.b32"};
    const std::string at = "[%sb+" + number(8 * threads_) + "]";
    line("setp.eq.u32 %k, %thread, 3;\n@%k st.shared.b32 " + at + ", " + any('r') + ";\n" +
         barrier() + "\nred.shared." + operations[random_.below(4)] + " " + at + ", " + any('r') +
         ";\n" + barrier() + "\nld.shared.b32 " + any('r') + ", " + at + ";\n" + barrier());
  }

  Case one_;
  Random random_;
  const FormSet& forms_;
  bool has_atomics_;
  bool warps_are_full_ = true;
  int64_t threads_ = 32;
  int64_t in_stride_ = 0, predicates_at_ = 0, slots_at_ = 0, scratch_at_ = 0;
  int num_slots_ = 0;
  int num_labels_ = 0;
  std::string body_;
};

}  // namespace

std::vector<CaseModule> generate_cases(const GenerateOptions& options) {
  const FormSet forms(options.without);
  const bool has_atomics =
      std::find(options.without.begin(), options.without.end(), "atom") == options.without.end();
  std::vector<CaseModule> modules;
  for (int k = 0; k < options.count; ++k) {
    if (static_cast<size_t>(k) % kKernelsOfModule == 0) {
      modules.push_back({"generated_" + std::to_string(modules.size()), kHead, {}});
    }
    const uint64_t seed = options.seed * 1'000'003 + static_cast<uint64_t>(k);
    Kernel kernel(seed, "g" + std::to_string(k), forms, has_atomics);
    modules.back().cases.push_back(kernel.take());
  }
  return modules;
}

}  // namespace mc::ptx
