// SPDX-License-Identifier: Apache-2.0
#include "forge/samples.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "forge/lessons.h"
#include "forge/random.h"
#include "forge/reason.h"
#include "forge/render.h"
#include "forge/words.h"
#include "reward/feedback.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;

constexpr const char* kCompactRequest = "Write a CUDA kernel for this PyTorch module.\n";
constexpr const char* kReviewRequest =
    "Find the bug in this answer: its kind, the line, the cause, the effect and the fix. There may "
    "be none.\n";
constexpr const char* kReviewAllRequest =
    "Find all bugs in this answer: the kind, the line, the cause, the effect and the fix of each, "
    "then the whole answer with the fixes. There may be none: then say what you checked.\n";
constexpr const char* kFullSystem =
    "You write CUDA kernels for PyTorch programs. First think between <think> and </think>: plan "
    "the "
    "kernels and say what you reject and why, or after feedback find the fault. Then answer with "
    "one Python code block that defines ModelNew, with the same parameters as Model, and compiles "
    "its kernels with load_inline.";
constexpr const char* kFullRequest =
    "Replace the operators of this PyTorch module by CUDA kernels that are right for all sizes.\n";
constexpr const char* kVariantsRequest =
    "Write CUDA kernels for this PyTorch module several times. Answer with one JSON object and "
    "nothing else. Its members: \"baseline\", the plainest right answer; \"single_feature\", a "
    "list of answers that change one kernel of the baseline by one optimisation; \"algorithm\", an "
    "answer by another algorithm, or null; \"composite\", an answer that combines optimisations, "
    "or null. Each answer is an object of \"features\", the names of its optimisations; "
    "\"reason\", a list of sentences on its kernels and how they differ from the baseline; and "
    "\"code\", a Python module that defines ModelNew and compiles its kernels with load_inline.\n";

std::string thought(const std::string& text) { return "<think>\n" + text + "</think>\n\n"; }

Json message(const char* role, const std::string& content) {
  return {{"role", role}, {"content", content}};
}

Json prompt_messages(const TaskGraph& graph, Style style) {
  Json messages = Json::array();
  if (style == Style::kFull) messages.push_back(message("system", kFullSystem));
  messages.push_back(message("user", generation_prompt(graph, style)));
  return messages;
}

void describe(Json& row, const TaskGraph& graph) {
  row["families"] = graph.families();
  row["operators"] = graph.operators();
  row["depth"] = graph.depth();
}

Json begin_row(const std::string& id, const char* kind) {
  Json row;
  row["id"] = id;
  row["kind"] = kind;
  row["messages"] = Json::array();
  return row;
}

void end_row(Json& row, const TaskGraph& graph, const Solution& solution,
             const std::vector<Bug>& bugs) {
  row["task"] = graph.id();
  row["dialect"] = task::to_string(task::Dialect::kCuda);
  describe(row, graph);
  row["provenance"] = {{"seed", graph.seed}, {"template", solution.name}};
  row["provenance"]["features"] = Json::array();
  for (const Part& part : solution.parts)
    row["provenance"]["features"].push_back(part.used->feature);
  row["provenance"]["mutations"] = Json::array();
  for (const Bug& bug : bugs) row["provenance"]["mutations"].push_back(bug.kind);
}

std::string answer_of(const TaskGraph& graph, Style style, const Solution& solution,
                      const TemplateLibrary& library) {
  if (style == Style::kCompact) return fenced(solution.module);
  return thought(plan_text(graph, solution, library)) + fenced(solution.module);
}

std::string feedback_of(Style style, const task::Outcome& outcome) {
  task::Verdict verdict;
  verdict.outcome = outcome;
  reward::FeedbackOptions options;
  if (style == Style::kCompact) options.tokens_max = reward::kRepairFeedbackTokens;
  return reward::feedback(verdict, options);
}

// The line of a text that begins at `offset`, without surrounding spaces.
std::string line_at(const std::string& text, size_t offset) {
  MC_CHECK(offset <= text.size());
  const size_t before = offset == 0 ? std::string::npos : text.rfind('\n', offset - 1);
  const size_t begin = text.find_first_not_of(' ', before == std::string::npos ? 0 : before + 1);
  return text.substr(begin, text.find('\n', begin) - begin);
}

// The offset of a bug's line in the text that contains all of `bugs`.
size_t offset_of(const Bug& bug, const std::vector<Bug>& bugs) {
  size_t offset = bug.offset;
  for (const Bug& other : bugs) {
    if (other.offset < bug.offset) offset += other.text.size() - other.size;
  }
  return offset + bug.shown;
}

// A readable form of a name such as "off_by_one".
std::string readable(std::string kind) {
  std::ranges::replace(kind, '_', ' ');
  return kind;
}

