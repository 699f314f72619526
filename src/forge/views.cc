// SPDX-License-Identifier: Apache-2.0
#include "forge/views.h"

#include <algorithm>
#include <utility>

#include "core/check.h"
#include "forge/random.h"

namespace mc::forge {
namespace {

constexpr double kFiller = 7;  // The value of base elements outside of the view.

// The offsets of the last axis's elements in the base are begin + step * index.
int64_t step_of(View view) { return view == View::kEverySecond ? 2 : 1; }
int64_t begin_of(View view) { return view == View::kWithoutFirst ? 1 : 0; }

int64_t base_length(View view, int64_t length) { return step_of(view) * length + begin_of(view); }

}  // namespace

std::string view_text(View view, const std::string& base) {
  switch (view) {
    case View::kNone:
      return base;
    case View::kTransposed:
      return base + ".transpose(-2, -1)";
    case View::kEverySecond:
      return base + "[..., ::2]";
    case View::kWithoutFirst:
      return base + "[..., 1:]";
  }
  MC_CHECK(false);
}

std::vector<std::string> base_extents(View view, std::vector<std::string> extents) {
  if (view == View::kTransposed) std::swap(extents.back(), extents[extents.size() - 2]);
  if (view == View::kEverySecond) extents.back() = "2 * " + extents.back();
  if (view == View::kWithoutFirst) extents.back() += " + 1";
  return extents;
}

Array base_of(View view, const Array& array) {
  if (view == View::kNone) return array;
  const auto width = static_cast<size_t>(array.shape.back());
  Array base{array.shape, {}};
  if (view == View::kTransposed) {
    MC_CHECK(array.shape.size() > 1);
    const auto height = static_cast<size_t>(array.shape[array.shape.size() - 2]);
    std::swap(base.shape.back(), base.shape[base.shape.size() - 2]);
    for (size_t i = 0; i < array.values.size(); ++i) {
      const size_t batch = i / (width * height), row = i / height % width, column = i % height;
      base.values.push_back(array.values[(batch * height + column) * width + row]);
    }
    return base;
  }
  const auto length = static_cast<size_t>(base_length(view, array.shape.back()));
  base.shape.back() = static_cast<int>(length);
  base.values.assign(array.values.size() / width * length, kFiller);
  for (size_t i = 0; i < array.values.size(); ++i) {
    const size_t at =
        i % width * static_cast<size_t>(step_of(view)) + static_cast<size_t>(begin_of(view));
    base.values[i / width * length + at] = array.values[i];
  }
  return base;
}

std::vector<int64_t> strides_of(View view, const std::vector<int64_t>& sizes) {
  std::vector<int64_t> strides(sizes.size(), 1);
  if (sizes.empty()) return strides;
  MC_CHECK(view != View::kTransposed || sizes.size() > 1);
  std::vector<int64_t> base = sizes;
  if (view == View::kTransposed) std::swap(base.back(), base[base.size() - 2]);
  base.back() = base_length(view, base.back());
  for (size_t i = base.size(); i-- > 1;) strides[i - 1] = strides[i] * base[i];
  if (view == View::kTransposed) std::swap(strides.back(), strides[strides.size() - 2]);
  strides.back() *= step_of(view);
  return strides;
}

void draw_view(TaskGraph& graph) {
  Random random(graph.seed, "views", graph.number);
  std::vector<int> choices;
  for (const int input : graph.inputs()) {
    const Value& value = graph.value(input);
    const bool is_matrix = value.dims.size() > 1 && value.draw != Draw::kIndex &&
                           std::ranges::find(value.dims, kOne) == value.dims.end();
    if (is_matrix) choices.push_back(input);
  }
  if (choices.empty()) return;
  static constexpr View kViews[] = {View::kTransposed, View::kTransposed, View::kEverySecond,
                                    View::kWithoutFirst};
  graph.values[static_cast<size_t>(random.pick(choices))].view = random.pick(kViews);
}

}  // namespace mc::forge
