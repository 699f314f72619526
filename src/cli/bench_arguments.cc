// SPDX-License-Identifier: Apache-2.0
#include "cli/bench_arguments.h"

#include <algorithm>
#include <filesystem>
#include <set>
#include <string_view>
#include <system_error>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/bench_report.h"
#include "cli/numbers.h"
#include "cli/prompts.h"
#include "cli/suggest.h"
#include "core/hash.h"
#include "eval/pipeline.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;

std::string source_of(const BenchArguments& arguments) {
  if (!arguments.model.empty()) return "model " + arguments.model;
  if (!arguments.endpoint.empty()) return "endpoint " + arguments.model_name;
  return arguments.answers.empty() ? "runs " + arguments.runs : "answers " + arguments.answers;
}

bool is_generated(const BenchArguments& arguments) {
  return !arguments.model.empty() || !arguments.endpoint.empty();
}

Status check(const BenchArguments& arguments) {
  const auto given = {!arguments.model.empty(), !arguments.endpoint.empty(),
                      !arguments.answers.empty(), !arguments.runs.empty()};
  if (std::count(given.begin(), given.end(), true) != 1) {
    return invalid("give one of --model, --endpoint, --answers and --runs");
  }
  if (!is_generated(arguments) && arguments.course.turns > 1) {
    return invalid("--turns needs --model or --endpoint: stored answers have the turns they have");
  }
  return check_source(arguments);
}

// The judging options on the command line, by name.
std::map<std::string, std::vector<std::string>> judging_options(const CLI::App& command) {
  const std::set<std::string> groups = {kCorrectnessGroup, kTimingGroup, kLimitsGroup};
  std::map<std::string, std::vector<std::string>> out;
  for (const CLI::Option* option : command.get_options()) {
    const bool decides = groups.contains(option->get_group()) || option->check_lname("strict");
    if (decides && option->count() > 0) out[option->get_name()] = option->results();
  }
  return out;
}

// ---- Options ------------------------------------------------------------------------------------

void add_source(CLI::App& command, BenchArguments& arguments) {
  add_source_options(command, arguments);
  command.add_option("--answers", arguments.answers,
                     "Stored answers, JSON Lines of {id, sample, completion}");
  command.add_option("--runs", arguments.runs,
                     "KernelBench's run folder: level_X_problem_Y_sample_Z_kernel.py");
  command
      .add_option("--suite", arguments.suite,
                  "test.jsonl of the forge, a KernelBench copy, a folder of tasks; or: tasks")
      ->required();
  command.add_option("--out,-o", arguments.out, "Folder for all of it; taken up where it is")
      ->required()
      ->check(kOutputFolder);
  command.add_option("--run", arguments.run, "The run's name in the folder (default: the model's)");
  command.add_option("--samples,-n", arguments.course.samples, "Samples of each task")
      ->check(whole_range(1, 10000));
  command
      .add_option("--turns", arguments.course.turns,
                  "Answers of a sample at most, each after the first with the verifier's feedback")
      ->check(whole_range(1, 100));
  command.add_option("--level", arguments.levels, "Only these levels of the suite: 1,2")
      ->delimiter(',');
  command.add_option("--problem", arguments.problems, "Only these tasks: 1/19,2/7, or whole ids")
      ->delimiter(',');
  command.add_option("--family", arguments.families, "Only tasks of these families")
      ->delimiter(',');
  command.add_option("--limit", arguments.limit,
                     "Only the first tasks of the suite (default: all)");
  command.add_option("--against", arguments.against,
                     "Another benchmark's folder, or FOLDER#RUN: the difference at tasks of both");
  add_missing(command, arguments.missing);
  command.add_option("--also", arguments.also,
                     "Judge the same answers under another protocol too: mode=eval,strict");
  command.add_flag("--details", arguments.details, "Print a line for each verdict as well");
  command.add_flag("--json", arguments.json,
                   "Events on standard output, a JSON object a line; the rest on standard error");
}

void add_judging(CLI::App& command, BenchArguments& arguments) {
  command.option_defaults()->group("Judging");
  add_machine(command, arguments.judging);
  add_dialect(command, arguments.judging);
  add_seed(command, arguments.judging);
  command.add_flag("--strict", arguments.judging.options.strict, "As for eval");
  add_correctness(command, arguments.judging.options.correctness);
  add_race_check(command, arguments.judging);
  add_timing(command, arguments.judging);
  add_compile_limits(command, arguments.judging);
  add_run_limits(command, arguments.judging);
}

