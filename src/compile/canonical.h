// SPDX-License-Identifier: Apache-2.0
//
// Canonical form of C++ and CUDA sources: two extensions with the same form compile to the same
// library, so one stands in for the other in the artifact cache (artifact_store.h).
//
// The form is the list of tokens.  Comments and white space make no difference, but for:
// - a line end that ends a directive, and in a directive whether there is white space at all
//   (`#define F (x)` is not `#define F(x)`);
// - with Lines::kMatter, the number of each token's line.  The CPU backend needs that: it finds the
//   lines of races and of accesses past an end in debug information, its findings tell lines that
//   headers took from __builtin_LINE, and it tells barriers apart by their lines.  A wrong line in
//   a verdict costs more than a library that is compiled twice.
//
// What may depend on its layout, or be cut into tokens otherwise by a compiler, is its own form,
// byte for byte: __LINE__ and what expands to it where somebody sees it (assertions, warnings), the
// operators # and ## in a macro, macros known to make a string of an argument, __has_include,
// #line, trigraphs and digraphs, a literal or comment that does not end, a line splice that joins
// two tokens, bytes that C++ does not know.  TORCH_CHECK is not among these: a contestant tells its
// message without the place (harness/worker/wire.py).  Where it has no message, the text of its
// condition is told with the other source's spaces.
#ifndef MC_COMPILE_CANONICAL_H_
#define MC_COMPILE_CANONICAL_H_

#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "compile/extension.h"

namespace mc::compile {

enum class Lines { kDoNotMatter, kMatter };

// None for a source that is its own form; then so are all that are compiled with it, since a macro
// of one may be used in another.  Linear in the size of `source`.
std::optional<std::string> canonical_form(std::string_view source, Lines lines);

// Whether the library would be the same under another name but for PyInit_NAME: the name enters as
// the first argument of PYBIND11_MODULE alone, by TORCH_EXTENSION_NAME.  `flags` are the
// compilers'.
bool is_name_free(const Extension& extension, const std::vector<std::string>& flags);

}  // namespace mc::compile

#endif  // MC_COMPILE_CANONICAL_H_
