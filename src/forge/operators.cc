// SPDX-License-Identifier: Apache-2.0
#include "forge/operators.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kFileBytesMax = 1 << 20;

std::string chosen(std::string text, const std::map<std::string, std::string>& choice) {
  for (const auto& [name, value] : choice) {
    text = substituted(std::move(text), "{" + name + "}", value);
  }
  return text;
}

// Axes such as "n k oh=(H-1)/2+1": names, some with an extent.
Result<std::vector<Axis>> read_axes(const std::string& text) {
  std::vector<Axis> axes;
  for (const std::string& word : words_of(text)) {
    const size_t equal = word.find('=');
    Axis axis{word.substr(0, equal), std::nullopt};
    if (equal != std::string::npos) {
      MC_TRY(axis.extent, parse_expr(word.substr(equal + 1)), word);
    }
    axes.push_back(std::move(axis));
  }
  return axes;
}

Result<Combine> read_combine(std::string_view name) {
  if (name == "sum") return Combine::kSum;
  if (name == "max") return Combine::kMax;
  if (name == "min") return Combine::kMin;
  if (name == "prod") return Combine::kProduct;
  return invalid(fmt::format("\"{}\" is not sum, max, min or prod", name));
}

// A pass such as "sum v * v -> a / m".
Result<Pass> read_pass(const std::string& text, const std::set<std::string>& axes) {
  Pass pass;
  const size_t space = text.find(' ');
  MC_TRY(pass.combine, read_combine(text.substr(0, space)), "pass");
  const size_t arrow = text.find(" -> ");
  MC_TRY(pass.element, parse_expr(text.substr(space + 1, arrow - space - 1), axes), "pass");
  if (arrow != std::string::npos) {
    MC_TRY(pass.finish, parse_expr(text.substr(arrow + 4), axes), "pass");
  }
  return pass;
}

// An operand such as ["parameter", "weight", "k c", {"init": …}].
Result<Operand> read_operand(const Json& json, const std::map<std::string, std::string>& choice) {
  static const std::map<std::string, OperandKind, std::less<>> kKinds = {
      {"value", OperandKind::kValue},
      {"input", OperandKind::kInput},
      {"parameter", OperandKind::kParameter},
      {"index", OperandKind::kIndex}};
  Operand operand;
  const auto kind = kKinds.find(json.at(0).get<std::string>());
  if (kind == kKinds.end()) return invalid("an operand is value, input, parameter or index");
  operand.kind = kind->second;
  operand.name = json.at(1);
  MC_TRY(operand.axes, read_axes(chosen(json.at(2), choice)), operand.name);
  if (json.size() > 3) {
    (operand.kind == OperandKind::kIndex ? operand.below : operand.init) =
        json.at(3).get<std::string>();
  }
  return operand;
}

// The operands of a gradient have the form ["x", "* m"], because they already exist.
Result<std::vector<Operand>> read_operands(const Json& json,
                                           const std::map<std::string, std::string>& choice) {
  std::vector<Operand> operands;
  for (const Json& named : json.value("operands", Json::array())) {
    Operand operand{OperandKind::kValue, named.at(0), {}, "", ""};
    MC_TRY(operand.axes, read_axes(chosen(named.at(1), choice)), operand.name);
    operands.push_back(std::move(operand));
  }
  if (!operands.empty()) return operands;
  operands.push_back({OperandKind::kValue, "x", {}, "", ""});
  MC_TRY(operands.front().axes, read_axes(chosen(json.value("x", "*"), choice)), "x");
  for (const Json& other : json.value("others", Json::array())) {
    MC_TRY(Operand read, read_operand(other, choice), "others");
    operands.push_back(std::move(read));
  }
  return operands;
}

Status bind_form(Form& form) {
  std::vector<std::string> tensors;
  for (const Operand& operand : form.operands) tensors.push_back(operand.name);
  form.names = {"v", "u", "w", "a", "b", "s", "f", "c", "d", "count"};
  for (Pass& pass : form.passes) {
    MC_TRY_VOID(bind_names(pass.element, form.names, tensors), "pass");
    if (pass.finish) MC_TRY_VOID(bind_names(*pass.finish, form.names, tensors), "finish");
  }
  if (form.scan) MC_TRY_VOID(bind_names(*form.scan, form.names, tensors), "scan");
  return bind_names(form.result, form.names, tensors);
}

// The names of operands with {"type": "integer"}, which are integers in formulas.
std::set<std::string> integers_of(const Json& json) {
  if (json.value("type", "") != "integer") return {};
  return {"v", "u", "w", "a", "b", "s", "f", "c", "d"};
}

Result<Form> read_form(const Json& json, const std::map<std::string, std::string>& choice) {
  const auto text = [&](const char* member, const char* otherwise) {
    return chosen(json.value(member, std::string(otherwise)), choice);
  };
  Form form;
  form.choice = choice;
  MC_TRY(form.operands, read_operands(json, choice), "operands");
  MC_TRY(form.out, read_axes(text("out", "*")), "out");
  MC_TRY(form.inner, read_axes(text("inner", "")), "inner");
  std::set<std::string> axes = integers_of(json);
  const auto note = [&](const std::vector<Axis>& list) {
    for (const Axis& axis : list) axes.insert(axis.name);
  };
  for (const Operand& operand : form.operands) note(operand.axes);
  note(form.out), note(form.inner);
  for (const std::string pass : json.value("passes", Json::array())) {
    MC_TRY(Pass read, read_pass(chosen(pass, choice), axes), pass);
    form.passes.push_back(std::move(read));
  }
  MC_TRY(form.result, parse_expr(text("result", "a"), axes), "result");
  form.row_axes = words_of(text("rows", ""));
  form.column_axes = words_of(text("columns", ""));
  form.depth_axes = words_of(text("depth", ""));
  if (json.contains("scan")) {
    MC_TRY(form.scan, parse_expr(text("scan", ""), axes), "scan");
  }
  MC_TRY_VOID(bind_form(form), "formulas");
  return form;
}

