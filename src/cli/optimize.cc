// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder optimize`: turns a file with an nn.Module into a module with a correct and
// fast kernel (docs/optimize.md).
//
// The Python package `optimize` turns the file into a task.  A SamplingLoop of several turns
// requests answers and has them judged, with its records in a store.  The best answer becomes a
// module again.
#include <algorithm>
#include <chrono>
#include <ctime>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <thread>
#include <utility>
#include <variant>
#include <vector>

#include <fmt/chrono.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/live.h"
#include "bench/sampling_loop.h"
#include "bench/winner.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/judging.h"
#include "cli/numbers.h"
#include "cli/optimize_report.h"
#include "cli/python.h"
#include "cli/source.h"
#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "legality/extract.h"
#include "report/report.h"
#include "sample/suite.h"
#include "store/store.h"
#include "task/verdict_json.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using Clock = std::chrono::steady_clock;
using Json = nlohmann::json;
using store::Judgement;

constexpr int kWatchFeedbackTokens = 400;
constexpr auto kWatchInterval = std::chrono::milliseconds(200);

struct OptimizeArguments : SourceArguments {
  std::string module;
  std::string candidate;
  std::string class_name;
  std::string init;
  std::string inputs;
  std::string out;
  std::string patch;
  double budget_s = 0;
  double enough = 2;
  bool watch = false;
  bool print_prompt = false;
  bool json = false;
  bench::SamplingOptions course;
  EvalArguments judging;
};

Status check(const OptimizeArguments& arguments) {
  std::error_code ignored;
  if (!fs::exists(arguments.module, ignored)) return invalid("no file " + arguments.module);
  const bool has_model = !arguments.model.empty();
  const bool has_endpoint = !arguments.endpoint.empty();
  if (arguments.watch && arguments.candidate.empty()) {
    return invalid("--watch needs the file of a candidate behind the module's");
  }
  if (arguments.watch && !fs::exists(arguments.candidate, ignored)) {
    return invalid("no file " + arguments.candidate);
  }
  if (arguments.watch && arguments.print_prompt)
    return invalid("--print-prompt asks for a kernel, --watch has one");
  if (arguments.watch && arguments.json) return invalid("--json is for a search, not for --watch");
  if (arguments.watch) return ok();
  if (!arguments.candidate.empty()) return invalid("a candidate's file needs --watch");
  if (arguments.print_prompt) return ok();
  if (has_model == has_endpoint) return invalid("give one of --model and --endpoint");
  return check_source(arguments);
}

// ---- The task -----------------------------------------------------------------------------------

// The output of the Python package `optimize`, which parses and generates code but never runs it.
Result<Json> call_python(const Layout& layout, const std::vector<std::string>& words) {
  MC_TRY(const std::string text, run_module(layout, "optimize", words), "optimize");
  const Json answer = Json::parse(text, nullptr, false);
  if (!answer.is_object()) return Error{ErrorCode::kUnavailable, "optimize: no answer: " + text};
  if (answer.contains("error")) return invalid(answer["error"].get<std::string>());
  return answer;
}

struct MadeTask {
  std::string class_name;
  task::Task task;
};

Result<MadeTask> make_task(const OptimizeArguments& arguments, const Layout& layout) {
  MC_TRY(const Json answer,
         call_python(layout, {"task", arguments.module, "--class=" + arguments.class_name,
                              "--init=" + arguments.init, "--inputs=" + arguments.inputs}),
         "optimize");
  const std::string name = fs::path(arguments.module).stem();
  return MadeTask{answer.at("name"), {name, name, answer.at("task")}};
}

