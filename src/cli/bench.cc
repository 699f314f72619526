// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder bench`: answers of a model, verdicts of MooreEval, figures.
//
// All is kept in a store, so that the same command goes on where an earlier one ended: answers come
// from a file, a run folder, an endpoint or a model by musacoder-learn, each is judged as it comes,
// and at the end the figures are made of all verdicts.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/utsname.h>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "bench/course.h"
#include "bench/figures.h"
#include "cli/commands.h"
#include "cli/judging.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "cli/source.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "report/bench.h"
#include "report/bench_json.h"
#include "report/report.h"
#include "sample/answers.h"
#include "sample/suite.h"
#include "store/store.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using sample::Item;
using store::Answer;
using store::AnswerKey;
using store::Judgement;

constexpr size_t kFolderCharacters = 20;  // "answers-" and 12 digits.

struct BenchArguments : SourceArguments {
  std::string answers;
  std::string runs;
  std::string suite;
  std::string out;
  std::string run;
  std::string against;
  std::vector<std::string> also;
  std::vector<int> levels;
  std::vector<std::string> problems;
  std::vector<std::string> families;
  size_t limit = 0;
  std::string system;
  std::string prompt_template;
  std::vector<double> prices;
  bench::CourseOptions course;
  // Options of judging that were given, by their names.
  std::map<std::string, std::vector<std::string>> given;
  std::string protocol;  // That of --also; "" for the run itself.
  bool details = false;
  EvalArguments judging;
};

Error invalid(const std::string& message) { return {ErrorCode::kInvalidInput, message}; }

std::string source_of(const BenchArguments& arguments) {
  if (!arguments.model.empty()) return "model " + arguments.model;
  if (!arguments.endpoint.empty()) return "endpoint " + arguments.model_name;
  return arguments.answers.empty() ? "runs " + arguments.runs : "answers " + arguments.answers;
}

bool is_generated(const BenchArguments& arguments) {
  return !arguments.model.empty() || !arguments.endpoint.empty();
}

