// SPDX-License-Identifier: Apache-2.0
//
// Names in the kernels: inputs x, y, z; e a vector parameter, w and b of a linear layer, g and h of
// a norm; o the output; n rows or elements, m columns, l the inner size; r, j row and column, i the
// element; v the running value, u the head's own, a and b what passes over a row found.
//
// Sites are written into the text as \x01 kind \x02 text \x03 and taken out at the end.
#include "forge/kernels.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forge/render.h"

namespace mc::forge {
namespace {

std::string site(std::string_view kind, std::string_view text) {
  return fmt::format("\x01{}\x02{}\x03", kind, text);
}

// Takes the marks out of `marked`.
void unmark(std::string_view marked, std::string& text, std::vector<Site>& sites) {
  std::vector<size_t> open;  // Indices into sites: sites may stand inside each other.
  for (size_t i = 0; i < marked.size(); ++i) {
    if (marked[i] == '\x01') {
      const size_t end = marked.find('\x02', i);
      sites.push_back({std::string(marked.substr(i + 1, end - i - 1)), text.size(), 0});
      open.push_back(sites.size() - 1);
      i = end;
    } else if (marked[i] == '\x03') {
      Site& closed = sites[open.back()];
      closed.size = text.size() - closed.offset;
      open.pop_back();
    } else {
      text += marked[i];
    }
  }
}

// How an element is addressed.
struct Index {
  std::string flat, row, column;
};

const Index kFlat = {"i", "i / m", "i % m"};
const Index kRowwise = {"r * m + j", "r", "j"};

std::string literal(const std::string& text) { return text.empty() ? text : text + "f"; }

const char* identity_of(Combine combine) {
  switch (combine) {
    case Combine::kSum:
      return "0.0f";
    case Combine::kMax:
      return "-INFINITY";
    case Combine::kMin:
      return "INFINITY";
  }
  return "";
}

std::string combined(Combine combine, const std::string& into, const std::string& value) {
  switch (combine) {
    case Combine::kSum:
      return fmt::format("{} += {};", into, value);
    case Combine::kMax:
      return fmt::format("{0} = fmaxf({0}, {1});", into, value);
    case Combine::kMin:
      return fmt::format("{0} = fminf({0}, {1});", into, value);
  }
  return "";
}

class Writer {
 public:
  explicit Writer(const TaskGraph& graph)
      : graph_(graph), row_(graph.row()), before_(graph.before_row()), after_(graph.after_row()) {}

  std::vector<Solution> all() {
    if (is_matmul()) {
      add("matmul_naive", matmul_naive());
      add("matmul_tile", matmul_tile());
      add("matmul_register", matmul_register());
    } else if (row_ != nullptr) {
      add("row_thread", row_thread());
      add("row_block", row_block());
      add("row_warp", row_warp());
    } else {
      add("thread", thread());
      add("stride", stride());
      if (!is_outer()) add("float4", float4());
      if (needs_columns()) add("grid2d", grid2d());
    }
    return std::move(made_);
  }

 private:
  // ---- The graph
  // ---------------------------------------------------------------------------------

  bool is_matmul() const {
    return graph_.head() != nullptr && graph_.head()->family() == Family::kMatmul;
  }
  bool is_outer() const { return graph_.head() != nullptr && !is_matmul(); }
  bool needs_columns() const {
    return is_outer() || graph_.has(Side::kVector) || graph_.has(Side::kColumn);
  }
  bool is_linear() const {
    return is_matmul() && std::string_view(graph_.head()->name()).starts_with("linear");
  }
  bool has_bias() const { return is_linear() && graph_.head()->inputs.size() == 3; }

  static std::string pointer_name(const Value& value) {
    if (value.name == "fc.weight") return "w";
    if (value.name == "fc.bias") return "b";
    if (value.name == "s") return "e";
    if (value.name == "norm.weight") return "g";
    if (value.name == "norm.bias") return "h";
    return value.name;
  }

  std::vector<std::string> pointers() const {
    std::vector<std::string> names;
    for (const auto& list : {graph_.inputs(), graph_.parameters()}) {
      for (const int i : list) {
        names.push_back(pointer_name(graph_.values.at(static_cast<size_t>(i))));
      }
    }
    return names;
  }

  std::string pointer_parameters() const {
    std::string text;
    for (const std::string& name : pointers()) text += "const float* " + name + ", ";
    return text;
  }

  // ---- Expressions
  // -------------------------------------------------------------------------------

