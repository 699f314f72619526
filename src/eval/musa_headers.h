// SPDX-License-Identifier: Apache-2.0
//
// Names that come from headers of torch_musa or of MUSA.  The port compiles without these headers,
// since what the CUDA side includes has its counterparts already.
#ifndef MC_EVAL_MUSA_HEADERS_H_
#define MC_EVAL_MUSA_HEADERS_H_

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

namespace mc::eval {

struct MissingHeader {
  std::string_view name;
  std::string_view header;  // The header to include.
  std::size_t line = 1;
  std::size_t column = 1;
};

// Appends the headers that the source includes, in the form in which it names them.
void add_includes(std::string_view source, std::vector<std::string>& headers);

// The uses in `source` of names whose header is not among `headers`.
std::vector<MissingHeader> missing_headers(std::string_view source,
                                           const std::vector<std::string>& headers);

}  // namespace mc::eval

#endif  // MC_EVAL_MUSA_HEADERS_H_
