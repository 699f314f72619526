// SPDX-License-Identifier: Apache-2.0
//
// Each kernel has two blocks of 64 threads. A thread has its inputs in %a and %b (b32), %l (b64)
// and %f (f32, finite), its numbers in %thread (in the block) and %gid (in the grid), and the
// addresses of its input and output record in %in and %out. Its output is the 64 bits in %o. `@` in
// a text is the kernel's name, for names of variables that no other kernel has.
#include "ptx/testing/specials.h"

#include <cstring>
#include <sstream>

#include "ptx/testing/forms.h"

namespace mc::ptx {
namespace {

using Names = std::vector<std::string>;

constexpr int64_t kThreads = 64, kBlocks = 2, kRecordBytes = 32;

constexpr char kProlog[] = R"(
.reg .b64 %in, %out, %l, %o;
.reg .b32 %a, %b, %thread, %gid, %x, %y, %lane;
.reg .f32 %f;
ld.param.u64 %in, [in];
ld.param.u64 %out, [out];
mov.u32 %thread, %tid.z;
mov.u32 %x, %ntid.y;
mov.u32 %y, %tid.y;
mad.lo.u32 %thread, %thread, %x, %y;
mov.u32 %x, %ntid.x;
mov.u32 %y, %tid.x;
mad.lo.u32 %thread, %thread, %x, %y;
mov.u32 %x, %ctaid.x;
mad.lo.u32 %gid, %x, 64, %thread;
and.b32 %lane, %thread, 31;
mad.wide.u32 %in, %gid, 32, %in;
mad.wide.u32 %out, %gid, 8, %out;
ld.global.v2.b32 {%a, %b}, [%in];
ld.global.b64 %l, [%in+8];
ld.global.f32 %f, [%in+16];
)";

// Functions that kernels call.
constexpr char kFunctions[] = R"(
.func (.param .b32 result) add_three(.param .b32 x, .param .b64 y, .param .b32 z)
{
.reg .b32 %x, %y, %z;
.reg .b64 %l;
ld.param.b32 %x, [x];
ld.param.b64 %l, [y];
ld.param.b32 %z, [z];
cvt.u32.u64 %y, %l;
add.u32 %x, %x, %y;
mad.lo.u32 %x, %x, 3, %z;
st.param.b32 [result], %x;
ret;
}
.func (.param .b32 result) count_bits(.param .b32 x)
{
.reg .b32 %x, %n;
.reg .pred %p;
ld.param.b32 %x, [x];
mov.u32 %n, 0;
$next:
setp.eq.u32 %p, %x, 0;
@%p bra $end;
add.u32 %n, %n, 1;
add.u32 %x, %x, -1;
{ .reg .b32 %t; ld.param.b32 %t, [x]; and.b32 %x, %x, %t; }
and.b32 %x, %x, 15;
bra $next;
$end:
st.param.b32 [result], %n;
ret;
}
.func (.param .b32 result) fibonacci(.param .b32 n)
{
.reg .b32 %n, %x, %y;
.reg .pred %p;
ld.param.b32 %n, [n];
setp.lt.u32 %p, %n, 2;
@%p bra $leaf;
add.u32 %x, %n, -1;
{ .param .b32 p; .param .b32 q; st.param.b32 [p], %x; call (q), fibonacci, (p);
ld.param.b32 %y, [q]; }
add.u32 %x, %n, -2;
{ .param .b32 p; .param .b32 q; st.param.b32 [p], %x; call (q), fibonacci, (p);
ld.param.b32 %x, [q]; }
add.u32 %n, %x, %y;
$leaf:
st.param.b32 [result], %n;
ret;
}
.global .align 8 .u64 pointers[2] = {add_three, add_three};
.const .align 16 .u32 squares[16] =
{0, 1, 4, 9, 16, 25, 36, 49, 64, 81, 100, 121, 144, 169, 196, -1};
.global .align 16 .b8 letters[16] = {1, 2, 3, 4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 255};
.global .align 8 .u64 letters_at = generic(letters)+3;

)";

class Specials {
 public:
  explicit Specials(CaseModule& module) : module_(module) {}

  void add(const std::string& name, const std::string& body,
           std::array<uint32_t, 3> block = {kThreads, 1, 1}, std::vector<Column> results = {}) {
    Case one;
    one.name = "s" + std::to_string(module_.cases.size()) + "_" + name;
    for (char& c : one.name) {
      if (c == '.' || c == ':') c = '_';
    }
    one.block = block;
    one.grid[0] = kBlocks;
    one.num_records = kThreads * kBlocks;
    one.output_bytes = 8 * one.num_records;
    one.results = std::move(results);
    if (one.results.empty()) one.results.push_back({name, Type::kB64, 0, 8, {}});
    const std::pair<const char*, Column> operands[] = {{"a", {"a", Type::kB32, 0, 32, {}}},
                                                       {"b", {"b", Type::kB32, 4, 32, {}}},
                                                       {"l", {"l", Type::kB64, 8, 32, {}}},
                                                       {"f", {"f", Type::kF32, 16, 32, {}}}};
    for (const auto& operand : operands) one.operands.push_back(operand.second);
    fill_input(one);
    one.text = ".visible .entry " + one.name + "(.param .u64 in, .param .u64 out)\n{" + kProlog +
               "{\n" + named(body, one.name) + "\n}\nst.global.b64 [%out], %o;\nret;\n}\n\n";
    module_.cases.push_back(std::move(one));
  }

