// SPDX-License-Identifier: Apache-2.0
//
// Names in the kernels: inputs x, y, z, parameters by their role; o the output, h7, h9, … values
// between kernels; n, m and other capitals sizes; i, r, j, q, l indices (code.h); v the running
// value, a, b and s what passes over a row found.  What a kernel takes as parameters is what its
// body mentions.
#include "forge/kernels.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "forge/random.h"
#include "forge/render.h"

namespace mc::forge {
namespace {

constexpr const char* kReducers[] = {"total", "top", "low", "product"};

bool is_matched(const Expr& element) {
  return element.kind == Expr::Kind::kBinary && element.text == "*";
}

// What templates may need of a stage.
std::set<std::string> properties_of(const TaskGraph& graph, const Stage& stage) {
  std::set<std::string> found;
  if (graph.value(stage.output).dims.size() > 1) found.insert("columns");
  if (stage.core == nullptr) {
    found.insert("pointwise");
    for (const Node* node : stage.nodes) {
      for (const int operand : node->operands) {
        const bool is_made_here = std::ranges::any_of(
            stage.nodes, [&](const Node* other) { return other->output == operand; });
        const bool is_flat = graph.value(operand).dims == graph.value(stage.output).dims;
        if (!is_made_here && is_flat) found.insert("vectorisable");
      }
    }
    return found;
  }
  const Form& form = *stage.core->form;
  const std::string& scheme = stage.core->op->scheme;
  if (!scheme.empty()) found.insert(scheme);
  found.insert(form.inner.empty() ? "map" : stage.core->keeps_inner() ? "keeps" : "reduces");
  if (!form.inner.empty()) found.insert("inner");
  if (form.passes.size() == 1) found.insert("single");
  if (!form.row_axes.empty() && is_matched(form.passes.front().element)) found.insert("product");
  bool is_sum = true;
  for (const Pass& pass : form.passes) is_sum = is_sum && pass.combine == Combine::kSum;
  if (is_sum) found.insert("sums");
  const auto batch = std::ranges::any_of(form.out, [&](const Axis& axis) {
    const auto is_in = [&](const std::vector<std::string>& list) {
      return std::ranges::find(list, axis.name) != list.end();
    };
    return !is_in(form.row_axes) && !is_in(form.column_axes);
  });
  if (batch) found.insert("batched");
  return found;
}

// Parts of the text from one __global__ or __device__ to the next.
struct Function {
  size_t begin = 0, end = 0;
};
std::vector<Function> functions_in(const std::string& text, std::string_view begins) {
  std::vector<Function> found;
  for (size_t at = 0; (at = text.find(begins, at)) != std::string::npos; at += begins.size()) {
    size_t end = text.find("\n__", at);
    if (end == std::string::npos) end = text.size();
    found.push_back({at, end});
  }
  return found;
}

class StageWriter {
 public:
  StageWriter(const TaskGraph& graph, const Stage& stage, const Template& used,
              const std::map<int, std::string>& tensors, const std::string& output, size_t number)
      : graph_(graph),
        stage_(stage),
        used_(used),
        tensors_(tensors),
        output_(output),
        suffix_(number == 0 ? "" : std::to_string(number + 1)),
        code_(graph, stage, used.walk, tensors) {}

  // The kernel's text; arguments() is known afterwards.
  std::string device() {
    const Filling filling = {[&](const std::string& name, size_t pass) { return hole(name, pass); },
                             [&](const std::string& section) { return repeat(section); }};
    std::string text = code_.decoded(filled(used_.device, filling));
    return with_parameters(with_functions(std::move(text)));
  }

  std::string host() {
    size_t launches = 0;
    const Filling filling = {[&](const std::string& name, size_t) -> std::string {
                               if (name == "args") return arguments_.at(launches++);
                               if (name == "k") return "k" + suffix_;
                               if (name == "out") return output_;
                               return hole(name, 0);
                             },
                             [&](const std::string& section) { return repeat(section); }};
    return filled(used_.host, filling);
  }

  const Code& code() const { return code_; }

