// SPDX-License-Identifier: Apache-2.0
#include "forge/run.h"

#include <algorithm>
#include <atomic>
#include <mutex>
#include <set>
#include <thread>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/file.h"
#include "core/layout.h"
#include "eval/pipeline.h"
#include "forge/batch.h"
#include "forge/chunk.h"
#include "forge/musa_rows.h"
#include "forge/random.h"
#include "forge/rewrites.h"
#include "store/store.h"

namespace mc::forge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr int kEmptyChunksMax = 20;  // In a row; then nothing more can be drawn.

Json settings_json(const Settings& settings) {
  Json json;
  json["version"] = kChunksVersion;
  json["seed"] = settings.seed;
  json["style"] = settings.graph.style == Style::kCompact ? "compact" : "full";
  json["families"] = Json::array();
  for (const std::string& family : settings.graph.families) json["families"].push_back(family);
  json["operators"] = settings.graph.operators;
  json["depth"] = settings.graph.depth;
  json["size"] = settings.graph.size == Size::kSmall    ? "small"
                 : settings.graph.size == Size::kNative ? "native"
                                                        : "large";
  json["views_share"] = settings.graph.views_share;
  json["types"] = Json::array();
  for (const Type type : settings.graph.types) json["types"].push_back(to_string(type));
  json["bugs_share"] = settings.bugs_share;
  json["test_share"] = settings.test_share;
  json["lessons_share"] = settings.lessons_share;
  json["variants_share"] = settings.variants_share;
  json["weights"] = settings.weights;
  if (settings.unit_tests) json["unit_tests"] = true;
  json["solutions"] = settings.solutions_max;
  return json;
}

std::string chunk_name(int number) { return fmt::format("chunk {:06}", number); }

// Chunks are processed in order; the run is complete when those before the first gap have enough
// tasks.
class Runner {
 public:
  Runner(const RunOptions& options, store::Run& store,
         const std::function<void(std::string_view)>& note,
         const std::function<void(const Progress&)>& progress)
      : options_(options), store_(store), note_(note), progress_(progress) {}

  Result<int> run() {
    std::vector<std::thread> threads;
    for (int i = 1; i < options_.jobs; ++i) threads.emplace_back([this] { work(); });
    work();
    for (std::thread& thread : threads) thread.join();
    if (failure_) return *failure_;
    return num_ready_;
  }

 private:
  void work() {
    // Started with the first chunk that is not stored yet.
    std::unique_ptr<BatchVerifier> verifier;
    for (std::optional<int> number; (number = take());) {
      const auto text = chunk(*number, verifier);
      if (!text) return fail(text.error());
      finish(*number, *text);
    }
  }

  Result<std::string> chunk(int number, std::unique_ptr<BatchVerifier>& verifier) {
    MC_TRY(auto kept, store_.text(chunk_name(number)), "forge");
    if (kept) return *std::move(kept);
    MC_TRY(eval::Pipeline* const judge, pipeline(), "forge");
    if (verifier == nullptr) {
      MC_TRY(verifier, BatchVerifier::create(*judge, note_), "verifier");
    }
    MC_TRY(std::string text,
           make_chunk(
               options_.settings, *options_.library, number,
               [&](const auto& works) { return verifier->verify(works); }, options_.audit_share,
               *judge),
           "forge");
    MC_TRY_VOID(store_.put(chunk_name(number), text), "forge");
    return text;
  }

  // The pipeline of all threads, started with the first chunk that is not stored yet.
  Result<eval::Pipeline*> pipeline() {
    const std::lock_guard lock(starting_);
    if (pipeline_ == nullptr) {
      eval::Options judging;
      judging.backend = task::Backend::kCpu;
      judging.seed = options_.settings.seed;
      judging.jobs = options_.jobs;
      MC_TRY(pipeline_, eval::Pipeline::create(judging, note_), "judge");
    }
    return pipeline_.get();
  }

  std::optional<int> take() {
    const std::lock_guard lock(mutex_);
    if (failure_ || is_done()) return std::nullopt;
    return num_taken_++;
  }

  bool is_done() const {
    const bool is_enough =
        options_.samples > 0 ? rows_ >= options_.samples : tasks_ >= options_.settings.tasks;
    return is_enough || num_empty_ >= kEmptyChunksMax;
  }

  void fail(const Error& error) {
    const std::lock_guard lock(mutex_);
    if (!failure_) failure_ = error;
  }

