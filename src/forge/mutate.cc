// SPDX-License-Identifier: Apache-2.0
#include "forge/mutate.h"

#include <algorithm>
#include <optional>
#include <string_view>

#include <fmt/format.h>

#include "core/check.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

// Facts (1 or 0) that conditions of faults may use, in addition to sizes and the variant's values.
std::map<std::string, double> facts_of(const TaskGraph& graph, const Solution& solution,
                                       const Part& part) {
  std::map<std::string, double> facts;
  for (const auto& [name, size] : part.sizes) facts[name] = static_cast<double>(size);
  for (const auto& [name, value] : part.used->values) {
    const bool is_number = value.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) facts[name] = std::stod(value);
  }
  const auto& dims = graph.value(part.stage.output).dims;
  facts["last"] = dims.empty() ? 1 : graph.size_of(dims.back());
  facts["pure"] = solution.parts.size() == 1 && graph.outputs.size() == 1 ? 1 : 0;
  facts["is_last"] = &part == &solution.parts.back() ? 1 : 0;
  const Node* core = part.stage.core;
  facts["pointwise"] = core == nullptr ? 1 : 0;
  if (core == nullptr) return facts;
  const Form& form = *core->form;
  facts["passes"] = static_cast<double>(form.passes.size());
  facts["keeps"] = core->keeps_inner() ? 1 : 0;
  facts["bare"] = part.stage.nodes.empty() ? 1 : 0;  // No node follows the core.
  const Value& first = graph.value(core->operands.front());
  facts["direct"] = first.origin == Origin::kNode && core->op->is_pointwise ? 0 : 1;
  const auto reads_v = [](const Pass& pass) { return mentions(pass.element, "v"); };
  facts["vacc"] = std::ranges::any_of(form.passes, reads_v) ? 1 : 0;
  const auto& axes = form.operands.front().axes;
  const bool ends_with_inner = !form.inner.empty() && !axes.empty() &&
                               axes.back().name == form.inner.back().name && form.inner.size() == 1;
  facts["last_axis"] = ends_with_inner ? 1 : 0;
  bool has_default = false;
  for (const Pass& pass : form.passes) {
    for (const Expr& arg : pass.element.args) has_default = has_default || arg.has_default;
  }
  facts["plain"] = has_default ? 0 : 1;
  facts["normal"] = first.origin == Origin::kInput && first.draw == Draw::kNormal ? 1 : 0;
  return facts;
}

class Planner {
 public:
  Planner(const TaskGraph& graph, const Solution& solution, const TemplateLibrary& library)
      : graph_(graph), solution_(solution), library_(library) {}

  std::vector<Bug> run() {
    for (size_t i = 0; i < solution_.sites.size(); ++i) {
      const Part& part = solution_.parts.at(solution_.part_of_site.at(i));
      for (const Fault& fault : part.used->faults) plan(fault, solution_.sites[i], part);
      for (const Fault& fault : library_.faults) plan(fault, solution_.sites[i], part);
    }
    for (const Fault& fault : library_.faults) {
      if (fault.site.empty()) plan_text(fault);
    }
    return std::move(bugs_);
  }

 private:
  std::string text_of(const Site& site) const {
    MC_CHECK(site.offset + site.size <= solution_.cuda.size());
    return solution_.cuda.substr(site.offset, site.size);
  }

  // A fault whose texts use the names of a part's kernel.
  static Fault named(const Fault& fault, const Part& part) {
    Fault own = fault;
    if (part.names.empty()) return own;
    own.matches = renamed(own.matches, part.names);
    own.becomes = renamed(own.becomes, part.names);
    own.cause = renamed_in_prose(own.cause, part.names);
    own.fix = renamed_in_prose(own.fix, part.names);
    return own;
  }

  // Renames variables in a text; "a" before a space is an article, and longer names may be ordinary
  // words.
  static std::string renamed_in_prose(const std::string& text,
                                      const std::map<std::string, std::string>& names) {
    std::map<std::string, std::string> short_ones;
    for (const auto& [name, longer] : names) {
      if (name.size() == 1 && name != "a") short_ones[name] = longer;
    }
    std::string made = renamed(text, short_ones);
    const auto a = names.find("a");
    return a == names.end() ? made : substituted(std::move(made), "- a)", "- " + a->second + ")");
  }

  void plan(const Fault& of_template, const Site& site, const Part& part) {
    if (of_template.site != site.kind) return;
    const Fault fault = named(of_template, part);
    const std::string before = text_of(site);
    if (!fault.matches.empty() && before.find(fault.matches) == std::string::npos) return;
    const auto facts = facts_of(graph_, solution_, part);
    const auto fact = [&](const std::string& name) {
      const auto found = facts.find(name);
      return found == facts.end() ? 0.0 : found->second;
    };
    if (fault.when && evaluate_with(*fault.when, fact) == 0) return;
    const std::optional<std::string> after = changed(fault, before, part);
    if (!after || *after == before) return;
    add(fault, site, before, *after, part);
  }

  std::string with_values(std::string text, const std::string& before, const Part& part) const {
    for (const auto& [name, value] : part.used->values) {
      text = substituted(std::move(text), "{{" + name + "}}", value);
    }
    const auto& dims = graph_.value(part.stage.output).dims;
    if (!dims.empty()) {
      text = substituted(std::move(text), "{{last}}", graph_.extent_text(dims.back()));
    }
    std::string shown = before;
    while (!shown.empty() && (shown.back() == ' ' || shown.back() == '\n')) shown.pop_back();
    return substituted(std::move(text), "$", shown);
  }