  std::string head_load(const Index& at) const {
    if (!is_outer()) return fmt::format("x[{}]", site("index", at.flat));
    std::string text = graph_.head()->head->torch;
    text = substituted(std::move(text), "{x}", fmt::format("x[{}]", at.row));
    return substituted(std::move(text), "{u}", fmt::format("y[{}]", at.column));
  }

  std::string operand(const Node& node, const Index& at) const {
    const auto name = [&] {
      return pointer_name(graph_.values.at(static_cast<size_t>(node.inputs.at(1))));
    };
    switch (node.side) {
      case Side::kInput:
        return fmt::format("{}[{}]", name(), at.flat);
      case Side::kVector:
        return fmt::format("{}[{}]", name(), at.column);
      case Side::kColumn:
        return fmt::format("{}[{}]", name(), at.row);
      case Side::kResidual:
        return "u";
      case Side::kNone:
        break;
    }
    return "";
  }

  std::string chain(const std::vector<const Node*>& nodes, const Index& at, int indent) const {
    std::string text;
    for (const Node* node : nodes) {
      std::string value = node->pointwise->cuda;
      value = substituted(std::move(value), "{u}", operand(*node, at));
      value = substituted(std::move(value), "{c}", site("literal", literal(node->c)));
      value = substituted(std::move(value), "{d}", literal(node->d));
      const std::string line = fmt::format("v = {};\n", value);
      text += std::string(static_cast<size_t>(indent), ' ') + site("operator", line);
    }
    return text;
  }

  // Loads v and runs the chain before the rows' operator (or all of it).
  std::string load_and_chain(const Index& at, int indent) const {
    const std::string space(static_cast<size_t>(indent), ' ');
    std::string text = fmt::format("{}float v = {};\n", space, head_load(at));
    if (graph_.has(Side::kResidual)) text += space + "float u = v;\n";
    return text + chain(before_, at, indent);
  }

  // ---- Host
  // --------------------------------------------------------------------------------------

  std::string host(const std::string& sizes, const std::string& output, const std::string& launch,
                   const std::string& numbers) const {
    std::string parameters, arguments;
    for (const std::string& name : pointers()) {
      parameters += (parameters.empty() ? "torch::Tensor " : ", torch::Tensor ") + name;
      arguments += name + ".data_ptr<float>(), ";
    }
    return fmt::format(
        "torch::Tensor f({}) {{\n  int {};\n  auto o = {};\n  k<<<{}>>>({}o.data_ptr<float>(), "
        "{});\n  return o;\n}}\n",
        parameters, sizes, output, launch, arguments, numbers);
  }

  std::string pointwise_host(const std::string& blocks) const {
    const std::string launch = fmt::format("{}, 256", blocks);
    const std::string numbers = needs_columns() ? "n, m" : "n";
    if (is_outer()) {
      return host("m = y.size(0), n = x.size(0) * m", "torch::empty({x.size(0), m}, x.options())",
                  launch, numbers);
    }
    const std::string sizes = needs_columns() ? "n = x.numel(), m = x.size(-1)" : "n = x.numel()";
    return host(sizes, site("output", "torch::empty_like(x)"), launch, numbers);
  }

  // ---- Pointwise
  // ---------------------------------------------------------------------------------

  std::string pointwise_head(std::string_view name) const {
    return fmt::format("{}({}float* o, int n{}) {{\n", name, pointer_parameters(),
                       needs_columns() ? ", int m" : "");
  }

  std::string thread() const {
    std::string text = pointwise_head("__global__ void k");
    text += "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n";
    text += fmt::format("  {}{{\n", site("guard", "if (i < n) "));
    text += load_and_chain(kFlat, 4);
    text += "    o[i] = v;\n  }\n}\n";
    return text + pointwise_host(site("grid", "(n + 255) / 256"));
  }

  std::string stride() const {
    std::string text = pointwise_head("__global__ void k");
    text += fmt::format("  for (int i = blockIdx.x * blockDim.x + threadIdx.x; {}; {}) {{\n",
                        site("bound", "i < n"), site("step", "i += gridDim.x * blockDim.x"));
    text += load_and_chain(kFlat, 4);
    text += "    o[i] = v;\n  }\n}\n";
    return text + pointwise_host("(n + 1023) / 1024");
  }

