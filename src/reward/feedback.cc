// SPDX-License-Identifier: Apache-2.0
#include "reward/feedback.h"

#include <algorithm>
#include <set>

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "reward/hints.h"
#include "reward/page.h"
#include "reward/profile_text.h"
#include "task/text.h"

namespace mc::reward {
namespace {

using task::location_name;

constexpr size_t kErrorsMax = 5;  // The bound on compiler errors.
constexpr size_t kRulesMax = 6;
constexpr size_t kFindingsMax = 4;
constexpr size_t kFramesMax = 4;
constexpr size_t kChecksMax = 3;  // The bound on checks of one trial.
constexpr size_t kMismatchesMax = 5;
constexpr size_t kTrialsMax = 8;
constexpr size_t kOutputLinesMax = 5;
constexpr size_t kMessageLinesMax = 6;

// Quotes the first lines of a text.
void quote_lines(Page& page, std::string_view text, size_t num_max) {
  for (size_t num = 0; num < num_max && !text.empty(); ++num) {
    const std::string_view line = text.substr(0, text.find('\n'));
    page.quote(line);
    text.remove_prefix(std::min(text.size(), line.size() + 1));
  }
}

// Quotes the last lines of a text.
void quote_last_lines(Page& page, std::string_view text, size_t num_max) {
  while (text.ends_with('\n')) text.remove_suffix(1);
  size_t begin = text.size();
  for (size_t num = 0; num < num_max && begin != 0 && begin != std::string_view::npos; ++num) {
    begin = text.rfind('\n', begin - 1);
  }
  quote_lines(page, begin == std::string_view::npos || begin == 0 ? text : text.substr(begin + 1),
              num_max);
}

// The names of sources are the candidate's text.
std::string at(const task::SourceLocation& location) {
  return location_name(location).empty() ? "" : " at " + named(location_name(location));
}

// ---- Evidence -----------------------------------------------------------------------------------

void write_rules(Page& page, const std::vector<task::RuleFinding>& findings) {
  for (size_t i = 0; i < std::min(findings.size(), kRulesMax); ++i) {
    const task::RuleFinding& finding = findings[i];
    page.say(fmt::format("Rule {}{}: {}", named(finding.rule), at(finding.location),
                         quoted(finding.message)));
    page.quote(finding.location.excerpt);
  }
  say_how_many_more(page, findings.size(), kRulesMax, "findings");
}

std::string triple(const std::array<int64_t, 3>& values) {
  return fmt::format("({}, {}, {})", values[0], values[1], values[2]);
}

void write_finding(Page& page, const task::KernelFinding& finding) {
  if (finding.kind == "configuration") {  // Such a finding has no thread.
    page.say("Found a wrong configuration.");
    page.quote(finding.detail);
    return;
  }
  const std::string kernel = finding.kernel.empty() ? "" : " in kernel " + named(finding.kernel);
  page.say(fmt::format("Found {}{}, block {}, thread {}{}.", named(finding.kind), kernel,
                       triple(finding.block), triple(finding.thread), at(finding.location)));
  page.quote(finding.location.excerpt);
  page.quote(finding.detail);
  if (finding.other.line == 0) return;
  page.say(fmt::format("The other thread's access is{}.", at(finding.other)));
  page.quote(finding.other.excerpt);
}

// The finding that ended the kernel comes first, because the others may follow from it; each hint
// is written once.
void write_findings(Page& page, std::vector<task::KernelFinding> findings) {
  std::stable_partition(findings.begin(), findings.end(), task::ends_kernel);
  std::set<std::string_view> hinted;
  for (size_t i = 0; i < std::min(findings.size(), kFindingsMax); ++i) {
    write_finding(page, findings[i]);
    if (hinted.insert(findings[i].kind).second) say_hint(page, kernel_hint(findings[i].kind));
  }
  say_how_many_more(page, findings.size(), kFindingsMax, "findings");
}

void write_diagnostics(Page& page, const std::vector<task::Diagnostic>& diagnostics) {
  size_t num_errors = 0;
  std::set<std::string_view> hinted;
  for (const task::Diagnostic& diagnostic : diagnostics) {
    const bool is_error = diagnostic.severity != "warning" && diagnostic.severity != "note";
    if (!is_error || ++num_errors > kErrorsMax) continue;
    page.say(fmt::format("{}{}: {}", diagnostic.severity, at(diagnostic.location),
                         quoted(diagnostic.message)));
    page.quote(diagnostic.location.excerpt);
    const std::string_view hint = compile_hint(diagnostic.message);
    if (hinted.insert(hint).second) say_hint(page, hint);
  }
  say_how_many_more(page, num_errors, kErrorsMax, "errors");
  if (num_errors > 0) return;
  for (size_t i = 0; i < std::min(diagnostics.size(), kErrorsMax); ++i) {
    page.say(fmt::format("{}{}: {}", diagnostics[i].severity, at(diagnostics[i].location),
                         quoted(diagnostics[i].message)));
  }
}

void write_exception(Page& page, const task::Exception& exception) {
  const bool is_silent = exception.message.find_first_not_of(" \t\r\n") == std::string::npos;
  page.say(fmt::format("Exception {}{}{}", named(exception.type), at(exception.location),
                       is_silent ? ", without a message." : ":"));
  quote_lines(page, exception.message, kMessageLinesMax);
  if (exception.frames.empty()) {
    page.quote(exception.location.excerpt);
    return;
  }
  page.say("The candidate's frames, innermost last:");
  const size_t num = std::min(exception.frames.size(), kFramesMax);
  for (size_t i = exception.frames.size() - num; i < exception.frames.size(); ++i) {
    const task::SourceLocation& frame = exception.frames[i];
    page.quote(location_name(frame) + "  " + frame.excerpt);
  }
}

void write_mismatches(Page& page, const std::vector<task::Mismatch>& mismatches) {
  for (size_t i = 0; i < std::min(mismatches.size(), kMismatchesMax); ++i) {
    page.say(fmt::format("at [{}]: expected {}, got {}", fmt::join(mismatches[i].index, ", "),
                         mismatches[i].expected, named(mismatches[i].got)));
  }
}

void write_histogram(Page& page, const std::map<std::string, int64_t>& histogram) {
  if (histogram.empty()) return;
  std::vector<std::string> parts;
  for (const auto& [decade, num] : histogram) parts.push_back(fmt::format("{}: {}", decade, num));
  page.say(fmt::format("Error over tolerance: {}", fmt::join(parts, "; ")));
}

void write_check(Page& page, const task::OutputCheck& check) {
  page.say(fmt::format("{}: {}: {}", named(check.path), check.problem, quoted(check.detail)));
  if (check.num_wrong > 0) {
    page.say(fmt::format("The largest error is {:.4g}, where {:.4g} is allowed.", check.error_max,
                         check.error_tolerance));
  }
  write_mismatches(page, check.first_mismatches);
  write_histogram(page, check.histogram);
  say_hint(page, output_hint(check.problem));
}

std::string trial_name(const task::Trial& trial) {
  std::vector<std::string> sizes;
  for (const auto& [name, value] : trial.constants) {
    sizes.push_back(fmt::format("{}={}", name, value));
  }
  const std::string at_sizes = sizes.empty() ? "" : fmt::format(" ({})", fmt::join(sizes, ", "));
  return fmt::format("Trial {}, {} shape{}, {} values", trial.index, trial.shape, at_sizes,
                     trial.distribution);
}

void write_trial(Page& page, const task::Trial& trial) {
  page.say(trial_name(trial) + " fails:");
  write_findings(page, trial.findings);  // The failures below may follow from these findings.
  for (size_t i = 0; i < std::min(trial.checks.size(), kChecksMax); ++i) {
    write_check(page, trial.checks[i]);
  }
  say_how_many_more(page, trial.checks.size(), kChecksMax, "outputs that differ");
  if (!trial.inputs_mutated.empty()) {
    page.say(fmt::format("The candidate overwrites its input {}: write to a new tensor instead.",
                         quoted(trial.inputs_mutated)));
  }
}

// Writes the judge's explanation of the values, from the first trial that has one.
void write_diagnosis(Page& page, const std::vector<task::Trial>& trials) {
  for (const task::Trial& trial : trials) {
    for (const task::OutputCheck& check : trial.checks) {
      if (!check.diagnosis.empty()) return page.say("Diagnosis: " + check.diagnosis);
    }
  }
}

// True if the trial's values are right; a fault of a kernel fails it nevertheless, with all other
// trials.
bool agrees(const task::Trial& trial) {
  return trial.checks.empty() && trial.inputs_mutated.empty();
}

std::string why_it_fails(const task::Trial& trial) {
  if (!trial.checks.empty()) {
    return fmt::format(": {}: {}: {}", named(trial.checks[0].path), trial.checks[0].problem,
                       quoted(trial.checks[0].detail));
  }
  if (!trial.findings.empty()) return ": " + named(trial.findings[0].kind);
  return ": it overwrites its input " + quoted(trial.inputs_mutated);
}

void write_trial_in_one_line(Page& page, const task::Trial& trial) {
  std::string how = " agrees";
  if (!trial.passed) {
    const bool is_others_fault = agrees(trial) && trial.findings.empty();
    how = is_others_fault ? " agrees, and fails with the kernel" : " fails" + why_it_fails(trial);
  }
  page.say(trial_name(trial) + how + ".");
}

// Writes the first trial that fails by itself in full, and one line for each other.
void write_trials(Page& page, const std::vector<task::Trial>& trials) {
  const auto first = std::find_if(trials.begin(), trials.end(), [](const task::Trial& trial) {
    return !trial.passed && (!agrees(trial) || !trial.findings.empty());
  });
  if (first != trials.end()) write_trial(page, *first);
  size_t num = 0;
  for (auto trial = trials.begin(); trial != trials.end() && num < kTrialsMax; ++trial) {
    if (trial == first) continue;
    write_trial_in_one_line(page, *trial);
    ++num;
  }
}

void write_names(Page& page, std::string_view what, const std::vector<std::string>& names) {
  constexpr size_t kNamesMax = 8;
  if (names.empty()) return;
  std::vector<std::string> shown;
  for (size_t i = 0; i < std::min(names.size(), kNamesMax); ++i) shown.push_back(quoted(names[i]));
  const std::string more =
      names.size() > kNamesMax ? fmt::format(" and {} more", names.size() - kNamesMax) : "";
  page.say(fmt::format("{}: {}{}.", what, fmt::join(shown, ", "), more));
}

// Writes the parameters and buffers of the reference that the candidate did not receive.
void write_state(Page& page, const task::StateMatch& state) {
  write_names(page, "Parameters and buffers of the reference that ModelNew lacks by name",
              state.missing);
  write_names(page, "Parameters and buffers of ModelNew with another shape or dtype",
              state.unmatched);
  if (state.missing.empty() && state.unmatched.empty()) return;
  write_names(page, "Parameters of ModelNew that got no value from the reference", state.own);
  say_hint(page,
           "values are copied by name: name and shape parameters and submodules as Model does, and "
           "transpose or pack them in forward.");
}

// Writes numbers in the candidate's text that are sizes of the task.
void write_fixed_sizes(Page& page, const std::vector<task::SourceLocation>& places) {
  if (places.empty()) return;
  page.say("A size may be fixed here: a number that is one of the task's own sizes.");
  for (const task::SourceLocation& location : places)
    page.quote(location_name(location) + "  " + location.excerpt);
}

// ---- Outcomes -----------------------------------------------------------------------------------

// The stage in words; a candidate process chooses its name.
std::string stage_text(std::string_view stage) {
  if (stage == "record" || stage == "load") return "while its module was imported";
  if (stage == "init") return "while ModelNew was constructed";
  if (stage == "forward") return "in forward";
  if (stage == "all_calls") return "that all of its calls took together";
  return "in the stage " + named(stage);
}

// The time at which a broken rule was detected.
std::string_view time_text(std::string_view when) {
  if (when == "run") return "seen while it ran";
  if (when == "timing") return "seen while it was timed";
  return "seen before it ran";
}

struct Writer {
  Page& page;
  const task::Verdict& verdict;