  // The text after a fault.  Edits that are not a simple replacement have a name that begins with
  // "!".
  std::optional<std::string> changed(const Fault& fault, const std::string& before,
                                     const Part& part) const {
    if (fault.becomes == "!overwrite") {
      const size_t plus = before.find(" += ");
      if (plus == std::string::npos) return std::nullopt;
      return before.substr(0, plus) + " = " + before.substr(plus + 4);
    }
    if (fault.becomes == "!constant") {
      if (before.empty()) return std::nullopt;
      return before.starts_with("0.0") ? "0.5f"
             : before.starts_with("-") ? "-0.125f"
                                       : "1" + before;
    }
    if (fault.becomes == "!swap_product") {  // "r * m + j" becomes "j * m + r".
      const size_t star = find_outside(before, " * "), plus = find_outside(before, " + ");
      if (star == std::string::npos || plus == std::string::npos || before.find('(') < plus ||
          before.find(" * ", star + 1) != std::string::npos) {
        return std::nullopt;
      }
      return before.substr(plus + 3) + before.substr(star, plus + 3 - star) +
             before.substr(0, star);
    }
    if (fault.becomes == "!drop_first_axis" || fault.becomes == "!short_stride") {
      const size_t star = find_outside(before, " * "), plus = find_outside(before, " + ");
      if (star == std::string::npos || plus == std::string::npos || plus < star)
        return std::nullopt;
      if (before.find('[') != std::string::npos) return std::nullopt;
      if (fault.becomes == "!drop_first_axis") return before.substr(plus + 3);
      const std::string stride = before.substr(star + 3, plus - star - 3);
      return before.substr(0, star) + " * (" + stride + " - 1)" + before.substr(plus);
    }
    if (fault.becomes == "!swap_extents") return swapped_extents(before);
    return substituted(with_values(fault.becomes, before, part), "$", before);
  }

  // The offset of the first `word` outside of parentheses; npos if there is none.
  static size_t find_outside(const std::string& text, std::string_view word) {
    int depth = 0;
    for (size_t at = 0; at < text.size(); ++at) {
      depth += text[at] == '(' ? 1 : text[at] == ')' ? -1 : 0;
      if (depth == 0 && text.compare(at, word.size(), word) == 0) return at;
    }
    return std::string::npos;
  }

  // "torch::empty({N, M}, …" becomes "torch::empty({M, N}, …".
  static std::optional<std::string> swapped_extents(const std::string& before) {
    const size_t open = before.find('{'), close = before.find('}');
    const size_t comma = before.find(", ", open);
    if (open == std::string::npos || comma > close) return std::nullopt;
    if (before.find(", ", comma + 2) < close) return std::nullopt;
    return before.substr(0, open + 1) + before.substr(comma + 2, close - comma - 2) + ", " +
           before.substr(open + 1, comma - open - 1) + before.substr(close);
  }

  void add(const Fault& fault, const Site& site, const std::string& before,
           const std::string& after, const Part& part) {
    Bug bug{fault.kind,
            fault.expected,
            with_values(fault.cause, before, part),
            with_values(fault.fix, before, part),
            site.offset,
            site.size,
            after};
    const std::string& text = solution_.cuda;
    const size_t end = bug.offset + bug.size;
    // Removing a statement also removes its line.
    if (after.empty() && before.ends_with(";") && end < text.size() && text[end] == '\n') {
      while (bug.offset > 0 && text[bug.offset - 1] == ' ') --bug.offset, ++bug.size;
      if (bug.offset > 0 && text[bug.offset - 1] == '\n') ++bug.size;
    }
    MC_CHECK(bug.offset + bug.size <= text.size());
    bugs_.push_back(std::move(bug));
  }

  // Plans edits of the text that prevent compilation; they need no site.
  void plan_text(const Fault& of_library) {
    const Fault fault = named(of_library, solution_.parts.front());
    const size_t at = solution_.cuda.find(fault.matches);
    if (at == std::string::npos) return;
    bugs_.push_back({fault.kind, fault.expected, fault.cause, fault.fix, at, fault.matches.size(),
                     fault.becomes});
  }

  const TaskGraph& graph_;
  const Solution& solution_;
  const TemplateLibrary& library_;
  std::vector<Bug> bugs_;
};

}  // namespace

std::vector<Bug> bugs_of(const TaskGraph& graph, const Solution& solution,
                         const TemplateLibrary& library) {
  return Planner(graph, solution, library).run();
}

bool overlap(const Bug& one, const Bug& other) {
  return one.offset < other.offset + other.size + 1 && other.offset < one.offset + one.size + 1;
}

std::string with_bugs(const Solution& solution, std::vector<Bug> bugs) {
  std::ranges::sort(bugs, std::greater(), &Bug::offset);
  std::string text = solution.cuda;
  for (const Bug& bug : bugs) {
    MC_CHECK(bug.offset + bug.size <= text.size());
    text.replace(bug.offset, bug.size, bug.text);
  }
  return text;
}

}  // namespace mc::forge