 private:
  static std::string named(const std::string& body, const std::string& name) {
    std::string text;
    for (const char c : body) {
      if (c == '@' && !text.empty() && (text.back() == '_' || text.back() == '$')) {
        text += name;
      } else {
        text += c;
      }
    }
    return text;
  }

  static void fill_input(Case& one) {
    Random random(7);
    one.input.resize(static_cast<size_t>(one.num_records * kRecordBytes));
    for (int64_t k = 0; k < one.num_records; ++k) {
      uint64_t f = 0;
      do f = random_value('f', random);
      while ((f & 0x7F800000) == 0x7F800000);
      const uint64_t a = random_value('r', random), b = random_value('r', random);
      const uint64_t words[] = {a | b << 32, random_value('l', random), f, 0};
      std::memcpy(one.input.data() + k * kRecordBytes, words, sizeof words);
    }
  }

  CaseModule& module_;
};

std::string number(int64_t value) { return std::to_string(value); }

// A result of 32 bits in %r and a predicate %p.
constexpr char kJoin[] =
    "{ .reg .b64 %h; cvt.u64.u32 %o, %r; selp.b64 %h, 0x100000000, 0, %p; or.b64 %o, %o, %h; }";

void add_shuffles(Specials& list) {
  for (const char* mode : {"up", "down", "bfly", "idx"}) {
    const bool is_up = mode[0] == 'u';
    for (const int width : {32, 16, 4}) {
      const std::string c = number((32 - width) * 256 + (is_up ? 0 : 31));
      for (const char* from : {"1", "3", "%b"}) {
        list.add(std::string("shfl.") + mode,
                 std::string(".reg .b32 %r; .reg .pred %p;\nshfl.sync.") + mode +
                     ".b32 %r|%p, %a, " + from + ", " + c + ", -1;\n" + kJoin);
      }
      if (width == 32) continue;
      list.add(std::string("shfl.part.") + mode,
               std::string(".reg .b32 %r, %m; .reg .pred %p, %q;\nmov.u32 %r, 77;\n"
                           "shr.u32 %m, 0xF0F0FFFF, %lane; and.b32 %m, %m, 1;\n"
                           "setp.eq.u32 %q, %m, 1; setp.ne.u32 %p, %a, %a;\n@!%q bra $skip;\n"
                           "shfl.sync.") +
                   mode + ".b32 %r|%p, %a, 2, " + number((32 - 4) * 256 + (is_up ? 0 : 31)) +
                   ", 0xF0F0FFFF;\n$skip:\n" + kJoin);
    }
    list.add(std::string("shfl.alone.") + mode, std::string(".reg .b32 %r; shfl.sync.") + mode +
                                                    ".b32 %r, %a, 5, " + (is_up ? "0" : "31") +
                                                    ", 0xFFFFFFFF; cvt.u64.u32 %o, %r;");
  }
  list.add("shfl.clamp", std::string(".reg .b32 %r; .reg .pred %p;\n"
                                     "shfl.sync.down.b32 %r|%p, %a, 4, 20, -1;\n") +
                             kJoin);
}

void add_votes(Specials& list) {
  const std::string pred =
      ".reg .pred %p, %q; .reg .b32 %r, %t; and.b32 %t, %a, 1;\n"
      "setp.eq.u32 %q, %t, 1; mov.u32 %r, 5; setp.eq.u32 %p, %a, %a;\n";
  for (const char* mode : {"all", "any", "uni"}) {
    for (const char* source : {"%q", "!%q"}) {
      list.add(std::string("vote.") + mode,
               pred + "vote.sync." + mode + ".pred %p, " + source + ", -1;\n" + kJoin);
    }
  }
  list.add("vote.ballot", pred + "vote.sync.ballot.b32 %r, %q, -1;\n" + kJoin);
  list.add("vote.ballot.not", pred + "vote.sync.ballot.b32 %r, !%q, -1;\n" + kJoin);
  list.add("vote.part", pred +
                            ".reg .pred %s; setp.lt.u32 %s, %lane, 11;\n@!%s bra $skip;\n"
                            "vote.sync.ballot.b32 %r, %q, 0x7FF;\n"
                            "vote.sync.any.pred %p, %q, 0x7FF;\n$skip:\n" +
                            kJoin);
  list.add("match.any.b32", pred + "and.b32 %t, %a, 3; match.any.sync.b32 %r, %t, -1;\n" + kJoin);
  list.add("match.any.b64", pred +
                                ".reg .b64 %m; and.b64 %m, %l, 0x8000000000000001;\n"
                                "match.any.sync.b64 %r, %m, -1;\n" +
                                kJoin);
  list.add("match.all.b32", pred + "match.all.sync.b32 %r|%p, %a, -1;\n" + kJoin);
  list.add("match.all.same",
           pred + "shr.u32 %t, %thread, 5; match.all.sync.b32 %r|%p, %t, -1;\n" + kJoin);
  for (const char* op : {"add.u32", "add.s32", "min.u32", "min.s32", "max.u32", "max.s32",
                         "and.b32", "or.b32", "xor.b32"}) {
    list.add(std::string("redux.") + op, pred + "redux.sync." + op + " %r, %a, -1;\n" + kJoin);
  }
  list.add("activemask", pred + "bar.warp.sync -1; activemask.b32 %r;\n" + kJoin);
}

