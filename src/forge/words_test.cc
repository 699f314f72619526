// SPDX-License-Identifier: Apache-2.0
//
// The grammar, and every number of the texts against the graph: each line is parsed into the facts
// that it may state, and one of them has to be true.  What is true is computed here in another way
// than in the texts: sizes by the interpreter's arrays, offsets by counting.
#include "forge/words.h"

#include <algorithm>
#include <set>
#include <sstream>

#include <gmock/gmock.h>

#include "core/layout.h"
#include "forge/draw.h"
#include "forge/kernels.h"
#include "forge/launch.h"
#include "forge/lessons.h"
#include "forge/library.h"
#include "forge/mix.h"
#include "forge/reason.h"

namespace mc::forge {
namespace {

using ::testing::ElementsAre;

const Library& library() {
  static const Library kLibrary = *load_library(find_layout()->share("forge"));
  return kLibrary;
}

std::vector<int64_t> numbers_in(const std::string& text) {
  std::vector<int64_t> numbers;
  std::istringstream stream(text);
  for (std::string word; std::getline(stream, word, ',');) numbers.push_back(std::stoll(word));
  return numbers;
}

std::set<std::string> slots_of(const std::string& form) {
  std::set<std::string> names;
  for (size_t at = 0; (at = form.find('{', at)) != std::string::npos; ++at) {
    names.insert(form.substr(at, form.find('}', at) - at));
  }
  return names;
}

int64_t product(const std::vector<int64_t>& sizes) {
  int64_t count = 1;
  for (const int64_t size : sizes) count *= size;
  return count;
}

// True facts about one solution.
class Truth {
 public:
  Truth(const TaskGraph& graph, const Solution& solution) : graph_(graph), solution_(solution) {}

  bool holds(const Fact& fact) const {
    const Slots& s = fact.slots;
    const auto at = [&](const char* name) { return s.at(name); };
    if (fact.sentence == "operators") return at("count") == std::to_string(graph_.depth());
    if (fact.sentence == "kernels") return at("kernels") == std::to_string(num_kernels());
    if (fact.sentence == "stage") return is_kernel(at("k")) && at("value") == output_of(at("k"));
    if (fact.sentence == "formula") return step(at("k")) && step(at("k"))->op->name == at("op");
    if (fact.sentence == "tensor") {
      const std::vector<int64_t> sizes = numbers_or_none(at("sizes"));
      return sizes == sizes_of(at("name")) && at("count") == std::to_string(product(sizes));
    }
    if (fact.sentence == "extent") return has_extent(at("extent"), at("size"));
    if (fact.sentence == "step_shape") {
      return step(at("k")) && numbers_or_none(at("sizes")) == sizes_of(step(at("k"))->output);
    }
    if (fact.sentence == "mapping") {
      return is_kernel(at("k")) && at("how") == mapping_of(graph_, part(at("k")));
    }
    if (fact.sentence == "run") {
      if (!is_kernel(at("k"))) return false;
      const auto& sizes = part(at("k")).shown_sizes;
      const auto found = sizes.find(at("name"));
      return found != sizes.end() && std::to_string(found->second) == at("value");
    }
    if (fact.sentence == "block") {
      const int64_t threads = std::stoll(at("threads"));
      return is_kernel(at("k")) && threads_of_launches(solution_.cuda)[index(at("k"))] == threads &&
             std::stoll(at("warps")) * 32 >= threads &&
             (std::stoll(at("warps")) - 1) * 32 < threads;
    }
    if (fact.sentence == "strides") return has_offset(s);
    if (fact.sentence == "types") return has_types(s);
    if (fact.sentence == "view") return has_view(at("name")) && has_strides(s);
    if (fact.sentence == "contiguous") return std::ranges::all_of(graph_.values, is_contiguous);
    if (fact.sentence == "largest") return at("count") == std::to_string(largest());
    if (fact.sentence == "tail") {
      const int64_t value = std::stoll(at("value"));
      return std::stoll(at("full")) * std::stoll(at("block")) + std::stoll(at("rest")) == value &&
             std::stoll(at("rest")) < std::stoll(at("block")) &&
             std::ranges::any_of(
                 solution_.parts,
                 [&](const Part& one) {
                   const auto found = one.shown_sizes.find(at("name"));
                   return found != one.shown_sizes.end() && found->second == value;
                 });
    }
    if (fact.sentence == "traps") {
      const auto kinds = traps_of(graph_, solution_, library().kernels);
      return at("count") == std::to_string(kinds.size());
    }
    if (fact.sentence == "traffic") {
      return is_kernel(at("k")) && at("written") == std::to_string(written(at("k")));
    }
    if (fact.sentence == "total") return at("needed") == std::to_string(needed());
    if (fact.sentence == "intensity") {
      const double ratio = std::stod(at("flops")) / std::stod(at("bytes"));
      return std::abs(ratio - std::stod(at("ratio"))) <= 0.005001;
    }
    if (fact.sentence == "feature" || fact.sentence == "options") return is_kernel(at("k"));
    return s.empty();  // A sentence without a number.
  }

