// SPDX-License-Identifier: Apache-2.0
//
// The names in templates, and in kernels of compact style: inputs are x, y, z, and parameters are
// named by their role; o is the output; h7, h9, … are values between kernels; n, m and capitals are
// sizes; i, r, j, q, l are indices (code.h); v is the running value; a, b and s are the results of
// passes over a row.  The parameters of a kernel are the tensors and sizes that its body uses.
#include "forge/kernels.h"

#include <algorithm>
#include <functional>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/check.h"
#include "forge/cost.h"
#include "forge/names.h"
#include "forge/random.h"
#include "forge/render.h"
#include "forge/stage_writer.h"
#include "forge/views.h"

namespace mc::forge {
namespace {

// The share of tasks with a baseline among their four solutions.
constexpr double kBaselineShare = 0.5;

class Writer {
 public:
  Writer(const TaskGraph& graph, const std::vector<Stage>& stages, Reads reads)
      : graph_(graph), stages_(stages), reads_(reads) {
    for (const int value : graph.given()) tensors_[value] = graph.value(value).name;
  }

  Solution write(const std::vector<const Template*>& chosen) {
    MC_CHECK(chosen.size() == stages_.size());
    Solution solution;
    std::string device, body;
    std::vector<size_t> ends;
    for (size_t i = 0; i < stages_.size(); ++i) {
      const std::string output = output_name(stages_[i].output);
      StageWriter writer(graph_, stages_[i], *chosen[i], tensors_, output, i, reads_);
      std::string kernel = writer.device();
      std::string host = launch(i, writer, output);
      std::map<std::string, std::string> names;
      if (graph_.style == Style::kFull) {
        names = names_of(graph_, stages_[i], *chosen[i], kernel);
        kernel = renamed(kernel, names);
        host = renamed(host, names);
      }
      device += fmt::format("\x01part\x02{}\x03", kernel);
      body += fmt::format("\x01part\x02{}\x03", host);
      tensors_[stages_[i].output] = output;
      solution.name += (i == 0 ? "" : "+") + chosen[i]->full_name();
      if (i == 0 && has_views() && reads_ == Reads::kStrided) solution.name += "_strided";
      solution.parts.push_back({chosen[i], stages_[i], sizes_of(writer.code(), Size::kSmall),
                                sizes_of(writer.code(), graph_.shown), writer.kernel(),
                                std::move(names)});
    }
    const std::string text = choice_functions(device) + device + host(body);
    std::string includes = includes_of(text);
    if (graph_.style == Style::kFull) {
      includes =
          "#include <ATen/cuda/CUDAContext.h>\n#include <c10/cuda/CUDAException.h>\n" + includes;
    }
    finish(solution, includes + text);
    return solution;
  }

 private:
  std::string output_name(int value) const {
    const auto found = std::ranges::find(graph_.outputs, value);
    const bool is_full = graph_.style == Style::kFull;
    if (found == graph_.outputs.end()) {
      return is_full ? fmt::format("{}_{}", graph_.maker(value)->op->name, value)
                     : fmt::format("h{}", value);
    }
    const auto number = found - graph_.outputs.begin();
    const char* stem = is_full ? "out" : "o";
    return graph_.outputs.size() == 1 ? stem : fmt::format("{}{}", stem, number + 1);
  }

  std::map<std::string, int64_t> sizes_of(const Code& code, Size size) const {
    std::map<std::string, int64_t> sizes;
    for (const Run& run : code.runs()) sizes[run.count] = graph_.count_of(run.dims, size);
    return sizes;
  }

  // A tensor of the graph's own with exactly these dims and the type of all values except indices,
  // or -1.
  int like(const std::vector<int>& dims) const {
    for (const int value : graph_.inputs()) {
      // The tensor must not be a view, because a tensor like a view would not be contiguous.
      const Value& found = graph_.value(value);
      const bool is_like = found.dims == dims && found.type == graph_.type;
      if (is_like && found.view == View::kNone) return value;
    }
    return -1;
  }

