// SPDX-License-Identifier: Apache-2.0
#include "legality/tensor_names.h"

#include <string>

#include "lex/code.h"

namespace mc::legality {
namespace {

// Methods that do not return a tensor; a chain ends with them.
const Words& queries() {
  static const Words kQueries = {"accessor",
                                 "const_data_ptr",
                                 "data_ptr",
                                 "defined",
                                 "device",
                                 "dim",
                                 "dtype",
                                 "element_size",
                                 "equal",
                                 "get_device",
                                 "has_value",
                                 "is_contiguous",
                                 "is_cpu",
                                 "is_cuda",
                                 "is_same",
                                 "item",
                                 "itemsize",
                                 "layout",
                                 "mutable_data_ptr",
                                 "nbytes",
                                 "ndimension",
                                 "numel",
                                 "options",
                                 "packed_accessor",
                                 "packed_accessor32",
                                 "scalar_type",
                                 "size",
                                 "sizes",
                                 "storage",
                                 "storage_offset",
                                 "stride",
                                 "strides",
                                 "suggest_memory_format",
                                 "type",
                                 "packed_accessor64",
                                 "requires_grad",
                                 "allclose",
                                 "is_floating_point",
                                 "sym_size",
                                 "sym_sizes"};
  return kQueries;
}

// True for a function of torch:: that returns a tensor: all with a lower-case initial but these.
bool is_tensor_function(std::string_view name) {
  static const Words kOthers = {"device",
                                "dtype",
                                "elementSize",
                                "optional",
                                "layout",
                                "nullopt",
                                "list",
                                "manual_seed",
                                "get_num_threads",
                                "typeMetaToScalarType",
                                "isFloatingType",
                                "isIntegralType",
                                "make_optional",
                                "requires_grad",
                                "promote_types",
                                "result_type",
                                "allclose",
                                "equal",
                                "numel",
                                "cuda",
                                "nn",
                                "autograd",
                                "indexing",
                                "toString"};
  return !name.empty() && name.front() >= 'a' && name.front() <= 'z' && !kOthers.contains(name);
}

struct View {
  std::string_view source;
  const lex::Code& code;

  std::string_view text(std::size_t i) const { return lex::text_at(source, code, i); }
  bool is_word(std::size_t i) const {
    return i < code.tokens.size() && code.tokens[i].kind == lex::Kind::kIdentifier;
  }
};

// The index after template arguments `<...>` at `i`, if any: data_ptr<float>.
std::size_t skip_template(const View& view, std::size_t i) {
  constexpr std::size_t kTokensMax = 64;
  if (view.text(i) != "<") return i;
  int depth = 0;
  for (std::size_t j = i; j < view.code.tokens.size() && j < i + kTokensMax; ++j) {
    if (view.text(j) == "<") ++depth;
    if (view.text(j) == ">") --depth;
    if (view.text(j) == ">>") depth -= 2;
    if (depth <= 0) return j + 1;
  }
  return i;
}

// The index after the call whose name is at `i`; `i` + 1 if it is not a call.
std::size_t skip_call(const View& view, std::size_t i) {
  const std::size_t open = skip_template(view, i + 1);
  const bool is_call = view.text(open) == "(" && view.code.partners[open] != lex::kNone;
  return is_call ? view.code.partners[open] + 1 : i + 1;
}

struct Chain {
  std::vector<std::size_t> methods;
  bool ends_in_tensor = true;
};

Chain chain_after(const View& view, std::size_t i) {
  Chain chain;
  while ((view.text(i) == "." || view.text(i) == "->") && view.is_word(i + 1)) {
    chain.methods.push_back(i + 1);
    chain.ends_in_tensor = !queries().contains(view.text(i + 1));
    if (!chain.ends_in_tensor) return chain;
    i = skip_call(view, i + 1);
  }
  return chain;
}

// Adds the names in declarations such as torch::Tensor x and const at::Tensor& x, but not
// std::vector<Tensor> x, which is no tensor.
void note_declaration(const View& view, std::size_t i, Words& names) {
  std::size_t name = i + 1;
  while (view.text(name) == "const" || view.text(name) == "&" || view.text(name) == "&&" ||
         view.text(name) == "*" || view.text(name) == "__restrict__") {
    ++name;
  }
  if (view.is_word(name) && view.text(name + 1) != "(" && view.text(name + 1) != "::") {
    names.emplace(view.text(name));
  }
}

// True if the expression at `i` is a tensor: torch::zeros(...), x, x.contiguous().
bool is_tensor_expression(const View& view, std::size_t i, const Words& names) {
  const bool is_qualified =
      (view.text(i) == "torch" || view.text(i) == "at") && view.text(i + 1) == "::";
  if (is_qualified) {
    return is_tensor_function(view.text(i + 2)) && skip_call(view, i + 2) != i + 3 &&
           chain_after(view, skip_call(view, i + 2)).ends_in_tensor;
  }
  if (!names.contains(view.text(i))) return false;
  const std::string_view next = view.text(i + 1);
  return (next == "." || next == ";" || next == ",") && chain_after(view, i + 1).ends_in_tensor;
}

// Adds the names in declarations such as auto x = ... and const auto& x = ...
void note_auto(const View& view, std::size_t i, Words& names) {
  std::size_t name = i + 1;
  while (view.text(name) == "&" || view.text(name) == "&&" || view.text(name) == "const") ++name;
  if (view.is_word(name) && view.text(name + 1) == "=" &&
      is_tensor_expression(view, name + 2, names)) {
    names.emplace(view.text(name));
  }
}

}  // namespace

Words tensor_names_in(std::string_view source, const lex::Code& code) {
  const View view{source, code};
  Words names;
  for (std::size_t i = 0; i < code.tokens.size(); ++i) {
    if (view.text(i) == "Tensor") note_declaration(view, i, names);
    if (view.text(i) == "auto") note_auto(view, i, names);
  }
  return names;
}

std::vector<std::size_t> methods_after(std::string_view source, const lex::Code& code,
                                       std::size_t i) {
  return chain_after(View{source, code}, i).methods;
}

}  // namespace mc::legality
