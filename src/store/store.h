// SPDX-License-Identifier: Apache-2.0
//
// Store: what runs have on disk, in one SQLite file; a run goes on in it where it was killed.
//
// A run is one measurement with one set of settings; a store has any number of them, by name.  Each
// answer and each verdict is in the file when its `add` returns.  A store has one writer at a time;
// others may read it meanwhile.
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

inline constexpr const char* kStoreName = "store.sqlite";  // The file's name in a run's folder.

struct RunRecord {
  std::string name;
  std::string kind;                // "bench", "forge", "rl", …
  std::string settings;            // One JSON object: all that the figures depend on.
  std::string environment = "{}";  // One JSON object: the machine and the versions.
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
  Status add(const Answer& answer);             // In place of an earlier one with its key.
  Status add(std::span<const Answer> answers);  // All of them or none, in one transaction.
  Status add(const Judgement& judgement);       // The same.
  // A text of its own for each name: "summary", or a part of the work, such as "chunk 12".
  Status put(const std::string& name, const std::string& text);

  // All by key.
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
  // Makes the file and its folder where they are missing, and brings an older file up to date.
  // kInvalidInput where the file is something else, or of a newer program; kUnavailable where
  // another process writes it.
  static Result<std::unique_ptr<Store>> open(const std::filesystem::path& path);
  // kNotFound where there is none, or one without a run.
  static Result<std::unique_ptr<Store>> open_to_read(const std::filesystem::path& path);
  ~Store();

  // Begins the run, or goes on with the one of this name.  kInvalidInput where that has other
  // settings; the message names the first that differs.
  Result<Run> begin(RunRecord record);
  Result<std::vector<Run>> runs();  // In the order in which they began.

 private:
  explicit Store(std::unique_ptr<Database> database);
  std::unique_ptr<Database> database_;
};

// A folder that has one run, in its kStoreName.
struct RunFolder {
  std::unique_ptr<Store> store;
  Run run;
};
// Begins the run or goes on with it; errors as of Store::open and Store::begin.
Result<RunFolder> open_run(const std::filesystem::path& folder, RunRecord record);
// kNotFound where there is no run.
Result<RunFolder> open_run_to_read(const std::filesystem::path& folder);

}  // namespace mc::store

#endif  // MC_STORE_STORE_H_
