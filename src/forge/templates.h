// SPDX-License-Identifier: Apache-2.0
//
// Templates: kernels as files, each in its own folder under data/forge/templates (docs/forge.md).
//
// A kernel.cu is CUDA with holes, `{{load}}`, sections, `{{#passes}} … {{/passes}}`, and sites of
// faults, `[[guard|if (i < n) ]]`.  The launch follows after a line `// Launch.`.  manifest.json
// contains the conditions of use, the variants, and the faults that may be planted.
#ifndef MC_FORGE_TEMPLATES_H_
#define MC_FORGE_TEMPLATES_H_

#include <filesystem>
#include <functional>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "core/result.h"
#include "forge/code.h"
#include "forge/expr.h"

namespace mc::forge {

// A fault: an edit at a site, with the expected outcome if the condition `when` is true.
struct Fault {
  std::string site;
  std::string kind;
  std::string matches;   // The required text of the site; "" for any text.
  std::string becomes;   // The replacement, in which "$" stands for the original text.
  std::string expected;  // "compile", "runtime", "wrong".
  std::optional<Expr> when;
  std::string cause;
  std::string fix;
};

struct Template {
  std::string name;
  std::string variant;
  Walk walk = Walk::kElements;
  // The required properties of a stage; "not-" before a property excludes it.
  std::set<std::string> needs;
  std::optional<Expr> limit;                  // A condition on n, m, depth, batch and last.
  std::string feature;                        // "baseline", "vectorised", …
  std::vector<std::string> combines;          // Its features where they are several.
  std::map<std::string, std::string> values;  // The variant's values, which replace {{name}}.
  std::string plan;                           // The division of the work, as a part of a sentence.
  std::string check;                          // The bounds check in the code, or "".
  std::map<std::string, Expr> cost;           // The formulas of its cost (cost.h).
  std::map<std::string, std::string> names;   // The names of its variables in full style.
  std::vector<std::string> buffers;           // Device memory that only the template uses.
  std::vector<Fault> faults;
  std::string device;  // The text of the kernel with marked sites (text.h).
  std::string host;

  std::string full_name() const { return variant.empty() ? name : name + "_" + variant; }
};

struct TemplateLibrary {
  std::vector<Template> templates;  // One for each variant.
  std::vector<Fault> faults;        // Faults for sites inside formulas, for any template.
};

// Reads all templates.  kInvalidInput names the invalid folder.
Result<TemplateLibrary> load_templates(const std::filesystem::path& folder);

// The functions that fill a text: `hole` returns the value of a hole, `repeat` the number of
// repetitions of a section.  In a section, `hole` receives the index of the repetition.
struct Filling {
  std::function<std::string(const std::string& name, size_t repetition)> hole;
  std::function<size_t(const std::string& section)> repeat;
};
std::string filled(std::string_view text, const Filling& filling);

}  // namespace mc::forge

#endif  // MC_FORGE_TEMPLATES_H_
