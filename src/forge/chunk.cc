// SPDX-License-Identifier: Apache-2.0
#include "forge/chunk.h"

#include <algorithm>
#include <iterator>
#include <map>
#include <memory>
#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "forge/interpret.h"
#include "forge/kernels.h"
#include "forge/mutate.h"
#include "forge/operator_mutation.h"
#include "forge/random.h"
#include "forge/render.h"
#include "forge/samples.h"
#include "forge/unit_tests.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;

// The share of bugs that do not compile; each costs a second.
constexpr double kCompileShare = 0.08;
constexpr double kOperatorMutationShare =
    0.5;  // The share of operator mutations among bugs that compile.
// The share of reviews of correct answers: reviewers must not always find a bug.
constexpr double kNoBugShare = 0.15;

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::ranges::find(names, name) != names.end();
}

struct TaskInProgress {
  std::unique_ptr<TaskGraph> graph_owner;
  const TaskGraph& graph = *graph_owner;
  std::vector<Solution> solutions;
  // One bug, and the same with a second one, in solutions[buggy].
  size_t buggy = 0;
  size_t num_drawn = solutions.size();                 // The others are for variants alone.
  std::vector<std::pair<Role, size_t>> variants = {};  // Solutions.
  std::vector<Mutant> mutants;
  std::vector<std::string> tests{};
};

// Draws a kind first, so that kinds with many sites do not dominate.
std::optional<Bug> pick_bug(const std::vector<Bug>& bugs, const char* expected, Random& random,
                            const Bug* beside) {
  std::map<std::string, std::vector<const Bug*>> by_kind;
  const bool compiles = std::string_view(expected) != "compile";
  for (const Bug& bug : bugs) {
    if ((bug.expected != "compile") != compiles) continue;
    if (beside != nullptr && (overlap(bug, *beside) || bug.kind == beside->kind)) continue;
    by_kind[bug.kind].push_back(&bug);
  }
  if (by_kind.empty()) return std::nullopt;
  auto it = by_kind.begin();
  std::advance(it, random.below(static_cast<int>(by_kind.size())));
  return *random.pick(it->second);
}

// Removes launch errors if there is an exception: the device reports each refused launch once, so
// with a second bug of this kind only the exception is reported for both.
task::Outcome with_one_cause(task::Outcome outcome) {
  auto* crashed = std::get_if<task::Crashed>(&outcome);
  if (crashed != nullptr && crashed->exception) {
    std::erase_if(crashed->findings, [](const task::KernelFinding& finding) {
      return finding.kind == "launch_error";
    });
  }
  return outcome;
}

task::Task task_of(const TaskGraph& graph) {
  return {graph.id(), graph.id(), render_module(graph, Size::kSmall)};
}

task::Candidate candidate_of(const TaskGraph& graph, const std::string& name,
                             const std::string& module) {
  return {graph.id() + "-" + name, fenced(module)};
}

// If MooreEval disagrees with the forge, neither can be trusted, so the run fails.
Status audit(const TaskGraph& graph, const Solution& solution, const task::Outcome& outcome,
             task::Evaluator& auditor) {
  const task::Verdict verdict =
      auditor.evaluate(task_of(graph), candidate_of(graph, solution.name, solution.module));
  const std::string theirs = task::outcome_name(verdict.outcome);
  const std::string ours = task::outcome_name(outcome);
  if (theirs == "infra") return Error{ErrorCode::kUnavailable, "the audit failed: infra"};
  if (theirs == ours) return ok();
  return Error{ErrorCode::kProtocol,
               fmt::format("the forge and MooreEval disagree on {} ({}): {} against {}", graph.id(),
                           solution.name, effect_of(outcome), effect_of(verdict.outcome))};
}

class ChunkMaker {
 public:
  ChunkMaker(const Settings& settings, const Library& library, int number, const Verify& verify,
             double audit_share, task::Evaluator& auditor)
      : settings_(settings),
        library_(library),
        number_(number),
        verify_(verify),
        audit_share_(audit_share),
        auditor_(auditor) {}