  // The operands that p() reads beside v.
  std::string side_pointers(bool as_arguments) const {
    std::string text;
    for (const Node* node : before_) {
      if (node->side == Side::kNone || node->side == Side::kResidual) continue;
      const Value& value = graph_.values.at(static_cast<size_t>(node->inputs.at(1)));
      text += fmt::format(", {}{}", as_arguments ? "" : "const float* ", pointer_name(value));
    }
    if (text.empty()) return text;
    text += as_arguments ? ", @" : ", int i";
    if (needs_columns()) text += as_arguments ? ", m" : ", int m";
    return text;
  }

  std::string float4() const {
    std::string text = fmt::format("__device__ float p(float v{}) {{\n", side_pointers(false));
    if (graph_.has(Side::kResidual)) text += "  float u = v;\n";
    text += chain(before_, kFlat, 2) + "  return v;\n}\n";
    text += pointwise_head("__global__ void k");
    text += "  int i = (blockIdx.x * blockDim.x + threadIdx.x) * 4;\n";
    text += fmt::format("  if ({}) {{\n", site("vector_bound", "i + 3 < n"));
    text += "    float4 q = *(const float4*)(x + i);\n";
    const std::string arguments = side_pointers(true);
    static constexpr const char* kParts[] = {"x", "y", "z", "w"};
    for (int part = 0; part < 4; ++part) {
      const std::string at = part == 0 ? "i" : fmt::format("i + {}", part);
      text +=
          fmt::format("    q.{0} = p(q.{0}{1});\n", kParts[part], substituted(arguments, "@", at));
    }
    text += "    *(float4*)(o + i) = q;\n  } ";
    text += site("tail", fmt::format("else {{\n    for (; {}; i++) o[i] = p(x[i]{});\n  }}",
                                     site("bound", "i < n"), substituted(arguments, "@", "i")));
    text += "\n}\n";
    return text + pointwise_host(site("grid", "(n + 1023) / 1024"));
  }

  std::string grid2d() const {
    std::string text = pointwise_head("__global__ void k");
    text += "  int j = blockIdx.x * blockDim.x + threadIdx.x;\n";
    text += "  int r = blockIdx.y * blockDim.y + threadIdx.y;\n";
    text += fmt::format("  {}{{\n", site("guard", "if (r < n && j < m) "));
    text += load_and_chain(kRowwise, 4);
    text += "    o[r * m + j] = v;\n  }\n}\n";
    const std::string launch =
        fmt::format("dim3({}, (n + 7) / 8), dim3(32, 8)", site("grid", "(m + 31) / 32"));
    if (is_outer()) {
      return text + host("n = x.size(0), m = y.size(0)", "torch::empty({n, m}, x.options())",
                         launch, "n, m");
    }
    return text + host("m = x.size(-1), n = x.numel() / m", site("output", "torch::empty_like(x)"),
                       launch, "n, m");
  }

  // ---- Rows
  // --------------------------------------------------------------------------------------

  const RowOperator& row_operator() const { return *row_->row; }
  size_t num_loads() const {
    return row_operator().passes.size() + (row_operator().reduces ? 0 : 1);
  }
  // Whether the chain before the row's operator is a function, being run more than once.
  bool has_function() const { return num_loads() > 1 && (!before_.empty() || is_outer()); }

  std::string function() const {
    if (!has_function()) return "";
    return fmt::format("__device__ float p({}int r, int j, int m) {{\n{}  return v;\n}}\n",
                       pointer_parameters(), load_and_chain(kRowwise, 2));
  }

  std::string load(int indent) const {
    const std::string space(static_cast<size_t>(indent), ' ');
    if (!has_function()) return load_and_chain(kRowwise, indent);
    return fmt::format("{}float v = p({}, r, j, m);\n", space, fmt::join(pointers(), ", "));
  }

  static std::string variable(size_t pass) { return pass == 0 ? "a" : "b"; }

  // A loop over the row's columns that combines a pass's elements.
  std::string pass_loop(size_t number, const std::string& loop, int indent) const {
    const std::string space(static_cast<size_t>(indent), ' ');
    const Pass& pass = row_operator().passes[number];
    std::string text = fmt::format("{}float {} = {};\n", space, variable(number),
                                   site("identity", identity_of(pass.combine)));
    text += fmt::format("{}for ({}) {{\n{}", space, loop, load(indent + 2));
    const std::string_view element = pass.element;
    const std::string shown =
        element == "expf(v - a)" ? fmt::format("expf({})", site("shift", "v - a")) : pass.element;
    text += fmt::format("{}  {}\n{}}}\n", space,
                        site("combine", combined(pass.combine, variable(number), shown)), space);
    return text;
  }