 private:
  size_t repeat(const std::string& section) const {
    const bool has_core = stage_.core != nullptr;
    const size_t passes = has_core ? stage_.core->form->passes.size() : 0;
    if (section == "passes") return passes;
    if (section == "reducers") return reducers().size();
    if (section == "keeps") return has_core && stage_.core->keeps_inner() ? 1 : 0;
    if (section == "reduces") return has_core && !stage_.core->keeps_inner() ? 1 : 0;
    if (section == "vectors") return code_.flat_operands().size();
    if (section == "batched") return properties_of(graph_, stage_).contains("batched") ? 1 : 0;
    if (section == "unbatched") return properties_of(graph_, stage_).contains("batched") ? 0 : 1;
    return 0;
  }

  std::vector<Combine> reducers() const {
    std::vector<Combine> found;
    for (const Pass& pass : stage_.core->form->passes) {
      if (std::ranges::find(found, pass.combine) == found.end()) found.push_back(pass.combine);
    }
    return found;
  }

  static std::string combining(const std::string& pattern, const std::string& into,
                               const std::string& value) {
    return substituted(substituted(pattern, "{a}", into), "{v}", value);
  }

  std::string hole(const std::string& name, size_t pass) {
    if (const auto found = used_.values.find(name); found != used_.values.end()) {
      return found->second;
    }
    const size_t colon = name.find(':');
    const std::string head = name.substr(0, colon);
    const std::string rest = colon == std::string::npos ? "" : name.substr(colon + 1);
    if (head == "k") return "k" + suffix_ + rest;
    if (head == "name") return rest + suffix_;
    if (head == "params" || head == "names") return "\x06" + head + "\x06";
    if (head == "decode") return Code::decode_mark(rest);
    if (head == "value") return code_.value();
    if (head == "vector_value") return code_.value_of_vectors();
    if (head == "vector") return code_.flat_operands().at(pass);
    if (head == "functions")
      return "\x06"
             "functions\x06";
    if (head == "load") return loaded();
    if (head == "place") return site("place", code_.place());
    if (head == "o") return "o";
    if (head == "acc") return Code::accumulator(pass);
    if (head == "identity") return site("identity", code_.identity(pass));
    if (head == "element") return code_.element(pass);
    if (head == "combine") {
      return site("combine",
                  combining(code_.combine(pass), Code::accumulator(pass), code_.element(pass)));
    }
    if (head == "combine_into") {
      return site("combine", combining(code_.combine(pass), rest, code_.element(pass)));
    }
    if (head == "scan_step") {
      return combining(code_.combine(pass), Code::accumulator(pass), code_.scanned());
    }
    if (head == "first_element") return code_.element(0);
    if (head == "shuffle") {
      const std::string own = Code::accumulator(pass);
      return combining(code_.combine(pass), own,
                       fmt::format("__shfl_xor_sync(0xffffffff, {}, w)", own));
    }
    if (head == "join") {  // {{join:a b}}: combines b into a.
      const std::vector<std::string> words = words_of(rest);
      return combining(code_.combine(pass), words.at(0), words.at(1));
    }
    if (head == "join_last") {
      return combining(code_.combine(pass), "carry",
                       fmt::format("s[{} - 1]", used_.values.at("T")));
    }
    if (head == "join_acc") return combining(code_.combine(pass), Code::accumulator(pass), rest);
    if (head == "finish") return code_.finish(pass);
    if (head == "reducer") return kReducers[static_cast<size_t>(pass_combine(pass))] + suffix_;
    if (head == "each_reducer")
      return kReducers[static_cast<size_t>(reducers().at(pass))] + suffix_;
    if (head == "each_join") return reducer_join(pass, rest);
    if (head == "each_identity") return code_.identity(pass_of(reducers().at(pass)));
    if (head == "result") return code_.result();
    if (head == "result_after_load") {
      return code_.loads_anything() ? code_.result_after_load() : code_.result();
    }
    if (head == "last") return graph_.extent_text(graph_.value(stage_.output).dims.back());
    if (head == "left") return code_.left();
    if (head == "right") return code_.right();
    if (head == "scanned") return code_.scanned();
    return "{{" + name + "}}";
  }

