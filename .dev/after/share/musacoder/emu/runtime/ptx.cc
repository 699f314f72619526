// SPDX-License-Identifier: Apache-2.0
#include "runtime/ptx.h"

#include <algorithm>
#include <cctype>
#include <cstdlib>
#include <cstring>
#include <map>

namespace mc::emu::ptx {
namespace {

struct NamedType {
  std::string_view name;
  Type type;
  uint8_t size;
};

constexpr NamedType kTypes[] = {
    {"pred", Type::kPred, 1}, {"b8", Type::kB8, 1},       {"b16", Type::kB16, 2},
    {"b32", Type::kB32, 4},   {"b64", Type::kB64, 8},     {"b128", Type::kB128, 16},
    {"u8", Type::kU8, 1},     {"u16", Type::kU16, 2},     {"u32", Type::kU32, 4},
    {"u64", Type::kU64, 8},   {"s8", Type::kS8, 1},       {"s16", Type::kS16, 2},
    {"s32", Type::kS32, 4},   {"s64", Type::kS64, 8},     {"f16", Type::kF16, 2},
    {"bf16", Type::kBf16, 2}, {"f16x2", Type::kF16x2, 4}, {"bf16x2", Type::kBf16x2, 4},
    {"tf32", Type::kTf32, 4}, {"f32", Type::kF32, 4},     {"f64", Type::kF64, 8}};

bool is_word(char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '_'; }

std::string_view trimmed(std::string_view text) {
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.front()))) {
    text.remove_prefix(1);
  }
  while (!text.empty() && std::isspace(static_cast<unsigned char>(text.back()))) {
    text.remove_suffix(1);
  }
  return text;
}

std::string without_comments(std::string_view text) {
  std::string out;
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i, 2) == "//") {
      i = std::min(text.find('\n', i), text.size());
    } else if (text.substr(i, 2) == "/*") {
      const size_t end = text.find("*/", i + 2);
      i = end == std::string_view::npos ? text.size() : end + 2;
    } else {
      out += text[i++];
    }
  }
  return out;
}

// Cuts at the separator outside of brackets.
std::vector<std::string_view> cut(std::string_view text, char separator) {
  std::vector<std::string_view> parts;
  int depth = 0;
  size_t begin = 0;
  for (size_t i = 0; i <= text.size(); ++i) {
    const char c = i < text.size() ? text[i] : separator;
    if (c == '{' || c == '[' || c == '(') ++depth;
    if (c == '}' || c == ']' || c == ')') --depth;
    if (c != separator || (depth > 0 && i < text.size())) continue;
    parts.push_back(trimmed(text.substr(begin, i - begin)));
    begin = i + 1;
  }
  return parts;
}

class Parser {
 public:
  Parser(int num_operands, bool is_basic) : num_operands_(num_operands), is_basic_(is_basic) {
    program_.num_registers = num_operands;
  }

  Program parse(std::string_view text) {
    const std::string plain = without_comments(text);
    std::string_view rest = plain;
    while (!(rest = trimmed(rest)).empty() && program_.problem.empty()) rest = statement(rest);
    return std::move(program_);
  }

 private:
  // Takes one statement off the front.
  std::string_view statement(std::string_view text) {
    if (text.front() == '{' || text.front() == '}') {
      if (text.front() == '{') {
        scopes_.emplace_back();
      } else if (!scopes_.empty()) {
        scopes_.pop_back();
      }
      return text.substr(1);
    }
    if (text.front() == ';') return text.substr(1);
    size_t word = 0;
    while (word < text.size() && (is_word(text[word]) || text[word] == '$')) ++word;
    if (word > 0 && word < text.size() && text[word] == ':' && text.substr(word, 2) != "::") {
      program_.labels.emplace_back(std::string(text.substr(0, word)), program_.instructions.size());
      return text.substr(word + 1);
    }
    const size_t end = std::min(text.find(';'), text.size());
    const std::string_view body = trimmed(text.substr(0, end));
    if (body.starts_with(".reg")) {
      declare(body);
    } else if (body.starts_with('.')) {
      fail(body);
    } else {
      instruction(body);
    }
    return text.substr(std::min(end + 1, text.size()));
  }