  Result<std::string> run() {
    draw();
    std::vector<TaskWork> works;
    for (TaskInProgress& made : made_) {
      if (settings_.unit_tests) made.tests = unit_tests_of(made.graph);
      works.push_back(work_of(made));
    }
    MC_TRY(const auto results, verify_(works), "chunk " + std::to_string(number_));
    MC_CHECK(results.size() == works.size());
    for (size_t i = 0; i < made_.size(); ++i) {
      MC_TRY_VOID(keep(made_[i], results[i]), made_[i].graph.id());
    }
    Json chunk;
    chunk["tasks"] = std::move(tasks_);
    chunk["rejected"] = std::move(rejected_);
    chunk["errors"] = std::move(errors_);
    return chunk.dump();
  }

 private:
  void draw() {
    const int tasks = chunk_tasks(settings_);
    for (int i = 0; i < tasks; ++i) {
      const auto task =
          static_cast<uint64_t>(number_) * static_cast<uint64_t>(tasks) + static_cast<uint64_t>(i);
      auto graph = draw_one(task);
      if (!graph) {
        reject("no valid graph was drawn");
        continue;
      }
      // Solutions point into the graph, so its address must not change.
      auto kept = std::make_unique<TaskGraph>(std::move(*graph));
      std::vector<Solution> solutions = solutions_of(*kept, library_.kernels);
      if (solutions.empty()) {
        reject("no template fits");
        continue;
      }
      solutions.erase(
          solutions.begin() + std::min<ptrdiff_t>(settings_.solutions_max, std::ssize(solutions)),
          solutions.end());
      TaskInProgress made{
          .graph_owner = std::move(kept), .solutions = std::move(solutions), .mutants = {}};
      if (split_of(made.graph, settings_.test_share) == Split::kTrain) {
        plan_bugs(made);
        plan_variants_of(made);
      }
      made_.push_back(std::move(made));
    }
  }

  // If there are weights, a family is drawn first, and the graph contains one of its operators if
  // possible.
  std::optional<TaskGraph> draw_one(uint64_t task) const {
    const auto drawn = [&](const GraphOptions& options) {
      return sample_graph(library_.operators, settings_.seed, task, options);
    };
    if (settings_.weights.empty()) return drawn(settings_.graph);
    Random random(settings_.seed, "mix", task);
    const std::string family = drawn_family(settings_.weights, random);
    GraphOptions options = settings_.graph;
    options.families = {family, "elementwise"};
    auto graph = drawn(options);
    if (graph && has(graph->families(), family)) return graph;
    options.families = {family};
    auto narrow = drawn(options);
    return narrow ? std::move(narrow) : std::move(graph);
  }

  void plan_bugs(TaskInProgress& made) const {
    Random random(settings_.seed, "bugs", made.graph.number);
    if (!random.chance(settings_.bugs_share)) return;
    made.buggy = static_cast<size_t>(random.below(static_cast<int>(made.solutions.size())));
    const Solution& solution = made.solutions[made.buggy];
    const std::vector<Bug> bugs = bugs_of(made.graph, solution, library_.kernels);
    const char* expected = random.chance(kCompileShare) ? "compile" : "";
    // An operator mutation is never combined with a second bug, whose site the other graph's kernel
    // may not have.
    if (*expected == '\0' && random.chance(kOperatorMutationShare)) {
      const auto mutation =
          operator_mutation_of(made.graph, solution, library_.kernels, library_.operators, random);
      if (mutation) return add_mutant(made, {*mutation});
    }
    const auto first = pick_bug(bugs, expected, random, nullptr);
    if (!first) return;
    add_mutant(made, {*first});
    if (const auto second = pick_bug(bugs, "", random, &*first))
      add_mutant(made, {*first, *second});
  }

  void plan_variants_of(TaskInProgress& made) const {
    Random random(settings_.seed, "variants share", made.graph.number);
    if (!random.chance(settings_.variants_share)) return;
    for (PlannedVariant& planned : plan_variants(made.graph, library_.kernels)) {
      auto same = std::ranges::find(made.solutions, planned.solution.name, &Solution::name);
      const auto index = static_cast<size_t>(same - made.solutions.begin());
      if (index == made.solutions.size()) made.solutions.push_back(std::move(planned.solution));
      made.variants.emplace_back(planned.role, index);
    }
  }

  static void add_mutant(TaskInProgress& made, std::vector<Bug> bugs) {
    const std::string cuda = with_bugs(made.solutions[made.buggy], bugs);
    made.mutants.push_back({std::move(bugs), answer_module(made.graph, cuda), task::Infra{}});
  }