  Combine pass_combine(size_t pass) const { return stage_.core->form->passes.at(pass).combine; }
  size_t pass_of(Combine combine) const {
    size_t pass = 0;
    while (pass_combine(pass) != combine) ++pass;
    return pass;
  }
  std::string reducer_join(size_t number, const std::string& rest) const {
    const size_t comma = rest.find(", ");
    return combining(code_.combine(pass_of(reducers().at(number))), rest.substr(0, comma),
                     rest.substr(comma + 2));
  }

  std::string loaded() const {
    if (!code_.loads_by_function()) return code_.load();
    return fmt::format("float v = p{}(\x06names\x06, r, j);\n", suffix_);
  }

  // The function that loads an element, where rows are read several times.
  std::string with_functions(std::string text) {
    std::string function;
    if (text.find("\x06names\x06") != std::string::npos) {
      std::string body = Code::decode_mark("r") + "\n  " + Code::decode_mark("j") + "\n" +
                         indented(code_.function(), 2) + "}\n";
      body = code_.decoded("  " + body);
      std::vector<std::string> parameters, names;
      mentioned(body, parameters, names, nullptr);
      parameters.emplace_back("int r"), parameters.emplace_back("int j");
      function = fmt::format("__device__ float p{}({}) {{\n{}", suffix_,
                             fmt::join(parameters, ", "), body);
      text =
          substituted(std::move(text), "\x06names\x06", fmt::format("{}", fmt::join(names, ", ")));
    }
    return substituted(std::move(text),
                       "\x06"
                       "functions\x06\n",
                       function);
  }

  // Tensors and sizes that a text mentions: as parameters, as names, as the host's arguments.
  void mentioned(const std::string& text, std::vector<std::string>& parameters,
                 std::vector<std::string>& names, std::vector<std::string>* arguments) const {
    const auto add = [&](const std::string& type, const std::string& name,
                         const std::string& argument) {
      if (!has_word(text, name)) return;
      parameters.push_back(type + name);
      names.push_back(name);
      if (arguments != nullptr) arguments->push_back(argument);
    };
    for (const auto& [value, name] : tensors_) {
      const bool is_index = graph_.value(value).draw == Draw::kIndex;
      add(is_index ? "const int64_t* " : "const float* ", name,
          name + (is_index ? ".data_ptr<int64_t>()" : ".data_ptr<float>()"));
    }
    for (const std::string& buffer : used_.buffers) {
      add("float* ", buffer, buffer + suffix_ + ".data_ptr<float>()");
    }
    add("float* ", "o", output_ + ".data_ptr<float>()");
    for (const char* size : {"n", "m", "depth", "batch"}) add("int ", size, size);
    for (const Dim& dim : graph_.dims) {
      if (graph_.extent_text(static_cast<int>(&dim - graph_.dims.data())) == dim.name) {
        add("int ", dim.name, dim.name);
      }
    }
  }

  std::string with_parameters(std::string text) {
    for (const Function& kernel : functions_in(text, "__global__")) {
      std::vector<std::string> parameters, names, arguments;
      mentioned(text.substr(kernel.begin, kernel.end - kernel.begin), parameters, names,
                &arguments);
      arguments_.push_back(fmt::format("{}", fmt::join(arguments, ", ")));
      parameters_.push_back(fmt::format("{}", fmt::join(parameters, ", ")));
    }
    for (const std::string& parameters : parameters_) {
      const std::string hole = "\x06params\x06";
      const size_t at = text.find(hole);
      if (at != std::string::npos) text.replace(at, hole.size(), parameters);
    }
    return text;
  }

  const TaskGraph& graph_;
  const Stage& stage_;
  const Template& used_;
  const std::map<int, std::string>& tensors_;
  std::string output_;
  std::string suffix_;  // Of the kernel's names where there are several.
  Code code_;
  std::vector<std::string> parameters_, arguments_;
};

class Writer {
 public:
  Writer(const TaskGraph& graph, const std::vector<Stage>& stages)
      : graph_(graph), stages_(stages) {
    for (const auto& list : {graph.inputs(), graph.parameters()}) {
      for (const int value : list) tensors_[value] = graph.value(value).name;
    }
  }