void add_barriers(Specials& list) {
  const std::string open = ".reg .pred %p, %q; .reg .b32 %r, %t, %u;\n";
  for (const char* op : {"and", "or"}) {
    list.add(std::string("bar.red.") + op,
             open + "setp.lt.u32 %q, %a, 0x7FFFFFFF; mov.u32 %r, 0;\nbar.red." + op +
                 ".pred %p, 0, %q;\n" + kJoin);
  }
  list.add("bar.red.popc", open +
                               "setp.lt.s32 %q, %a, 0; setp.eq.u32 %p, %a, %a;\n"
                               "bar.red.popc.u32 %r, 1, !%q;\n" +
                               kJoin);
  const std::string shared =
      ".shared .align 16 .b8 sm_@[512];\nmov.u32 %t, sm_@;\n"
      "mad.lo.u32 %u, %thread, 4, %t;\nsetp.lt.u32 %q, %thread, 32;\n"
      "setp.eq.u32 %p, %a, %b; mov.u32 %r, 0;\n";
  for (const char* barrier : {"bar.sync 0", "bar.sync 3, 64", "barrier.sync 2",
                              "barrier.sync.aligned 1, 64", "bar.sync %x"}) {
    list.add("barrier", open + shared + "mov.u32 %x, 4; st.shared.b32 [%u], %a;\n" + barrier +
                            ";\nxor.b32 %u, %thread, 37; mad.lo.u32 %u, %u, 4, %t;\n"
                            "ld.shared.b32 %r, [%u];\n" +
                            kJoin);
  }
  list.add("bar.arrive", open + shared +
                             "@%q bra $first;\nbar.sync 1, 64;\n"
                             "ld.shared.b32 %r, [%u+-128];\nbra $end;\n$first:\n"
                             "st.shared.b32 [%u], %a;\nbar.arrive 1, 64;\n$end:\n" +
                             kJoin);
  list.add("bar.half", open + shared +
                           "st.shared.b32 [%u], %a;\n@%q bra $first;\n"
                           "bar.sync 1, 32;\nbra $end;\n$first:\nbar.sync 2, 32;\n"
                           "$end:\nxor.b32 %u, %thread, 21; mad.lo.u32 %u, %u, 4, %t;\n"
                           "ld.shared.b32 %r, [%u];\n" +
                           kJoin);
  list.add("bar.exited", open + shared +
                             "mov.u64 %o, 9; st.global.b64 [%out], %o;\n@%q exit;\n"
                             "st.shared.b32 [%u], %a;\nbar.sync 0;\n"
                             "xor.b32 %u, %thread, 9; mad.lo.u32 %u, %u, 4, %t;\n"
                             "ld.shared.b32 %r, [%u];\n" +
                             kJoin);
}

