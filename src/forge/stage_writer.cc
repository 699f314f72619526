// SPDX-License-Identifier: Apache-2.0
#include "forge/stage_writer.h"

#include <algorithm>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "core/check.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

constexpr const char* kReducers[] = {"total", "top", "low", "product"};

bool is_matched(const Expr& element) {
  return element.kind == Expr::Kind::kBinary && element.text == "*";
}

// The kernel's name: in full style from the stage's first operators, as in "softmax_mul_kernel"; in
// compact style "k".
std::string kernel_name(const TaskGraph& graph, const Stage& stage, const std::string& suffix) {
  if (graph.style == Style::kCompact) return "k" + suffix;
  std::vector<std::string> names;
  if (stage.core != nullptr) names.push_back(stage.core->op->name);
  for (const Node* node : stage.nodes) names.push_back(node->op->name);
  if (names.size() > 3) names = {names[0], names[1], "fused"};
  return fmt::format("{}_kernel{}", fmt::join(names, "_"), suffix);
}

// A part of the text from one __global__ or __device__ to the next.
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

}  // namespace

std::set<std::string> properties_of(const TaskGraph& graph, const Stage& stage) {
  std::set<std::string> found;
  if (graph.value(stage.output).dims.size() > 1) found.insert("columns");
  const Type type = graph.value(stage.output).type;
  if (!is_whole(type)) found.insert("floats");
  if (type == Type::kFloat32) found.insert("float32");
  if (is_half(type)) found.insert("half");
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
  const auto reads = [&](const char* name) {
    return mentions(form.result, name) || std::ranges::any_of(form.passes, [&](const Pass& pass) {
             return mentions(pass.element, name);
           });
  };
  if (stage.core->keeps_inner() && reads("v") && !reads("u") && !reads("w")) {
    found.insert("one-load");
  }
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

StageWriter::StageWriter(const TaskGraph& graph, const Stage& stage, const Template& used,
                         const std::map<int, std::string>& tensors, const std::string& output,
                         size_t number, Reads reads)
    : graph_(graph),
      stage_(stage),
      used_(used),
      tensors_(tensors),
      output_(output),
      suffix_(number == 0 ? "" : std::to_string(number + 1)),
      kernel_(kernel_name(graph, stage, suffix_)),
      reads_(reads),
      code_(graph, stage, used.walk, tensors, reads) {}

std::string StageWriter::device() {
  const Filling filling = {[&](const std::string& name, size_t pass) { return hole(name, pass); },
                           [&](const std::string& section) { return repeat(section); }};
  std::string text = code_.decoded(filled(used_.device, filling));
  return with_parameters(with_functions(std::move(text)));
}

std::string StageWriter::host() {
  size_t launches = 0;
  const Filling filling = {[&](const std::string& name, size_t) -> std::string {
                             if (name == "args") return arguments_.at(launches++);
                             if (name == "k") return kernel_;
                             if (name == "options") return options();
                             return hole(name, 0);
                           },
                           [&](const std::string& section) { return repeat(section); }};
  return filled(used_.host, filling);
}

size_t StageWriter::repeat(const std::string& section) const {
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

std::vector<Combine> StageWriter::reducers() const {
  std::vector<Combine> found;
  for (const Pass& pass : stage_.core->form->passes) {
    if (std::ranges::find(found, pass.combine) == found.end()) found.push_back(pass.combine);
  }
  return found;
}

std::string StageWriter::filled_pattern(const std::string& pattern, const std::string& into,
                                        const std::string& value) {
  return substituted(substituted(pattern, "{a}", into), "{v}", value);
}

std::string StageWriter::hole(const std::string& name, size_t pass) {
  if (const auto found = used_.values.find(name); found != used_.values.end()) {
    return found->second;
  }
  const size_t colon = name.find(':');
  const std::string head = name.substr(0, colon);
  const std::string rest = colon == std::string::npos ? "" : name.substr(colon + 1);
  if (head == "k") return kernel_ + rest;
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
  if (head == "own_load") return code_.load();
  if (head == "place") return site("place", code_.place());
  if (head == "stored") return code_.stored();
  if (head == "real") return code_.real();
  if (head == "element") return element_text(output_type());
  if (head == "o") return "o";
  if (head == "acc") return Code::accumulator(pass);
  if (head == "identity") return site("identity", code_.identity(pass));
  if (head == "element") return code_.element(pass);
  if (head == "combine") {
    return site("combine",
                filled_pattern(code_.combine(pass), Code::accumulator(pass), code_.element(pass)));
  }
  if (head == "combine_into") {
    return site("combine", filled_pattern(code_.combine(pass), rest, code_.element(pass)));
  }
  if (head == "scan_step") {
    return filled_pattern(code_.combine(pass), Code::accumulator(pass), code_.scanned());
  }
  if (head == "first_element") return code_.element(0);
  if (head == "shuffle") {
    const std::string own = Code::accumulator(pass);
    return filled_pattern(code_.combine(pass), own,
                          fmt::format("__shfl_xor_sync(0xffffffff, {}, w)", own));
  }
  if (head == "join") {  // {{join:a b}} combines b into a.
    const std::vector<std::string> words = words_of(rest);
    return filled_pattern(code_.combine(pass), words.at(0), words.at(1));
  }
  if (head == "join_last") {
    return filled_pattern(code_.combine(pass), "carry",
                          fmt::format("s[{} - 1]", used_.values.at("T")));
  }
  if (head == "join_acc") return filled_pattern(code_.combine(pass), Code::accumulator(pass), rest);
  if (head == "finish") return code_.finish(pass);
  if (head == "reducer") return kReducers[static_cast<size_t>(pass_combine(pass))] + suffix_;
  if (head == "each_reducer") return kReducers[static_cast<size_t>(reducers().at(pass))] + suffix_;
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

std::string StageWriter::options() const {
  return output_ + (is_half(output_type()) ? ".options().dtype(torch::kFloat)" : ".options()");
}

size_t StageWriter::pass_of(Combine combine) const {
  size_t pass = 0;
  while (pass_combine(pass) != combine) ++pass;
  MC_CHECK(pass < stage_.core->form->passes.size());
  return pass;
}

std::string StageWriter::reducer_join(size_t number, const std::string& rest) const {
  const size_t comma = rest.find(", ");
  MC_CHECK(comma != std::string::npos);
  return filled_pattern(code_.combine(pass_of(reducers().at(number))), rest.substr(0, comma),
                        rest.substr(comma + 2));
}

std::string StageWriter::loader() const {
  return (graph_.style == Style::kCompact ? "p" : "load_element") + suffix_;
}

std::string StageWriter::loaded() const {
  if (!code_.loads_by_function()) return code_.load();
  return fmt::format("{} v = {}(\x06names\x06, r, j);\n", code_.real(), loader());
}

std::string StageWriter::with_functions(std::string text) {
  std::string function;
  if (text.find("\x06names\x06") != std::string::npos) {
    std::string body = Code::decode_mark("r") + "\n  " + Code::decode_mark("j") + "\n" +
                       indented(code_.function(), 2) + "}\n";
    body = code_.decoded("  " + body);
    std::vector<std::string> parameters, names;
    mentioned(body, parameters, names, nullptr);
    parameters.emplace_back("int r"), parameters.emplace_back("int j");
    function = fmt::format("__device__ {} {}({}) {{\n{}", code_.real(), loader(),
                           fmt::join(parameters, ", "), body);
    text = substituted(std::move(text), "\x06names\x06", fmt::format("{}", fmt::join(names, ", ")));
  }
  return substituted(std::move(text),
                     "\x06"
                     "functions\x06\n",
                     function);
}

void StageWriter::mentioned(const std::string& text, std::vector<std::string>& parameters,
                            std::vector<std::string>& names,
                            std::vector<std::string>* arguments) const {
  const auto add = [&](const std::string& type, const std::string& name,
                       const std::string& argument) {
    if (!has_word(text, name)) return;
    parameters.push_back(type + name);
    names.push_back(name);
    if (arguments != nullptr) arguments->push_back(argument);
  };
  for (const auto& [value, name] : tensors_) {
    const Type type = graph_.value(value).type;
    add(fmt::format("const {}* ", element_text(type)), name, pointer_text(type, name));
  }
  for (const auto& [value, name] : tensors_) {
    const Value& found = graph_.value(value);
    if (found.view == View::kNone || reads_ == Reads::kContiguous) continue;
    for (size_t i = 0; i < found.dims.size(); ++i) {
      add("int ", fmt::format("{}_s{}", name, i), fmt::format("{}.stride({})", name, i));
    }
  }
  for (const std::string& buffer : used_.buffers) {
    const Type computed = is_whole(output_type()) ? output_type() : Type::kFloat32;
    add(code_.real() + std::string("* "), buffer, pointer_text(computed, buffer + suffix_));
  }
  add(element_text(output_type()) + std::string("* "), "o", pointer_text(output_type(), output_));
  for (const char* size : {"n", "m", "depth", "batch"}) add("int ", size, size);
  for (const Dim& dim : graph_.dims) {
    if (graph_.extent_text(static_cast<int>(&dim - graph_.dims.data())) == dim.name) {
      add("int ", dim.name, dim.name);
    }
  }
}

std::string StageWriter::with_parameters(std::string text) {
  for (const Function& kernel : functions_in(text, "__global__")) {
    std::vector<std::string> parameters, names, arguments;
    mentioned(text.substr(kernel.begin, kernel.end - kernel.begin), parameters, names, &arguments);
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

}  // namespace mc::forge