// The run's name in the store, where the user gave none: that of the model, file or folder.
std::string name_of(const BenchArguments& arguments) {
  if (!arguments.run.empty()) return arguments.run;
  if (!arguments.endpoint.empty()) return arguments.model_name;
  std::error_code ignored;
  fs::path path = arguments.model + arguments.answers + arguments.runs;
  path = fs::absolute(path, ignored).lexically_normal();
  if (!path.has_filename()) path = path.parent_path();
  return arguments.answers.empty() ? path.filename().string() : path.stem().string();
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

// Options of judging that were given, by their names.
std::map<std::string, std::vector<std::string>> judging_options(const CLI::App& command) {
  const std::set<std::string> groups = {kCorrectnessGroup, kTimingGroup, kLimitsGroup};
  std::map<std::string, std::vector<std::string>> out;
  for (const CLI::Option* option : command.get_options()) {
    const bool decides = groups.contains(option->get_group()) || option->check_lname("strict");
    if (decides && option->count() > 0) out[option->get_name()] = option->results();
  }
  return out;
}

// All that the figures depend on, as one line of JSON.
std::string settings_of(const BenchArguments& arguments, const std::vector<Item>& items) {
  std::string suite = sample::prompt_lines(items);
  for (const Item& item : items) suite += item.task.code;
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
  if (!arguments.prices.empty()) settings["prices"] = arguments.prices;
  if (!arguments.given.empty()) settings["options"] = arguments.given;
  if (!arguments.protocol.empty()) settings["also"] = arguments.protocol;
  return settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// A report names the machine by these; verdicts have the rest.
std::string environment_of() {
  nlohmann::json out = {{"program", kProgram}, {"cpus", std::thread::hardware_concurrency()}};
  utsname system{};
  if (::uname(&system) == 0) {
    out["system"] = fmt::format("{} {} {}", system.sysname, system.release, system.machine);
  }
  return out.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// ---- Answers ------------------------------------------------------------------------------------

std::set<std::string> ids_of(const std::vector<Item>& items) {
  std::set<std::string> out;
  for (const Item& item : items) out.insert(item.task.id);
  return out;
}

// The answers of a file or run folder; none for a model that is asked.
Result<std::vector<Answer>> load_stored(const BenchArguments& arguments,
                                        const std::vector<Item>& items) {
  if (!arguments.answers.empty()) return sample::load_answers(arguments.answers, items);
  if (!arguments.runs.empty()) return sample::load_run_folder(arguments.runs, items);
  return std::vector<Answer>();
}

// Adds those that the run has not.  kInvalidInput where it has another answer in the place of one.
Status take_stored(const std::vector<Answer>& answers, store::Run& run) {
  MC_TRY(const auto before, run.answers(), "bench");
  std::map<AnswerKey, const Answer*> known;
  for (const Answer& answer : before) known[answer.key] = &answer;
  std::vector<Answer> added;
  for (const Answer& answer : answers) {
    const auto found = known.find(answer.key);
    if (found == known.end()) {
      added.push_back(answer);
    } else if (found->second->completion != answer.completion) {
      return invalid(fmt::format("the run {:?} has another answer {}: give another --out or --run",
                                 run.record().name, to_string(answer.key)));
    }
  }
  return run.add(added);
}

// Runs of one store have settings of their own, and so have the answers that wait there.
fs::path answers_folder(const BenchArguments& arguments, const std::vector<Item>& items) {
  const std::string folder = "answers-" + content_hash({settings_of(arguments, items)});
  return fs::path(arguments.out) / folder.substr(0, kFolderCharacters);
}

// ---- Judging ------------------------------------------------------------------------------------

std::string line_of(const bench::CourseProgress& progress) {
  std::string line = fmt::format("{} of {} pass", progress.num_passed, progress.num_scored);
  if (progress.num_asked > 0) line += fmt::format(", {} asked", progress.num_asked);
  if (progress.num_waiting > 0) line += fmt::format(", {} to judge", progress.num_waiting);
  if (progress.num_failed > 0) line += fmt::format(", {} without an answer", progress.num_failed);
  return progress.last.empty() ? line : line + ", " + progress.last;
}

// Asks and judges all that is left.
Result<bench::CourseEnd> complete(const BenchArguments& arguments, store::Run& run,
                                  const std::vector<Item>& items, bench::Sampler* sampler) {
  std::unique_ptr<ProgressBar> bar;
  int64_t num_before = 0;
  const auto observe = [&](const bench::CourseProgress& progress) {
    const int64_t done = progress.num_verdicts - num_before + progress.num_failed;
    const int64_t left = progress.num_asked + progress.num_waiting;
    bar->show(static_cast<size_t>(done), static_cast<size_t>(done + left), line_of(progress));
  };
  const bench::Course course(run, items, arguments.course, observe);
  MC_TRY(const bench::CoursePlan plan, course.plan(sampler), "bench");
  if (plan.num_to_ask + plan.num_to_judge == 0) return bench::CourseEnd();
  num_before = plan.num_judged;
  bar = std::make_unique<ProgressBar>(plan.num_to_ask + plan.num_to_judge);
  MC_TRY(
      auto pipeline,
      eval::Pipeline::create(arguments.judging.options, [&](std::string_view s) { bar->note(s); }),
      "bench");
  auto end = course.run(sampler, *pipeline);
  bar->finish();
  return end;
}

// ---- Figures ------------------------------------------------------------------------------------

std::string paired_line(const report::Paired& paired, const std::string& against) {
  return fmt::format(
      "against {}, {} tasks of both: {:.1f} % there, {:.1f} % here, difference {:+.1f} points "
      "[{:+.1f}, {:+.1f}]; better at {}, worse at {}\n",
      against, paired.num_tasks, 100 * paired.a, 100 * paired.b, 100 * paired.difference,
      100 * paired.interval.low, 100 * paired.interval.high, paired.num_better, paired.num_worse);
}

// The run that --against names: FOLDER#RUN, or a folder's last one that is not of --also.
Result<std::vector<Judgement>> judgements_of(const std::string& name) {
  std::error_code ignored;
  size_t mark = name.find('#');  // Both names may have one.
  while (mark < name.size() && !fs::is_directory(name.substr(0, mark), ignored)) {
    mark = name.find('#', mark + 1);
  }
  if (fs::is_directory(name, ignored)) mark = std::string::npos;
  const fs::path folder = name.substr(0, mark);
  MC_TRY(const auto store, store::Store::open_to_read(folder / store::kStoreName), "--against");
  MC_TRY(const auto runs, store->runs(), "--against");
  const std::string wanted = mark == std::string::npos ? "" : name.substr(mark + 1);
  const auto found = std::find_if(runs.rbegin(), runs.rend(), [&](const store::Run& run) {
    if (!wanted.empty()) return run.record().name == wanted;
    return !nlohmann::json::parse(run.record().settings, nullptr, false).contains("also");
  });
  if (found == runs.rend()) return invalid("--against: " + folder.string() + " has no such run");
  return found->judgements();
}

// The records as JSON Lines, for other programs.
Status export_lines(const fs::path& folder, const bench::RunData& data) {
  std::string answers;
  std::string verdicts;
  for (const Answer& answer : data.answers) answers += store::json_line(answer);
  for (const Judgement& one : data.judgements) verdicts += store::json_line(one);
  MC_TRY_VOID(write_file_atomically(folder / "answers.jsonl", answers), "bench");
  return write_file_atomically(folder / "verdicts.jsonl", verdicts);
}

// Why requests had no answer; a server may give each one a reason of its own.
void print_failures(const bench::CourseEnd& end) {
  constexpr size_t kReasonsMax = 10;
  size_t num_shown = 0;
  for (const auto& [what, num] : end.failed) {
    if (++num_shown > kReasonsMax) break;
    std::cout << "  " << num << " times " << what << "\n";
  }
  if (end.failed.size() > kReasonsMax) {
    std::cout << "  and " << end.failed.size() - kReasonsMax << " other reasons\n";
  }
}

Status report_all(const BenchArguments& arguments, const store::Run& run,
                  const bench::CourseEnd& end) {
  MC_TRY(const bench::RunData data, bench::read_run(run), "bench");
  if (data.answers.empty()) {
    const Error none = invalid("no answer to any task");
    return end.last_failure ? with_context(*end.last_failure, none.message) : none;
  }
  const std::vector<report::BenchRow> rows = bench::rows_of(data);
  std::vector<report::Judged> judged;
  for (const Judgement& one : data.judgements) {
    judged.push_back({one.verdict, one.reward, one.seconds});
  }
  const int64_t missing = bench::count_missing(data);
  const int64_t cut = std::ranges::count(data.answers, "length", &Answer::finish);
  std::optional<report::Paired> paired;
  if (!arguments.against.empty()) {
    MC_TRY(const auto others, judgements_of(arguments.against), "--against");
    paired =
        report::paired_difference(bench::attempts_of(others), bench::attempts_of(data.judgements));
  }
  if (arguments.protocol.empty()) {  // The folder's files are of the run itself.
    MC_TRY_VOID(export_lines(arguments.out, data), "bench");
    const std::string summary = report::bench_json(
        {.rows = rows, .judged = judged, .num_missing = missing, .num_cut = cut, .paired = paired});
    MC_TRY_VOID(write_file_atomically(fs::path(arguments.out) / "summary.json", summary), "bench");
  }
  if (arguments.details) std::cout << report::table(judged, {}) << "\n";
  std::cout << report::bench_table(rows) << report::summary(judged);
  if (missing > 0) std::cout << missing << " without an answer, in no figure\n";
  print_failures(end);
  if (cut > 0) {
    std::cout << fmt::format(
        "{} cut off at the limit of tokens (--max-tokens), judged as they are\n", cut);
  }
  if (paired) std::cout << paired_line(*paired, arguments.against);
  return ok();
}

// ---- The command --------------------------------------------------------------------------------

// True for the levels, families and problems that were asked for; for all where none was.
bool is_wanted(const BenchArguments& arguments, const Item& item) {
  const auto is_its_level = [&](int level) { return item.level == fmt::format("level {}", level); };
  const auto is_it = [&](const std::string& name) {
    return item.task.id == name || item.task.id.ends_with(':' + name);
  };
  const auto is_its_family = [&](const std::string& name) {
    return std::ranges::find(item.families, name) != item.families.end();
  };
  return (arguments.levels.empty() || std::ranges::any_of(arguments.levels, is_its_level)) &&
         (arguments.families.empty() || std::ranges::any_of(arguments.families, is_its_family)) &&
         (arguments.problems.empty() || std::ranges::any_of(arguments.problems, is_it));
}

Result<std::vector<Item>> load_items(const BenchArguments& arguments, const Layout& layout) {
  std::filesystem::path suite = arguments.suite;
  if (arguments.suite == "tasks") suite = layout.share("tasks");
  auto items = sample::load_bench_suite(suite, arguments.judging.options.dialect);
  if (!items) return items.error();
  if (!arguments.prompt_template.empty()) {
    MC_TRY_VOID(sample::apply_template(arguments.prompt_template, arguments.judging.options.dialect,
                                       *items),
                "--prompt-template");
  }
  for (Item& item : *items) {
    if (!arguments.system.empty()) {
      item.prompt.insert(item.prompt.begin(), {"system", arguments.system});
    }
  }
  return items;
}

Result<std::vector<Item>> wanted_of(const BenchArguments& arguments, std::vector<Item> items) {
  std::erase_if(items, [&](const Item& item) { return !is_wanted(arguments, item); });
  if (items.empty()) return invalid("the suite has no task of that --level, --family or --problem");
  if (arguments.limit > 0 && arguments.limit < items.size()) items.resize(arguments.limit);
  return items;
}

std::vector<store::TaskRecord> records_of(const std::vector<Item>& items) {
  std::vector<store::TaskRecord> out;
  for (const Item& item : items) {
    out.push_back({item.task.id, item.level, item.families, item.task.code});
  }
  return out;
}

// One run of the store: begun or taken up, completed and reported.
Status run_one(const BenchArguments& arguments, store::Store& store, const std::vector<Item>& items,
               const std::vector<Answer>& stored, bench::Sampler* sampler) {
  MC_TRY(store::Run run,
         store.begin({.name = name_of(arguments),
                      .kind = "bench",
                      .settings = settings_of(arguments, items),
                      .environment = environment_of()}),
         "bench");
  MC_TRY_VOID(run.set_tasks(records_of(items)), "bench");
  MC_TRY_VOID(take_stored(stored, run), "bench");
  MC_TRY(const bench::CourseEnd end, complete(arguments, run, items, sampler), "bench");
  return report_all(arguments, run, end);
}

void add_judging(CLI::App& command, BenchArguments& arguments);

// The run of --also mode=eval,policy=kernelbench.  Options of judging that the main run has and the
// protocol does not name stay as they are.
Result<BenchArguments> other_protocol(const BenchArguments& arguments,
                                      const std::string& protocol) {
  BenchArguments other = arguments;
  other.run = fmt::format("{} ({})", name_of(arguments), protocol);
  other.protocol = protocol;
  other.against.clear();  // That run was judged under the first protocol.
  CLI::App command{"", "--also"};
  add_judging(command, other);
  std::vector<std::string> words;
  for (std::string_view rest = protocol; !rest.empty();) {
    const std::string_view word = rest.substr(0, rest.find(','));
    rest.remove_prefix(std::min(rest.size(), word.size() + 1));
    words.insert(words.begin(), fmt::format("--{}", word));
  }
  try {
    command.parse(words);  // It takes the words from the end.
  } catch (const CLI::ParseError& wrong) {
    return invalid(fmt::format("--also {}: {}", protocol, wrong.what()));
  }
  MC_TRY_VOID(settle(other.judging, command), "--also");
  for (auto& [name, values] : judging_options(command)) other.given[name] = values;
  return other;
}

// Judges the main run's answers under another protocol.
Status run_also(const BenchArguments& other, const std::string& main_run, store::Store& store,
                const std::vector<Item>& items) {
  MC_TRY(const auto runs, store.runs(), "--also");
  const auto found = std::ranges::find_if(
      runs, [&](const store::Run& run) { return run.record().name == main_run; });
  MC_TRY(const std::vector<Answer> answers, found->answers(), "--also");
  std::cout << "\n" << other.run << "\n";
  return run_one(other, store, items, answers, nullptr);
}

Status run_bench(BenchArguments& arguments, const CLI::App& command) {
  MC_TRY_VOID(check(arguments), "bench");
  MC_TRY_VOID(settle(arguments.judging, command), "bench");
  arguments.course.judges = arguments.judging.jobs;
  arguments.given = judging_options(command);
  std::vector<BenchArguments> others;
  for (const std::string& protocol : arguments.also) {
    MC_TRY(BenchArguments other, other_protocol(arguments, protocol), "bench");
    others.push_back(std::move(other));
  }
  MC_TRY(const Layout layout, find_layout(), "bench");
  MC_TRY(std::vector<Item> suite, load_items(arguments, layout), "--suite");
  MC_TRY(auto stored, load_stored(arguments, suite), "bench");
  MC_TRY(const std::vector<Item> items, wanted_of(arguments, std::move(suite)), "bench");
  const std::set<std::string> ids = ids_of(items);
  std::erase_if(stored, [&](const Answer& answer) { return !ids.contains(answer.key.id); });
  MC_TRY(const auto store, store::Store::open(fs::path(arguments.out) / store::kStoreName),
         "--out");
  MC_TRY(const Source source, open_source(arguments, layout, answers_folder(arguments, items)),
         "bench");
  MC_TRY_VOID(run_one(arguments, *store, items, stored, source.sampler.get()), "bench");
  for (const BenchArguments& other : others) {
    MC_TRY_VOID(run_also(other, name_of(arguments), *store, items), "bench");
  }
  return ok();
}

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
      ->required();
  command.add_option("--run", arguments.run, "The run's name in the folder (default: the model's)");
  command.add_option("--samples,-n", arguments.course.samples, "Samples of each task")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command
      .add_option("--turns", arguments.course.turns,
                  "Answers of a sample at most, each after the first with the verifier's feedback")
      ->check(CLI::Range(1, 100))
      ->capture_default_str();
  command.add_option("--level", arguments.levels, "Only these levels of the suite: 1,2")
      ->delimiter(',');
  command.add_option("--problem", arguments.problems, "Only these tasks: 1/19,2/7, or whole ids")
      ->delimiter(',');
  command.add_option("--family", arguments.families, "Only tasks of these families")
      ->delimiter(',');
  command.add_option("--limit", arguments.limit, "Only the first tasks of the suite");
  command.add_option("--against", arguments.against,
                     "Another benchmark's folder, or FOLDER#RUN: the difference at tasks of both");
  command.add_option("--also", arguments.also,
                     "Judge the same answers under another protocol too: mode=eval,strict");
  command.add_flag("--details", arguments.details, "Print a line for each verdict as well");
}

void add_judging(CLI::App& command, BenchArguments& arguments) {
  command.option_defaults()->group("Judging");
  add_machine(command, arguments.judging);
  add_dialect(command, arguments.judging);
  command.add_option("--seed", arguments.judging.seed, "Seed of all inputs (default: secret)")
      ->check(kNotNegative);
  command.add_flag("--strict", arguments.judging.options.strict, "As for eval");
  add_correctness(command, arguments.judging.options.correctness);
  add_timing(command, arguments.judging);
  add_compile_limits(command, arguments.judging);
  add_run_limits(command, arguments.judging);
}

void add_sampling(CLI::App& command, BenchArguments& arguments) {
  command.option_defaults()->group("Sampling (--model and --endpoint)");
  add_sampling_options(command, arguments);
  command.add_option("--system", arguments.system, "A system message before each prompt");
  command
      .add_option("--prompt-template", arguments.prompt_template,
                  "A file whose {{task}} and {{platform}} are filled in, in place of the prompt")
      ->check(CLI::ExistingFile);
  command
      .add_option("--feedback-tokens", arguments.course.feedback_tokens,
                  "Bound of the feedback before a next turn")
      ->check(CLI::Range(50, 1'000'000))
      ->capture_default_str();
  command.option_defaults()->group("How answers are made");
  add_request_options(command, arguments);
  command.add_option("--concurrency", arguments.course.askers, "Requests at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command
      .add_option("--prices", arguments.prices,
                  "Dollars for a million tokens of prompts and of answers: 0.5,1.5")
      ->delimiter(',')
      ->check(kNotNegative)
      ->expected(2);
  command
      .add_option("--fail-on-error", arguments.course.failures_max,
                  "End the run after N requests without an answer (0: never)")
      ->check(kNotNegative)
      ->capture_default_str();
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<BenchArguments>();
  arguments->judging.jobs = 2;
  CLI::App* command = app.add_subcommand("bench", "Measure a model: answers, verdicts, Pass@k");
  add_source(*command, *arguments);
  add_judging(*command, *arguments);
  add_sampling(*command, *arguments);
  command->callback([arguments, command, &exit_code] {
    const Status status = run_bench(*arguments, *command);
    exit_code = status ? kExitDone : report_error(status.error());
  });
}

}  // namespace mc::cli