// A value stored and loaded by a type, extended to 64 bits.
void add_memory(Specials& list) {
  const std::string open =
      ".reg .b64 %q, %t; .reg .f32 %g; .shared .align 16 .b8 sm_@[2048];\n"
      ".local .align 16 .b8 lo_@[64];\n";
  const Names types = {"u8",  "s8",  "b8",  "u16", "s16", "b16",
                       "u32", "s32", "b32", "u64", "s64", "b64"};
  for (const std::string& type : types) {
    list.add("ld.global." + type, open + "ld.global." + type + " %o, [%in+8];");
    list.add("ld.nc." + type, open + "ld.global.nc." + type + " %o, [%in+8];");
    list.add("ld.generic." + type, open + "ld." + type + " %o, [%in];");
    const std::string shared = "mov.u64 %t, sm_@; mad.wide.u32 %t, %thread, 16, %t;\n";
    list.add("ld.shared." + type, open + shared + "st.shared.b64 [%t], -1; st.shared." + type +
                                      " [%t], %l; bar.sync 0;\nld.shared." + type + " %o, [%t];");
    list.add("ld.volatile." + type, open + shared + "st.volatile.shared." + type +
                                        " [%t], %l; bar.sync 0;\nld.volatile.shared." + type +
                                        " %o, [%t];");
    list.add("st.local." + type, open +
                                     "mov.u64 %t, lo_@; and.b32 %x, %a, 3;\n"
                                     "mad.wide.u32 %t, %x, 16, %t; st.local.b64 [%t], -1;\n"
                                     "st.local." +
                                     type + " [%t], %l; ld.local.b64 %o, [%t];");
    list.add("st.global." + type, open + "st.global.b64 [%out], -1; st.global." + type +
                                      " [%out], %l; ld.global.b64 %o, [%out];");
    list.add("st.window." + type, open + shared + "cvta.shared.u64 %q, %t; st.b64 [%q], -1;\nst." +
                                      type + " [%q], %l; ld.shared.b64 %o, [%t];");
  }
  for (const char* width : {"8", "16", "32", "64"}) {
    const std::string type = std::string("b") + width;
    const std::string reg = width[0] == '8' ? "b16" : type;
    auto join = [](const Names& parts) {
      std::string text = "\nmov.u64 %o, 0;";
      for (const std::string& part : parts) {
        text += " cvt.u64.u32 %t, " + part + "; mad.lo.u64 %o, %o, 65599, %t;";
      }
      return text;
    };
    const std::string wide = width[0] == '6' ? "" : "";
    const std::string regs = ".reg ." + reg + " %v, %w, %y4, %z;\n";
    const Names two = {"%v", "%w"}, four = {"%v", "%w", "%y4", "%z"};
    auto widened = [&](const Names& parts) {
      std::string text = join(parts);
      const std::string from = width[0] == '8' || width[0] == '1' ? "u16"
                               : type == "b64"                    ? "u64"
                                                                  : "u32";
      std::string result;
      for (size_t at = 0; at < text.size();) {
        if (text.compare(at, 12, "cvt.u64.u32 ") == 0) {
          result += from == "u64" ? "mov.u64 " : "cvt.u64." + from + " ";
          at += 12;
        } else {
          result += text[at++];
        }
      }
      return result;
    };
    list.add("ld.v2." + type,
             open + regs + "ld.global.v2." + type + " {%v, %w}, [%in];" + widened(two));
    const std::string shared = "mov.u64 %t, sm_@; mad.wide.u32 %t, %thread, 32, %t;\n";
    list.add("st.v2." + type, open + regs + shared + "ld.global.v2." + type +
                                  " {%v, %w}, [%in];\nst.shared.v2." + type +
                                  " [%t], {%w, %v}; ld.shared.v2." + type + " {%v, %w}, [%t];" +
                                  widened(two));
    if (width[0] == '6') continue;
    list.add("ld.v4." + type, open + regs + "ld.global.nc.v4." + type +
                                  " {%v, %w, %y4, %z}, [%in];" + widened(four));
    list.add("st.v4." + type, open + regs + "mov.u64 %t, lo_@; ld.global.v4." + type +
                                  " {%v, %w, %y4, %z}, [%in];\nst.local.v4." + type +
                                  " [%t], {%z, %w, %v, %y4}; ld.local.v4." + type +
                                  " {%v, %w, %y4, %z}, [%t];" + widened(four));
  }
  list.add("ld.const",
           "and.b32 %x, %a, 15; mov.u64 %o, squares; mad.wide.u32 %o, %x, 4, %o;\n"
           "ld.const.u32 %o, [%o];");
  list.add("ld.const.generic",
           "and.b32 %x, %a, 15; mov.u64 %o, squares;\ncvta.const.u64 %o, %o;\n"
           "mad.wide.u32 %o, %x, 4, %o; ld.s32 %o, [%o];");
  list.add("ld.const.named", "ld.const.u32 %x, [squares+12]; cvt.u64.u32 %o, %x;");
  list.add("ld.variable",
           "and.b32 %x, %a, 15; mov.u64 %o, letters;\ncvt.u64.u32 %l, %x;\n"
           "add.u64 %o, %o, %l; ld.global.s8 %o, [%o];");
  list.add("ld.relocation", "ld.global.u64 %o, [letters_at]; ld.u8 %o, [%o+1];");
  list.add("isspacep", open +
                           ".reg .pred %p, %s; .reg .b32 %r; mov.u64 %t, sm_@;\n"
                           "cvta.shared.u64 %t, %t; isspacep.shared %p, %t;\n"
                           "isspacep.global %s, %in; selp.b32 %r, 7, 0, %s;\n" +
                           kJoin);
  list.add("cvta.to", open +
                          "mov.u64 %t, lo_@; cvta.local.u64 %q, %t; st.b64 [%q], %l;\n"
                          "cvta.to.local.u64 %q, %q; ld.local.b64 %o, [%q];");
}

void add_copies(Specials& list) {
  const std::string open =
      ".reg .b64 %s, %w; .shared .align 16 .b8 sm_@[1024];\nmov.u64 %s, sm_@;\n"
      "mad.wide.u32 %s, %thread, 16, %s;\nst.shared.v2.b64 [%s], {-1, -1};\n";
  const std::string close = "\nld.shared.v2.b64 {%o, %w}, [%s]; mad.lo.u64 %o, %o, 31, %w;";
  for (const char* copy :
       {"cp.async.ca.shared.global [%s], [%in], 4;", "cp.async.ca.shared.global [%s], [%in], 8;",
        "cp.async.ca.shared.global [%s], [%in], 16;",
        "cp.async.cg.shared.global [%s], [%in], 16;"}) {
    list.add("cp.async", open + copy + "\ncp.async.commit_group;\ncp.async.wait_group 0;" + close);
  }
  for (const char* width : {"4", "8", "16"}) {
    list.add("cp.async.zeros", open + "and.b32 %x, %a, " +
                                   (width[0] == '4'   ? "3"
                                    : width[0] == '8' ? "7"
                                                      : "15") +
                                   ";\ncp.async.ca.shared.global [%s], [%in], " + width +
                                   ", %x;\ncp.async.wait_all;" + close);
  }
}