// kInvalidInput if the task cannot be judged, or if its comparison would accept wrong results.
Status check_task(eval::Pipeline& pipeline, const task::Task& task) {
  MC_TRY_VOID(pipeline.check_task(task), task.name);
  MC_TRY(const auto found, pipeline.grade_task(task), task.name);
  if (const auto* unsupported = std::get_if<task::Unsupported>(&found)) {
    std::vector<std::string> reasons;
    for (const task::RuleFinding& one : unsupported->constructs) reasons.push_back(one.message);
    return invalid(fmt::format("{}: it cannot be judged: {}", task.name, fmt::join(reasons, "; ")));
  }
  const task::TaskGrade& grade = std::get<eval::Pipeline::Hygiene>(found).grade;
  if (grade.reasons.empty()) return ok();
  const std::string reasons = fmt::format("{}", fmt::join(grade.reasons, "; "));
  if (grade.is_trivial()) {
    return invalid(task.name + ": no test can tell a right kernel from a wrong one: " + reasons);
  }
  std::cerr << "musacoder: " << task.name << ": a weak task: " << reasons << std::endl;
  return ok();
}

// ---- Answers ------------------------------------------------------------------------------------

// All settings that influence verdicts.  The numbers of samples and turns are not among them, so a
// later command may raise them in the same folder.
std::string settings_of(const OptimizeArguments& arguments, const task::Task& task) {
  const eval::Options& judging = arguments.judging.options;
  const Json settings = {{"module", content_hash({task.code})},
                         {"source", arguments.model.empty() ? "endpoint " + arguments.model_name
                                                            : "model " + arguments.model},
                         {"temperature", arguments.sampling.temperature},
                         {"top_p", arguments.sampling.top_p},
                         {"max_tokens", arguments.sampling.tokens_max},
                         {"sampling_seed", arguments.sampling_seed},
                         {"extra_body", Json::parse(arguments.extra_body)},
                         {"backend", task::to_string(judging.backend)},
                         {"policy", judging.policy},
                         {"correctness", task::to_string(judging.correctness)}};
  return settings.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// Requests and judges answers until is_enough; returns all verdicts.
Result<std::vector<Judgement>> search(const OptimizeArguments& arguments, store::Run& run,
                                      const task::Task& task, bench::Sampler& sampler,
                                      eval::Pipeline& pipeline) {
  const std::string& language = arguments.judging.options.language;
  const std::vector<sample::Item> items = {
      {task, sample::generation_prompt(task, task::Dialect::kCuda, language), "", {}}};
  bench::SamplingOptions options = arguments.course;
  std::map<int64_t, std::optional<double>> best;  // The keys are samples.
  bool is_found = false;  // Accessed by one thread at a time, as SamplingLoop guarantees.
  const auto take = [&](const Judgement& judgement) {
    is_found = is_found || ends_search(judgement.verdict, arguments.enough);
    if (judgement.key.sample >= options.samples) return;  // An earlier command had more samples.
    std::optional<double>& mine = best[judgement.key.sample];
    std::cerr << verdict_line(judgement, options.turns, mine) << std::endl;
  };
  MC_TRY(const std::vector<Judgement> before, run.judgements(), "optimize");
  for (const Judgement& judgement : before) take(judgement);
  const auto start = Clock::now();
  const std::chrono::duration<double> budget(arguments.budget_s);
  options.is_enough = [&] {
    return is_found || (arguments.budget_s > 0 && Clock::now() - start >= budget);
  };
  const bench::SamplingLoop course(
      run, items, options, [&](const bench::SamplingProgress& progress) {
        if (progress.judgement == nullptr) return;
        take(*progress.judgement);
        if (arguments.json) {
          std::cout << bench::sample_event(task.name, *progress.judgement) << std::flush;
        }
      });
  MC_TRY(const bench::SamplingEnd end, course.run(&sampler, pipeline), "optimize");
  for (const auto& [what, num] : end.failed) {
    std::cerr << "musacoder: " << num << " requests without an answer: " << what << std::endl;
  }
  MC_TRY(std::vector<Judgement> all, run.judgements(), "optimize");
  if (all.empty() && end.last_failure) return with_context(*end.last_failure, "no answer");
  return all;
}

// ---- The winner ---------------------------------------------------------------------------------

Result<std::string> answer_of(const store::Run& run, const store::AnswerKey& key) {
  MC_TRY(std::vector<store::Answer> answers, run.answers(), "optimize");
  const auto found = std::ranges::find(answers, key, &store::Answer::key);
  if (found != answers.end()) return std::move(found->completion);
  return Error{ErrorCode::kIo, "the store has no answer " + store::to_string(key)};
}

// Writes the module of an answer that passed, with its verdict; returns the module's path.
Result<fs::path> write_winner(const OptimizeArguments& arguments, const Layout& layout,
                              const MadeTask& made, const std::string& answer,
                              const task::Verdict& passed) {
  MC_CHECK(std::holds_alternative<task::Passed>(passed.outcome));
  const legality::Extraction extraction = legality::extract(answer);
  const auto* extracted = std::get_if<legality::Extracted>(&extraction);
  MC_CHECK(extracted != nullptr);
  MC_TRY(const auto folder, TemporaryDirectory::create("optimize"), "optimize");
  const fs::path task = folder.path() / "task.py";
  const fs::path kernel = folder.path() / "kernel.py";
  const fs::path target = fs::path(arguments.out) / (module_name(made.task.name) + ".py");
  const fs::path verdict = fs::path(target).replace_extension(".json");
  MC_TRY_VOID(write_file_atomically(task, made.task.code), "optimize");
  MC_TRY_VOID(write_file_atomically(kernel, extracted->module), "optimize");
  MC_TRY_VOID(write_file_atomically(verdict, task::to_json(passed, task::Indent::kPretty) + "\n"),
              "--out");
  MC_TRY(const Json written,
         call_python(layout, {"write", task.string(), kernel.string(), verdict.string(),
                              "--class=" + made.class_name, "--original=" + arguments.module}),
         "optimize");
  MC_TRY_VOID(write_file_atomically(target, written.at("module").get<std::string>()), "--out");
  if (!arguments.patch.empty()) {
    MC_TRY_VOID(write_output(arguments.patch, written.at("patch").get<std::string>()), "--patch");
  }
  return target;
}

// ---- The commands -------------------------------------------------------------------------------

Result<int> run_search(OptimizeArguments& arguments, const Layout& layout) {
  MC_TRY(const MadeTask made, make_task(arguments, layout), "optimize");
  if (arguments.out.empty()) arguments.out = fs::path("optimized") / made.task.name;
  MC_TRY(auto opened,
         store::open_run(arguments.out, {.name = made.task.name,
                                         .kind = "optimize",
                                         .settings = settings_of(arguments, made.task)}),
         "--out");
  store::Run& run = opened.run;
  const std::vector<store::TaskRecord> tasks = {{made.task.id, "", {}, made.task.code}};
  MC_TRY_VOID(run.set_tasks(tasks), "--out");
  MC_TRY(const Source source, open_source(arguments, layout, arguments.out), "optimize");
  MC_CHECK(source.sampler != nullptr);
  if (source.http != nullptr) MC_TRY_VOID(source.http->reach(arguments.endpoint), "--endpoint");
  MC_TRY(const auto pipeline, eval::Pipeline::create(arguments.judging.options, print_step),
         "optimize");
  MC_TRY_VOID(check_task(*pipeline, made.task), "optimize");
  print_when_ended("musacoder: interrupted; the same command goes on from here");
  MC_TRY(const std::vector<Judgement> all,
         search(arguments, run, made.task, *source.sampler, *pipeline), "optimize");
  print_when_ended("");
  std::ostream& text_stream = arguments.json ? std::cerr : std::cout;
  const Judgement* winner = bench::winner_of(all);
  fs::path path;
  if (winner == nullptr) {
    print_failure(text_stream, all, arguments.out);
  } else {
    MC_TRY(const std::string answer, answer_of(run, winner->key), "optimize");
    MC_TRY(path, write_winner(arguments, layout, made, answer, winner->verdict), "optimize");
    print_winner(text_stream, *winner, path);
  }
  if (arguments.json) std::cout << end_of_search(made.task.name, winner, path) << std::flush;
  return winner == nullptr ? kExitFailed : kExitDone;
}

// Judges the current candidate, prints its outcome and feedback, and writes its module if it
// passes.
Result<report::Judged> judge_once(const OptimizeArguments& arguments, const Layout& layout,
                                  eval::Pipeline& pipeline) {
  MC_TRY(const MadeTask made, make_task(arguments, layout), "optimize");
  MC_TRY_VOID(pipeline.check_task(made.task), made.task.name);
  MC_TRY(const std::string answer, read_file(arguments.candidate, task::kAnswerBytesMax), "read");
  const auto start = Clock::now();
  report::Judged judged = judged_since(
      start, pipeline.evaluate(made.task, {arguments.candidate, answer}), arguments.judging);
  std::cout << fmt::format("{:%H:%M:%S}  {}  {:.1f} s\n{}\n", fmt::localtime(std::time(nullptr)),
                           task::outcome_name(judged.verdict.outcome), judged.seconds,
                           judged.feedback)
            << std::flush;
  if (std::holds_alternative<task::Passed>(judged.verdict.outcome)) {
    std::error_code ignored;
    fs::create_directories(arguments.out, ignored);
    MC_TRY(const fs::path path, write_winner(arguments, layout, made, answer, judged.verdict),
           "optimize");
    std::cout << "Written: " << path.string() << ", with its verdict beside it\n" << std::flush;
  }
  return judged;
}

// Prints the first prompt of a search, for use with a model by hand.
Status print_prompt(const OptimizeArguments& arguments, const Layout& layout) {
  MC_TRY(const MadeTask made, make_task(arguments, layout), "optimize");
  const std::string& language = arguments.judging.options.language;
  for (const sample::Message& message :
       sample::generation_prompt(made.task, task::Dialect::kCuda, language)) {
    std::cout << message.content;
  }
  return ok();
}

Result<int> run_watch(OptimizeArguments& arguments, const Layout& layout) {
  arguments.judging.feedback_tokens = kWatchFeedbackTokens;
  if (arguments.out.empty()) {
    arguments.out = fs::path("optimized") / fs::path(arguments.module).stem();
  }
  MC_TRY(const auto pipeline, eval::Pipeline::create(arguments.judging.options, print_step),
         "optimize");
  if (arguments.judging.exit_code) {
    MC_TRY(const report::Judged judged, judge_once(arguments, layout, *pipeline), "optimize");
    return exit_code_of({}, {judged}, arguments.judging);
  }
  using Stamps = std::pair<fs::file_time_type, fs::file_time_type>;
  constexpr auto kMissing =
      fs::file_time_type::min();  // An editor may remove the file for a moment while it saves.
  for (Stamps before;; std::this_thread::sleep_for(kWatchInterval)) {
    std::error_code ignored;
    const Stamps now = {fs::last_write_time(arguments.module, ignored),
                        fs::last_write_time(arguments.candidate, ignored)};
    if (before == now || now.first == kMissing || now.second == kMissing) continue;
    before = now;
    if (const auto judged = judge_once(arguments, layout, *pipeline); !judged) {
      report_error(judged.error());
    }
  }
}

Result<int> run_optimize(OptimizeArguments& arguments, const CLI::App& command) {
  MC_TRY_VOID(check(arguments), "optimize");
  MC_TRY_VOID(resolve_options(arguments.judging, command), "optimize");
  arguments.course.judges = arguments.judging.jobs;
  arguments.course.goes_on_after_pass = true;
  MC_TRY(const Layout layout, find_layout(), "optimize");
  if (arguments.print_prompt) {
    MC_TRY_VOID(print_prompt(arguments, layout), "optimize");
    return kExitDone;
  }
  return arguments.watch ? run_watch(arguments, layout) : run_search(arguments, layout);
}

void add_module(CLI::App& command, OptimizeArguments& arguments) {
  command.add_option("module", arguments.module, "A file with an nn.Module")->required();
  command.add_option("candidate", arguments.candidate, "With --watch: a kernel written by hand");
  command.add_option("--class", arguments.class_name,
                     "The class (default: Model, or the only nn.Module of the file)");
  command.add_option("--init", arguments.init, "Arguments of its constructor: '64, bias=False'");
  command
      .add_option("--out,-o", arguments.out,
                  "Folder for all of it (default: optimized/MODULE); taken up where it is")
      ->check(kOutputFolder);
  command
      .add_option("--patch", arguments.patch,
                  "Also a patch that puts the written module in the file's place, for git apply")
      ->check(kOutputFile);
  add_source_options(command, arguments);
}

void add_search(CLI::App& command, OptimizeArguments& arguments) {
  bench::SamplingOptions& course = arguments.course;
  command.add_option("--samples,-n", course.samples, "Conversations with the model")
      ->check(whole_range(1, 10000));
  command.add_option("--turns", course.turns, "Answers in each of them, with feedback between")
      ->check(whole_range(1, 100));
  command
      .add_option("--budget", arguments.budget_s,
                  "Seconds after which no more answers are asked for (default: no limit)")
      ->check(kPositive);
  command
      .add_option("--enough", arguments.enough,
                  "Speed-up over eager at which no more answers are asked for")
      ->check(kPositive);
  command.add_flag("--json", arguments.json,
                   "Events on standard output, a JSON object a line; the rest on standard error");
  command.add_flag("--watch", arguments.watch,
                   "Judge the candidate's file each time that it changes, and write the module of "
                   "one that passes");
  command.add_flag("--print-prompt", arguments.print_prompt,
                   "Print the prompt, for a model that is asked by hand, and do nothing else");
  command.add_flag("--exit-code", arguments.judging.exit_code,
                   "With --watch: judge once; 0 it passes, 3 it fails, 4 it is not scored");
}

void add_judging(CLI::App& command, OptimizeArguments& arguments) {
  EvalArguments& judging = arguments.judging;
  add_correctness(command, judging.options.correctness);
  // The option --inputs of this command has another meaning.
  command.remove_option(command.get_option("--inputs"));
  // The module determines its own dtypes.
  command.remove_option(command.get_option("--precision"));
  command.option_defaults()->group("Options");
  command.add_option("--inputs", arguments.inputs,
                     "Arguments of forward: 'f32[64,1024], i64[64]<1000, 2'");
  command.option_defaults()->group("Judging");
  add_machine(command, judging);
  add_seed(command, judging);
  add_race_check(command, judging);
  add_timing(command, judging);
  add_compile_limits(command, judging);
  add_run_limits(command, judging);
}

void add_sampling(CLI::App& command, OptimizeArguments& arguments) {
  command.option_defaults()->group("Sampling");
  add_sampling_options(command, arguments);
  add_request_options(command, arguments);
  command.add_option("--concurrency", arguments.course.concurrency, "Requests at once")
      ->check(whole_range(1, 1024));
}

}  // namespace