  void finish(int number, const std::string& text) {
    const Json chunk = Json::parse(text, nullptr, false);
    if (!chunk.is_object()) {
      return fail({ErrorCode::kIo, chunk_name(number) + " in the store is damaged"});
    }
    const std::lock_guard lock(mutex_);
    MC_CHECK(number < num_taken_ && num_ready_ <= num_taken_);
    Progress found;
    for (const Json& task : chunk["tasks"]) {
      if (sources_.insert(task["source"]).second) ++found.tasks;
      found.solutions += task["counts"].value("solutions", 0);
      found.rows += static_cast<int64_t>(task["sft"].size());
    }
    finished_[number] = found;
    for (auto it = finished_.find(num_ready_); it != finished_.end() && !is_done();
         it = finished_.find(num_ready_)) {
      tasks_ += it->second.tasks;
      rows_ += it->second.rows;
      num_empty_ = it->second.tasks == 0 ? num_empty_ + 1 : 0;
      ++num_ready_;
    }
    made_.tasks += found.tasks;
    made_.rows += found.rows;
    made_.solutions += found.solutions;
    progress_(made_);
  }

  const RunOptions& options_;
  store::Run& store_;
  const std::function<void(std::string_view)>& note_;
  const std::function<void(const Progress&)>& progress_;

  std::mutex starting_;                       // The mutex guards pipeline_.
  std::unique_ptr<eval::Pipeline> pipeline_;  // Null until it is needed.

  // Guarded by mutex_.
  std::mutex mutex_;
  std::optional<Error> failure_;
  int num_taken_ = 0;
  int num_ready_ = 0;  // The number of leading chunks without a gap.
  int num_empty_ = 0;
  int tasks_ = 0;  // The number of tasks in these chunks.
  int64_t rows_ = 0;
  std::map<int, Progress> finished_;
  std::set<std::string> sources_;
  Progress made_;
};

struct DataSets {
  std::string sft, rl, test, unit_tests;
  Counts counts;
  Json rejected = Json::object();
  Json errors = Json::array();
  std::set<std::string> train_structures, test_structures;
};

// True for rows with facts about NVIDIA's compiler or devices; they cannot be ported.
bool states_facts_of_nvidia(const std::string& row) {
  return row.find("\"kind\":\"question\"") != std::string::npos;
}

// Adds a row in one dialect.  A row without a port is left out; if both dialects are wanted, it is
// added in CUDA.
void add_row(const std::string& row, task::Dialect dialect, bool wants_both, const MusaRows& musa,
             std::string& out, Counts& counts) {
  if (dialect == task::Dialect::kCuda || states_facts_of_nvidia(row)) {
    out += row + "\n";
    return;
  }
  const auto ported = musa.port(row);
  if (ported) out += *ported + "\n";
  if (!ported && wants_both) out += row + "\n";
  ++counts[ported ? "rows_musa" : "rows_without_musa"];
}

// With both dialects, the rows of a task are all in one dialect, because the same text in both
// would be a duplicate.
task::Dialect dialect_of(const std::string& task, Dialects dialects) {
  if (dialects == Dialects::kBoth) {
    return Random(0, "dialect " + task, 0).chance(0.5) ? task::Dialect::kMusa
                                                       : task::Dialect::kCuda;
  }
  return dialects == Dialects::kMusa ? task::Dialect::kMusa : task::Dialect::kCuda;
}

Status add_task(const Json& task, const RunOptions& options, const MusaRows& musa, DataSets& sets) {
  const std::string split = task["split"];
  const bool wants_both = options.dialects == Dialects::kBoth;
  const task::Dialect dialect = dialect_of(task["id"], options.dialects);
  for (const Json& row : task["sft"]) {
    add_row(row, dialect, wants_both, musa, sets.sft, sets.counts);
  }
  // Each task in CUDA also gives one row that teaches its port.
  if (wants_both && dialect == task::Dialect::kCuda && !task["sft"].empty()) {
    if (const auto lesson = musa.lesson(task["sft"].front())) {
      sets.sft += *lesson + "\n";
      ++sets.counts["rows_port"];
    }
  }
  add_row(task["row"], dialect, wants_both, musa, split == "train" ? sets.rl : sets.test,
          sets.counts);
  if (task.contains("unit_tests")) sets.unit_tests += task["unit_tests"].get<std::string>() + "\n";
  (split == "train" ? sets.train_structures : sets.test_structures).insert(task["structure"]);
  sets.counts["tasks"] += 1;
  sets.counts["tasks_" + split] += 1;
  sets.counts["samples_sft"] += static_cast<int64_t>(task["sft"].size());
  for (const auto& [name, n] : task["counts"].items()) sets.counts[name] += n.get<int64_t>();
  return write_file_atomically(
      options.out / "tasks" / split / (task["id"].get<std::string>() + ".py"),
      task["source"].get<std::string>());
}

bool is_complete(const RunOptions& options, const DataSets& sets) {
  if (options.samples == 0) return sets.counts.at("tasks") >= options.settings.tasks;
  return std::ranges::count(sets.sft, '\n') >= options.samples;
}