void add_atomics(Specials& list) {
  const Names words = {"add.u32", "add.s32", "min.u32", "min.s32", "max.u32",  "max.s32", "inc.u32",
                       "dec.u32", "and.b32", "or.b32",  "xor.b32", "exch.b32", "cas.b32"};
  const Names longs = {"add.u64", "min.u64", "min.s64", "max.u64",  "max.s64",
                       "and.b64", "or.b64",  "xor.b64", "exch.b64", "cas.b64"};
  const std::string open =
      ".reg .b64 %s, %n; .reg .b32 %r, %u; .shared .align 16 .b8 sm_@[1024];\n";
  for (const char* space : {"global", "shared"}) {
    const bool is_shared = space[0] == 's';
    const std::string place =
        open + (is_shared ? "mov.u64 %s, sm_@; mad.wide.u32 %s, %thread, 8, %s;\n"
                          : "mov.u64 %s, %out;\n");
    const std::string at = std::string(".") + space;
    for (const std::string& op : words) {
      const std::string third = op.starts_with("cas") ? ", %thread" : "";
      const std::string first =
          op.starts_with("cas") ? "and.b32 %a, %a, 1; and.b32 %b, %b, 1;\n" : "";
      list.add("atom" + at + "." + op, place + first + "st" + at + ".b32 [%s], %a;\natom" + at +
                                           "." + op + " %r, [%s], %b" + third + ";\nld" + at +
                                           ".b32 %u, [%s]; mov.b64 %o, {%r, %u};");
      if (op.starts_with("cas") || op.starts_with("exch")) continue;
      list.add("red" + at + "." + op, place + "st" + at + ".b32 [%s], %a;\nred" + at + "." + op +
                                          " [%s], %b;\nld" + at +
                                          ".b32 %u, [%s]; cvt.u64.u32 %o, %u;");
    }
    for (const std::string& op : longs) {
      const std::string third = op.starts_with("cas") ? ", %in" : "";
      const std::string value = op.starts_with("cas")
                                    ? "and.b64 %n, %l, 1; and.b64 %l, %l, 3;\nsub.u64 %s, %s, 0;\n"
                                    : "mov.b64 %n, {%b, %a};\n";
      const std::string swap = op.starts_with("cas") ? ", 77" : "";
      list.add("atom" + at + "." + op, place + value + "st" + at + ".b64 [%s], %l;\natom" + at +
                                           "." + op + " %o, [%s], %n" + swap + ";\nld" + at +
                                           ".b64 %n, [%s]; mad.lo.u64 %o, %n, 3, %o;");
    }
    const std::string float32 =
        "{ .reg .f32 %g, %h; mov.b32 %h, 0f00800001; mul.rn.f32 %g, %f, 0f3E800000;\n";
    list.add("atom" + at + ".add.f32",
             place + float32 + "st" + at + ".f32 [%s], %f; atom" + at +
                 ".add.f32 %h, [%s], %g;\nld" + at +
                 ".b32 %r, [%s]; mov.b32 %u, %h; mov.b64 %o, {%r, %u}; }");
    list.add("red" + at + ".add.f32", place + float32 + "st" + at + ".f32 [%s], %h; red" + at +
                                          ".add.f32 [%s], 0f80800000;\nld" + at +
                                          ".b32 %r, [%s]; cvt.u64.u32 %o, %r; }");
    list.add("atom" + at + ".add.f64", place + "{ .reg .f64 %g, %h; cvt.f64.f32 %g, %f; st" + at +
                                           ".f64 [%s], %g;\natom" + at +
                                           ".add.f64 %h, [%s], %g; ld" + at + ".b64 %o, [%s]; }");
    list.add("atom" + at + ".add.f16x2",
             place + "and.b32 %a, %a, 0x3FFF3FFF; and.b32 %b, %b, 0xBFFF3FFF;\nst" + at +
                 ".b32 [%s], %a; atom" + at + ".add.noftz.f16x2 %r, [%s], %b;\nld" + at +
                 ".b32 %u, [%s]; mov.b64 %o, {%r, %u};");
  }
  for (const char* op : {"add.u32", "max.s32", "min.u32", "xor.b32", "or.b32", "and.b32"}) {
    list.add(std::string("red.all.") + op,
             open +
                 ".reg .pred %p; mov.u64 %s, sm_@; setp.eq.u32 %p, %thread, 5;\n"
                 "@%p st.shared.b32 [%s], %a;\nbar.sync 0;\nred.shared." +
                 op + " [%s], %b;\nbar.sync 0;\nld.shared.b32 %r, [%s]; cvt.u64.u32 %o, %r;");
  }
  list.add("atom.acq_rel",
           open +
               "st.global.b32 [%out], %a;\n"
               "atom.global.gpu.acq_rel.add.u32 %r, [%out], %b;\nmembar.gl;\n"
               "fence.acq_rel.gpu;\nld.global.b32 %u, [%out]; mov.b64 %o, {%r, %u};");
  list.add("atom.generic", open +
                               "mov.u64 %s, sm_@; mad.wide.u32 %s, %thread, 8, %s;\n"
                               "st.shared.b32 [%s], %a; cvta.shared.u64 %n, %s;\n"
                               "atom.add.u32 %r, [%n], %b; ld.shared.b32 %u, [%s];\n"
                               "mov.b64 %o, {%r, %u};");
}