  std::string any_float() const {
    for (const int value : graph_.given()) {
      if (graph_.value(value).type == graph_.type) return graph_.value(value).name;
    }
    return "x";
  }

  std::string allocation(int value) const {
    const auto& dims = graph_.value(value).dims;
    if (const int same = like(dims); same >= 0) {
      return site("output", fmt::format("torch::empty_like({})", graph_.value(same).name));
    }
    std::vector<std::string> extents;
    for (const int dim : dims) extents.push_back(graph_.extent_text(dim));
    return site("output", fmt::format("torch::empty({{{}}}, {}.options())",
                                      fmt::join(extents, ", "), any_float()));
  }

  std::string launch(size_t i, StageWriter& writer, const std::string& output) {
    std::string text = writer.host();
    if (graph_.style == Style::kFull) text = with_stream(text);
    std::string sizes;
    for (const Run& run : writer.code().runs()) {
      if (!has_word(text, run.count)) continue;
      sizes += fmt::format("{}{} = {}", sizes.empty() ? "int " : ", ", run.count, count_text(run));
    }
    if (!sizes.empty()) sizes += ";\n";
    const std::string made = fmt::format("auto {} = {};\n", output, allocation(stages_[i].output));
    const std::string before = i == 0 ? contiguous() : "";
    if (stages_.size() == 1) return indented(before + sizes + made + text, 2);
    return indented(before + made, 2) + "  {\n" + indented(sizes + text, 4) + "  }\n";
  }

  // Puts each launch on the current stream and adds a check after it.
  static std::string with_stream(const std::string& text) {
    std::string made;
    for (size_t at = 0; at < text.size();) {
      const size_t end = std::min(text.find('\n', at), text.size());
      std::string line = text.substr(at, end - at);
      const size_t open = line.find("<<<"), close = line.find(">>>");
      if (open != std::string::npos) {
        MC_CHECK(close != std::string::npos);
        int depth = 0, arguments = 1;
        for (size_t i = open; i < close; ++i) {
          depth += line[i] == '(' ? 1 : line[i] == ')' ? -1 : 0;
          arguments += line[i] == ',' && depth == 0 ? 1 : 0;
        }
        line.insert(close, arguments == 2 ? ", 0, stream" : ", stream");
        line += "\nC10_CUDA_KERNEL_LAUNCH_CHECK();";
      }
      made += line + "\n";
      at = end + 1;
    }
    return made;
  }

  bool has_views() const {
    return std::ranges::any_of(graph_.values,
                               [](const Value& value) { return value.view != View::kNone; });
  }

  // Lines that make views contiguous if the kernels do not read them by their strides.
  std::string contiguous() const {
    std::string text;
    for (const Value& value : graph_.values) {
      if (value.view == View::kNone || reads_ == Reads::kStrided) continue;
      text += site("contiguous", fmt::format("{0} = {0}.contiguous();", value.name)) + "\n";
    }
    return text;
  }

  std::string count_text(const Run& run) const {
    const int same = run.dims.size() > 1 ? like(run.dims) : -1;
    if (same >= 0) return graph_.value(same).name + ".numel()";
    if (run.dims.size() == 1 && run.dims[0] != kOne) {
      const std::string found = size_text(run.dims[0]);
      if (!found.empty() && stages_.size() == 1) return found;
    }
    std::string text;
    for (const int dim : run.dims) {
      if (dim != kOne) text += (text.empty() ? "" : " * ") + graph_.extent_text(dim);
    }
    return text.empty() ? "1" : text;
  }

  // The size of a tensor, as in "x.size(0)"; "" for a derived size.
  std::string size_text(int dim) const {
    for (const int value : graph_.given()) {
      const auto& dims = graph_.value(value).dims;
      const auto found = std::ranges::find(dims, dim);
      if (found == dims.end()) continue;
      return fmt::format("{}.size({})", graph_.value(value).name, found - dims.begin());
    }
    return "";
  }

