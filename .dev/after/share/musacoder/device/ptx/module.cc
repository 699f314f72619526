// SPDX-License-Identifier: Apache-2.0
#include "ptx/module.h"

#include <algorithm>

namespace mc::ptx {
namespace {

const Variable* find(const std::vector<Variable>& variables, std::string_view name) {
  const auto found = std::find_if(variables.begin(), variables.end(),
                                  [&](const Variable& one) { return one.name == name; });
  return found == variables.end() ? nullptr : &*found;
}

}  // namespace

bool Instruction::has(std::string_view modifier) const {
  return std::find(modifiers.begin(), modifiers.end(), modifier) != modifiers.end();
}

std::string Instruction::full_name() const {
  std::string name = opcode;
  for (const std::string& modifier : modifiers) name += "." + modifier;
  return name;
}

const Variable* Function::find_variable(std::string_view variable) const {
  return find(variables, variable);
}

const Variable* Function::find_parameter(std::string_view parameter) const {
  return find(parameters, parameter);
}

const Function* Module::find_function(std::string_view function) const {
  const auto found = function_index.find(function);
  return found == function_index.end() ? nullptr : &functions[found->second];
}

const Variable* Module::find_variable(std::string_view variable) const {
  return find(variables, variable);
}

}  // namespace mc::ptx