  void reject(const std::string& why) { rejected_[why] = rejected_.value(why, 0) + 1; }

  TaskWork work_of(const TaskInProgress& made) const {
    TaskWork work;
    work.task = task_of(made.graph);
    work.probe = probe_json(made.graph);
    work.tests = made.tests;
    work.seed = Random(settings_.seed, "judge", made.graph.number).next();
    for (const Solution& solution : made.solutions) {
      work.attempts.push_back({candidate_of(made.graph, solution.name, solution.module),
                               solution.module, solution.cuda});
    }
    for (const Mutant& mutant : made.mutants) {
      const std::string cuda = with_bugs(made.solutions[made.buggy], mutant.bugs);
      const bool compiles = mutant.bugs.front().expected != "compile";
      const auto candidate =
          candidate_of(made.graph, made.solutions[made.buggy].name, mutant.module);
      (compiles ? work.attempts : work.may_not_compile).push_back({candidate, mutant.module, cuda});
    }
    return work;
  }

  Status keep(TaskInProgress& made, const TaskResult& result) {
    if (!result.gate.empty()) {
      reject(result.gate.front());
      return ok();
    }
    MC_CHECK(result.outcomes.size() == made.solutions.size() + made.mutants.size());
    const TaskGraph& graph = made.graph;
    std::vector<const Solution*> verified;
    for (size_t i = 0; i < made.solutions.size(); ++i) {
      const task::Outcome& outcome = result.outcomes[i];
      Random random(settings_.seed, "audit " + made.solutions[i].name, graph.number);
      if (random.chance(audit_share_)) {
        MC_TRY_VOID(audit(graph, made.solutions[i], outcome, auditor_), "audit");
        count("audited");
      }
      if (std::holds_alternative<task::Passed>(outcome)) {
        if (i < made.num_drawn) verified.push_back(&made.solutions[i]);
      } else {
        note_error(graph, made.solutions[i], outcome);
        count("solutions_" + std::string(task::outcome_name(outcome)) + "_" +
              made.solutions[i].name);
      }
    }
    if (verified.empty()) {
      counts_ = Json::object();
      reject("no solution was verified");
      return ok();
    }
    drop_unsound(made.tests, result.tests);
    count("solutions", static_cast<int64_t>(verified.size()));
    if (verified.size() >= 3) count("tasks_with_three_solutions");
    for (size_t i = 0; i < made.mutants.size(); ++i) {
      made.mutants[i].outcome = with_one_cause(result.outcomes[made.solutions.size() + i]);
      if (Random(settings_.seed, "audit of bugs", graph.number).chance(audit_share_)) {
        Solution buggy = made.solutions[made.buggy];
        buggy.module = made.mutants[i].module;
        MC_TRY_VOID(audit(graph, buggy, made.mutants[i].outcome, auditor_), "audit");
        count("audited");
      }
    }
    std::erase_if(made.variants, [&](const auto& variant) {
      return !std::holds_alternative<task::Passed>(result.outcomes[variant.second]);
    });
    add_task(made, verified);
    return ok();
  }

  void drop_unsound(std::vector<std::string>& tests, const std::vector<bool>& is_sound) {
    MC_CHECK(tests.size() == is_sound.size());
    if (tests.empty()) return;
    std::vector<std::string> sound;
    for (size_t i = 0; i < tests.size(); ++i) {
      if (is_sound[i]) sound.push_back(std::move(tests[i]));
    }
    count("unit_tests", static_cast<int64_t>(sound.size()));
    count("unit_tests_dropped", static_cast<int64_t>(tests.size() - sound.size()));
    tests = std::move(sound);
  }

  // Records a solution that does not compile: a fault of a template or of the code generator.
  void note_error(const TaskGraph& graph, const Solution& solution, const task::Outcome& outcome) {
    const auto* failed = std::get_if<task::CompileFailed>(&outcome);
    if (failed == nullptr) return;
    errors_.push_back(fmt::format(
        "{} ({}): {}", graph.id(), solution.name,
        failed->diagnostics.empty() ? "no message" : failed->diagnostics.front().message));
  }