  std::string host(const std::string& body) const {
    std::vector<std::string> parameters;
    for (const int value : graph_.given()) {
      parameters.push_back("torch::Tensor " + graph_.value(value).name);
    }
    const bool is_single = graph_.outputs.size() == 1;
    std::vector<std::string> results;
    for (const int output : graph_.outputs) results.push_back(output_name(output));
    return fmt::format(
        "{} {}({}) {{\n{}{}{}  return {};\n}}\n",
        is_single ? "torch::Tensor" : "std::vector<torch::Tensor>", function_name(),
        fmt::join(parameters, ", "),
        graph_.style == Style::kFull ? "  auto stream = at::cuda::getCurrentCUDAStream();\n" : "",
        declarations(body), body,
        is_single ? results.front() : fmt::format("{{{}}}", fmt::join(results, ", ")));
  }

  // The host function's name from its operators, limited to the first ones: "softmax_mul_forward".
  std::string function_name() const {
    if (graph_.style == Style::kCompact) return "f";
    std::vector<std::string> names;
    for (const Node& node : graph_.nodes) names.push_back(node.op->name);
    if (names.size() > 3) names = {names.front(), names[1], names.back()};
    return fmt::format("{}_forward", fmt::join(names, "_"));
  }

  // Declares the sizes that the body uses; derived sizes follow the sizes from which they are
  // computed.
  std::string declarations(const std::string& body) const {
    std::string derived, scope = body;
    for (size_t i = graph_.dims.size(); i-- > 0;) {
      const Dim& dim = graph_.dims[i];
      if (dim.is_constant() || !has_word(scope, dim.name)) continue;
      if (graph_.extent_text(static_cast<int>(i)) != dim.name) continue;
      const std::string line = fmt::format("  int {} = {};\n", dim.name, dim.extent);
      derived = line + derived;
      scope += line;
    }
    std::string declared;
    for (size_t i = 0; i < graph_.dims.size(); ++i) {
      const Dim& dim = graph_.dims[i];
      if (!dim.is_constant() || !has_word(scope, dim.name)) continue;
      declared += fmt::format("{}{} = {}", declared.empty() ? "  int " : ", ", dim.name,
                              size_text(static_cast<int>(i)));
    }
    if (!declared.empty()) declared += ";\n";
    return declared + derived;
  }

  void finish(Solution& solution, const std::string& marked) const {
    std::vector<Site> sites;
    solution.cuda = without_marks(marked, sites);
    std::vector<Site> parts;
    for (const Site& found : sites) {
      if (found.kind == "part") parts.push_back(found);
    }
    for (const Site& found : sites) {
      if (found.kind == "part") continue;
      for (size_t k = 0; k < parts.size(); ++k) {
        const bool is_in = found.offset >= parts[k].offset &&
                           found.offset + found.size <= parts[k].offset + parts[k].size;
        if (!is_in) continue;
        solution.sites.push_back(found);
        solution.part_of_site.push_back(k % solution.parts.size());
        break;
      }
    }
    MC_CHECK(solution.sites.size() == solution.part_of_site.size());
    solution.module = answer_module(graph_, solution.cuda);
  }