  void operator()(const task::Unextractable& x) const {
    page.say(fmt::format("Result: no candidate could be read from the answer ({}).", x.reason));
    page.say(fmt::format("Reason{}: {}", at(x.location), quoted(x.detail)));
    page.quote(x.location.excerpt);
    say_hint(page, extraction_hint(x.reason));
  }
  void operator()(const task::Illegal& x) const {
    page.say(fmt::format("Result: rejected; the candidate does what the policy {} forbids ({}).",
                         verdict.protocol.policy, time_text(x.when)));
    write_rules(page, x.findings);
    say_hint(page, illegal_hint(x.when, verdict.protocol.policy));
  }
  void operator()(const task::CompileFailed& x) const {
    page.say(is_musa() ? "Result: the candidate does not compile as MUSA."
                       : "Result: the native source does not compile.");
    write_diagnostics(page, x.diagnostics);
  }
  void operator()(const task::Crashed& x) const {
    page.say(fmt::format("Result: the candidate failed {}.", stage_text(x.stage)));
    write_findings(page, x.findings);
    if (x.exception) write_exception(page, *x.exception);
    write_death(x);
    write_fixed_sizes(page, verdict.telemetry.fixed_sizes);
    write_trials(page, x.trials);
    write_output();
  }
  void operator()(const task::TimedOut& x) const {
    page.say(x.limit_s > 0
                 ? fmt::format("Result: stopped after {:.4g} s {}.", x.limit_s, stage_text(x.stage))
                 : fmt::format("Result: a kernel was stopped {}, which does not end.",
                               stage_text(x.stage)));
    write_findings(page, x.findings);
    page.say(
        "Hint: look for a loop whose end is never reached, threads that wait for each other, or "
        "far more work than the task needs.");
    write_output();
  }
  void operator()(const task::OutOfMemory& x) const {
    page.say(fmt::format("Result: the candidate needs more than {} MiB of memory {}.",
                         x.limit_bytes >> 20, stage_text(x.stage)));
    page.say(x.stage == "compile"
                 ? "Hint: the compiler ran out of memory: shorten the source, and look for great "
                   "tables, deep templates and includes of what is no header."
                 : "Hint: allocate what the outputs need and no more; compute sizes from the "
                   "inputs.");
  }
  void operator()(const task::Wrong& x) const {
    const auto num = std::ranges::count_if(x.trials, agrees);
    const bool has_findings = std::ranges::any_of(
        x.trials, [](const task::Trial& trial) { return !trial.findings.empty(); });
    page.say(has_findings
                 ? fmt::format("Result: wrong; a fault of a kernel fails all {} trials. Values "
                               "agree with the reference in {} of them.",
                               x.trials.size(), num)
                 : fmt::format("Result: wrong; trials that agree with the reference: {} of {}.",
                               num, x.trials.size()));
    if (x.specialised) {
      page.say(
          "It is right at the task's own sizes and wrong at others: compute sizes from the "
          "inputs instead of fixing them.");
    }
    // Faults of kernels explain the failure better.
    if (!has_findings) write_diagnosis(page, x.trials);
    write_fixed_sizes(page, verdict.telemetry.fixed_sizes);
    write_state(page, verdict.telemetry.state);
    write_trials(page, x.trials);
  }
  void operator()(const task::Passed& x) const {
    const auto num =
        std::ranges::count_if(x.trials, [](const auto& trial) { return trial.passed; });
    page.say(fmt::format("Result: correct; trials that agree with the reference: {} of {}.", num,
                         x.trials.size()));
    if (x.generality < 1) {
      page.say(
          "It is right at the task's own sizes and fails at others, which costs nothing here: "
          "compute sizes from the inputs instead of fixing them.");
      write_fixed_sizes(page, verdict.telemetry.fixed_sizes);
      write_trials(page, x.trials);
    }
    if (x.performance) write_profile(page, *x.performance);
  }
  void operator()(const task::Unsupported& x) const {
    const bool is_task = !x.constructs.empty() && x.constructs.front().rule == "task.fails";
    const std::string why = is_task ? "the task itself fails"
                                    : fmt::format("the {} backend lacks what the candidate uses",
                                                  task::to_string(verdict.backend));
    page.say("Result: not judged; " + why + ". This is no fault of the candidate.");
    write_rules(page, x.constructs);
  }
  void operator()(const task::Infra&) const {
    page.say("Result: not judged; the machine failed. This is no fault of the candidate.");
  }