  void fail(std::string_view what) {
    if (program_.problem.empty()) program_.problem = std::string(what.substr(0, 120));
  }

  // .reg .f32 a, b; or .reg .pred p<4>;
  void declare(std::string_view body) {
    const size_t type = body.find('.', 4);
    if (type == std::string_view::npos) return fail(body);
    size_t begin = type + 1;
    while (begin < body.size() && is_word(body[begin])) ++begin;
    for (std::string_view name : cut(body.substr(begin), ',')) {
      if (name.starts_with('%')) name.remove_prefix(name.starts_with("%%") ? 2 : 1);
      const size_t open = name.find('<');
      if (open == std::string_view::npos) {
        add_register(std::string(name));
        continue;
      }
      const int count = std::atoi(std::string(name.substr(open + 1)).c_str());
      for (int i = 0; i < std::min(count, 1024); ++i) {
        add_register(std::string(name.substr(0, open)) + std::to_string(i));
      }
    }
  }

  void add_register(const std::string& name) {
    if (scopes_.empty()) scopes_.emplace_back();
    scopes_.back()[name] = program_.num_registers++;
  }

  int find_register(std::string_view name) const {
    for (auto scope = scopes_.rbegin(); scope != scopes_.rend(); ++scope) {
      const auto found = scope->find(name);
      if (found != scope->end()) return found->second;
    }
    return -1;
  }

  void instruction(std::string_view body) {
    Instruction i;
    i.text = std::string(body.substr(0, 120));
    if (body.front() == '@') {
      body.remove_prefix(1);
      if (body.starts_with('!')) {
        i.is_predicate_negated = true;
        body.remove_prefix(1);
      }
      size_t end = 0;
      while (end < body.size() && !std::isspace(static_cast<unsigned char>(body[end]))) ++end;
      const Argument predicate = argument(body.substr(0, end));
      if (predicate.kind != Argument::Kind::kRegister) return fail(i.text);
      i.predicate = predicate.index;
      body = trimmed(body.substr(end));
    }
    size_t end = 0;
    while (end < body.size() && !std::isspace(static_cast<unsigned char>(body[end]))) ++end;
    const std::vector<std::string_view> parts = cut(body.substr(0, end), '.');
    i.name = std::string(parts.front());
    for (size_t k = 1; k < parts.size(); ++k) {
      i.parts.emplace_back(parts[k]);
      if (const Type type = type_named(parts[k]); type != Type::kNone) i.types.push_back(type);
    }
    const std::string_view rest = trimmed(body.substr(end));
    if (!rest.empty()) {
      for (const std::string_view part : cut(rest, ',')) i.arguments.push_back(argument(part));
    }
    program_.instructions.push_back(std::move(i));
  }

  Argument argument(std::string_view text) {
    Argument a;
    if (text.empty()) return fail("an empty operand"), a;
    if (text.front() == '{' && text.back() == '}') {
      a.kind = Argument::Kind::kVector;
      for (const std::string_view part : cut(text.substr(1, text.size() - 2), ',')) {
        a.parts.push_back(argument(part));
      }
      return a;
    }
    if (text.front() == '[' && text.back() == ']') return address(text);
    if (const size_t bar = text.find('|'); bar != std::string_view::npos) {
      a = argument(trimmed(text.substr(0, bar)));
      a.other = argument(trimmed(text.substr(bar + 1))).index;
      return a;
    }
    if (text.front() == '!') {
      a = argument(trimmed(text.substr(1)));
      a.is_negated = true;
      return a;
    }
    if (text == "_") return a;
    const char c = text.front();
    if (c == '-' || std::isdigit(static_cast<unsigned char>(c)) != 0) return immediate(text);
    return named(text);
  }