// Bug `i` of a mutant with its line in the module.
std::string bug_text(const Solution& solution, const Mutant& mutant, size_t i) {
  const std::string cuda = with_bugs(solution, mutant.bugs);
  const size_t before = mutant.module.find(cuda);
  MC_CHECK(before != std::string::npos);
  const Bug& bug = mutant.bugs.at(i);
  const size_t offset = offset_of(bug, mutant.bugs);
  const auto begin = mutant.module.begin();
  const auto line = 1 + std::count(begin, begin + static_cast<ptrdiff_t>(before + offset), '\n');
  return fmt::format("Fault: {}\nLine {}: {}\nCause: {}\nFix: {}\n", readable(bug.kind), line,
                     line_at(cuda, offset), bug.cause, bug.fix);
}

// The report on a mutant: each bug, the effect and the fixed answer.
std::string report_of(const Solution& solution, const Mutant& mutant) {
  std::string text = fmt::format("Bugs: {}\n", mutant.bugs.size());
  for (size_t i = 0; i < mutant.bugs.size(); ++i) {
    text += fmt::format("\n{}. {}", i + 1, bug_text(solution, mutant, i));
  }
  return text + fmt::format("\nEffect: {}\n\nThe fixed answer:\n{}", effect_of(mutant.outcome),
                            fenced(solution.module));
}

// The diagnosis of a failed answer, given the next one: the bugs that `next` no longer has, or all
// bugs if it is null.
std::string diagnosis_of(const TaskGraph& graph, const Solution& solution, const Mutant& mutant,
                         const Mutant* next) {
  if (graph.style == Style::kCompact) return "";
  Random random(graph.seed, "diagnosis", graph.number + mutant.bugs.size());
  std::string text = phrased("failed", {{"effect", effect_of(mutant.outcome)}}, random) + "\n";
  for (size_t i = 0; i < mutant.bugs.size(); ++i) {
    const bool stays =
        next != nullptr && std::ranges::any_of(next->bugs, [&](const Bug& bug) {
          return bug.offset == mutant.bugs[i].offset && bug.kind == mutant.bugs[i].kind;
        });
    if (!stays) text += bug_text(solution, mutant, i);
  }
  return thought(text);
}

}  // namespace

std::string effect_of(const task::Outcome& outcome) {
  const std::string name = task::outcome_name(outcome);
  if (const auto* crashed = std::get_if<task::Crashed>(&outcome)) {
    if (!crashed->findings.empty()) return name + ": " + crashed->findings.front().kind;
    return crashed->exception ? name + ": " + crashed->exception->message : name;
  }
  if (const auto* failed = std::get_if<task::CompileFailed>(&outcome)) {
    return failed->diagnostics.empty() ? name : name + ": " + failed->diagnostics.front().message;
  }
  if (const auto* wrong = std::get_if<task::Wrong>(&outcome)) {
    for (const task::Trial& trial : wrong->trials) {
      if (!trial.findings.empty()) return name + ": " + trial.findings.front().kind;
      if (!trial.inputs_mutated.empty()) return name + ": " + trial.inputs_mutated + " is changed";
      if (!trial.checks.empty()) return name + ": " + trial.checks.front().detail;
    }
  }
  return name;
}

const char* split_name(Split split) { return split == Split::kTrain ? "train" : "test"; }

Split split_of(const TaskGraph& graph, double test_share) {
  if (graph.depth() < 2) return Split::kTrain;
  return Random(0, "split " + graph.structure(), 0).chance(test_share) ? Split::kTest
                                                                       : Split::kTrain;
}

std::string fenced(const std::string& module) { return "```python\n" + module + "```\n"; }

std::string generation_prompt(const TaskGraph& graph, Style style) {
  const std::string code = fenced(render_module(graph));
  if (style == Style::kCompact) return kCompactRequest + code;
  return kFullRequest + code + "Its tensors:\n" + metadata_table(graph);
}

std::string generation_row(const TaskGraph& graph, Style style, const Solution& solution,
                           const TemplateLibrary& library) {
  Json row = begin_row(graph.id() + "-" + solution.name, "generation");
  row["messages"] = prompt_messages(graph, style);
  row["messages"].push_back(message("assistant", answer_of(graph, style, solution, library)));
  end_row(row, graph, solution, {});
  return row.dump();
}

