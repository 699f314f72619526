// SPDX-License-Identifier: Apache-2.0
//
// The functions of fmt, compiled once.  Debian has no static library of it, and in its header-only
// form each source compiles all of them, which takes longer than most sources do otherwise.
#include <fmt/format-inl.h>

namespace fmt {

// The rest of the header's templates for char are instantiated by the functions above.
template char detail::decimal_point_impl<char>(detail::locale_ref);
template detail::thousands_sep_result<char> detail::thousands_sep_impl<char>(detail::locale_ref);

}  // namespace fmt