  Argument address(std::string_view text) {
    Argument a;
    a.kind = Argument::Kind::kAddress;
    a.index = -1;
    std::string_view inside = trimmed(text.substr(1, text.size() - 2));
    const size_t sign = inside.find_first_of("+-", 1);
    const Argument base = argument(trimmed(inside.substr(0, sign)));
    if (base.kind == Argument::Kind::kRegister) a.index = base.index;
    if (base.kind == Argument::Kind::kImmediate) a.value = base.value;
    if (sign != std::string_view::npos) {
      std::string_view offset = trimmed(inside.substr(sign));
      const bool is_negative = offset.front() == '-';
      const Argument distance = argument(trimmed(offset.substr(1)));
      if (distance.kind == Argument::Kind::kRegister) {
        a.other = distance.index;
      } else {
        a.value += is_negative ? -distance.value : distance.value;
      }
    }
    return a;
  }

  Argument immediate(std::string_view text) {
    Argument a;
    a.kind = Argument::Kind::kImmediate;
    const std::string word(text);
    if (word.size() == 10 && (word.starts_with("0f") || word.starts_with("0F"))) {
      a.value = static_cast<int64_t>(std::strtoull(word.c_str() + 2, nullptr, 16));
      a.name = "f32";
    } else if (word.size() == 18 && (word.starts_with("0d") || word.starts_with("0D"))) {
      a.value = static_cast<int64_t>(std::strtoull(word.c_str() + 2, nullptr, 16));
      a.name = "f64";
    } else if (word.find('.') != std::string::npos) {
      const double real = std::strtod(word.c_str(), nullptr);
      std::memcpy(&a.value, &real, sizeof real);
      a.name = "f64";
    } else {
      char* end = nullptr;
      a.value = word.front() == '-' ? std::strtoll(word.c_str(), &end, 0)
                                    : static_cast<int64_t>(std::strtoull(word.c_str(), &end, 0));
      if (*end != '\0' && *end != 'U' && *end != 'u') fail(text);
    }
    return a;
  }

  Argument named(std::string_view text) {
    Argument a;
    bool is_operand = false;
    if (text.starts_with("%%")) {
      text.remove_prefix(2);
    } else if (text.starts_with('%')) {
      text.remove_prefix(1);
      is_operand = !is_basic_ && !text.empty() && std::isdigit(static_cast<unsigned char>(text[0]));
      if (is_operand) {
        a.kind = Argument::Kind::kRegister;
        a.index = std::atoi(std::string(text).c_str());
        if (a.index >= num_operands_) fail(text);
        return a;
      }
    }
    a.index = find_register(text);
    a.name = std::string(text);
    const bool is_special = text.find('.') != std::string_view::npos || is_special_name(text);
    a.kind = a.index >= 0        ? Argument::Kind::kRegister
             : is_special        ? Argument::Kind::kSpecial
             : text == "WARP_SZ" ? Argument::Kind::kImmediate
                                 : Argument::Kind::kLabel;
    if (a.kind == Argument::Kind::kImmediate) a.value = 32;
    return a;
  }

  static bool is_special_name(std::string_view name) {
    constexpr std::string_view kNames =
        " laneid warpid nwarpid smid nsmid gridid clock clock64 clock_hi globaltimer "
        "globaltimer_lo globaltimer_hi lanemask_eq lanemask_lt lanemask_le lanemask_gt lanemask_ge "
        "dynamic_smem_size total_smem_size cluster_ctarank cluster_nctarank ";
    return kNames.find(" " + std::string(name) + " ") != std::string_view::npos;
  }

  Program program_;
  int num_operands_;
  bool is_basic_;
  std::vector<std::map<std::string, int, std::less<>>> scopes_;
};

}  // namespace

size_t size_of(Type type) {
  for (const NamedType& row : kTypes) {
    if (row.type == type) return row.size;
  }
  return 0;
}

bool is_signed(Type type) { return type >= Type::kS8 && type <= Type::kS64; }
bool is_real(Type type) { return type >= Type::kF16; }

Type type_named(std::string_view name) {
  for (const NamedType& row : kTypes) {
    if (row.name == name) return row.type;
  }
  return Type::kNone;
}

bool Instruction::has(std::string_view part) const {
  return std::find(parts.begin(), parts.end(), part) != parts.end();
}

Program parse(std::string_view text, int num_operands, bool is_basic) {
  return Parser(num_operands, is_basic).parse(text);
}

}  // namespace mc::emu::ptx