Result<DataSets> assemble(const RunOptions& options, const store::Run& store, int num_chunks) {
  DataSets sets;
  MC_TRY(const Layout layout, find_layout(), "musify");
  MC_TRY(const MusaRows musa, MusaRows::create(layout.share("data/musify")), "musify");
  std::set<std::string> seen;
  sets.counts["tasks"] = 0;
  for (const char* folder : {"tasks/train", "tasks/test"}) {
    std::error_code failure;
    fs::create_directories(options.out / folder, failure);
  }
  for (int i = 0; i < num_chunks; ++i) {
    MC_TRY(const auto text, store.text(chunk_name(i)), "forge");
    MC_CHECK(text.has_value());  // The runner has read or written it.
    const Json chunk = Json::parse(*text);
    for (const auto& [why, n] : chunk["rejected"].items()) {
      sets.rejected[why] = sets.rejected.value(why, 0) + n.get<int>();
    }
    for (const Json& error : chunk.value("errors", Json::array())) sets.errors.push_back(error);
    for (const Json& task : chunk["tasks"]) {
      if (is_complete(options, sets)) break;
      if (!seen.insert(task["source"]).second) {
        sets.counts["duplicates"] += 1;
        continue;
      }
      MC_TRY_VOID(add_task(task, options, musa, sets), "tasks");
    }
  }
  sets.counts["solutions_that_do_not_compile"] = static_cast<int64_t>(sets.errors.size());
  sets.counts["structures_train"] = static_cast<int64_t>(sets.train_structures.size());
  sets.counts["structures_test"] = static_cast<int64_t>(sets.test_structures.size());
  return sets;
}

// Adds rewrites of measured answers after all other samples.
Status add_rewrites(const RunOptions& options, DataSets& sets) {
  if (options.timings.empty()) return ok();
  MC_TRY(const store::RunFolder folder, store::open_run_to_read(options.timings), "--timings");
  MC_TRY(const std::vector<std::string> rows, rewrites_of(folder.run), "--timings");
  for (const std::string& row : rows) sets.sft += row + "\n";
  sets.counts["rewrites"] = static_cast<int64_t>(rows.size());
  return ok();
}

Status write_sets(const RunOptions& options, const DataSets& sets) {
  Json json;
  json["settings"] = settings_json(options.settings);
  Json& settings = json["settings"];
  if (options.samples > 0) {
    settings["samples"] = options.samples;
  } else {
    settings["tasks"] = options.settings.tasks;
  }
  settings["dialect"] = options.dialects == Dialects::kCuda   ? "cuda"
                        : options.dialects == Dialects::kMusa ? "musa"
                                                              : "both";
  settings["audit_share"] = options.audit_share;
  if (!options.timings.empty()) settings["timings"] = options.timings.string();
  if (!options.mix.empty()) settings["mix"] = options.mix;
  json["counts"] = sets.counts;
  json["rejected"] = sets.rejected;
  json["errors"] = sets.errors;
  MC_TRY_VOID(write_file_atomically(options.out / "sft.jsonl", sets.sft), "sft.jsonl");
  MC_TRY_VOID(write_file_atomically(options.out / "rl.jsonl", sets.rl), "rl.jsonl");
  MC_TRY_VOID(write_file_atomically(options.out / "test.jsonl", sets.test), "test.jsonl");
  if (options.settings.unit_tests) {
    MC_TRY_VOID(write_file_atomically(options.out / "unit_tests.jsonl", sets.unit_tests),
                "unit_tests.jsonl");
  }
  return write_file_atomically(options.out / "forge.json", json.dump(1) + "\n");
}

}  // namespace

std::string settings_text(const Settings& settings) { return settings_json(settings).dump(); }

Result<Counts> run(const RunOptions& options, const std::function<void(std::string_view)>& note,
                   const std::function<void(const Progress&)>& progress) {
  MC_TRY(store::RunFolder folder,
         store::open_run(
             options.out,
             {.name = "forge", .kind = "forge", .settings = settings_text(options.settings)}),
         "--out");
  MC_TRY(const int num_chunks, Runner(options, folder.run, note, progress).run(), "forge");
  MC_TRY(DataSets sets, assemble(options, folder.run, num_chunks), "forge");
  if (!sets.errors.empty()) {
    note(fmt::format("error: solutions of the forge do not compile: {}; forge.json lists {}",
                     sets.errors.front().get<std::string>(), sets.errors.size()));
  }
  MC_TRY_VOID(add_rewrites(options, sets), "forge");
  MC_TRY_VOID(write_sets(options, sets), "forge");
  return sets.counts;
}

}  // namespace mc::forge