  std::string finish(size_t number, int indent) const {
    const Pass& pass = row_operator().passes[number];
    if (pass.finish[0] == '\0') return "";
    return fmt::format("{}{} = {};\n", std::string(static_cast<size_t>(indent), ' '),
                       variable(number), site("finish", pass.finish));
  }

  // What is written once the passes are done: for each row, or each element of it.
  std::string write_row(const std::string& who, const std::string& loop, int indent) const {
    std::string space(static_cast<size_t>(indent), ' ');
    std::string text;
    if (row_operator().reduces) {
      if (!who.empty()) {
        text += fmt::format("{}if ({}) {{\n", space, who);
        indent += 2;
      }
      const std::string inner(static_cast<size_t>(indent), ' ');
      const bool is_plain = after_.empty();
      if (is_plain) text += fmt::format("{}o[r] = {};\n", inner, row_operator().out);
      if (!is_plain) {
        text += fmt::format("{}float v = {};\n", inner, row_operator().out);
        text += chain(after_, kRowwise, indent) + inner + "o[r] = v;\n";
      }
      if (!who.empty()) text += space + "}\n";
      return text;
    }
    text += fmt::format("{}for ({}) {{\n{}", space, loop, load(indent + 2));
    text += fmt::format("{}  v = {};\n", space, site("row_out", row_operator().out));
    text += chain(after_, kRowwise, indent + 2);
    text += fmt::format("{0}  o[{1}] = v;\n{0}}}\n", space, site("index", "r * m + j"));
    return text;
  }

  std::string row_host(const std::string& launch, const std::string& numbers) const {
    const bool reduces = row_operator().reduces;
    const size_t outer = graph_.output().dims.size();
    std::string output = site("output", "torch::empty_like(x)");
    if (is_outer()) output = "torch::empty({n, m}, x.options())";
    if (reduces) {
      output = outer == 1 ? site("output", "torch::empty({n}, x.options())")
                          : "torch::empty({x.size(0), x.size(1)}, x.options())";
    }
    return host(is_outer() ? "n = x.size(0), m = y.size(0)" : "m = x.size(-1), n = x.numel() / m",
                output, launch, numbers);
  }

  std::string row_thread() const {
    const std::string loop = fmt::format("int j = 0; {}; j++", site("bound", "j < m"));
    std::string text = function();
    text += fmt::format("__global__ void k({}float* o, int n, int m) {{\n", pointer_parameters());
    text += "  int r = blockIdx.x * blockDim.x + threadIdx.x;\n";
    text += fmt::format("  {}{{\n", site("guard", "if (r < n) "));
    for (size_t i = 0; i < row_operator().passes.size(); ++i) {
      text += pass_loop(i, loop, 4) + finish(i, 4);
    }
    text += write_row("", loop, 4) + "  }\n}\n";
    return text + row_host(site("grid", "(n + 63) / 64") + ", 64", "n, m");
  }

  static std::string tree(Combine combine, int indent) {
    const std::string space(static_cast<size_t>(indent), ' ');
    return fmt::format(
        "{0}for (int w = {1}; {2}; w /= 2) {{\n{0}  if (t < w) {3}\n{0}  {4}\n{0}}}\n", space,
        site("tree", "64"), site("tree_end", "w > 0"), combined(combine, "s[t]", "s[t + w]"),
        site("sync", "__syncthreads();"));
  }

  static const char* reducer_name(Combine combine) {
    switch (combine) {
      case Combine::kSum:
        return "total";
      case Combine::kMax:
        return "top";
      case Combine::kMin:
        return "low";
    }
    return "";
  }

  // For several passes: a function that gives every thread the block's result.
  static std::string block_function(Combine combine) {
    return fmt::format(
        "__device__ float {}(float* s, float a) {{\n  int t = threadIdx.x;\n  s[t] = a;\n  {}\n{}"
        "  a = s[0];\n  {}\n  return a;\n}}\n",
        reducer_name(combine), site("sync", "__syncthreads();"), tree(combine, 2),
        site("last_sync", "__syncthreads();"));
  }

