// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder bench`: obtains a model's answers, judges them with MooreEval, and
// computes the figures.
//
// All records are in a store, so the same command resumes an interrupted run.  Answers come from a
// file, a run folder, an endpoint, or a model folder by musacoder-learn.  Each answer is judged
// when it arrives, and the figures are computed from all verdicts at the end.
#include <algorithm>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <set>
#include <string>
#include <thread>
#include <utility>
#include <vector>

#include <sys/utsname.h>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <nlohmann/json.hpp>

#include "bench/live.h"
#include "bench/sampling_loop.h"
#include "cli/bench_arguments.h"
#include "cli/bench_report.h"
#include "cli/commands.h"
#include "cli/interrupt.h"
#include "cli/live.h"
#include "cli/prompts.h"
#include "cli/source.h"
#include "core/check.h"
#include "core/hash.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "sample/answers.h"
#include "sample/suite.h"
#include "store/store.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using sample::Item;
using store::Answer;
using store::AnswerKey;

constexpr size_t kFolderCharacters = 20;  // "answers-" and 12 digits.

Live::Events events_of(const BenchArguments& arguments) {
  return arguments.json ? Live::Events::kToStandardOutput : Live::Events::kNone;
}

// The stream for text; with --json, standard output is for events.
std::ostream& text_stream(const BenchArguments& arguments) {
  return arguments.json ? std::cerr : std::cout;
}

// The facts by which a report identifies the machine; verdicts contain the rest.
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

// The answers of a file or run folder; none if a model generates them.
Result<std::vector<Answer>> load_stored(const BenchArguments& arguments,
                                        const std::vector<Item>& items) {
  if (!arguments.answers.empty()) return sample::load_answers(arguments.answers, items);
  if (!arguments.runs.empty()) return sample::load_run_folder(arguments.runs, items);
  return std::vector<Answer>();
}

// Adds answers that the run does not have yet.  kInvalidInput if the run has a different answer
// with the same key.
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

// The folder for answers that are not in the store yet; it depends on the run's settings.
fs::path answers_folder(const BenchArguments& arguments, const std::vector<Item>& items) {
  const std::string folder = "answers-" + content_hash({settings_of(arguments, items)});
  return fs::path(arguments.out) / folder.substr(0, kFolderCharacters);
}

// ---- The tasks ----------------------------------------------------------------------------------

