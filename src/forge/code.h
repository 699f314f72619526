// SPDX-License-Identifier: Apache-2.0
//
// Code: the parts of a stage's kernel as CUDA text, with which the holes of templates are filled.
//
// A kernel iterates over runs: flat indices over some axes.  For a stage without inner axes, `i` is
// the flat index of all elements.  Otherwise `r` is the index of the row (group axes) and `j` that
// of the element in its row (inner axes).  In tiles `r` counts rows, `j` columns, `q` the depth and
// `l` the batch; in scans `r` counts rows and `j` the elements along the scanned axis.
#ifndef MC_FORGE_CODE_H_
#define MC_FORGE_CODE_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "forge/graph.h"
#include "forge/stage.h"

namespace mc::forge {

struct Run {
  std::string name;   // "r".
  std::string count;  // "n": the kernel's name for the run's length.
  std::vector<int> dims;
  // The index variables of the axes: "r0", "r1", or "r" for a single axis.
  std::vector<std::string> axes;
};

// The way in which kernels read inputs that are views: by their strides, or as contiguous copies.
enum class Reads { kContiguous, kStrided };

// Names of operands in kernels.
inline constexpr const char* kOperandNames[] = {"v", "u", "w"};

enum class Walk { kElements, kRows, kTiles, kScans };

class Code {
 public:
  // `tensors` contains the name of each value that is in memory.
  Code(const TaskGraph& graph, const Stage& stage, Walk walk, std::map<int, std::string> tensors,
       Reads reads);

  const std::vector<Run>& runs() const { return runs_; }

  // For walks over elements: lines that set `v` to the stage's value at the current index.
  std::string value() const;
  // The same lines for operands that are read as parts of vectors: x[i] is xs[c].
  std::string value_of_vectors();
  // The names of the operands that `value` reads at index i.
  std::vector<std::string> flat_operands() const;

  // These functions are for walks over rows.
  bool loads_by_function() const;
  std::string function() const;  // The lines of the function's body, which ends with a return.
  std::string load() const;      // Lines that set v (and u, w) to the operands at (r, j).
  std::string identity(size_t pass) const;
  std::string combine(size_t pass) const;
  std::string finish(size_t pass) const;
  std::string element(size_t pass) const;
  std::string result() const;  // Lines that compute `v` from the passes, and the nodes that follow.
  std::string result_after_load() const;  // The same lines if v is already declared.
  std::string place() const;              // The index of the output element.
  std::string stored() const;  // The expression that is stored: `v` in the output's type.
  const char* real() const { return compute_text(graph_.value(stage_.output).type); }
  bool loads_anything() const;

  // These functions are for tiles: the factors of the product.
  std::string left() const;
  std::string right() const;
  // This function is for scans: the element at (r, j), and the result of the running value `a`.
  std::string scanned() const;

  static std::string accumulator(size_t pass);

  // Replaces the marks of decode_mark() by the lines that split flat indices.
  std::string decoded(std::string text) const;
  static std::string decode_mark(const std::string& run);

  // The product of some extents, as in "N * M".
  std::string extents(const std::vector<int>& dims) const;

 private:
  using Index = std::vector<std::string>;

  void add_run(std::string name, std::string count, std::vector<int> dims,
               const std::vector<std::pair<std::string, size_t>>& axes);
  std::string offset(int value, const Index& index) const;
  std::string flatten(const std::vector<int>& dims, const Index& index) const;
  std::string read(int value, const Index& index) const;
  Index index_of(const std::vector<Axis>& pattern) const;
  Index output_index() const;
  Index broadcast(int value, const Index& full) const;
  std::string text(const Expr& expr, const std::map<std::string, std::string>& names,
                   const Node& node) const;
  // Temporaries get names that do not occur in `above`, the preceding lines of the same scope.
  std::string nodes_text(const std::vector<const Node*>& nodes, const Index& index,
                         std::map<int, std::string> variables, const std::string& base,
                         const std::string& above) const;
  std::string operand_lines(size_t operand, const std::string& name,
                            const std::string& above) const;
  std::string node_expression(const Node& node, const std::map<int, std::string>& variables,
                              const Index& index, const std::string& above,
                              std::string& lines) const;
  std::string result_text(bool is_declared, const std::string& above) const;
  bool uses(std::string_view name) const;
  std::string decode_lines(const Run& run, std::string& scope) const;

  const TaskGraph& graph_;
  const Stage& stage_;
  std::map<int, std::string> tensors_;
  std::vector<Run> runs_;
  std::map<std::string, Index> axes_;  // The index variables of each axis of the core operator.
  Reads reads_;
  bool reads_vectors_ = false;
};

}  // namespace mc::forge

#endif  // MC_FORGE_CODE_H_