// Elements are small integers, so that all sums are exact. The results are mixed into 64 bits.
void add_matrices(Specials& list) {
  struct Product {
    const char* name;
    const char* element;          // The type of A and B.
    const char* sum;              // The type of C and D.
    int a, b, c;                  // Registers.
    const char* other = nullptr;  // The type of B, if it differs.
  };
  const Product products[] = {
      {"m16n8k16.row.col.f32.f16.f16.f32", "f16", "f32", 4, 2, 4},
      {"m16n8k16.row.col.f16.f16.f16.f16", "f16", "f16", 4, 2, 2},
      {"m16n8k16.row.col.f32.bf16.bf16.f32", "bf16", "f32", 4, 2, 4},
      {"m16n8k8.row.col.f32.f16.f16.f32", "f16", "f32", 2, 1, 4},
      {"m16n8k8.row.col.f16.f16.f16.f16", "f16", "f16", 2, 1, 2},
      {"m16n8k8.row.col.f32.bf16.bf16.f32", "bf16", "f32", 2, 1, 4},
      {"m16n8k8.row.col.f32.tf32.tf32.f32", "tf32", "f32", 4, 2, 4},
      {"m16n8k4.row.col.f32.tf32.tf32.f32", "tf32", "f32", 2, 1, 4},
      {"m16n8k32.row.col.f32.e4m3.e4m3.f32", "e4m3", "f32", 4, 2, 4},
      {"m16n8k32.row.col.f32.e4m3.e5m2.f32", "e4m3", "f32", 4, 2, 4, "e5m2"},
      {"m16n8k32.row.col.f32.e5m2.e4m3.f32", "e5m2", "f32", 4, 2, 4, "e4m3"},
      {"m16n8k32.row.col.f32.e5m2.e5m2.f32", "e5m2", "f32", 4, 2, 4},
      {"m16n8k16.row.col.f32.e4m3.e5m2.f32", "e4m3", "f32", 2, 1, 4, "e5m2"},
      {"m16n8k32.row.col.f16.e4m3.e4m3.f16", "e4m3", "f16", 4, 2, 2},
      {"m16n8k32.row.col.f16.e5m2.e4m3.f16", "e5m2", "f16", 4, 2, 2, "e4m3"},
      {"m16n8k16.row.col.f16.e5m2.e5m2.f16", "e5m2", "f16", 2, 1, 2},
      {"m16n8k32.row.col.s32.s8.s8.s32", "s8", "s32", 4, 2, 4},
      {"m16n8k32.row.col.s32.u8.s8.s32", "s8", "s32", 4, 2, 4},
      {"m16n8k32.row.col.satfinite.s32.s8.s8.s32", "s8", "s32", 4, 2, 4},
      {"m16n8k16.row.col.s32.s8.u8.s32", "s8", "s32", 2, 1, 4},
      {"m8n8k16.row.col.s32.s8.s8.s32", "s8", "s32", 1, 1, 2},
      {"m8n8k4.row.col.f64.f64.f64.f64", "f64", "f64", 1, 1, 2},
  };
  auto names = [](const char* prefix, int count) {
    std::string text = "{";
    for (int k = 0; k < count; ++k) text += (k > 0 ? ", %" : "%") + std::string(prefix) + number(k);
    return text + "}";
  };
  // A register of two or four small integers, from the bits of %y.
  auto fill = [](const std::string& to, const std::string& type) -> std::string {
    const std::string next = "mad.lo.u32 %y, %y, 1664525, 1013904223; shr.u32 %z, %y, 13;\n";
    if (type == "s8" || type == "s32") return next + "xor.b32 " + to + ", %z, %y;\n";
    const std::string low =
        next + "and.b32 %z, %z, 15; add.s32 %z, %z, -8; cvt.rn.f32.s32 %v, %z;\n";
    if (type == "f32") return low + "mov.f32 " + to + ", %v;\n";
    if (type == "tf32") return low + "mov.b32 " + to + ", %v;\n";
    if (type == "f64") return low + "cvt.f64.f32 " + to + ", %v;\n";
    if (is_fp8(type_of(type))) {
      const std::string pair = "cvt.rn.satfinite." + type + "x2.f32 ";
      std::string text;
      for (const char* half : {"%g", "%h"}) {
        text += low + "mov.f32 %w, %v;\n" + low + pair + half + ", %v, %w;\n";
      }
      return text + "mov.b32 " + to + ", {%g, %h};\n";
    }
    return low + "mov.f32 %w, %v;\n" + low + "cvt.rn." + type + "x2.f32 " + to + ", %v, %w;\n";
  };
  for (const Product& one : products) {
    const std::string element = one.element, sum = one.sum;
    const std::string other = one.other == nullptr ? element : one.other;
    const std::string reg = element == "f64" ? ".f64" : ".b32";
    const std::string sum_reg = sum == "f64" ? ".f64" : sum == "f32" ? ".f32" : ".b32";
    std::string body = ".reg .b16 %g, %h; .reg .b32 %z; .reg .f32 %v, %w; .reg .b64 %t; .reg " +
                       reg + " %A<4>, %B<4>; .reg " + sum_reg +
                       " %C<4>, %D<4>;\nxor.b32 %y, %a, %b;\n";
    for (int k = 0; k < one.a; ++k) body += fill("%A" + number(k), element);
    for (int k = 0; k < one.b; ++k) body += fill("%B" + number(k), other);
    for (int k = 0; k < one.c; ++k) body += fill("%C" + number(k), sum);
    body += std::string("mma.sync.aligned.") + one.name + " " + names("D", one.c) + ", " +
            names("A", one.a) + ", " + names("B", one.b) + ", " + names("C", one.c) + ";\n";
    body += "mov.u64 %o, 7;\n";
    for (int k = 0; k < one.c; ++k) {
      const std::string d = "%D" + number(k);
      body += sum == "f64" ? "mov.b64 %t, " + d + ";\n"
                           : "mov.b32 %z, " + d + "; cvt.u64.u32 %t, %z;\n";
      body += "mad.lo.u64 %o, %o, 65599, %t;\n";
    }
    list.add(std::string("mma.") + one.name, body);
  }
  // Fractions, whose sums different machines round at different points. The low and high half of
  // the output are two of the results.
  const std::pair<const char*, const char*> rounded[] = {
      {"m16n8k16.row.col.f32.f16.f16.f32", "f16"},
      {"m16n8k16.row.col.f32.bf16.bf16.f32", "bf16"},
      {"m16n8k8.row.col.f32.tf32.tf32.f32", "tf32"},
      {"m16n8k32.row.col.f32.e4m3.e4m3.f32", "e4m3"},
      {"m16n8k32.row.col.f32.e5m2.e5m2.f32", "e5m2"}};
  for (const auto& [name, element] : rounded) {
    const bool is_small = is_fp8(type_of(element));
    std::string body =
        ".reg .b16 %g, %h; .reg .b32 %z, %A<4>, %B<2>; .reg .f32 %v, %w, %C<4>, %D<4>;\n"
        "xor.b32 %y, %a, %b;\n";
    auto fraction = [&](const std::string& to) {
      body += "mad.lo.u32 %y, %y, 1664525, 1013904223; cvt.rn.f32.s32 " + to +
              ", %y;\nmul.rn.f32 " + to + ", " + to + ", 0f30000000;\n";
    };
    for (int k = 0; k < 6; ++k) {
      const std::string to = k < 4 ? "%A" + number(k) : "%B" + number(k - 4);
      for (const char* half : {"%g", "%h"}) {
        fraction("%v");
        fraction("%w");
        if (!is_small) break;
        body += std::string("cvt.rn.satfinite.") + element + "x2.f32 " + half + ", %v, %w;\n";
      }
      if (is_small) {
        body += "mov.b32 " + to + ", {%g, %h};\n";
        continue;
      }
      body += element[0] == 't' ? "cvt.rna.tf32.f32 " + to + ", %v;\n"
                                : std::string("cvt.rn.") + element + "x2.f32 " + to + ", %v, %w;\n";
    }
    for (int k = 0; k < 4; ++k) fraction("%C" + number(k));
    body += std::string("mma.sync.aligned.") + name + " " + names("D", 4) + ", " + names("A", 4) +
            ", " + names("B", 2) + ", " + names("C", 4) + ";\nmov.b64 %o, {%D1, %D2};\n";
    const Tolerance tolerance = {0, is_small ? 1e-5 : 4e-6};  // The small shape adds twice as many.
    list.add(std::string("mma.rounded.") + name, body, {kThreads, 1, 1},
             {{name, Type::kF32, 0, 8, tolerance}, {name, Type::kF32, 4, 8, tolerance}});
  }
  for (const char* trans : {"", ".trans"}) {
    for (const int count : {1, 2, 4}) {
      std::string body =
          ".reg .b32 %z, %D<4>; .reg .b64 %t; .shared .align 16 .b8 sm_@[2048];\n"
          "mov.u32 %z, sm_@; mad.lo.u32 %z, %thread, 16, %z;\n"
          "st.shared.v2.b32 [%z], {%a, %b}; st.shared.b64 [%z+8], %l;\nbar.sync 0;\n"
          "xor.b32 %z, %thread, 5; mov.u32 %x, sm_@; mad.lo.u32 %z, %z, 16, %x;\n";
      body += "ldmatrix.sync.aligned.m8n8.x" + number(count) + trans + ".shared.b16 " +
              names("D", count) + ", [%z];\nmov.u64 %o, 7;\n";
      for (int k = 0; k < count; ++k) {
        body += "cvt.u64.u32 %t, %D" + number(k) + "; mad.lo.u64 %o, %o, 65599, %t;\n";
      }
      list.add(std::string("ldmatrix") + trans, body);
      body =
          ".reg .b32 %z; .shared .align 16 .b8 sm_@[2048];\n"
          "mov.u32 %z, sm_@; mad.lo.u32 %z, %thread, 16, %z; mov.b64 {%x, %y}, %l;\n"
          "st.shared.v2.b64 [%z], {%l, %l}; bar.sync 0;\n"
          "xor.b32 %z, %thread, 5; mov.u32 %lane, sm_@; mad.lo.u32 %z, %z, 16, %lane;\n";
      const std::string sources = count == 1 ? "%a" : count == 2 ? "%a, %b" : "%a, %b, %x, %y";
      body += "stmatrix.sync.aligned.m8n8.x" + number(count) + trans + ".shared.b16 [%z], {" +
              sources + "};\nbar.sync 0; xor.b32 %z, %z, 96;\n" +
              "ld.shared.v2.b64 {%o, %l}, [%z]; mad.lo.u64 %o, %o, 65599, %l;\n";
      list.add(std::string("stmatrix") + trans, body);
    }
  }
}