  // Adds rows for review, repair and retry, for bugs with the expected outcome.
  void add_bugs(const TaskInProgress& made, Json& rows) {
    const Style style = settings_.graph.style;
    if (made.mutants.empty()) return;
    const Mutant& first = made.mutants.front();
    const Bug& bug = first.bugs.front();
    const bool confirmed = bug.expected == task::outcome_name(first.outcome);
    count("bugs");
    count("bugs_" + bug.kind);
    if (!confirmed) {
      count("bugs_unconfirmed_" + bug.kind + "_" + task::outcome_name(first.outcome));
      return;
    }
    count("bugs_confirmed");
    Random random(settings_.seed, "samples", made.graph.number);
    const Solution& solution = made.solutions[made.buggy];
    const bool has_none = random.chance(kNoBugShare);
    const Mutant* reviewed = has_none ? nullptr : &first;
    // Several bugs have the outcome of the first one that shows, so any failure confirms them.
    if (reviewed != nullptr && style == Style::kFull && made.mutants.size() > 1 &&
        !std::holds_alternative<task::Passed>(made.mutants[1].outcome)) {
      reviewed = &made.mutants[1];
    }
    rows.push_back(review_row(made.graph, style, solution, reviewed));
    std::vector<const Mutant*> turns = {&first};
    if (made.mutants.size() > 1 && random.chance(0.5) &&
        !std::holds_alternative<task::Passed>(made.mutants[1].outcome)) {
      turns.insert(turns.begin(), &made.mutants[1]);
    }
    rows.push_back(repair_row(made.graph, style, solution, turns));
    rows.push_back(retry_row(made.graph, style, solution, *turns.front()));
  }

  void add_variants(const TaskInProgress& made, Json& rows) {
    const auto& variants = made.variants;
    if (variants.size() < kVariantsMin || variants.front().first != Role::kBaseline) return;
    std::vector<std::pair<Role, const Solution*>> solutions;
    for (const auto& [role, index] : variants) {
      solutions.emplace_back(role, &made.solutions[index]);
    }
    rows.push_back(variants_row(made.graph, solutions));
    count("variants");
  }

  void add_question(uint64_t number, Json& rows) {
    if (!Random(settings_.seed, "lessons", number).chance(settings_.lessons_share)) return;
    rows.push_back(question_row(settings_.seed, number));
    count("questions");
  }

  void add_task(const TaskInProgress& made, const std::vector<const Solution*>& verified) {
    const TaskGraph& graph = made.graph;
    const Split split = split_of(graph, settings_.test_share);
    const Style style = settings_.graph.style;
    Json task;
    task["id"] = graph.id();
    task["source"] = render_module(graph);
    task["structure"] = graph.structure();
    task["split"] = split_name(split);
    task["sft"] = Json::array();
    if (split == Split::kTrain) {
      for (const Solution* solution : verified) {
        task["sft"].push_back(generation_row(graph, style, *solution, library_.kernels));
      }
      const bool is_right =
          std::ranges::find(verified, &made.solutions[made.buggy]) != verified.end();
      if (is_right) add_bugs(made, task["sft"]);
      add_variants(made, task["sft"]);
      add_question(graph.number, task["sft"]);
    }
    task["row"] = prompt_row(graph, style, split, graph.number);
    if (!made.tests.empty()) task["unit_tests"] = unit_test_row(graph, made.tests);
    task["counts"] = std::move(counts_);
    counts_ = Json::object();
    tasks_.push_back(std::move(task));
  }

  void count(const std::string& name, int64_t n = 1) {
    counts_[name] = counts_.value(name, int64_t{0}) + n;
  }

  const Settings& settings_;
  const Library& library_;
  int number_;
  const Verify& verify_;
  double audit_share_;
  task::Evaluator& auditor_;
  std::vector<TaskInProgress> made_;
  Json tasks_ = Json::array();
  Json rejected_ = Json::object();
  Json errors_ = Json::array();   // Solutions that do not compile.
  Json counts_ = Json::object();  // The counts of the current task.
};

}  // namespace

Result<std::string> make_chunk(const Settings& settings, const Library& library, int number,
                               const Verify& verify, double audit_share, task::Evaluator& auditor) {
  return ChunkMaker(settings, library, number, verify, audit_share, auditor).run();
}

}  // namespace mc::forge