void add_sampling(CLI::App& command, BenchArguments& arguments) {
  command.option_defaults()->group("Sampling (--model and --endpoint)");
  add_sampling_options(command, arguments);
  command.add_option("--system", arguments.system, "A system message before each prompt");
  command.add_option(
      "--prompt-template", arguments.prompt_template,
      fmt::format("{}; or a file whose {{{{task}}}} and other names are filled in", kPromptNames));
  command
      .add_option("--feedback-tokens", arguments.course.feedback_tokens,
                  "Bound of the feedback before a next turn")
      ->check(whole_range(50, 1'000'000));
  command.option_defaults()->group("How answers are made");
  add_request_options(command, arguments);
  command.add_option("--concurrency", arguments.course.concurrency, "Requests at once")
      ->check(whole_range(1, 1024));
  command
      .add_option("--prices", arguments.prices,
                  "Dollars for a million tokens of prompts and of answers: 0.5,1.5")
      ->delimiter(',')
      ->check(kNotNegative)
      ->expected(2);
  command
      .add_option("--fail-on-error", arguments.course.failures_max,
                  "End the run after N requests without an answer (0: never)")
      ->check(kNotNegative);
}

}  // namespace

void add_bench_options(CLI::App& command, BenchArguments& arguments) {
  arguments.judging.jobs = 2;
  add_source(command, arguments);
  add_judging(command, arguments);
  add_sampling(command, arguments);
}

Status resolve_bench_options(BenchArguments& arguments, const CLI::App& command) {
  MC_TRY_VOID(check(arguments), "bench");
  MC_TRY_VOID(resolve_options(arguments.judging, command), "bench");
  arguments.course.judges = arguments.judging.jobs;
  arguments.given = judging_options(command);
  return ok();
}

Result<BenchArguments> other_protocol(const BenchArguments& arguments,
                                      const std::string& protocol) {
  BenchArguments other = arguments;
  other.run = fmt::format("{} ({})", name_of(arguments), protocol);
  other.protocol = protocol;
  other.against.clear();  // The run of --against was judged under the first protocol.
  CLI::App command{"", "--also"};
  add_judging(command, other);
  std::vector<std::string> words;
  for (std::string_view rest = protocol; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    words.insert(words.begin(), fmt::format("--{}", word));
  }
  try {
    command.parse(words);  // The parser reads the words from the end of the vector.
  } catch (const CLI::ParseError& wrong) {
    return invalid(fmt::format("--also {}: {}", protocol, message_of(wrong)));
  }
  MC_TRY_VOID(resolve_options(other.judging, command), "--also");
  for (auto& [name, values] : judging_options(command)) other.given[name] = values;
  return other;
}

std::string name_of(const BenchArguments& arguments) {
  if (!arguments.run.empty()) return arguments.run;
  if (!arguments.endpoint.empty()) return arguments.model_name;
  std::error_code ignored;
  fs::path path = arguments.model + arguments.answers + arguments.runs;
  path = fs::absolute(path, ignored).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return arguments.answers.empty() ? path.filename().string() : path.stem().string();
}

std::string settings_of(const BenchArguments& arguments, const std::vector<sample::Item>& items) {
  std::string suite = sample::prompt_lines(items);
  for (const sample::Item& item : items) suite += item.task.code;
  nlohmann::json settings = {{"suite", content_hash({suite})},
                             {"tasks", items.size()},
                             {"source", source_of(arguments)},
                             {"samples", is_generated(arguments) ? arguments.course.samples : 0},
                             {"turns", arguments.course.turns},
                             {"feedback_tokens", arguments.course.feedback_tokens},
                             {"temperature", arguments.sampling.temperature},
                             {"top_p", arguments.sampling.top_p},
                             {"max_tokens", arguments.sampling.tokens_max},
                             {"sampling_seed", arguments.sampling_seed},
                             {"extra_body", nlohmann::json::parse(arguments.extra_body)},
                             {"backend", task::to_string(arguments.judging.options.backend)},
                             {"policy", arguments.judging.options.policy}};
  if (const eval::Options& judging = arguments.judging.options;
      judging.dialect == task::Dialect::kMusa) {
    settings["dialect"] = {to_string(judging.dialect), judging.musa_architecture};
  }
  if (const std::string& language = arguments.judging.options.language;
      language != task::kAnyLanguage) {
    settings["language"] = language;
  }
  if (!arguments.prompt_template.empty()) {
    settings["prompt_template"] = fs::path(arguments.prompt_template).filename().string();
  }
  if (!arguments.given.empty()) settings["options"] = arguments.given;
  if (!arguments.protocol.empty()) settings["also"] = arguments.protocol;
  return settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mc::cli