void add_optimize(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<OptimizeArguments>();
  arguments->course.samples = 4;
  arguments->course.turns = 4;
  arguments->sampling.temperature = 0.8;  // The samples should differ.
  arguments->sampling.tokens_max = 16384;
  arguments->judging.jobs = 2;
  arguments->judging.options.correctness.mode = "eval";  // Generated kernels have no gradients.
  CLI::App* command = app.add_subcommand(
      "optimize", "A correct, fast kernel for an nn.Module: a model writes, MooreEval judges");
  add_module(*command, *arguments);
  add_search(*command, *arguments);
  add_judging(*command, *arguments);
  add_sampling(*command, *arguments);
  command->footer(
      "Examples:\n"
      "  musacoder optimize block.py --endpoint http://localhost:8000/v1 --model-name m\n"
      "  musacoder optimize block.py kernel.py --watch\n"
      "Exit code: 0 a kernel is written; 3 no answer is correct.");
  command->callback([arguments, command, &exit_code] {
    const Result<int> code = run_optimize(*arguments, *command);
    exit_code = code_of(code);
    if (!code && arguments->json) {
      const std::string run = fs::path(arguments->module).stem();
      std::cout << bench::failure_event(run, code.error().message) << std::flush;
    }
  });
}

}  // namespace mc::cli
