// SPDX-License-Identifier: Apache-2.0
//
// Templates: kernels as files, one folder each under data/forge/templates (docs/forge.md).
//
// A kernel.cu is CUDA with holes, `{{load}}`, sections, `{{#passes}} … {{/passes}}`, and sites of
// faults, `[[guard|if (i < n) ]]`.  Behind a line `// Launch.` is the launch.  manifest.json has
// what the template is for, its variants and the faults that may be planted.
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

// A fault: an edit at a site, with the outcome that it has where `when` holds.
struct Fault {
  std::string site;
  std::string kind;
  std::string matches;   // The site's text; "" for any.
  std::string becomes;   // "$" is the text that was there.
  std::string expected;  // "compile", "runtime", "wrong".
  std::optional<Expr> when;
  std::string cause;
  std::string fix;
};

struct Template {
  std::string name;
  std::string variant;
  Walk walk = Walk::kElements;
  std::set<std::string> needs;                // Properties of a stage, or "not-" before one.
  std::optional<Expr> limit;                  // A condition on n, m, depth, batch and last.
  std::string feature;                        // "baseline", "vectorised", …
  std::vector<std::string> combines;          // Its features where they are several.
  std::map<std::string, std::string> values;  // The variant's values, which replace {{name}}.
  std::string plan;                           // The division of the work, as half a sentence.
  std::string check;                          // The bounds check in the code, or "".
  std::map<std::string, Expr> cost;           // Formulas of its cost (cost.h).
  std::map<std::string, std::string> names;   // Longer names of its variables in full style.
  std::vector<std::string> buffers;           // Device memory of the template's own.
  std::vector<Fault> faults;
  std::string device;  // Sites are marked (text.h).
  std::string host;

  std::string full_name() const { return variant.empty() ? name : name + "_" + variant; }
};

struct TemplateLibrary {
  std::vector<Template> templates;  // One for each variant.
  std::vector<Fault> faults;        // Faults of sites that formulas make, for any template.
};

// kInvalidInput with the folder that is wrong.
Result<TemplateLibrary> load_templates(const std::filesystem::path& folder);

// Fills holes by `hole`, and repeats sections so often as `repeat` has it: a body may use
// `hole` with the number of the repetition.
struct Filling {
  std::function<std::string(const std::string& name, size_t repetition)> hole;
  std::function<size_t(const std::string& section)> repeat;
};
std::string filled(std::string_view text, const Filling& filling);

}  // namespace mc::forge

#endif  // MC_FORGE_TEMPLATES_H_