  const TaskGraph& graph_;
  const std::vector<Stage>& stages_;
  Reads reads_;
  std::map<int, std::string> tensors_;
};

// Every second solution reads views by their strides.
Reads reads_of(size_t solution) { return solution % 2 == 0 ? Reads::kContiguous : Reads::kStrided; }

using Choices = std::vector<std::vector<const Template*>>;

// The solution with the i-th choice for each stage; the choices repeat cyclically.
Solution solution_of(const TaskGraph& graph, const std::vector<Stage>& stages,
                     const Choices& choices, size_t i) {
  MC_CHECK(choices.size() == stages.size());
  std::vector<const Template*> chosen;
  for (const auto& own : choices) {
    MC_CHECK(!own.empty());
    chosen.push_back(own[i % own.size()]);
  }
  return Writer(graph, stages, reads_of(i)).write(chosen);
}

Choices fitting(const TaskGraph& graph, const std::vector<Stage>& stages,
                const TemplateLibrary& library) {
  Choices choices;
  for (const Stage& stage : stages) {
    std::vector<const Template*> own;
    for (const Template& used : library.templates) {
      if (fits(used, graph, stage)) own.push_back(&used);
    }
    // The simplest templates come first.
    std::ranges::stable_partition(own, [](const Template* t) { return t->feature == "baseline"; });
    choices.push_back(std::move(own));
  }
  return choices;
}

// True if the template's limit, such as that on a grid's height, holds at the sizes that are shown.
bool is_within_limit(const Template& used, const TaskGraph& graph, const Stage& stage) {
  if (!used.limit) return true;
  const Code code(graph, stage, used.walk, {}, Reads::kContiguous);
  const auto& out = graph.value(stage.output).dims;
  return evaluate_with(*used.limit, [&](const std::string& name) {
           if (name == "last") return out.empty() ? 1.0 : graph.shown_size_of(out.back());
           for (const Run& run : code.runs()) {
             if (run.count == name)
               return static_cast<double>(graph.count_of(run.dims, graph.shown));
           }
           return 1.0;
         }) != 0;
}

}  // namespace

bool fits(const Template& used, const TaskGraph& graph, const Stage& stage) {
  const bool has_inner = stage.core != nullptr && !stage.core->form->inner.empty();
  if ((used.walk == Walk::kElements) == has_inner) return false;
  const std::set<std::string> found = properties_of(graph, stage);
  const bool has_all = std::ranges::all_of(used.needs, [&](const std::string& need) {
    return need.starts_with("not-") ? !found.contains(need.substr(4)) : found.contains(need);
  });
  return has_all && is_within_limit(used, graph, stage);
}

// Orders templates by drawing without replacement; cheap ones tend to come first.  In half of the
// tasks, a baseline follows the others.
void draw_by_cost(const TaskGraph& graph, const Stage& stage, std::vector<const Template*>& own,
                  Random& random) {
  std::vector<std::pair<double, const Template*>> left;
  // The cost is computed at large sizes: at small ones, every template costs about one launch.
  TaskGraph large = graph;
  large.shown = Size::kLarge;
  int64_t bytes = 0;
  for (const Node* node : stage.nodes) {
    for (const int operand : node->operands) {
      bytes += large.count_of(large.value(operand).dims, large.shown) * 4;
    }
  }
  // A scan over rows would start anew for each row.
  const auto scans = [](const Template* used) { return used->walk == Walk::kScans; };
  if (std::ranges::any_of(own, scans)) std::erase_if(own, std::not_fn(scans));
  std::vector<const Template*> baselines;
  for (const Template* used : own) {
    if (used->feature == "baseline") {
      baselines.push_back(used);
    } else {
      left.emplace_back(weight_of(cost_of(*used, large, stage), bytes), used);
    }
  }
  own.clear();
  while (!left.empty()) {
    double all = 0;
    for (const auto& [weight, used] : left) all += weight;
    double at = random.unit() * all;
    size_t i = 0;
    while (i + 1 < left.size() && at >= left[i].first) at -= left[i++].first;
    own.push_back(left[i].second);
    left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
  }
  if (baselines.empty()) return;
  const size_t place = std::min(own.size(), kSolutionsMax - 1);
  if (own.empty() || random.chance(kBaselineShare)) {
    own.insert(own.begin() + static_cast<std::ptrdiff_t>(place), random.pick(baselines));
  }
}

std::vector<Solution> solutions_of(const TaskGraph& graph, const TemplateLibrary& library) {
  const std::vector<Stage> stages = stages_of(graph);
  auto choices = fitting(graph, stages, library);
  Random random(graph.seed, "templates", graph.number);
  size_t count = kSolutionsMax;
  for (size_t k = 0; k < stages.size(); ++k) {
    auto& own = choices[k];
    if (own.empty()) return {};
    if (graph.style == Style::kFull) {
      draw_by_cost(graph, stages[k], own, random);
      if (stages.size() == 1) count = std::min(count, own.size());
      continue;
    }
    for (size_t i = 2; i < own.size(); ++i) {
      std::swap(own[i], own[1 + static_cast<size_t>(random.below(static_cast<int>(i)))]);
    }
    if (stages.size() == 1) count = std::min(count, own.size());
  }
  std::vector<Solution> made;
  std::set<std::string> seen;
  for (size_t i = 0; i < count; ++i) {
    Solution solution = solution_of(graph, stages, choices, i);
    if (seen.insert(solution.name).second) made.push_back(std::move(solution));
  }
  return made;
}

Solution solution_with(const TaskGraph& graph, const std::vector<const Template*>& templates) {
  const std::vector<Stage> stages = stages_of(graph);
  return Writer(graph, stages, Reads::kContiguous).write(templates);
}

std::vector<Solution> all_solutions_of(const TaskGraph& graph, const TemplateLibrary& library) {
  const std::vector<Stage> stages = stages_of(graph);
  const auto choices = fitting(graph, stages, library);
  std::vector<Solution> made;
  size_t count = 0;
  for (const auto& own : choices) count = own.empty() ? 0 : std::max(count, own.size());
  for (size_t i = 0; i < count; ++i) made.push_back(solution_of(graph, stages, choices, i));
  return made;
}

std::string function_of(std::string_view cuda) {
  const std::string signature = signature_of(cuda);
  const size_t open = signature.find('(');
  const size_t begin = signature.rfind(' ', open) + 1;
  return signature.substr(begin, open - begin);
}

std::string signature_of(std::string_view cuda) {
  const size_t name = cuda.find("(torch::Tensor");
  const size_t begin = cuda.rfind('\n', name) + 1;
  return std::string(cuda.substr(begin, cuda.find(" {\n", name) - begin));
}

std::string answer_module(const TaskGraph& graph, std::string_view cuda) {
  std::vector<std::string> inputs, arguments;
  for (const int i : graph.inputs()) {
    inputs.push_back(graph.value(i).name);
    arguments.push_back(view_text(graph.value(i).view, inputs.back()));
  }
  for (const int i : graph.parameters()) arguments.push_back("self." + graph.value(i).attribute);
  std::string text =
      "import torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n\n";
  const bool is_full = graph.style == Style::kFull;
  const std::string function = function_of(cuda);
  const char* source = is_full ? "cuda_source" : "src";
  text += fmt::format("{} = r\"\"\"\n{}\"\"\"\n", source, cuda);
  text += fmt::format(
      "ext = load_inline(name=\"{}\", cpp_sources=\"{};\", cuda_sources={}, "
      "functions=[\"{}\"])\n\n",
      is_full ? function + "_ext" : "e", signature_of(cuda), source, function);
  text += "\nclass ModelNew(nn.Module):\n";
  const Construction made = construction_of(graph, Layers::kParametersOnly);
  const Construction all = construction_of(graph, Layers::kAll);
  if (!all.sizes.empty() || !made.lines.empty()) {
    text += fmt::format("    def __init__(self{}):\n        super().__init__()\n", all.arguments);
    for (const std::string& line : made.lines) text += "        " + line + "\n";
    text += '\n';
  }
  const std::string call = fmt::format("ext.{}({})", function, fmt::join(arguments, ", "));
  text += fmt::format("    def forward(self, {}):\n        return {}\n", fmt::join(inputs, ", "),
                      graph.outputs.size() == 1 ? call : "tuple(" + call + ")");
  return text;
}

}  // namespace mc::forge
