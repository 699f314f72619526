// SPDX-License-Identifier: Apache-2.0
#include "forge/sample_graph.h"

#include <algorithm>
#include <regex>
#include <sstream>

#include <gmock/gmock.h>

#include "forge/interpret.h"
#include "forge/kernels.h"
#include "forge/library.h"
#include "forge/mutate.h"
#include "forge/reason.h"
#include "forge/render.h"
#include "forge/samples.h"
#include "forge/sizes.h"

namespace mc::forge {
namespace {

using ::testing::AllOf;
using ::testing::HasSubstr;
using ::testing::IsEmpty;
using ::testing::Not;

constexpr uint64_t kSeed = 17;
constexpr uint64_t kTasks = 200;

const Library& library() {
  static const Library kLibrary = load_library(MC_SOURCE_DIR "/data/forge").value();
  return kLibrary;
}

GraphOptions all_families(Style style, int depth = 4) {
  GraphOptions options;
  options.families = library().families();
  options.style = style;
  options.depth = depth;
  return options;
}

std::optional<TaskGraph> drawn(uint64_t number, const GraphOptions& options) {
  return sample_graph(library().operators, kSeed, number, options);
}

const std::vector<TaskGraph>& graphs() {
  static const std::vector<TaskGraph> kGraphs = [] {
    std::vector<TaskGraph> found;
    for (uint64_t i = 0; i < kTasks; ++i) {
      const int depth = i % 2 == 0 ? 4 : 8;
      GraphOptions options = all_families(Style::kFull, depth);
      options.types = {Type::kFloat32, Type::kFloat16, Type::kBfloat16};
      options.views_share = 0.2;
      if (auto graph = drawn(i, options)) {
        found.push_back(std::move(*graph));
      }
    }
    return found;
  }();
  return kGraphs;
}

TEST(Library, HasTheSizeThatTheDocumentsState) {
  EXPECT_GE(library().operators.size(), 130u);
  EXPECT_EQ(library().families().size(), 14u);
  EXPECT_GE(library().kernels.templates.size(), 60u);
}

TEST(Library, RejectsAFolderWithoutOperators) {
  const auto found = load_library("/nowhere");
  ASSERT_FALSE(found);
  EXPECT_THAT(found.error().message, HasSubstr("holds no operators"));
}

TEST(RenderModule, WritesADerivedSizeInTheConstructorByItsArguments) {
  int num_derived = 0;
  for (uint64_t i = 0; i < 1000; ++i) {
    const auto graph = sample_graph(library().operators, 1, i, all_families(Style::kFull));
    if (!graph) continue;
    const std::string text = render_module(*graph);
    const size_t begin = text.find("def __init__"), end = text.find("def forward");
    if (begin == std::string::npos) continue;
    const std::string constructor = text.substr(begin, end - begin);
    for (const Dim& dim : graph->dims) {
      const std::regex name("\\b" + lower(dim.name) + "\\b");
      EXPECT_TRUE(dim.is_constant() || !std::regex_search(constructor, name)) << text;
    }
    num_derived += std::regex_search(constructor, std::regex("nn\\.\\w+\\([^\n]*[a-z] [-+*/]"));
  }
  EXPECT_GT(num_derived, 0);
}

TEST(DrawGraph, GivesTheSameTaskForTheSameNumberInAnyOrder) {
  const GraphOptions options = all_families(Style::kFull);
  const auto alone = drawn(123, options);
  ASSERT_TRUE(alone);
  for (uint64_t i = 0; i < 5; ++i) drawn(i, options);
  EXPECT_EQ(render_module(*drawn(123, options)), render_module(*alone));
}

TEST(DrawGraph, FindsAGraphForNearlyEveryNumber) { EXPECT_GE(graphs().size(), kTasks * 98 / 100); }

TEST(DrawGraph, HasBranchesAndSeveralResults) {
  bool has_branch = false, has_results = false;
  for (const TaskGraph& graph : graphs()) {
    has_results |= graph.outputs.size() > 1;
    for (const Node& node : graph.nodes) has_branch |= graph.num_uses(node.output) > 1;
  }
  EXPECT_TRUE(has_branch);
  EXPECT_TRUE(has_results);
}

TEST(DrawGraph, KeepsToTheRequestedDepthFamiliesAndOperators) {
  GraphOptions options;
  options.families = {"elementwise", "reduction"};
  options.operators = {"relu", "tanh", "sum"};
  options.depth = 2;
  for (uint64_t i = 0; i < 50; ++i) {
    const auto graph = drawn(i, options);
    if (!graph) continue;
    EXPECT_LE(graph->depth(), 2);
    for (const std::string& name : graph->operators()) {
      EXPECT_TRUE(options.operators.contains(name)) << name;
    }
  }
}

TEST(DrawGraph, DrawsAllDepthsFromFewOperators) {
  GraphOptions options;
  options.families = {"elementwise"};
  options.operators = {"relu", "abs", "neg", "square"};
  std::map<int, int> depths;
  for (uint64_t i = 0; i < 200; ++i) {
    if (const auto graph = drawn(i, options)) ++depths[static_cast<int>(graph->depth())];
  }
  for (int depth = 1; depth <= options.depth; ++depth) EXPECT_GE(depths[depth], 25) << depth;
}

TEST(DrawGraph, HasAllTypesAndViews) {
  std::set<Type> types;
  std::set<View> views;
  for (const TaskGraph& graph : graphs()) {
    types.insert(graph.type);
    for (const Value& value : graph.values) views.insert(value.view);
  }
  EXPECT_EQ(types.size(), std::size(kTypes));
  EXPECT_EQ(views.size(), 4u);
}

int64_t largest_of(const TaskGraph& graph, Size size) {
  int64_t found = 0;
  for (const Value& value : graph.values) {
    int64_t count = 1;
    for (const int dim : value.dims) {
      count *= dim == kOne ? 1 : TaskGraph::size_in(graph.dim(dim), size);
    }
    found = std::max(found, count);
  }
  return found;
}

TEST(Sizes, GrowFromSmallToLargeWithinTheirBounds) {
  size_t num_large = 0;
  for (const TaskGraph& graph : graphs()) {
    EXPECT_LE(largest_of(graph, Size::kSmall), largest_of(graph, Size::kNative));
    EXPECT_LE(largest_of(graph, Size::kNative), largest_of(graph, Size::kLarge) * 2);
    EXPECT_LE(largest_of(graph, Size::kLarge), int64_t{1} << kLargeBits[1]);
    num_large += largest_of(graph, Size::kLarge) >= int64_t{1} << kLargeBits[0] ? 1 : 0;
    for (const Dim& dim : graph.dims) {
      if (dim.is_constant()) {
        EXPECT_EQ(dim.size % 2, dim.large % 2) << dim.name;
      }
    }
  }
  EXPECT_GE(num_large, graphs().size() * 3 / 4);
}

TEST(Split, DependsOnTheStructureAlone) {
  std::map<std::string, Split> known;
  for (const TaskGraph& graph : graphs()) {
    const auto [it, is_new] = known.emplace(graph.structure(), split_of(graph, 0.3));
    EXPECT_EQ(it->second, split_of(graph, 0.3)) << graph.structure();
    if (graph.depth() == 1) {
      EXPECT_EQ(it->second, Split::kTrain);
    }
  }
}

TEST(Solutions, AreAtLeastThreeForEveryTask) {
  for (const TaskGraph& graph : graphs()) {
    EXPECT_GE(solutions_of(graph, library().kernels).size(), 3u) << graph.structure();
  }
}

TEST(Solutions, ContainNoMarksOrHoles) {
  for (const TaskGraph& graph : graphs()) {
    for (const Solution& solution : solutions_of(graph, library().kernels)) {
      for (const char* left : {"\x01", "\x02", "\x03", "\x04", "\x06", "{{", "}}", "[["}) {
        EXPECT_THAT(solution.module, Not(HasSubstr(left))) << graph.structure();
      }
    }
  }
}

TEST(Solutions, KeepTheirSitesInsideTheText) {
  for (const TaskGraph& graph : graphs()) {
    for (const Solution& solution : solutions_of(graph, library().kernels)) {
      for (const Site& site : solution.sites) {
        EXPECT_LE(site.offset + site.size, solution.cuda.size()) << site.kind;
      }
    }
  }
}

TEST(Solutions, UseEveryTemplate) {
  std::set<std::string> used;
  for (const TaskGraph& graph : graphs()) {
    for (const Solution& solution : all_solutions_of(graph, library().kernels)) {
      for (const Part& part : solution.parts) used.insert(part.used->full_name());
    }
  }
  for (const Template& one : library().kernels.templates) {
    EXPECT_TRUE(used.contains(one.full_name())) << one.full_name();
  }
}

// True if each bracket is closed by a bracket of its kind.
bool is_balanced(const std::string& text) {
  std::string open;
  for (const char c : text) {
    if (c == '(' || c == '[' || c == '{') open += c == '(' ? ')' : c == '[' ? ']' : '}';
    if (c != ')' && c != ']' && c != '}') continue;
    if (open.empty() || open.back() != c) return false;
    open.pop_back();
  }
  return open.empty();
}

// Names that a kernel declares twice in one scope.
std::set<std::string> declared_twice(const std::string& cuda) {
  static const std::regex kDeclaration("^ *(?:float|int|int64_t) (\\w+)( =.*)?;$");
  std::set<std::string> twice;
  std::vector<std::set<std::string>> scopes(1);
  std::istringstream lines(cuda);
  for (std::string line; std::getline(lines, line);) {
    std::smatch found;
    if (std::regex_match(line, found, kDeclaration) && !scopes.back().insert(found[1]).second) {
      twice.insert(found[1]);
    }
    for (const char c : line) {
      if (c == '{') scopes.emplace_back();
      if (c == '}') scopes.pop_back();
    }
  }
  return twice;
}

// Number 54 has operators with temporaries before and after a gradient, in one kernel.
TEST(Solutions, SplitNoRowThatIsShorterThanItsParts) {
  int split = 0;
  for (const TaskGraph& graph : graphs()) {
    for (const Solution& solution : all_solutions_of(graph, library().kernels)) {
      for (const Part& part : solution.parts) {
        const auto parts = part.used->values.find("P");
        if (parts == part.used->values.end()) continue;
        EXPECT_GE(part.shown_sizes.at("m"), std::stoll(parts->second)) << solution.name;
        ++split;
      }
    }
  }
  EXPECT_GT(split, 20);
}

TEST(Solutions, DeclareANameOnceInAScope) {
  for (uint64_t i = 0; i < 60; ++i) {
    const auto graph = sample_graph(library().operators, 11, i, all_families(Style::kFull, 5));
    if (!graph) continue;
    for (const Solution& solution : all_solutions_of(*graph, library().kernels)) {
      EXPECT_THAT(declared_twice(solution.cuda), IsEmpty()) << solution.cuda;
    }
  }
}

TEST(Bugs, ChangeTheTextAndHaveManyKinds) {
  std::set<std::string> kinds;
  for (const TaskGraph& graph : graphs()) {
    for (const Solution& solution : all_solutions_of(graph, library().kernels)) {
      for (const Bug& bug : bugs_of(graph, solution, library().kernels)) {
        EXPECT_NE(with_bugs(solution, {bug}), solution.cuda) << bug.kind;
        EXPECT_FALSE(bug.cause.empty()) << bug.kind;
        if (bug.expected != "compile") {
          EXPECT_TRUE(is_balanced(with_bugs(solution, {bug}))) << bug.kind;
        }
        kinds.insert(bug.kind);
      }
    }
  }
  EXPECT_GE(kinds.size(), 25u);
}

TEST(Bugs, CanBeCombined) {
  const TaskGraph& graph = graphs().front();
  const Solution solution = solutions_of(graph, library().kernels).front();
  Bug first{"a", "wrong", "", "", 0, 1, "AA"}, second{"b", "wrong", "", "", 5, 2, ""};
  EXPECT_EQ(with_bugs(solution, {first, second}),
            "AA" + solution.cuda.substr(1, 4) + solution.cuda.substr(7));
  EXPECT_FALSE(overlap(first, second));
  EXPECT_TRUE(overlap(first, first));
}

TEST(Interpreter, ComputesASumByHand) {
  GraphOptions options;
  options.families = {"reduction"};
  options.operators = {"sum"};
  options.depth = 1;
  const auto graph = drawn(0, options);
  ASSERT_TRUE(graph);
  const std::vector<Array> arrays = interpret(*graph);
  const Array& in = arrays.front();
  const Array& out = arrays.back();
  const auto width = static_cast<size_t>(in.shape.back());
  double sum = 0;
  for (size_t j = 0; j < width; ++j) sum += in.values[width + j];
  EXPECT_DOUBLE_EQ(out.values[1], sum);
}

// The launches and other facts are checked against the code by lab/texts/text_truth.py.
TEST(Plans, NameTheKernelAndARejectedPlan) {
  const TaskGraph& graph =
      *std::ranges::find(graphs(), 1u, [](const TaskGraph& one) { return one.outputs.size(); });
  const Solution solution = solutions_of(graph, library().kernels).front();
  const std::string text = plan_text(graph, solution, library().kernels);
  EXPECT_THAT(text, AllOf(HasSubstr(solution.parts.front().kernel), Not(HasSubstr("{"))));
  EXPECT_THAT(metadata_table(graph), HasSubstr("| output |"));
}

// Compact solutions are written for small models; full ones resemble code by people.
TEST(Solutions, InFullStyleAreMostlyOptimizedWithNamesStreamAndChecks) {
  int num_kernels = 0, num_baselines = 0;
  const GraphOptions options = all_families(Style::kFull);
  for (uint64_t i = 0; i < 30; ++i) {
    const auto graph = sample_graph(library().operators, 7, i, options);
    if (!graph) continue;
    for (const Solution& solution : solutions_of(*graph, library().kernels)) {
      EXPECT_THAT(solution.cuda, AllOf(HasSubstr("getCurrentCUDAStream"), HasSubstr(", stream>>>("),
                                       HasSubstr("C10_CUDA_KERNEL_LAUNCH_CHECK();"),
                                       HasSubstr("_forward("), Not(HasSubstr("void k("))));
      for (const Part& part : solution.parts) {
        ++num_kernels;
        num_baselines += part.used->feature == "baseline" ? 1 : 0;
      }
    }
  }
  EXPECT_LE(num_baselines * 5, num_kernels) << num_kernels;
}

TEST(Rows, AreOneLineOfJson) {
  const TaskGraph& graph = graphs().front();
  const Solution solution = solutions_of(graph, library().kernels).front();
  const std::string row = generation_row(graph, Style::kCompact, solution, library().kernels);
  EXPECT_THAT(row, Not(HasSubstr("\n")));
  EXPECT_THAT(row, HasSubstr("\"kind\":\"generation\""));
}

}  // namespace
}  // namespace mc::forge