  void write_death(const task::Crashed& x) const {
    if (x.exception) return;
    if (x.signal != 0) {
      page.say(fmt::format("The process died by {}.", task::signal_name(x.signal)));
      say_hint(page, signal_hint(x.signal));
    } else if (x.findings.empty()) {
      page.say(fmt::format("The process ended by itself with exit code {}.", x.exit_code));
    }
  }
  void write_output() const {
    if (verdict.telemetry.output_tail.empty()) return;
    page.say("The end of what it printed:");
    quote_last_lines(page, verdict.telemetry.output_tail, kOutputLinesMax);
  }
  bool is_musa() const { return verdict.protocol.dialect == task::Dialect::kMusa; }
  void write_dialect() const {
    if (is_musa()) page.say(fmt::format("Note: {}.", task::dialect_note(verdict)));
  }
  void write_grade() const {
    if (!task::is_earned_by_any_constant(verdict)) return;
    page.say(
        fmt::format("Note: this task cannot tell a right answer from one that computes "
                    "nothing ({}), so passing it earns no reward.",
                    fmt::join(verdict.task_grade.reasons, "; ")));
  }
  void write_reduction() const {
    const task::Reduction& reduction = verdict.telemetry.reduction;
    if (reduction.reason.empty()) return;
    std::vector<std::string> changes;
    for (const auto& [name, used] : reduction.used) {
      const auto native = reduction.native.find(name);
      if (native == reduction.native.end() || native->second == used) continue;
      changes.push_back(fmt::format("{} {} instead of {}", name, used, native->second));
    }
    page.say(fmt::format("Note: judged at reduced sizes ({}): {}", reduction.reason,
                         fmt::join(changes, ", ")));
  }
};

}  // namespace

std::string feedback(const task::Verdict& verdict, const FeedbackOptions& options) {
  Page page(options.tokens_max);
  const Writer writer{page, verdict};
  std::visit(writer, verdict.outcome);
  writer.write_grade();
  writer.write_reduction();
  writer.write_dialect();
  return page.text();
}

std::string repair_request(std::string_view feedback) {
  return fmt::format("{}Write the whole answer again.\n", feedback);
}

std::string speed_request(std::string_view feedback) {
  return fmt::format(
      "{}The kernels are right. Make them faster: change what takes the most time, and keep the "
      "results the same. Write the whole answer again.\n",
      feedback);
}

std::string retry_request(std::string_view answer, std::string_view feedback) {
  return fmt::format("An answer that failed:\n{}\n{}", without_special_tokens(answer),
                     repair_request(feedback));
}

}  // namespace mc::reward