void add_flow(Specials& list) {
  const std::string open = ".reg .b32 %r, %t, %u; .reg .pred %p, %q;\nsetp.eq.u32 %p, %a, %b;\n";
  list.add("brx.idx",
           open +
               "and.b32 %t, %a, 3;\n$ts: .branchtargets $one, $two, $three, $two;\n"
               "brx.idx %t, $ts;\n$one: mov.u32 %r, 11; bra $end;\n"
               "$two: add.u32 %r, %b, 5; bra $end;\n$three: mov.u32 %r, %thread;\n$end:\n" +
               kJoin);
  list.add("loops", open +
                        "mov.u32 %r, 0; and.b32 %t, %a, 7;\n$outer: and.b32 %u, %b, 3;\n"
                        "$inner: mad.lo.u32 %r, %r, 33, %u; add.s32 %u, %u, -1;\n"
                        "setp.ge.s32 %q, %u, 0;\n@%q bra $inner;\nadd.s32 %t, %t, -1;\n"
                        "setp.gt.s32 %q, %t, 0;\n@%q bra $outer;\n" +
                        kJoin);
  list.add("guards", open +
                         "setp.lt.s32 %q, %a, 0; mov.u32 %r, 1;\n@%q add.u32 %r, %r, %b;\n"
                         "@!%q ld.global.b32 %r, [%in+8];\n@%q st.global.b32 [%out], %a;\n" +
                         kJoin);
  list.add("early.exit", open +
                             "setp.lt.s32 %q, %a, 0; mov.u64 %o, 3; st.global.b64 [%out], %o;\n"
                             "@%q ret;\nmov.u32 %r, %b;\n" +
                             kJoin);
  list.add("call", open +
                       "{ .param .b32 x; .param .b64 y; .param .b32 z; .param .b32 w;\n"
                       "st.param.b32 [x], %a; st.param.b64 [y], %l; st.param.b32 [z], %b;\n"
                       "call.uni (w), add_three, (x, y, z);\nld.param.b32 %r, [w]; }\n" +
                       kJoin);
  list.add("call.divergent", open +
                                 "setp.lt.u32 %q, %a, %b; mov.u32 %r, 4;\n@%q bra $end;\n"
                                 "{ .param .b32 x; .param .b32 w; and.b32 %t, %a, 15;\n"
                                 "st.param.b32 [x], %t; call (w), count_bits, (x);\n"
                                 "ld.param.b32 %r, [w]; }\n$end:\n" +
                                 kJoin);
  list.add("call.recursive", open +
                                 "{ .param .b32 x; .param .b32 w; and.b32 %t, %a, 7;\n"
                                 "st.param.b32 [x], %t; call (w), fibonacci, (x);\n"
                                 "ld.param.b32 %r, [w]; }\n" +
                                 kJoin);
  list.add(
      "call.pointer",
      open +
          "{ .reg .b64 %g; .param .b32 x; .param .b64 y; .param .b32 z; .param .b32 w;\n"
          "ld.global.u64 %g, [pointers+8];\nst.param.b32 [x], %a; st.param.b64 [y], %l;\n"
          "st.param.b32 [z], %b;\n"
          "$pr: .callprototype (.param .b32 _) _ (.param .b32 _, .param .b64 _, .param .b32 _);\n"
          "call (w), %g, (x, y, z), $pr;\nld.param.b32 %r, [w]; }\n" +
          kJoin);
  for (const char* name : {"tid.x", "tid.y", "tid.z", "ntid.x", "ntid.y", "ntid.z", "ctaid.x",
                           "ctaid.y", "nctaid.x", "nctaid.z", "laneid", "lanemask_eq",
                           "lanemask_lt", "lanemask_le", "lanemask_gt", "lanemask_ge"}) {
    list.add(std::string("special.") + name, open + "mov.u32 %r, %" + name + ";\n" + kJoin,
             {8, 4, 2});
  }
  list.add("special.warp_sz", open + "mov.u32 %r, WARP_SZ;\n" + kJoin);
}

}  // namespace

CaseModule special_cases(const std::string& head) {
  CaseModule module;
  module.name = "specials";
  module.head = head + kFunctions;
  Specials list(module);
  add_shuffles(list);
  add_votes(list);
  add_barriers(list);
  add_memory(list);
  add_copies(list);
  add_atomics(list);
  add_flow(list);
  add_matrices(list);
  return module;
}

}  // namespace mc::ptx