  std::string row_block() const {
    const auto& passes = row_operator().passes;
    const bool is_single = passes.size() == 1 && row_operator().reduces;
    const std::string loop = fmt::format("int j = t; {}; j += 128", site("bound", "j < m"));
    std::string text = function();
    if (!is_single) {
      text += block_function(passes[0].combine);
      if (passes.size() > 1 && passes[1].combine != passes[0].combine) {
        text += block_function(passes[1].combine);
      }
    }
    text += fmt::format("__global__ void k({}float* o, int m) {{\n", pointer_parameters());
    text += "  __shared__ float s[128];\n  int r = blockIdx.x, t = threadIdx.x;\n";
    if (is_single) {
      text += pass_loop(0, loop, 2);
      text += fmt::format("  s[t] = a;\n  {}\n", site("sync", "__syncthreads();"));
      text += tree(passes[0].combine, 2);
      text += "  a = s[0];\n" + finish(0, 2);
    } else {
      for (size_t i = 0; i < passes.size(); ++i) {
        text += pass_loop(i, loop, 2);
        text += fmt::format("  {0} = {1}(s, {0});\n", variable(i), reducer_name(passes[i].combine));
        text += finish(i, 2);
      }
    }
    text += write_row("t == 0", loop, 2) + "}\n";
    return text + row_host("n, 128", "m");
  }

  static std::string shuffle(Combine combine, const std::string& into, int indent) {
    const std::string space(static_cast<size_t>(indent), ' ');
    const std::string other = fmt::format("__shfl_xor_sync({}, {}, w)", "0xffffffff", into);
    return fmt::format("{}for (int w = {}; {}; w /= 2) {}\n", space, site("shuffle", "16"),
                       site("tree_end", "w > 0"), combined(combine, into, other));
  }

  std::string row_warp() const {
    const auto& passes = row_operator().passes;
    const std::string loop = fmt::format("int j = t; {}; j += 32", site("bound", "j < m"));
    std::string text = function();
    text += fmt::format("__global__ void k({}float* o, int m) {{\n", pointer_parameters());
    text += "  int r = blockIdx.x, t = threadIdx.x;\n";
    for (size_t i = 0; i < passes.size(); ++i) {
      text += pass_loop(i, loop, 2) + shuffle(passes[i].combine, variable(i), 2) + finish(i, 2);
    }
    text += write_row("t == 0", loop, 2) + "}\n";
    return text + row_host("n, 32", "m");
  }

  // ---- Matrix products
  // ---------------------------------------------------------------------------

  static std::string in_product(const std::string& factor) {
    return factor.find(' ') == std::string::npos ? factor : "(" + factor + ")";
  }

  // The second operand's element (row c, column j of the product's right side).
  std::string right(const std::string& c, const std::string& j) const {
    const std::string name = is_linear() ? "w" : "y";
    if (std::string_view(graph_.head()->name()) == "matmul") {
      return fmt::format("{}[{}]", name,
                         site("right_index", fmt::format("{} * m + {}", in_product(c), j)));
    }
    return fmt::format("{}[{}]", name,
                       site("right_index", fmt::format("{} * l + {}", in_product(j), c)));
  }

  std::string matmul_host(const std::string& launch) const {
    const std::string name = is_linear() ? "w" : "y";
    const int axis = std::string_view(graph_.head()->name()) == "matmul" ? 1 : 0;
    return host(fmt::format("n = x.size(0), l = x.size(1), m = {}.size({})", name, axis),
                site("output", "torch::empty({n, m}, x.options())"), launch, "n, m, l");
  }

  std::string matmul_head() const {
    return fmt::format("__global__ void k({}float* o, int n, int m, int l) {{\n",
                       pointer_parameters());
  }

  std::string epilogue(int indent) const {
    std::string text;
    const std::string space(static_cast<size_t>(indent), ' ');
    if (has_bias()) text += space + site("operator", "v += b[j];\n");
    return text + chain(before_, kRowwise, indent);
  }

  std::string matmul_naive() const {
    std::string text = matmul_head();
    text += "  int i = blockIdx.x * blockDim.x + threadIdx.x;\n";
    text += fmt::format("  {}{{\n", site("guard", "if (i < n * m) "));
    text += "    int r = i / m, j = i % m;\n";
    text += fmt::format("    float v = {};\n", site("identity", "0.0f"));
    text += fmt::format("    for (int c = 0; {}; c++) v += x[{}] * {};\n", site("bound", "c < l"),
                        site("left_index", "r * l + c"), right("c", "j"));
    text += epilogue(4) + "    o[r * m + j] = v;\n  }\n}\n";
    return text + matmul_host(site("grid", "(n * m + 255) / 256") + ", 256");
  }

