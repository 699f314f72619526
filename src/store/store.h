// SPDX-License-Identifier: Apache-2.0
//
// Store: the records of runs in one SQLite file.  A killed run resumes from it.
//
// A run is one measurement with one set of settings; a store contains any number of runs,
// identified by name.  An answer or verdict is in the file when its `add` returns.  A store has one
// writer at a time; other processes may read it at the same time.
//
//   MC_TRY(auto store, Store::open("bench/store.sqlite"), "--out");
//   MC_TRY(Run run, store->begin({.name = "qwen3", .kind = "bench", .settings = json}), "--out");
//   MC_TRY_VOID(run.add(answer), "keep an answer");
#ifndef MC_STORE_STORE_H_
#define MC_STORE_STORE_H_

#include <cstdint>
#include <filesystem>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "core/result.h"
#include "store/records.h"

namespace mc::store {

// The name of the file in a run's folder.
inline constexpr const char* kStoreName = "store.sqlite";

struct RunRecord {
  std::string name;
  std::string kind;                // "bench", "forge", "rl", …
  std::string settings;            // One JSON object with all settings that can change the figures.
  std::string environment = "{}";  // One JSON object: the machine and the versions of software.
  std::string created{};           // ISO 8601, UTC; set when the run begins.
};

std::string now_text();  // "2026-01-31T23:59:59Z"

class Database;

// One run of an open store.  Thread-safe.  The store must outlive it.
class Run {
 public:
  const RunRecord& record() const { return record_; }

  // Replaces the run's tasks.
  Status set_tasks(std::span<const TaskRecord> tasks);
  Status add(const Answer& answer);             // Replaces an earlier answer with the same key.
  Status add(std::span<const Answer> answers);  // Adds all of them or none, in one transaction.
  Status add(const Judgement& judgement);       // Replaces an earlier verdict with the same key.
  // Stores a text under a name, such as "summary" or, for a part of the work, "chunk 12".
  Status put(const std::string& name, const std::string& text);

  // The records, ordered by key.
  Result<std::vector<TaskRecord>> tasks() const;
  Result<std::vector<Answer>> answers() const;
  Result<std::vector<Judgement>> judgements() const;
  Result<std::optional<std::string>> text(const std::string& name) const;

 private:
  friend class Store;
  Run(Database& database, int64_t id, RunRecord record)
      : database_(&database), id_(id), record_(std::move(record)) {}
  Database* database_;
  int64_t id_;
  RunRecord record_;
};

class Store {
 public:
  // Opens the file for writing; creates it and its folder if they are missing, and upgrades an
  // older file. kInvalidInput if the file is not a store, or was written by a newer program;
  // kUnavailable if another process is its writer.
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& path);
  // kNotFound if the file is missing or contains no run.
  static Result<std::unique_ptr<Store>> open_to_read(const std::filesystem::path& path);
  ~Store();

  // Begins the run, or resumes the run of this name.  kInvalidInput if that run has other settings;
  // the message names the first difference.
  Result<Run> begin(RunRecord record);
  Result<std::vector<Run>> runs();  // The runs in the order in which they began.

 private:
  explicit Store(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

// A folder with one run, in its file kStoreName.
struct RunFolder {
  std::unique_ptr<Store> store;
  Run run;
};
// Begins or resumes the run.  Errors are those of Store::open and Store::begin.
Result<RunFolder> open_run(const std::filesystem::path& folder, RunRecord record);
// kNotFound if there is no run.
Result<RunFolder> open_run_to_read(const std::filesystem::path& folder);

}  // namespace mc::store

#endif  // MC_STORE_STORE_H_
