// SPDX-License-Identifier: Apache-2.0
//
// The command `musacoder bench`: answers of a model, verdicts of MooreEval, figures.
//
// Three steps that each take up what an earlier run left in the folder: answers come (from a file,
// a run folder, an endpoint, or a model by musacoder-learn), each is judged as it comes, and at the
// end the figures are made of all verdicts.
#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <filesystem>
#include <iostream>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <system_error>
#include <thread>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "cli/commands.h"
#include "cli/judging.h"
#include "cli/learner.h"
#include "cli/numbers.h"
#include "cli/progress.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "report/bench.h"
#include "report/bench_json.h"
#include "report/report.h"
#include "reward/score.h"
#include "sample/answers.h"
#include "sample/bench_folder.h"
#include "sample/chat_client.h"
#include "sample/http.h"
#include "sample/suite.h"

namespace mc::cli {
namespace {

using sample::Answer;
using sample::AnswerKey;
using sample::BenchFolder;
using sample::Item;
using sample::Judgement;

struct BenchArguments {
  std::string model;
  std::string endpoint;
  std::string model_name;
  std::string answers;
  std::string runs;
  std::string suite;
  std::string out;
  std::string against;
  std::vector<int> levels;
  std::vector<std::string> problems;
  int64_t samples = 1;
  size_t limit = 0;
  int concurrency = 4;
  int batch = 16;
  std::string device = "cpu";
  int retries = 4;
  double request_timeout_s = 600;
  uint64_t sampling_seed = 0;
  sample::Sampling sampling;
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

Status check(const BenchArguments& arguments) {
  const auto given = {!arguments.model.empty(), !arguments.endpoint.empty(),
                      !arguments.answers.empty(), !arguments.runs.empty()};
  if (std::count(given.begin(), given.end(), true) != 1) {
    return invalid("give one of --model, --endpoint, --answers and --runs");
  }
  std::error_code ignored;
  const std::filesystem::path config = std::filesystem::path(arguments.model) / "config.json";
  if (!arguments.model.empty() && !std::filesystem::exists(config, ignored)) {
    return invalid(arguments.model + " is no model's folder: it has no config.json");
  }
  if (!arguments.endpoint.empty() && arguments.model_name.empty()) {
    return invalid("--endpoint needs --model-name: which of its models to ask");
  }
  return ok();
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
std::string settings_of(const BenchArguments& arguments, const CLI::App& command,
                        const std::vector<Item>& items) {
  std::string suite = sample::prompt_lines(items);
  for (const Item& item : items) suite += item.task.code;
  nlohmann::json settings = {{"suite", content_hash({suite})},
                             {"tasks", items.size()},
                             {"source", source_of(arguments)},
                             {"samples", is_generated(arguments) ? arguments.samples : 0},
                             {"temperature", arguments.sampling.temperature},
                             {"top_p", arguments.sampling.top_p},
                             {"max_tokens", arguments.sampling.tokens_max},
                             {"sampling_seed", arguments.sampling_seed},
                             {"backend", task::to_string(arguments.judging.options.backend)},
                             {"policy", arguments.judging.options.policy}};
  if (const eval::Options& judging = arguments.judging.options;
      judging.dialect == task::Dialect::kMusa) {
    settings["dialect"] = {to_string(judging.dialect), judging.musa_architecture};
  }
  const auto options = judging_options(command);
  if (!options.empty()) settings["options"] = options;
  return settings.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

// ---- Judging ------------------------------------------------------------------------------------

// Threads that judge the answers that they are given, and keep the verdicts in the folder.  The
// same text for the same task is judged once: samples of a sharp model are often equal.  The first
// error of the folder (a full disk) ends the work.
class Judges {
 public:
  Judges(task::Evaluator& evaluator, BenchFolder& folder, const std::vector<Item>& items, int num,
         ProgressBar& bar)
      : evaluator_(evaluator), folder_(folder), bar_(bar) {
    for (const Item& item : items) tasks_[item.task.id] = &item.task;
    for (int i = 0; i < num; ++i) threads_.emplace_back([this] { work(); });
  }
  ~Judges() { static_cast<void>(finish()); }

  void submit(const AnswerKey& key, const std::string& completion) {
    const std::lock_guard lock(mutex_);
    Case& one = cases_[{key.id, completion}];
    one.keys.push_back(key);
    const bool is_known = one.keys.size() > 1 || one.judgement;
    if (one.judgement) keep(one);
    if (is_known) return;
    queue_.emplace_back(key.id, completion);
    changed_.notify_one();
  }

  // Once all that was submitted is judged.
  Status finish() {
    {
      const std::lock_guard lock(mutex_);
      is_closed_ = true;
      changed_.notify_all();
    }
    threads_.clear();
    return status_;
  }

 private:
  using Work = std::pair<std::string, std::string>;  // A task's id and an answer.
  struct Case {
    std::vector<AnswerKey> keys;  // That wait for the judgement.
    std::optional<Judgement> judgement;
  };

  std::optional<Work> next() {
    std::unique_lock lock(mutex_);
    changed_.wait(lock, [this] { return is_closed_ || !queue_.empty(); });
    if (queue_.empty() || !status_) return std::nullopt;
    Work work = std::move(queue_.front());
    queue_.pop_front();
    return work;
  }

  void work() {
    while (const auto work = next()) {
      const AnswerKey key = first_key(*work);
      const Judgement judgement = judge(key, work->second);
      const std::lock_guard lock(mutex_);
      Case& one = cases_.at(*work);
      one.judgement = judgement;
      keep(one);
    }
  }

  AnswerKey first_key(const Work& work) {
    const std::lock_guard lock(mutex_);
    return cases_.at(work).keys.front();
  }

  // REQUIRES: mutex_ is held, and the case is judged.
  void keep(Case& one) {
    for (const AnswerKey& key : std::exchange(one.keys, {})) {
      Judgement mine = *one.judgement;
      mine.key = key;
      mine.verdict.candidate = sample::to_string(key);
      if (mine.reward) ++num_scored_;
      if (std::holds_alternative<task::Passed>(mine.verdict.outcome)) ++num_passed_;
      if (const Status kept = folder_.add(std::move(mine)); !kept) status_ = kept;
      bar_.advance(
          fmt::format("{} of {} pass, {}", num_passed_, num_scored_, sample::to_string(key)));
    }
  }

  Judgement judge(const AnswerKey& key, const std::string& completion) {
    const auto start = std::chrono::steady_clock::now();
    Judgement out;
    out.key = key;
    out.verdict = evaluator_.evaluate(*tasks_.at(key.id), {sample::to_string(key), completion});
    out.reward = reward::score(out.verdict, {});
    const std::chrono::duration<double> taken = std::chrono::steady_clock::now() - start;
    out.seconds = taken.count();
    return out;
  }

  // Constant after construction.
  task::Evaluator& evaluator_;
  BenchFolder& folder_;
  ProgressBar& bar_;
  std::map<std::string, const task::Task*> tasks_;

  std::mutex mutex_;  // Guards the next seven.
  std::condition_variable changed_;
  std::deque<Work> queue_;
  std::map<Work, Case> cases_;
  bool is_closed_ = false;
  Status status_ = ok();
  int64_t num_scored_ = 0;  // In this run.
  int64_t num_passed_ = 0;

  std::vector<std::jthread> threads_;
};

// ---- Answers ------------------------------------------------------------------------------------

std::vector<AnswerKey> wanted_keys(const std::vector<Item>& items, int64_t samples) {
  std::vector<AnswerKey> out;
  for (const Item& item : items) {
    for (int64_t i = 0; i < samples; ++i) out.push_back({item.task.id, i, 0});
  }
  return out;
}

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

Status take_stored(std::vector<Answer> answers, BenchFolder& folder) {
  for (Answer& answer : answers) {
    if (folder.is_answered(answer.key)) continue;
    MC_TRY_VOID(folder.add(std::move(answer)), "bench");
  }
  return ok();
}

Status generate(const BenchArguments& arguments, const Layout& layout,
                const std::vector<Item>& items, BenchFolder& folder) {
  const std::vector<AnswerKey> keys = wanted_keys(items, arguments.samples);
  const auto is_there = [&](const AnswerKey& key) { return folder.is_answered(key); };
  if (std::all_of(keys.begin(), keys.end(), is_there)) return ok();
  const std::filesystem::path prompts = folder.path() / "prompts.jsonl";
  MC_TRY_VOID(write_file_atomically(prompts, sample::prompt_lines(items)), "bench");
  MC_TRY_VOID(run_learner(layout, {"generate",
                                   "--model",
                                   arguments.model,
                                   "--prompts",
                                   prompts.string(),
                                   "--out",
                                   folder.answers_path().string(),
                                   "--samples",
                                   std::to_string(arguments.samples),
                                   "--temperature",
                                   fmt::format("{}", arguments.sampling.temperature),
                                   "--top-p",
                                   fmt::format("{}", arguments.sampling.top_p),
                                   "--max-tokens",
                                   std::to_string(arguments.sampling.tokens_max),
                                   "--seed",
                                   std::to_string(arguments.sampling_seed),
                                   "--batch",
                                   std::to_string(arguments.batch),
                                   "--device",
                                   arguments.device}),
              "bench");
  return folder.reload_answers();
}

// That no connection could be made for, one after the other: the endpoint is down.
constexpr int kUnreachableMax = 4;

// The outcome of asking an endpoint.
struct Asked {
  std::mutex mutex;                       // Guards the rest.
  std::map<std::string, int64_t> failed;  // Requests, by what the server said.
  int64_t num_answered = 0;
  int num_unreachable = 0;  // Since the last answer.
  Status status = ok();     // The first error that no request will pass.
  Status last = ok();       // The status of the last request that failed.
};

// A prompt that the server cannot answer is one sample less; what no prompt would pass is the end.
// REQUIRES: asked.mutex is held.
void take_failure(const Error& error, Asked& asked) {
  asked.last = error;
  ++asked.failed[error.message];
  if (error.code == ErrorCode::kUnavailable) ++asked.num_unreachable;
  const bool was_never_right = error.code == ErrorCode::kNotFound && asked.num_answered == 0;
  const bool is_down = asked.num_unreachable >= kUnreachableMax;
  if ((was_never_right || is_down) && asked.status) asked.status = error;
}

void ask_one(const sample::ChatClient& client, const BenchArguments& arguments, const Item& item,
             const AnswerKey& key, BenchFolder& folder, Judges& judges, Asked& asked) {
  sample::Sampling sampling = arguments.sampling;
  sampling.seed = arguments.sampling_seed + static_cast<uint64_t>(key.sample);
  const auto completion = client.complete(item.prompt, sampling);
  if (!completion) {
    const std::lock_guard lock(asked.mutex);
    take_failure(completion.error(), asked);
    return;
  }
  const Status kept =
      folder.add(Answer{key, completion->text, completion->num_tokens, completion->finish});
  judges.submit(key, completion->text);
  const std::lock_guard lock(asked.mutex);
  ++asked.num_answered;
  asked.num_unreachable = 0;
  if (!kept) asked.status = kept;
}

// Asks for all that is wanted and not there.
Status ask(const BenchArguments& arguments, const std::vector<Item>& items, BenchFolder& folder,
           Judges& judges, Asked& asked) {
  MC_TRY(const sample::HttpClient http, sample::HttpClient::create(), "bench");
  const char* key = std::getenv("OPENAI_API_KEY");
  const sample::ChatClient client(
      http,
      {.endpoint = arguments.endpoint,
       .model = arguments.model_name,
       .api_key = key != nullptr ? key : "",
       .timeout_s = arguments.request_timeout_s,
       .retries = arguments.retries},
      [](double seconds) { std::this_thread::sleep_for(std::chrono::duration<double>(seconds)); });
  std::map<std::string, const Item*> by_id;
  for (const Item& item : items) by_id[item.task.id] = &item;
  const std::vector<AnswerKey> keys = wanted_keys(items, arguments.samples);
  size_t next = 0;  // Guarded by asked.mutex.
  const auto ask_some = [&] {
    for (;;) {
      std::optional<AnswerKey> mine;
      {
        const std::lock_guard lock(asked.mutex);
        while (next < keys.size() && folder.is_answered(keys[next])) ++next;
        if (next == keys.size() || !asked.status) return;
        mine = keys[next++];
      }
      ask_one(client, arguments, *by_id.at(mine->id), *mine, folder, judges, asked);
    }
  };
  std::vector<std::jthread> threads;
  for (int i = 0; i < arguments.concurrency; ++i) threads.emplace_back(ask_some);
  threads.clear();
  return asked.status;
}

// ---- Figures ------------------------------------------------------------------------------------

std::vector<report::Attempt> attempts_of(const std::vector<Judgement>& judgements) {
  std::vector<report::Attempt> out;
  for (const Judgement& one : judgements) {
    out.push_back(report::attempt_of(one.verdict, one.key.sample, one.key.turn));
  }
  return out;
}

// 1, 2, 4, … and the number of samples itself.
std::vector<int64_t> ks_of(const std::vector<Judgement>& judgements) {
  int64_t samples = 1;
  for (const Judgement& one : judgements) samples = std::max(samples, one.key.sample + 1);
  std::vector<int64_t> out;
  for (int64_t k = 1; k < samples; k *= 2) out.push_back(k);
  out.push_back(samples);
  return out;
}

std::vector<report::BenchRow> rows_of(const std::vector<Judgement>& judgements,
                                      const std::vector<Item>& items) {
  const std::vector<report::Attempt> attempts = attempts_of(judgements);
  const report::BenchOptions options{.ks = ks_of(judgements)};
  std::map<std::string, std::set<std::string>> groups;  // The ids of tasks, by name.
  for (const Item& item : items) {
    if (!item.level.empty()) groups[item.level].insert(item.task.id);
    for (const std::string& family : item.families) groups["family " + family].insert(item.task.id);
  }
  std::vector<report::BenchRow> rows = {{"all", report::bench_figures(attempts, options)}};
  for (const auto& [name, ids] : groups) {
    std::vector<report::Attempt> some;
    for (const report::Attempt& one : attempts) {
      if (ids.contains(one.task)) some.push_back(one);
    }
    if (!some.empty()) rows.push_back({name, report::bench_figures(some, options)});
  }
  return rows;
}

// Answers that were wanted and are not there.
int64_t count_missing(const BenchArguments& arguments, const std::vector<Item>& items,
                      const BenchFolder& folder) {
  const std::vector<AnswerKey> keys =
      wanted_keys(items, is_generated(arguments) ? arguments.samples : 1);
  std::set<std::string> answered;
  for (const Answer& answer : folder.answers()) answered.insert(answer.key.id);
  return std::count_if(keys.begin(), keys.end(), [&](const AnswerKey& key) {
    return is_generated(arguments) ? !folder.is_answered(key) : !answered.contains(key.id);
  });
}

int64_t count_cut(const BenchFolder& folder) {
  const std::vector<Answer> answers = folder.answers();
  return std::ranges::count(answers, "length", &Answer::finish);
}

std::string paired_line(const report::Paired& paired, const std::string& against) {
  return fmt::format(
      "against {}, {} tasks of both: {:.1f} % there, {:.1f} % here, difference {:+.1f} points "
      "[{:+.1f}, {:+.1f}]; better at {}, worse at {}\n",
      against, paired.num_tasks, 100 * paired.a, 100 * paired.b, 100 * paired.difference,
      100 * paired.interval.low, 100 * paired.interval.high, paired.num_better, paired.num_worse);
}

Status report_all(const BenchArguments& arguments, const std::vector<Item>& items,
                  const BenchFolder& folder, const Asked& asked) {
  const std::vector<Judgement> judgements = folder.judgements();
  const std::vector<report::BenchRow> rows = rows_of(judgements, items);
  std::vector<report::Judged> judged;
  for (const Judgement& one : judgements) judged.push_back({one.verdict, one.reward, one.seconds});
  const int64_t missing = count_missing(arguments, items, folder);
  const int64_t cut = count_cut(folder);
  std::optional<report::Paired> paired;
  if (!arguments.against.empty()) {
    MC_TRY(const auto others, BenchFolder::load_judgements(arguments.against), "--against");
    paired = report::paired_difference(attempts_of(others), attempts_of(judgements));
  }
  MC_TRY_VOID(folder.write_summary(report::bench_json({.rows = rows,
                                                       .judged = judged,
                                                       .num_missing = missing,
                                                       .num_cut = cut,
                                                       .paired = paired})),
              "bench");
  if (arguments.details) std::cout << report::table(judged, {}) << "\n";
  std::cout << report::bench_table(rows) << report::summary(judged);
  if (missing > 0) std::cout << missing << " without an answer, in no figure\n";
  for (const auto& [what, num] : asked.failed)
    std::cout << "  " << num << " times " << what << "\n";
  if (cut > 0) {
    std::cout << fmt::format(
        "{} cut off at the limit of tokens (--max-tokens), judged as they are\n", cut);
  }
  if (paired) std::cout << paired_line(*paired, arguments.against);
  return ok();
}

// ---- The command --------------------------------------------------------------------------------

// True for the levels and the problems that were asked for; for all where none was.
bool is_wanted(const BenchArguments& arguments, const Item& item) {
  const auto is_its_level = [&](int level) { return item.level == fmt::format("level {}", level); };
  const auto is_it = [&](const std::string& name) {
    return item.task.id == name || item.task.id.ends_with(':' + name);
  };
  return (arguments.levels.empty() || std::ranges::any_of(arguments.levels, is_its_level)) &&
         (arguments.problems.empty() || std::ranges::any_of(arguments.problems, is_it));
}

Result<std::vector<Item>> load_items(const BenchArguments& arguments, const Layout& layout) {
  std::filesystem::path suite = arguments.suite;
  if (arguments.suite == "tasks") suite = layout.share("tasks");
  return sample::load_bench_suite(suite, arguments.judging.options.dialect);
}

Result<std::vector<Item>> wanted_of(const BenchArguments& arguments, std::vector<Item> items) {
  std::erase_if(items, [&](const Item& item) { return !is_wanted(arguments, item); });
  if (items.empty()) return invalid("the suite has no task of that --level or --problem");
  if (arguments.limit > 0 && arguments.limit < items.size()) items.resize(arguments.limit);
  return items;
}

Status run_bench(BenchArguments& arguments, const CLI::App& command) {
  MC_TRY_VOID(check(arguments), "bench");
  MC_TRY_VOID(settle(arguments.judging, command), "bench");
  MC_TRY(const Layout layout, find_layout(), "bench");
  MC_TRY(std::vector<Item> suite, load_items(arguments, layout), "--suite");
  MC_TRY(auto stored, load_stored(arguments, suite), "bench");
  MC_TRY(const std::vector<Item> items, wanted_of(arguments, std::move(suite)), "bench");
  const std::set<std::string> ids = ids_of(items);
  std::erase_if(stored, [&](const Answer& answer) { return !ids.contains(answer.key.id); });
  MC_TRY(const auto folder,
         BenchFolder::open(arguments.out, settings_of(arguments, command, items)), "bench");
  if (!arguments.model.empty()) MC_TRY_VOID(generate(arguments, layout, items, *folder), "bench");
  MC_TRY_VOID(take_stored(std::move(stored), *folder), "bench");

  std::vector<Answer> waiting = folder->answers();
  std::erase_if(waiting, [&](const Answer& answer) { return folder->is_judged(answer.key); });
  Asked asked;
  const bool asks = !arguments.endpoint.empty();
  const size_t num_asked = asks ? static_cast<size_t>(count_missing(arguments, items, *folder)) : 0;
  if (waiting.size() + num_asked > 0) {
    ProgressBar bar(waiting.size() + num_asked);
    MC_TRY(
        auto pipeline,
        eval::Pipeline::create(arguments.judging.options, [&](std::string_view s) { bar.note(s); }),
        "bench");
    Judges judges(*pipeline, *folder, items, arguments.judging.jobs, bar);
    for (const Answer& answer : waiting) judges.submit(answer.key, answer.completion);
    const Status came = asks ? ask(arguments, items, *folder, judges, asked) : ok();
    MC_TRY_VOID(judges.finish(), "bench");
    bar.finish();
    MC_TRY_VOID(came, "bench");
  }
  if (folder->answers().empty()) {
    return asked.last ? invalid("no answer to any task")
                      : with_context(asked.last.error(), "no answer to any task");
  }
  return report_all(arguments, items, *folder, asked);
}

void add_source(CLI::App& command, BenchArguments& arguments) {
  command.add_option("--model", arguments.model, "A model's folder; musacoder-learn answers");
  command.add_option("--endpoint", arguments.endpoint,
                     "An OpenAI-compatible server, http://host:8000/v1 ($OPENAI_API_KEY)");
  command.add_option("--model-name", arguments.model_name, "Which of the server's models");
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
  command.add_option("--samples,-n", arguments.samples, "Answers to each task")
      ->check(CLI::Range(1, 10000))
      ->capture_default_str();
  command.add_option("--level", arguments.levels, "Only these levels of the suite: 1,2")
      ->delimiter(',');
  command.add_option("--problem", arguments.problems, "Only these tasks: 1/19,2/7, or whole ids")
      ->delimiter(',');
  command.add_option("--limit", arguments.limit, "Only the first tasks of the suite");
  command.add_option("--against", arguments.against,
                     "Another benchmark's folder: the difference at the tasks of both");
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
  command.add_option("--temperature", arguments.sampling.temperature, "0: the likeliest token")
      ->check(CLI::Range(0.0, 10.0))
      ->capture_default_str();
  command.add_option("--top-p", arguments.sampling.top_p, "Nucleus")
      ->check(CLI::Range(0.0, 1.0))
      ->capture_default_str();
  command.add_option("--max-tokens", arguments.sampling.tokens_max, "Of one answer")
      ->check(CLI::Range(1, 10'000'000))
      ->capture_default_str();
  command.add_option("--sampling-seed", arguments.sampling_seed, "Of the model's choices")
      ->capture_default_str();
  command.option_defaults()->group("How answers are made");
  command.add_option("--batch", arguments.batch, "Answers that --model makes at once")
      ->check(CLI::Range(1, 4096))
      ->capture_default_str();
  command.add_option("--device", arguments.device, "Where --model answers: cpu, cuda or cuda:N")
      ->capture_default_str();
  command.add_option("--concurrency", arguments.concurrency, "Requests at once")
      ->check(CLI::Range(1, 1024))
      ->capture_default_str();
  command.add_option("--retries", arguments.retries, "Of a request, after 1, 2, 4, ... s")
      ->check(CLI::Range(0, 20))
      ->capture_default_str();
  command.add_option("--request-timeout", arguments.request_timeout_s, "Seconds for one answer")
      ->check(CLI::Range(0.1, 86400.0))
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
