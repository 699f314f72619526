// SPDX-License-Identifier: Apache-2.0
//
// The minimal scanner of Python text that choosing between texts needs: it finds strings and
// comments, and guesses the kind of other lines.  It does not decide what the text means.
#ifndef MC_LEGALITY_PYTHON_TEXT_H_
#define MC_LEGALITY_PYTHON_TEXT_H_

#include <cstddef>
#include <string_view>
#include <vector>

namespace mc::legality {

// Tracks string literals across lines.
class StringTracker {
 public:
  // True if the next line starts inside a string.
  bool is_inside() const { return quote_ != '\0'; }
  // Reads one line, without its line break.
  void read(std::string_view line);

 private:
  std::size_t read_code(std::string_view line, std::size_t i);
  std::size_t read_string(std::string_view line, std::size_t i);

  char quote_ = '\0';
  bool is_triple_ = false;
};

// Properties that the lines of a text seem to have, outside of strings.
struct PythonTraits {
  bool defines_model_new = false;
  bool has_import = false;
  bool ends_inside_string = false;
};
PythonTraits traits_of(const std::vector<std::string_view>& lines);

// True for lines such as import x, from x import y, class X, def f, @decorator, or a docstring.
bool starts_like_python(std::string_view line);

// True for a line at the left margin that cannot be a Python statement: two words in a row that are
// not keywords ("This kernel is fast."), a label ("Notes:"), a numbered item.
bool is_prose(std::string_view line);

}  // namespace mc::legality

#endif  // MC_LEGALITY_PYTHON_TEXT_H_
