// SPDX-License-Identifier: Apache-2.0
#include "forge/sizes.h"

#include <algorithm>

#include "core/check.h"
#include "forge/random.h"

namespace mc::forge {
namespace {

constexpr int kDoublingsMax = 64;
constexpr int kExtentMax = 1 << 16;
// The maximum is needed because a block processes a row, for any number of rows.
constexpr int64_t kRowMax = 1 << 20;
constexpr int64_t kElementsMax = int64_t{1} << kLargeBits[1];

// The limits of channels, windows and batches are smaller than those of other axes.
int bound_of(const Dim& dim) {
  switch (dim.name.front()) {
    case 'H':
    case 'W':
    case 'D':
      return 512;
    case 'C':
    case 'F':
    case 'G':
    case 'B':
      return 256;
    default:
      return kExtentMax;
  }
}

class Binder {
 public:
  explicit Binder(const TaskGraph& graph) : graph_(graph) {
    for (const Dim& dim : graph.dims) sizes_.push_back(dim.size);
  }

  // Doubles constants, in a random order, until the largest tensor has the wanted number of
  // elements.
  std::vector<int> run(int64_t wanted, Random& random) {
    for (int i = 0; i < kDoublingsMax && largest() < wanted; ++i) {
      std::vector<size_t> choices;
      for (size_t k = 0; k < sizes_.size(); ++k) {
        if (graph_.dims[k].is_constant() && can_double(k)) choices.push_back(k);
      }
      if (choices.empty()) break;
      double_one(random.pick(choices));
    }
    return sizes_;
  }

 private:
  bool can_double(size_t number) {
    if (2 * sizes_[number] > bound_of(graph_.dims[number])) return false;
    const std::vector<int> before = sizes_;
    double_one(number);
    const bool is_small =
        largest() <= kElementsMax && steps() <= kLargeStepsMax && longest_row() <= kRowMax;
    sizes_ = before;
    return is_small;
  }

  // An odd size remains odd, so that there are still partial blocks.
  void double_one(size_t number) {
    sizes_[number] = 2 * sizes_[number] + sizes_[number] % 2;
    for (size_t i = 0; i < sizes_.size(); ++i) {
      if (!graph_.dims[i].is_constant()) sizes_[i] = derived(graph_.dims[i]);
    }
  }

  int derived(const Dim& dim) const {
    const auto extent = parse_expr(dim.extent);
    MC_CHECK(extent);
    return static_cast<int>(evaluate_with(*extent, [&](const std::string& name) {
      const auto found = std::ranges::find(graph_.dims, name, &Dim::name);
      MC_CHECK(found != graph_.dims.end());
      return sizes_.at(static_cast<size_t>(found - graph_.dims.begin()));
    }));
  }

  int64_t count_of(const std::vector<int>& dims) const {
    int64_t count = 1;
    for (const int dim : dims) count *= dim == kOne ? 1 : sizes_.at(static_cast<size_t>(dim));
    return count;
  }

  int64_t largest() const {
    int64_t found = 0;
    for (const Value& value : graph_.values) found = std::max(found, count_of(value.dims));
    return found;
  }

  int64_t steps() const {
    int64_t found = 0;
    for (const Node& node : graph_.nodes) {
      int64_t own = count_of(node.dims_of(node.form->out));
      if (!node.keeps_inner()) own *= count_of(node.dims_of(node.form->inner));
      found = std::max(found, own);
    }
    return found;
  }

  int64_t longest_row() const {
    int64_t found = 0;
    for (const Node& node : graph_.nodes) {
      found = std::max(found, count_of(node.dims_of(node.form->inner)));
    }
    return found;
  }

  const TaskGraph& graph_;
  std::vector<int> sizes_;
};

int64_t drawn(const int (&bits)[2], Random& random) {
  return int64_t{1} << (bits[0] + random.below(bits[1] - bits[0]));
}

}  // namespace

void bind_sizes(TaskGraph& graph) {
  Random random(graph.seed, "sizes", graph.number);
  const int64_t native = drawn(kNativeBits, random), large = drawn(kLargeBits, random);
  const std::vector<int> natives = Binder(graph).run(native, random);
  const std::vector<int> larges = Binder(graph).run(large, random);
  for (size_t i = 0; i < graph.dims.size(); ++i) {
    graph.dims[i].native = natives[i], graph.dims[i].large = larges[i];
  }
}

}  // namespace mc::forge
