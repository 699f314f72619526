// SPDX-License-Identifier: Apache-2.0
//
// A part of the Itanium C++ ABI's grammar of names, by recursive descent.  Each function reads one
// element and appends its readable form; after `lose` nothing more is read.
#include "core/demangle.h"

#include <algorithm>
#include <charconv>
#include <optional>
#include <span>

namespace mc {
namespace {

constexpr int kDepthMax = 32;  // The maximal nesting of template arguments and pointers.

struct Word {
  std::string_view symbol;
  std::string_view name;
};

constexpr Word kBuiltins[] = {
    {"v", "void"},        {"w", "wchar_t"},
    {"b", "bool"},        {"c", "char"},
    {"a", "signed char"}, {"h", "unsigned char"},
    {"s", "short"},       {"t", "unsigned short"},
    {"i", "int"},         {"j", "unsigned int"},
    {"l", "long"},        {"m", "unsigned long"},
    {"x", "long long"},   {"y", "unsigned long long"},
    {"n", "__int128"},    {"o", "unsigned __int128"},
    {"f", "float"},       {"d", "double"},
    {"e", "long double"}, {"g", "__float128"},
    {"Dh", "half"},       {"Dn", "decltype(nullptr)"},
};
constexpr Word kStandard[] = {
    {"Sa", "std::allocator"}, {"Sb", "std::basic_string"}, {"Ss", "std::string"},
    {"Si", "std::istream"},   {"So", "std::ostream"},      {"Sd", "std::iostream"},
};
// The suffix of a number of each of these types; a number of another type has its type in front.
constexpr Word kSuffixes[] = {{"i", ""},   {"j", "u"},  {"l", "l"},
                              {"m", "ul"}, {"x", "ll"}, {"y", "ull"}};

class Reader {
 public:
  explicit Reader(std::string_view rest) : rest_(rest) {}

  // The readable name; "" when not even its beginning could be read.
  std::string read() {
    read_name();
    return has_name_ ? out_ : "";
  }

 private:
  bool take(std::string_view prefix) {
    if (!rest_.starts_with(prefix)) return false;
    rest_.remove_prefix(prefix.size());
    return true;
  }

  // Consumes one of these words if the text continues with it, and returns the word's name.
  std::optional<std::string_view> take_word(std::span<const Word> words) {
    for (const Word& word : words) {
      if (take(word.symbol)) return word.name;
    }
    return std::nullopt;
  }

  void lose() { is_lost_ = true; }

  void write(std::string_view text) {
    if (out_.size() > kDemangledBytesMax) return lose();
    out_ += text;
  }

  // "4axpy"
  std::string_view take_identifier() {
    size_t size = 0;
    const auto [end, error] = std::from_chars(rest_.data(), rest_.data() + rest_.size(), size);
    const auto num_digits = static_cast<size_t>(end - rest_.data());
    if (error != std::errc() || size == 0 || size > rest_.size() - num_digits) {
      lose();
      return "";
    }
    const std::string_view identifier = rest_.substr(num_digits, size);
    rest_.remove_prefix(num_digits + size);
    return identifier;
  }

  void read_name() {
    bool is_inside_function = false;
    while (take("Z")) is_inside_function = true;
    if (take("N")) {
      read_nested();
    } else {
      read_component();
      if (!is_lost_ && rest_.starts_with('I')) read_arguments();
    }
    if (is_inside_function && !is_lost_) {
      out_ += "::...";
      lose();
    }
  }

  // Components up to an 'E', each with its template arguments.
  void read_nested() {
    for (const char* qualifier : {"r", "V", "K", "R", "O"}) take(qualifier);
    for (bool is_first = true; !take("E"); is_first = false) {
      if (!is_first && rest_.starts_with('I')) {
        read_arguments();
      } else {
        if (!is_first) write("::");
        read_component();
      }
      if (is_lost_) return;
    }
  }

  // Reads one component of a qualified name, or "std" and the next component.
  void read_component() {
    if (const auto standard = take_word(kStandard)) {
      last_ = standard->substr(standard->rfind(':') + 1);
      write(*standard);
    } else {
      if (take("St")) {
        write("std::");
        has_name_ = true;
      }
      read_unqualified();
    }
    if (is_lost_) out_ += "...";
    has_name_ = has_name_ || !is_lost_;
  }

  void read_unqualified() {
    take("L");  // Internal linkage.
    if (is_digit_next()) {
      last_ = take_identifier();
      write(last_.starts_with("_GLOBAL__N") ? "(anonymous namespace)" : last_);
    } else if (!last_.empty() && (take("C1") || take("C2") || take("C3"))) {
      write(last_);
    } else if (!last_.empty() && (take("D0") || take("D1") || take("D2"))) {
      write("~");
      write(last_);
    } else {
      lose();
    }
    while (!is_lost_ && take("B")) take_identifier();  // ABI tags.
  }

  bool is_digit_next() const { return !rest_.empty() && rest_[0] >= '0' && rest_[0] <= '9'; }

  // "IfLi256EE" as "<float, 256>"
  void read_arguments() {
    take("I");
    // The class that a constructor, which may follow, belongs to.
    const std::string_view owner = last_;
    write("<");
    read_list();
    if (out_.ends_with('>')) write(" ");
    out_ += ">";
    last_ = owner;
  }

  // Arguments up to an 'E'; the elements of a pack become ordinary arguments.
  void read_list() {
    if (++depth_ > kDepthMax) lose();
    while (!is_lost_ && !take("E")) {
      if (take("J")) {
        read_list();
        continue;
      }
      if (!out_.ends_with('<')) write(", ");
      const size_t start = out_.size();
      take("L") ? read_literal() : read_type();
      if (is_lost_) out_.replace(start, std::string::npos, "...");
    }
    --depth_;
  }

  void read_type() {
    if (++depth_ > kDepthMax) lose();
    if (!is_lost_) read_type_within_depth();
    --depth_;
  }

  void read_type_within_depth() {
    if (const auto builtin = take_word(kBuiltins)) {
      write(*builtin);
    } else if (take("P")) {
      read_type();
      write("*");
    } else if (take("R")) {
      read_type();
      write("&");
    } else if (take("O")) {
      read_type();
      write("&&");
    } else if (take("K")) {
      read_type();
      write(" const");
    } else {
      read_name();
    }
  }

  // "i256E", "b1E", "N2at4KindE3E", behind an 'L'.
  void read_literal() {
    if (take("b0E")) return write("false");
    if (take("b1E")) return write("true");
    // Floating-point values are written as bits.
    if (rest_.find_first_of("fdeg") == 0) return lose();
    const auto suffix = take_word(kSuffixes);
    if (!suffix) {
      write("(");
      read_type();
      write(")");
    }
    if (take("n")) write("-");
    const size_t num_digits = std::min(rest_.find_first_not_of("0123456789"), rest_.size());
    write(rest_.substr(0, num_digits));
    write(suffix.value_or(""));
    rest_.remove_prefix(num_digits);
    if (num_digits == 0 || !take("E")) lose();
  }

  std::string_view rest_;
  std::string out_;
  std::string_view last_;  // The last component's own name.
  int depth_ = 0;
  bool has_name_ = false;
  bool is_lost_ = false;
};

}  // namespace

std::string demangle(std::string_view symbol) {
  std::string name;
  if (symbol.starts_with("_Z")) name = Reader(symbol.substr(2)).read();
  return name.empty() ? std::string(symbol.substr(0, kDemangledBytesMax))
                      : name.substr(0, kDemangledBytesMax);
}

}  // namespace mc