  std::string matmul_tile() const {
    std::string text = matmul_head();
    text +=
        "  __shared__ float p[16][16], q[16][16];\n"
        "  int a = threadIdx.y, t = threadIdx.x;\n"
        "  int r = blockIdx.y * 16 + a, j = blockIdx.x * 16 + t;\n"
        "  float v = 0.0f;\n";
    text += fmt::format("  for (int c = 0; {}; c += 16) {{\n", site("bound", "c < l"));
    text += fmt::format("    p[a][t] = {} ? x[r * l + c + t] : 0.0f;\n",
                        site("tile_guard", "r < n && c + t < l"));
    text += fmt::format("    q[a][t] = {} ? {} : 0.0f;\n", site("tile_guard", "c + a < l && j < m"),
                        right("c + a", "j"));
    text += fmt::format("    {}\n", site("sync", "__syncthreads();"));
    text += "    for (int d = 0; d < 16; d++) v += p[a][d] * q[d][t];\n";
    text += fmt::format("    {}\n  }}\n", site("sync", "__syncthreads();"));
    text += fmt::format("  {}{{\n", site("guard", "if (r < n && j < m) "));
    text += epilogue(4) + "    o[r * m + j] = v;\n  }\n}\n";
    return text + matmul_host(fmt::format("dim3({}, (n + 15) / 16), dim3(16, 16)",
                                          site("grid", "(m + 15) / 16")));
  }

  std::string matmul_register() const {
    std::string text = matmul_head();
    text +=
        "  int j = blockIdx.x * blockDim.x + threadIdx.x, t = blockIdx.y * 4;\n"
        "  float a[4] = {};\n";
    text += fmt::format("  {}return;\n", site("exit", "if (j >= m) "));
    text += fmt::format("  for (int c = 0; {}; c++) {{\n", site("bound", "c < l"));
    text += fmt::format("    float q = {};\n", right("c", "j"));
    text += fmt::format(
        "    for (int d = 0; d < 4; d++)\n      {}a[d] += x[(t + d) * l + c] * q;\n  }}\n",
        site("guard", "if (t + d < n) "));
    text += fmt::format("  for (int d = 0; d < 4 && {}; d++) {{\n", site("bound", "t + d < n"));
    text += "    int r = t + d;\n    float v = a[d];\n" + epilogue(4) +
            "    o[r * m + j] = v;\n  }\n}\n";
    return text +
           matmul_host(fmt::format("dim3({}, (n + 3) / 4), 64", site("grid", "(m + 63) / 64")));
  }

  // ---- The end
  // -----------------------------------------------------------------------------------

  void add(const char* name, const std::string& marked) {
    Solution solution;
    solution.name = name;
    unmark("#include <torch/extension.h>\n" + marked, solution.cuda, solution.sites);
    solution.module = answer_module(graph_, solution.cuda);
    made_.push_back(std::move(solution));
  }

  const TaskGraph& graph_;
  const Node* row_;
  std::vector<const Node*> before_, after_;
  std::vector<Solution> made_;
};

}  // namespace

std::vector<Solution> solutions_of(const TaskGraph& graph) { return Writer(graph).all(); }

std::string answer_module(const TaskGraph& graph, std::string_view cuda) {
  std::vector<std::string> inputs, arguments, parameters;
  for (const int i : graph.inputs()) inputs.push_back(graph.values.at(static_cast<size_t>(i)).name);
  arguments = inputs;
  for (const int i : graph.parameters()) {
    arguments.push_back("self." + graph.values.at(static_cast<size_t>(i)).name);
  }
  const size_t begin = cuda.find("torch::Tensor f(");
  const std::string_view signature = cuda.substr(begin, cuda.find(" {\n", begin) - begin);
  std::string text =
      "import torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n\n";
  text += fmt::format("src = r\"\"\"\n{}\"\"\"\n", cuda);
  text += fmt::format(
      "ext = load_inline(name=\"e\", cpp_sources=\"{};\", cuda_sources=src, functions=[\"f\"])\n\n",
      signature);
  text += "\nclass ModelNew(nn.Module):\n";
  const Construction made = construction_of(graph, Layers::kParametersOnly);
  if (!made.sizes.empty() || !made.lines.empty()) {
    const Construction all = construction_of(graph, Layers::kAll);
    text += fmt::format("    def __init__(self{}):\n        super().__init__()\n", all.arguments);
    for (const std::string& line : made.lines) text += "        " + line + "\n";
    text += '\n';
  }
  text += fmt::format("    def forward(self, {}):\n        return ext.f({})\n",
                      fmt::join(inputs, ", "), fmt::join(arguments, ", "));
  return text;
}

}  // namespace mc::forge