std::string review_row(const TaskGraph& graph, Style style, const Solution& solution,
                       const Mutant* mutant) {
  const std::string& answer = mutant == nullptr ? solution.module : mutant->module;
  Json row = begin_row(graph.id() + "-review", "review");
  row["messages"].push_back(
      message("user", (style == Style::kCompact ? kReviewRequest : kReviewAllRequest) +
                          fenced(render_module(graph)) + "The answer:\n" + fenced(answer)));
  std::string said = "No bug.\n";
  if (mutant == nullptr && style == Style::kFull) {
    said = analysis_text(graph, solution);
  } else if (mutant != nullptr && style == Style::kFull) {
    said = report_of(solution, *mutant);
  } else if (mutant != nullptr) {
    const Bug& bug = mutant->bugs.front();
    const std::string cuda = with_bugs(solution, mutant->bugs);
    said = fmt::format("Bug: {}\nLine: {}\nCause: {}\nEffect: {}\nFix: {}\n", bug.kind,
                       line_at(cuda, bug.offset), bug.cause, effect_of(mutant->outcome), bug.fix);
  }
  row["messages"].push_back(message("assistant", said));
  end_row(row, graph, solution, mutant == nullptr ? std::vector<Bug>() : mutant->bugs);
  return row.dump();
}

std::string repair_row(const TaskGraph& graph, Style style, const Solution& solution,
                       const std::vector<const Mutant*>& mutants) {
  MC_CHECK(!mutants.empty());
  Json row = begin_row(fmt::format("{}-repair{}", graph.id(), mutants.size() + 1), "repair");
  row["messages"] = prompt_messages(graph, style);
  std::string diagnosis;
  for (size_t i = 0; i < mutants.size(); ++i) {
    const Mutant& mutant = *mutants[i];
    row["messages"].push_back(message("assistant", diagnosis + fenced(mutant.module)));
    row["messages"].push_back(
        message("user", reward::repair_request(feedback_of(style, mutant.outcome))));
    diagnosis =
        diagnosis_of(graph, solution, mutant, i + 1 < mutants.size() ? mutants[i + 1] : nullptr);
  }
  row["messages"].push_back(message("assistant", diagnosis + fenced(solution.module)));
  end_row(row, graph, solution, mutants.front()->bugs);
  return row.dump();
}

std::string retry_row(const TaskGraph& graph, Style style, const Solution& solution,
                      const Mutant& mutant) {
  Json row = begin_row(graph.id() + "-retry", "retry");
  row["messages"] = prompt_messages(graph, style);
  std::string content = row["messages"].back()["content"];
  content += reward::retry_request(fenced(mutant.module), feedback_of(style, mutant.outcome));
  row["messages"].back()["content"] = content;
  row["messages"].push_back(message(
      "assistant", diagnosis_of(graph, solution, mutant, nullptr) + fenced(solution.module)));
  end_row(row, graph, solution, mutant.bugs);
  return row.dump();
}

std::string variants_row(const TaskGraph& graph,
                         const std::vector<std::pair<Role, const Solution*>>& solutions) {
  const Variants variants = variants_of(graph, solutions);
  const std::string text = variants_text(variants);
  const auto read = read_variants(text);
  MC_CHECK(read && *read == variants);
  Json row = begin_row(graph.id() + "-variants", "variants");
  row["messages"].push_back(message("user", kVariantsRequest + fenced(render_module(graph)) +
                                                "Its tensors:\n" + metadata_table(graph)));
  row["messages"].push_back(message("assistant", text));
  end_row(row, graph, *solutions.front().second, {});
  std::set<std::string> names, features;
  for (const auto& [role, solution] : solutions) names.insert(solution->name);
  for (const auto* one : all_of(variants)) {
    features.insert(one->features.begin(), one->features.end());
  }
  row["provenance"]["template"] = fmt::format("{}", fmt::join(names, ", "));
  row["provenance"]["features"] = features;
  return row.dump();
}

std::string question_row(uint64_t seed, uint64_t number) {
  const Question question = question_of(seed, number);
  Json row = begin_row(fmt::format("f{}-q{:06}", seed, number), "question");
  row["messages"].push_back(message("user", question.asked + "\n"));
  row["messages"].push_back(message("assistant", question.told + "\n"));
  row["task"] = "";
  row["dialect"] = task::to_string(task::Dialect::kCuda);
  row["families"] = Json::array();
  row["operators"] = Json::array();
  row["depth"] = 0;
  row["provenance"] = {{"seed", seed}, {"topic", question.topic}};
  return row.dump();
}

std::string prompt_row(const TaskGraph& graph, Style style, Split split, uint64_t index) {
  const std::string reference = render_module(graph);
  Json extra;
  extra["task"] = graph.id();
  extra["split"] = split_name(split);
  extra["index"] = index;
  extra["dialect"] = task::to_string(task::Dialect::kCuda);
  describe(extra, graph);
  Json row;
  row["id"] = graph.id();
  row["prompt"] = prompt_messages(graph, style);
  row["data_source"] = "musacoder/forge";
  row["reward_model"] = {{"style", "rule"}, {"ground_truth", reference}};
  row["extra_info"] = extra;
  row["label"] = reference;
  row["metadata"] = extra;
  row["dialect"] = extra["dialect"];
  return row.dump();
}

}  // namespace mc::forge
