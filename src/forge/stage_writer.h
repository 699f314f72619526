// SPDX-License-Identifier: Apache-2.0
//
// StageWriter: fills a template for one stage.  A kernel's parameters are the tensors and sizes
// that its body uses.
#ifndef MC_FORGE_STAGE_WRITER_H_
#define MC_FORGE_STAGE_WRITER_H_

#include <map>
#include <set>
#include <string>
#include <vector>

#include "forge/code.h"
#include "forge/graph.h"
#include "forge/stage.h"
#include "forge/templates.h"

namespace mc::forge {

// The properties of a stage that templates may need (docs/forge.md).
std::set<std::string> properties_of(const TaskGraph& graph, const Stage& stage);

class StageWriter {
 public:
  StageWriter(const TaskGraph& graph, const Stage& stage, const Template& used,
              const std::map<int, std::string>& tensors, const std::string& output, size_t number,
              Reads reads);

  // The kernel's text; call it before arguments().
  std::string device();

  std::string host();

  const Code& code() const { return code_; }
  const std::string& kernel() const { return kernel_; }

 private:
  size_t repeat(const std::string& section) const;

  std::vector<Combine> reducers() const;

  static std::string filled_pattern(const std::string& pattern, const std::string& into,
                                    const std::string& value);

  std::string hole(const std::string& name, size_t pass);

  Type output_type() const { return graph_.value(stage_.output).type; }
  // The options of new buffers, which contain float if the output is a half type.
  std::string options() const;

  Combine pass_combine(size_t pass) const { return stage_.core->form->passes.at(pass).combine; }
  size_t pass_of(Combine combine) const;
  std::string reducer_join(size_t number, const std::string& rest) const;

  std::string loader() const;  // The name of the function that loads an element.
  std::string loaded() const;

  // Adds the function that loads an element, if rows are read several times.
  std::string with_functions(std::string text);

  // The tensors and sizes that occur in a text: as parameters, as names, and as the host's
  // arguments.
  void mentioned(const std::string& text, std::vector<std::string>& parameters,
                 std::vector<std::string>& names, std::vector<std::string>* arguments) const;

  std::string with_parameters(std::string text);

  const TaskGraph& graph_;
  const Stage& stage_;
  const Template& used_;
  const std::map<int, std::string>& tensors_;
  std::string output_;
  std::string suffix_;  // The suffix of names if there are several kernels.
  std::string kernel_;
  Reads reads_;
  Code code_;
  std::vector<std::string> parameters_, arguments_;
};

}  // namespace mc::forge

#endif  // MC_FORGE_STAGE_WRITER_H_