// True for items of the requested levels, families and problems; without a request, for all.
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
  MC_TRY(const std::filesystem::path path, suite_path(arguments.suite, layout), "suite");
  auto items = sample::load_bench_suite(path, arguments.judging.options.dialect,
                                        arguments.judging.options.language,
                                        arguments.judging.options.musa_architecture);
  if (!items) return items.error();
  if (!arguments.prompt_template.empty()) {
    MC_TRY_VOID(
        apply_prompt_template(arguments.prompt_template, layout, arguments.judging.options, *items),
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
  std::set<std::string> families;
  for (const Item& item : items) families.insert(item.families.begin(), item.families.end());
  std::erase_if(items, [&](const Item& item) { return !is_wanted(arguments, item); });
  if (items.empty()) {
    return invalid(fmt::format(
        "the suite has no task of that --level, --family or --problem{}",
        families.empty() ? "" : fmt::format("; its families are {}", fmt::join(families, ", "))));
  }
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

// ---- The command --------------------------------------------------------------------------------

// Requests and judges all answers that are missing.
Result<bench::SamplingEnd> complete(const BenchArguments& arguments, store::Run& run,
                                    const std::vector<Item>& items, bench::Sampler* sampler) {
  MC_TRY(const auto before, run.judgements(), "bench");
  // A run of stored answers does not request further turns.
  const int64_t turns = sampler == nullptr ? 1 : arguments.course.turns;
  Live live(run.record().name, events_of(arguments), before, turns);
  const bench::SamplingLoop course(
      run, items, arguments.course,
      [&](const bench::SamplingProgress& progress) { live.observe(progress); });
  MC_TRY(const bench::SamplingPlan plan, course.plan(sampler), "bench");
  if (plan.num_to_ask + plan.num_to_judge == 0) return bench::SamplingEnd();
  live.begin(plan);
  print_when_ended("musacoder: interrupted; the same command goes on from here");
  LivePipeline evaluator(arguments.judging.options, live);
  // The sampler generates all answers before any is judged, so a machine that cannot judge is
  // detected now.
  if (sampler != nullptr && sampler->takes_all()) MC_TRY_VOID(evaluator.open(), "bench");
  auto end = course.run(sampler, [&] { return evaluator.open(); });
  live.finish();
  print_when_ended("");
  return end;
}

// Begins or resumes one run of the store, completes it, and reports it.  The exit code shows
// whether each request got an answer.
Result<int> run_one(const BenchArguments& arguments, store::Store& store,
                    const std::vector<Item>& items, const std::vector<Answer>& stored,
                    bench::Sampler* sampler) {
  MC_TRY(store::Run run,
         store.begin({.name = name_of(arguments),
                      .kind = "bench",
                      .settings = settings_of(arguments, items),
                      .environment = environment_of()}),
         "bench");
  MC_TRY_VOID(run.set_tasks(records_of(items)), "bench");
  if (!arguments.prices.empty()) {
    MC_TRY_VOID(run.put(bench::kPricesName, nlohmann::json(arguments.prices).dump()), "bench");
  }
  MC_TRY_VOID(take_stored(stored, run), "bench");
  MC_TRY(const bench::SamplingEnd end, complete(arguments, run, items, sampler), "bench");
  MC_TRY(const std::string summary, report_bench(arguments, run, end, text_stream(arguments)),
         "bench");
  if (arguments.json) {
    std::cout << bench::end_event(run.record().name, "{\"summary\":" + summary + "}") << std::flush;
  }
  return end.failed.empty() ? kExitDone : kExitUnanswered;
}

// Judges the main run's answers under another protocol.
Status run_also(const BenchArguments& other, const std::string& main_run, store::Store& store,
                const std::vector<Item>& items) {
  MC_TRY(const auto runs, store.runs(), "--also");
  const auto found = std::ranges::find_if(
      runs, [&](const store::Run& run) { return run.record().name == main_run; });
  MC_CHECK(found != runs.end());  // The command has begun this run.
  MC_TRY(const std::vector<Answer> answers, found->answers(), "--also");
  text_stream(other) << "\n" << other.run << "\n";
  MC_TRY_VOID(run_one(other, store, items, answers, nullptr), "--also");
  return ok();
}

Result<int> run_bench(BenchArguments& arguments, const CLI::App& command) {
  MC_TRY_VOID(resolve_bench_options(arguments, command), "bench");
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
  MC_TRY(const int exit_code, run_one(arguments, *store, items, stored, source.sampler.get()),
         "bench");
  for (const BenchArguments& other : others) {
    MC_TRY_VOID(run_also(other, name_of(arguments), *store, items), "bench");
  }
  return exit_code;
}

}  // namespace

void add_bench(CLI::App& app, int& exit_code) {
  auto arguments = std::make_shared<BenchArguments>();
  CLI::App* command = app.add_subcommand("bench", "Measure a model: answers, verdicts, Pass@k");
  add_bench_options(*command, *arguments);
  command->footer(
      "Examples:\n"
      "  musacoder bench --endpoint http://localhost:8000/v1 --model-name m --suite tasks --turns "
      "2 "
      "--out bench/m\n"
      "  musacoder bench --answers answers.jsonl --suite tasks --out bench/stored\n"
      "Exit code: 0 done, 1 the machine failed, 2 bad input, 4 a request had no answer.");
  command->callback([arguments, command, &exit_code] {
    const Result<int> code = run_bench(*arguments, *command);
    exit_code = code_of(code);
    if (!code && arguments->json) {
      std::cout << bench::failure_event(name_of(*arguments), code.error().message) << std::flush;
    }
  });
}

}  // namespace mc::cli