 private:
  static std::vector<int64_t> numbers_or_none(const std::string& text) {
    const bool is_list = text.find_first_not_of("0123456789, ") == std::string::npos;
    return is_list ? numbers_in(text) : std::vector<int64_t>{-1};
  }
  static size_t index(const std::string& k) {
    const bool is_number =
        !k.empty() && k.size() < 4 && k.find_first_not_of("0123456789") == std::string::npos;
    return is_number ? std::stoul(k) - 1 : size_t{1} << 20;
  }
  size_t num_kernels() const { return solution_.parts.size(); }
  bool is_kernel(const std::string& k) const { return index(k) < num_kernels(); }
  const Part& part(const std::string& k) const { return solution_.parts[index(k)]; }
  const Node* step(const std::string& k) const {
    return index(k) < graph_.nodes.size() ? &graph_.nodes[index(k)] : nullptr;
  }
  std::string output_of(const std::string& k) const {
    return value_name(graph_, part(k).stage.output);
  }

  std::vector<int64_t> sizes_of(int value) const {
    std::vector<int64_t> sizes;
    for (const int dim : graph_.value(value).dims) sizes.push_back(graph_.shown_size_of(dim));
    return sizes;
  }
  std::vector<int64_t> sizes_of(const std::string& name) const {
    for (int value = 0; value < static_cast<int>(graph_.values.size()); ++value) {
      if (value_name(graph_, value) == name) return sizes_of(value);
    }
    return kNoSizes;
  }
  bool has_extent(const std::string& extent, const std::string& size) const {
    return std::ranges::any_of(graph_.values, [&](const Value& value) {
      return std::ranges::any_of(value.dims, [&](int dim) {
        return graph_.extent_text(dim) == extent &&
               std::to_string(graph_.shown_size_of(dim)) == size;
      });
    });
  }
  static bool is_contiguous(const Value& value) { return value.view == View::kNone; }
  bool has_view(const std::string& name) const {
    return std::ranges::any_of(graph_.values, [&](const Value& value) {
      return value.name == name && !is_contiguous(value);
    });
  }
  // No float is summed in fewer bits than 32.
  bool has_types(const Slots& s) const {
    const bool is_whole = graph_.type == Type::kInt32 || graph_.type == Type::kInt64;
    return s.at("type") == to_string(graph_.type) &&
           s.at("sums") == (is_whole ? s.at("type") : "float32");
  }
  // The place of an element of a view in the tensor that it is a view of, by Horner's rule over
  // that tensor's sizes, without strides; counted from the view's first element.
  static int64_t place(View view, std::vector<int64_t> sizes, std::vector<int64_t> index) {
    if (view == View::kTransposed) {
      std::swap(sizes.back(), sizes[sizes.size() - 2]);
      std::swap(index.back(), index[index.size() - 2]);
    }
    if (view == View::kEverySecond) sizes.back() *= 2, index.back() *= 2;
    if (view == View::kWithoutFirst) sizes.back() += 1;
    int64_t offset = 0;
    for (size_t i = 0; i < sizes.size(); ++i) offset = offset * sizes[i] + index[i];
    return offset;
  }
  View view_of(const std::string& name) const {
    return std::ranges::find(graph_.values, name, &Value::name)->view;
  }
  // A stride is the place of the element whose index is 1 there and 0 elsewhere.
  bool has_strides(const Slots& s) const {
    const std::vector<int64_t> sizes = sizes_of(s.at("name"));
    const std::vector<int64_t> strides = numbers_or_none(s.at("strides"));
    if (sizes == kNoSizes || strides.size() != sizes.size()) return false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      std::vector<int64_t> index(sizes.size(), 0);
      index[i] = 1;
      if (strides[i] != place(view_of(s.at("name")), sizes, index)) return false;
    }
    return true;
  }
  bool has_offset(const Slots& s) const {
    const std::vector<int64_t> index = numbers_or_none(s.at("index"));
    const std::vector<int64_t> sizes = sizes_of(s.at("name"));
    if (!has_strides(s) || index.size() != sizes.size()) return false;
    for (size_t i = 0; i < sizes.size(); ++i) {
      if (index[i] < 0 || index[i] >= sizes[i]) return false;
    }
    return s.at("offset") == std::to_string(place(view_of(s.at("name")), sizes, index));
  }
  int64_t largest() const {
    int64_t most = 0;
    for (int value = 0; value < static_cast<int>(graph_.values.size()); ++value) {
      most = std::max(most, product(sizes_of(value)));
    }
    return most;
  }
  int64_t bytes(int value) const {
    const std::string type = to_string(graph_.value(value).type);
    const int64_t bits = std::stoll(type.substr(type.find_first_of("0123456789")));
    return product(sizes_of(value)) * bits / 8;
  }
  int64_t written(const std::string& k) const { return bytes(part(k).stage.output); }
  int64_t needed() const {
    int64_t sum = 0;
    for (int value = 0; value < static_cast<int>(graph_.values.size()); ++value) {
      if (graph_.value(value).origin != Origin::kNode) sum += bytes(value);
    }
    for (const int value : graph_.outputs) sum += bytes(value);
    return sum;
  }