  Solution write(const std::vector<const Template*>& chosen) {
    Solution solution;
    std::string device, body;
    std::vector<size_t> ends;
    for (size_t i = 0; i < stages_.size(); ++i) {
      const std::string output = output_name(stages_[i].output);
      StageWriter writer(graph_, stages_[i], *chosen[i], tensors_, output, i);
      const std::string kernel = writer.device();
      device += fmt::format("\x01part\x02{}\x03", kernel);
      body += fmt::format("\x01part\x02{}\x03", launch(i, writer, output));
      tensors_[stages_[i].output] = output;
      solution.name += (i == 0 ? "" : "+") + chosen[i]->full_name();
      solution.parts.push_back({chosen[i], stages_[i], sizes_of(writer.code())});
    }
    finish(solution, choice_functions(device) + device + host(body));
    return solution;
  }

 private:
  std::string output_name(int value) const {
    const auto found = std::ranges::find(graph_.outputs, value);
    if (found == graph_.outputs.end()) return fmt::format("h{}", value);
    const auto number = found - graph_.outputs.begin();
    return graph_.outputs.size() == 1 ? "o" : fmt::format("o{}", number + 1);
  }

  std::map<std::string, int64_t> sizes_of(const Code& code) const {
    std::map<std::string, int64_t> sizes;
    for (const Run& run : code.runs()) sizes[run.count] = graph_.count_of(run.dims);
    return sizes;
  }

  // The tensor of the graph's own with exactly these dims, or -1.
  int like(const std::vector<int>& dims) const {
    for (const auto& list : {graph_.inputs()}) {
      for (const int value : list) {
        if (graph_.value(value).dims == dims && graph_.value(value).draw != Draw::kIndex) {
          return value;
        }
      }
    }
    return -1;
  }