Result<Form> read_pointwise(const Json& json) {
  Form form;
  form.operands.push_back({OperandKind::kValue, "x", {{"*", std::nullopt}}, "", ""});
  MC_TRY(form.result, parse_expr(json.at("formula").get<std::string>(), integers_of(json)),
         "formula");
  for (const char* name : {"u", "w"}) {
    if (mentions(form.result, name)) {
      form.operands.push_back({OperandKind::kValue, name, {{"*", std::nullopt}}, "", ""});
    }
  }
  form.out = {{"*", std::nullopt}};
  MC_TRY_VOID(bind_form(form), "formula");
  return form;
}

// A formula such as "v > 0.0 ? g : 0.0": those of v, u, w and g that it uses are renamed to v, u
// and w, in this order.
Result<Form> read_pointwise_gradient(std::string formula) {
  static constexpr const char* kSlots[] = {"v", "u", "w"};
  Form form;
  for (const char* name : {"v", "u", "w", "g"}) {
    if (!has_word(formula, name)) continue;
    if (form.operands.size() == 3) return invalid("a gradient has at most three operands");
    formula = with_word(formula, name, kSlots[form.operands.size()]);
    const std::string operand = std::string(name) == "v" ? "x" : name;
    form.operands.push_back({OperandKind::kValue, operand, {{"*", std::nullopt}}, "", ""});
  }
  MC_TRY(form.result, parse_expr(formula), "gradient");
  form.out = {{"*", std::nullopt}};
  MC_TRY_VOID(bind_form(form), "gradient");
  return form;
}

// The gradients of an operator: {"v": formula} for pointwise operators, {"x": row} for others.
Result<std::vector<Operator>> read_gradients(const Json& json, const Operator& op) {
  std::vector<Operator> gradients;
  for (const auto& [name, row] : json.items()) {
    Operator made;
    made.name = op.name + "_backward" + (name == "x" || name == "v" ? "" : "_" + name);
    made.family = "backward";
    made.gradient_of = name == "v" ? "x" : name;
    made.is_pointwise = op.is_pointwise;
    made.formula = row.is_string() ? row.get<std::string>() : row.value("text", "");
    made.scheme = row.is_string() ? "" : row.value("scheme", "");
    for (const Form& form : op.forms) {
      MC_TRY(Form read,
             op.is_pointwise ? read_pointwise_gradient(row) : read_form(row, form.choice), name);
      made.forms.push_back(std::move(read));
    }
    gradients.push_back(std::move(made));
  }
  return gradients;
}

Result<Operator> read_operator(const Json& json, const std::string& family) {
  Operator op;
  op.name = json.at("name");
  op.family = family;
  op.torch = json.value("torch", std::vector<std::string>());
  op.layer = json.value("layer", "");
  op.layer_name = json.value("layer_name", "act");
  op.literals = json.value("literals", std::vector<std::string>());
  op.scheme = json.value("scheme", "");
  op.is_pointwise = json.contains("formula");
  op.is_whole = !integers_of(json).empty();
  op.even = json.value("even", std::vector<std::string>());
  op.then = json.value("then", std::vector<std::vector<std::string>>());
  op.is_rare = json.value("rare", false);
  op.formula = json.value("text", json.value("formula", ""));
  const auto domain = json.value("domain", std::vector<double>{-1e30, 1e30});
  const auto range = json.value("range", std::vector<double>{-1e30, 1e30});
  op.low = domain.at(0), op.high = domain.at(1);
  op.range_low = range.at(0), op.range_high = range.at(1);
  if (op.is_pointwise) {
    MC_TRY(Form form, read_pointwise(json), op.name);
    op.forms.push_back(std::move(form));
  }
  const Json choices = json.value("choices", Json::array({Json::object()}));
  for (const Json& choice : op.is_pointwise ? Json::array() : choices) {
    MC_TRY(Form form, read_form(json, choice.get<std::map<std::string, std::string>>()), op.name);
    op.forms.push_back(std::move(form));
  }
  MC_TRY(op.gradients, read_gradients(json.value("gradient", Json::object()), op), op.name);
  return op;
}

Status read_file_of(const fs::path& path, std::vector<Operator>& operators) {
  MC_TRY(const std::string text, read_file(path, kFileBytesMax), path.string());
  try {
    const Json json = Json::parse(text, nullptr, true, true);
    for (const Json& row : json.at("operators")) {
      MC_TRY(Operator op, read_operator(row, row.value("family", json.at("family"))),
             path.string());
      operators.push_back(std::move(op));
    }
  } catch (const Json::exception& exception) {
    return invalid(path.string() + ": " + exception.what());
  }
  return ok();
}

}  // namespace

Result<std::vector<Operator>> load_operators(const fs::path& folder) {
  std::vector<fs::path> paths;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.path().extension() == ".json") paths.push_back(entry.path());
  }
  std::ranges::sort(paths);  // Sorted, because a directory's order differs between machines.
  std::vector<Operator> operators;
  for (const fs::path& path : paths) MC_TRY_VOID(read_file_of(path, operators), "operators");
  if (operators.empty()) return invalid(folder.string() + " holds no operators");
  return operators;
}

}  // namespace mc::forge