  inline static const std::vector<int64_t> kNoSizes = {-2};

  const TaskGraph& graph_;
  const Solution& solution_;
};

// Lines without "1. " and blanks before them.
std::vector<std::string> lines_of(const std::string& text) {
  std::vector<std::string> lines;
  std::istringstream stream(text);
  for (std::string line; std::getline(stream, line);) {
    const bool is_step =
        line.size() > 3 && line[1] == '.' && line[2] == ' ' && line[0] >= '1' && line[0] <= '6';
    if (is_step || line.starts_with("   ")) line = line.substr(3);
    lines.push_back(line);
  }
  return lines;
}

// The lines of a text that no true fact explains.
std::vector<std::string> unexplained(const std::string& text, const Truth& truth) {
  std::vector<std::string> bad;
  for (const std::string& line : lines_of(text)) {
    const bool is_true =
        std::ranges::any_of(parsed(line), [&](const Fact& fact) { return truth.holds(fact); });
    if (!is_true) bad.push_back(line);
  }
  return bad;
}

TEST(Words, HaveSixFormsWithTheSameSlots) {
  for (const std::string& name : sentences()) {
    const std::vector<std::string> forms = forms_of(name);
    EXPECT_GE(forms.size(), 6U) << name;
    EXPECT_EQ(std::set(forms.begin(), forms.end()).size(), forms.size()) << name;
    for (const std::string& form : forms)
      EXPECT_EQ(slots_of(form), slots_of(forms.front())) << form;
  }
}

TEST(Words, AreParsedBack) {
  Random random(1, "test", 0);
  const Slots slots = {{"k", "2"}, {"name", "n"}, {"value", "640"}};
  for (int i = 0; i < 12; ++i) {
    const std::vector<Fact> facts = parsed(phrased("run", slots, random));
    EXPECT_TRUE(std::ranges::any_of(
        facts, [&](const Fact& fact) { return fact.sentence == "run" && fact.slots == slots; }));
  }
  EXPECT_TRUE(parsed("Some 640 places.").empty());
}

TEST(Words, SayOfTheGraphWhatIsTrueInEveryLine) {
  DrawOptions options;
  options.families = library().families();
  options.types = {Type::kFloat32, Type::kFloat16, Type::kBfloat16};
  options.views_share = 0.5;
  int num_lines = 0, num_views = 0;
  std::set<Type> types;
  for (uint64_t number = 0; number < 40; ++number) {
    options.size = number % 2 == 0 ? Size::kSmall : Size::kLarge;
    const auto graph = draw_graph(library().operators, 5, number, options);
    if (!graph) continue;
    types.insert(graph->type);
    num_views += static_cast<int>(
        std::ranges::count_if(graph->values, [](const Value& v) { return v.view != View::kNone; }));
    for (const Solution& solution : solutions_of(*graph, library().kernels)) {
      const Truth truth(*graph, solution);
      const std::string text = reasoning(*graph, solution, library().kernels) +
                               performance_text(*graph, solution, library().kernels);
      EXPECT_THAT(unexplained(text, truth), ElementsAre()) << graph->id() << " " << solution.name;
      num_lines += static_cast<int>(lines_of(text).size());
    }
  }
  EXPECT_GT(num_lines, 500);
  EXPECT_GT(num_views, 3);
  EXPECT_GE(types.size(), 3U);
}

TEST(Words, AreFoundFalseWhereANumberWasChanged) {
  DrawOptions options;
  options.families = library().families();
  const auto graph = draw_graph(library().operators, 5, 1, options);
  ASSERT_TRUE(graph);
  const Solution solution = solutions_of(*graph, library().kernels).front();
  const Truth truth(*graph, solution);
  int num_changed = 0;
  for (const std::string& line : lines_of(reasoning(*graph, solution, library().kernels))) {
    for (const Fact& fact : parsed(line)) {
      if (fact.sentence != "tensor" && fact.sentence != "strides" && fact.sentence != "largest")
        continue;
      Fact changed = fact;
      std::string& slot = changed.slots[fact.sentence == "strides" ? "offset" : "count"];
      slot = std::to_string(slot.empty() ? 1 : slot.size() + 123456789);
      EXPECT_FALSE(truth.holds(changed)) << line;
      ++num_changed;
    }
  }
  EXPECT_GE(num_changed, 2);
}

TEST(Questions, HaveAnswersThatACountGives) {
  std::set<std::string> topics;
  for (uint64_t number = 0; number < 300; ++number) {
    const Question question = question_of(3, number);
    topics.insert(question.topic);
    const std::vector<Fact> asked = parsed(question.asked), told = parsed(question.told);
    ASSERT_FALSE(asked.empty()) << question.asked;
    ASSERT_FALSE(told.empty()) << question.told;
    if (question.topic == "grid") {
      const int64_t n = std::stoll(asked[0].slots.at("n")),
                    t = std::stoll(asked[0].slots.at("threads"));
      const int64_t blocks = std::stoll(told[0].slots.at("blocks"));
      EXPECT_TRUE(blocks * t >= n && (blocks - 1) * t < n) << question.asked;
      EXPECT_EQ(std::stoll(told[0].slots.at("idle")), blocks * t - n);
    }
    if (question.topic == "banks") {
      const int64_t stride = std::stoll(asked[0].slots.at("stride"));
      std::map<int64_t, int64_t> lanes;
      for (int64_t lane = 0; lane < 32; ++lane) ++lanes[lane * stride % 32];
      int64_t most = 0;
      for (const auto& [bank, count] : lanes) most = std::max(most, count);
      EXPECT_EQ(std::stoll(told[0].slots.at("ways")), most) << question.asked;
    }
    EXPECT_EQ(question.told, question_of(3, number).told);
  }
  EXPECT_EQ(topics.size(), 8U);
}

TEST(Launches, AreReadFromTheText) {
  EXPECT_THAT(threads_of_launches(
                  "k<<<(n + 255) / 256, 256>>>(x); j<<<dim3(2, f(1, 2)), dim3(16, 8)>>>(y)"),
              ElementsAre(256, 128));
  EXPECT_THAT(threads_of_launches("k<<<n, t>>>(x)"), ElementsAre(0));
}

TEST(Launches, AreFoundInTheCompilersReport) {
  const auto units = resources_in(
      "ptxas info    : Compiling entry function '_ZN2s12k0EPKfPfi' for 'sm_90'\n"
      "ptxas info    : Function properties for _ZN2s12k0EPKfPfi\n"
      "    0 bytes stack frame, 8 bytes spill stores, 12 bytes spill loads\n"
      "ptxas info    : Used 18 registers, used 1 barriers, 1024 bytes smem, 372 bytes cmem[0]\n",
      2);
  ASSERT_EQ(units.size(), 2U);
  EXPECT_TRUE(units[0].empty());
  ASSERT_EQ(units[1].size(), 1U);
  const Resources& one = units[1].front();
  EXPECT_EQ(one.kernel, "k0");
  EXPECT_THAT((std::vector<int64_t>{one.registers, one.shared, one.spill_stores, one.spill_loads}),
              ElementsAre(18, 1024, 8, 12));
}

TEST(Mix, RaisesWeakFamiliesAndLowersStableOnes) {
  const Weights weights =
      weights_of({{"softmax", {0, 40}}, {"reduction", {40, 40}}}, {"softmax", "reduction", "scan"});
  EXPECT_GT(weights.at("softmax"), 1.5);
  EXPECT_LT(weights.at("reduction"), 0.5);
  EXPECT_NEAR(weights.at("softmax") + weights.at("reduction") + weights.at("scan"), 3, 0.01);
  std::map<std::string, int> drawn;
  Random random(1, "mix", 0);
  for (int i = 0; i < 3000; ++i) ++drawn[drawn_family(weights, random)];
  EXPECT_NEAR(drawn["softmax"], 1000 * weights.at("softmax"), 100);
}

}  // namespace
}  // namespace mc::forge