  std::string any_float() const {
    for (const auto& list : {graph_.inputs(), graph_.parameters()}) {
      for (const int value : list) {
        if (graph_.value(value).draw != Draw::kIndex) return graph_.value(value).name;
      }
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
    std::string sizes;
    for (const Run& run : writer.code().runs()) {
      if (!has_word(text, run.count)) continue;
      sizes += fmt::format("{}{} = {}", sizes.empty() ? "int " : ", ", run.count, count_text(run));
    }
    if (!sizes.empty()) sizes += ";\n";
    const std::string made = fmt::format("auto {} = {};\n", output, allocation(stages_[i].output));
    if (stages_.size() == 1) return indented(sizes + made + text, 2);
    return indented(made, 2) + "  {\n" + indented(sizes + text, 4) + "  }\n";
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

  // "x.size(0)", or "" of a size that is derived.
  std::string size_text(int dim) const {
    for (const auto& list : {graph_.inputs(), graph_.parameters()}) {
      for (const int value : list) {
        const auto& dims = graph_.value(value).dims;
        const auto found = std::ranges::find(dims, dim);
        if (found != dims.end()) {
          return fmt::format("{}.size({})", graph_.value(value).name, found - dims.begin());
        }
      }
    }
    return "";
  }

  std::string host(const std::string& body) const {
    std::vector<std::string> parameters;
    for (const auto& list : {graph_.inputs(), graph_.parameters()}) {
      for (const int value : list)
        parameters.push_back("torch::Tensor " + graph_.value(value).name);
    }
    const bool is_single = graph_.outputs.size() == 1;
    std::vector<std::string> results;
    for (const int output : graph_.outputs) results.push_back(output_name(output));
    return fmt::format(
        "{} f({}) {{\n{}{}  return {};\n}}\n",
        is_single ? "torch::Tensor" : "std::vector<torch::Tensor>", fmt::join(parameters, ", "),
        declarations(body), body,
        is_single ? results.front() : fmt::format("{{{}}}", fmt::join(results, ", ")));
  }

  // Sizes that the body mentions; derived ones come after those that they are made of.
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
    solution.module = answer_module(graph_, solution.cuda);
  }

  const TaskGraph& graph_;
  const std::vector<Stage>& stages_;
  std::map<int, std::string> tensors_;
};

std::vector<std::vector<const Template*>> fitting(const TaskGraph& graph,
                                                  const std::vector<Stage>& stages,
                                                  const TemplateLibrary& library) {
  std::vector<std::vector<const Template*>> choices;
  for (const Stage& stage : stages) {
    std::vector<const Template*> own;
    for (const Template& used : library.templates) {
      if (fits(used, graph, stage)) own.push_back(&used);
    }
    // The plainest first.
    std::ranges::stable_partition(own, [](const Template* t) { return t->feature == "baseline"; });
    choices.push_back(std::move(own));
  }
  return choices;
}

}  // namespace

bool fits(const Template& used, const TaskGraph& graph, const Stage& stage) {
  const bool has_inner = stage.core != nullptr && !stage.core->form->inner.empty();
  if ((used.walk == Walk::kElements) == has_inner) return false;
  const std::set<std::string> found = properties_of(graph, stage);
  return std::ranges::all_of(used.needs, [&](const std::string& need) {
    return need.starts_with("not-") ? !found.contains(need.substr(4)) : found.contains(need);
  });
}

std::vector<Solution> solutions_of(const TaskGraph& graph, const TemplateLibrary& library) {
  const std::vector<Stage> stages = stages_of(graph);
  auto choices = fitting(graph, stages, library);
  Random random(graph.seed, "templates", graph.number);
  size_t count = kSolutionsMax;
  for (auto& own : choices) {
    if (own.empty()) return {};
    for (size_t i = 2; i < own.size(); ++i) {
      std::swap(own[i], own[1 + static_cast<size_t>(random.below(static_cast<int>(i)))]);
    }
    if (stages.size() == 1) count = std::min(count, own.size());
  }
  std::vector<Solution> made;
  std::set<std::string> seen;
  for (size_t i = 0; i < count; ++i) {
    std::vector<const Template*> chosen;
    for (const auto& own : choices) chosen.push_back(own[i % own.size()]);
    Solution solution = Writer(graph, stages).write(chosen);
    if (seen.insert(solution.name).second) made.push_back(std::move(solution));
  }
  return made;
}

std::vector<Solution> all_solutions_of(const TaskGraph& graph, const TemplateLibrary& library) {
  const std::vector<Stage> stages = stages_of(graph);
  const auto choices = fitting(graph, stages, library);
  std::vector<Solution> made;
  size_t count = 0;
  for (const auto& own : choices) count = own.empty() ? 0 : std::max(count, own.size());
  for (size_t i = 0; i < count; ++i) {
    std::vector<const Template*> chosen;
    for (const auto& own : choices) chosen.push_back(own[i % own.size()]);
    made.push_back(Writer(graph, stages).write(chosen));
  }
  return made;
}

std::string signature_of(std::string_view cuda) {
  const size_t name = cuda.find(" f(torch::Tensor");
  const size_t begin = cuda.rfind('\n', name) + 1;
  return std::string(cuda.substr(begin, cuda.find(" {\n", name) - begin));
}

std::string answer_module(const TaskGraph& graph, std::string_view cuda) {
  std::vector<std::string> inputs, arguments;
  for (const int i : graph.inputs()) inputs.push_back(graph.value(i).name);
  arguments = inputs;
  for (const int i : graph.parameters()) arguments.push_back("self." + graph.value(i).attribute);
  std::string text =
      "import torch\nimport torch.nn as nn\nfrom torch.utils.cpp_extension import load_inline\n\n";
  text += fmt::format("src = r\"\"\"\n{}\"\"\"\n", cuda);
  text += fmt::format(
      "ext = load_inline(name=\"e\", cpp_sources=\"{};\", cuda_sources=src, functions=[\"f\"])\n\n",
      signature_of(cuda));
  text += "\nclass ModelNew(nn.Module):\n";
  const Construction made = construction_of(graph, Layers::kParametersOnly);
  const Construction all = construction_of(graph, Layers::kAll);
  if (!all.sizes.empty() || !made.lines.empty()) {
    text += fmt::format("    def __init__(self{}):\n        super().__init__()\n", all.arguments);
    for (const std::string& line : made.lines) text += "        " + line + "\n";
    text += '\n';
  }
  const std::string call = fmt::format("ext.f({})", fmt::join(arguments, ", "));
  text += fmt::format("    def forward(self, {}):\n        return {}\n", fmt::join(inputs, ", "),
                      graph.outputs.size() == 1 ? call : "tuple(" + call + ")");
  return text;
}

}  // namespace mc::forge
