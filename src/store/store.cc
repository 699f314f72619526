// SPDX-License-Identifier: Apache-2.0
#include "store/store.h"

#include <fcntl.h>
#include <sys/file.h>

#include <cerrno>
#include <chrono>
#include <mutex>
#include <system_error>
#include <utility>

#include <SQLiteCpp/Database.h>
#include <SQLiteCpp/Statement.h>
#include <SQLiteCpp/Transaction.h>
#include <fmt/chrono.h>
#include <fmt/format.h>
#include <sqlite3.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "core/fd.h"
#include "core/file.h"
#include "task/verdict_json.h"

namespace mc::store {

// The connection to the database; a mutex serializes its operations.
class Database {
 public:
  Database(const std::filesystem::path& path, int flags, Fd lock)
      : path_(path), lock_(std::move(lock)), connection_(path.string(), flags, kBusyMs) {}

  // Calls `operation` with the connection; converts exceptions of SQLite to errors.
  template <typename Operation>
  auto call(const Operation& operation) -> decltype(operation(std::declval<SQLite::Database&>())) {
    const std::lock_guard guard(mutex_);
    try {
      return operation(connection_);
    } catch (const SQLite::Exception& failure) {
      const bool is_other = failure.getErrorCode() == SQLITE_NOTADB;
      return Error{is_other ? ErrorCode::kInvalidInput : ErrorCode::kIo,
                   fmt::format("{}: {}", path_.string(), failure.what())};
    }
  }

 private:
  static constexpr int kBusyMs = 30'000;
  const std::filesystem::path path_;
  const Fd lock_;  // The writer's lock on the file "…-lock"; not open for a reader.
  std::mutex mutex_;
  SQLite::Database connection_;  // Guarded by mutex_.
};

namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

// The script at index i upgrades a file from version i to version i + 1.
constexpr const char* kMigrations[] = {
    R"(CREATE TABLE run(
         id INTEGER PRIMARY KEY, name TEXT NOT NULL UNIQUE, kind TEXT NOT NULL,
         settings TEXT NOT NULL, environment TEXT NOT NULL, created TEXT NOT NULL);
       CREATE TABLE task(
         run INTEGER NOT NULL REFERENCES run, id TEXT NOT NULL, level TEXT NOT NULL,
         families TEXT NOT NULL, code TEXT NOT NULL, PRIMARY KEY(run, id)) WITHOUT ROWID;
       CREATE TABLE answer(
         run INTEGER NOT NULL REFERENCES run, task TEXT NOT NULL, sample INTEGER NOT NULL,
         turn INTEGER NOT NULL, completion TEXT NOT NULL, reasoning TEXT NOT NULL,
         finish TEXT NOT NULL, num_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
         prompt_tokens INTEGER NOT NULL, seconds REAL NOT NULL,
         PRIMARY KEY(run, task, sample, turn));
       CREATE TABLE verdict(
         run INTEGER NOT NULL REFERENCES run, task TEXT NOT NULL, sample INTEGER NOT NULL,
         turn INTEGER NOT NULL, outcome TEXT NOT NULL, reward REAL, seconds REAL NOT NULL,
         feedback TEXT NOT NULL, verdict TEXT NOT NULL, PRIMARY KEY(run, task, sample, turn));
       CREATE TABLE text(
         run INTEGER NOT NULL REFERENCES run, name TEXT NOT NULL, text TEXT NOT NULL,
         PRIMARY KEY(run, name));)",
};
constexpr int kVersion = std::size(kMigrations);
constexpr int kApplication = 0x4d437372;  // "MCsr", which marks a SQLite file as a store.

// Locks the store for one writer at a time.
Result<Fd> lock_of(const fs::path& path) {
  Fd fd(::open((path.string() + "-lock").c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0666));
  if (!fd.is_open()) return system_error(ErrorCode::kIo, "cannot write " + path.string());
  if (lock_file(fd, LOCK_EX | LOCK_NB)) return fd;
  if (errno != EWOULDBLOCK) return system_error(ErrorCode::kIo, "cannot lock " + path.string());
  return Error{ErrorCode::kUnavailable,
               path.string() + " is in use by another run: wait for it, or give another --out"};
}

int number_of(SQLite::Database& connection, const char* pragma) {
  return connection.execAndGet(pragma).getInt();
}

Status check_version(SQLite::Database& connection, const fs::path& path) {
  const int version = number_of(connection, "PRAGMA user_version");
  const int application = number_of(connection, "PRAGMA application_id");
  const bool is_empty = number_of(connection, "SELECT count(*) FROM sqlite_master") == 0;
  if (!is_empty && application != kApplication) {
    return invalid(path.string() + " is a SQLite file of another program: give another --out");
  }
  if (version <= kVersion) return ok();
  return invalid(fmt::format("{} has version {}, this program reads up to {}: use a newer one",
                             path.string(), version, kVersion));
}

Status migrate(SQLite::Database& connection, const fs::path& path) {
  connection.exec("PRAGMA synchronous = NORMAL");
  MC_TRY_VOID(check_version(connection, path), "store");
  const int version = number_of(connection, "PRAGMA user_version");
  if (version == kVersion) return ok();
  SQLite::Transaction transaction(connection);
  for (int i = version; i < kVersion; ++i) connection.exec(kMigrations[i]);
  connection.exec(fmt::format("PRAGMA user_version = {}", kVersion));
  connection.exec(fmt::format("PRAGMA application_id = {}", kApplication));
  transaction.commit();
  return ok();
}

Result<std::unique_ptr<Database>> connect(const fs::path& path, int flags, Fd lock) {
  try {
    return std::make_unique<Database>(path, flags, std::move(lock));
  } catch (const SQLite::Exception& failure) {
    return Error{ErrorCode::kIo, fmt::format("cannot open {}: {}", path.string(), failure.what())};
  }
}

// A setting's value as the user gave it.
std::string given(const Json& value) {
  if (value.is_null()) return "not given";
  return value.is_array() && value.size() == 1 ? value[0].dump() : value.dump();
}

// The first of the settings `a` that differs in `b` or is missing in one, as text for the user.
std::string difference(const Json& a, const Json& b) {
  for (const Json& both : {a, b}) {
    for (const auto& [name, value] : both.items()) {
      if (name == "prices") continue;  // Runs of an older program contain prices in their settings.
      const Json was = a.value(name, Json());
      const Json is = b.value(name, Json());
      if (was == is) continue;
      if (value.is_object()) {
        return difference(was.is_object() ? was : Json::object(),
                          is.is_object() ? is : Json::object());
      }
      return fmt::format("{} was {}, now {}", name, given(was), given(is));
    }
  }
  return "";
}

std::string difference(const std::string& before, const std::string& now) {
  const Json a = Json::parse(before, nullptr, false);
  const Json b = Json::parse(now, nullptr, false);
  return a.is_object() && b.is_object() ? difference(a, b) : "its settings cannot be read";
}

template <typename... Values>
void bind_all(SQLite::Statement& statement, const Values&... values) {
  int index = 0;
  (statement.bind(++index, values), ...);
}

AnswerKey key_at(SQLite::Statement& row) {
  return {row.getColumn(0).getString(), row.getColumn(1).getInt64(), row.getColumn(2).getInt64()};
}

constexpr const char* kRunColumns =
    "SELECT id, name, kind, settings, environment, created FROM run";

RunRecord run_at(SQLite::Statement& row) {
  return {row.getColumn(1).getString(), row.getColumn(2).getString(), row.getColumn(3).getString(),
          row.getColumn(4).getString(), row.getColumn(5).getString()};
}

}  // namespace

std::string now_text() {
  const auto now = std::chrono::floor<std::chrono::seconds>(std::chrono::system_clock::now());
  return fmt::format("{:%Y-%m-%dT%H:%M:%SZ}",
                     fmt::gmtime(std::chrono::system_clock::to_time_t(now)));
}

Store::Store(std::unique_ptr<Database> database) : database_(std::move(database)) {
  MC_CHECK(database_ != nullptr);
}
Store::~Store() = default;

Result<std::unique_ptr<Store>> Store::open(const fs::path& path) {
  std::error_code failure;
  if (path.has_parent_path()) fs::create_directories(path.parent_path(), failure);
  if (failure) {
    return Error{ErrorCode::kInvalidInput,
                 fmt::format("cannot make {}: {}", path.parent_path().string(), failure.message())};
  }
  MC_TRY(Fd lock, lock_of(path), "store");
  MC_TRY(auto database,
         connect(path, SQLite::OPEN_READWRITE | SQLite::OPEN_CREATE, std::move(lock)), "store");
  MC_TRY_VOID(
      database->call([&](SQLite::Database& connection) { return migrate(connection, path); }),
      "store");
  return std::unique_ptr<Store>(new Store(std::move(database)));
}

Result<std::unique_ptr<Store>> Store::open_to_read(const fs::path& path) {
  if (!path_exists(path)) return Error{ErrorCode::kNotFound, "no store " + path.string()};
  // A killed writer may leave a transaction that the next connection must roll back in the file; a
  // read-only connection cannot do that.
  MC_TRY(auto database, connect(path, SQLite::OPEN_READWRITE, Fd()), "store");
  const auto check = [&](SQLite::Database& connection) -> Status {
    connection.exec("PRAGMA query_only = ON");
    MC_TRY_VOID(check_version(connection, path), "store");
    const int version = number_of(connection, "PRAGMA user_version");
    if (version == kVersion) return ok();
    if (version == 0) return Error{ErrorCode::kNotFound, path.string() + " holds no run yet"};
    return invalid(path.string() +
                   " is of an older program: a `musacoder bench` into its folder "
                   "brings it up to date");
  };
  MC_TRY_VOID(database->call(check), "store");
  return std::unique_ptr<Store>(new Store(std::move(database)));
}

Result<Run> Store::begin(RunRecord record) {
  MC_CHECK(!record.kind.empty());
  return database_->call([&](SQLite::Database& connection) -> Result<Run> {
    SQLite::Statement found(connection, std::string(kRunColumns) + " WHERE name = ?");
    bind_all(found, record.name);
    if (found.executeStep()) {
      const RunRecord before = run_at(found);
      const std::string differs = before.kind == record.kind
                                      ? difference(before.settings, record.settings)
                                      : "it is of the kind " + before.kind;
      if (differs.empty()) return Run(*database_, found.getColumn(0).getInt64(), before);
      return invalid(
          fmt::format("the run {:?} is there with other settings ({}): give the same ones, or "
                      "another --out",
                      record.name, differs));
    }
    record.created = now_text();
    SQLite::Statement insert(connection,
                             "INSERT INTO run(name, kind, settings, environment, created) "
                             "VALUES(?, ?, ?, ?, ?)");
    bind_all(insert, record.name, record.kind, record.settings, record.environment, record.created);
    insert.exec();
    return Run(*database_, connection.getLastInsertRowid(), std::move(record));
  });
}

Result<std::vector<Run>> Store::runs() {
  return database_->call([&](SQLite::Database& connection) -> Result<std::vector<Run>> {
    SQLite::Statement row(connection, std::string(kRunColumns) + " ORDER BY id");
    std::vector<Run> out;
    while (row.executeStep())
      out.push_back(Run(*database_, row.getColumn(0).getInt64(), run_at(row)));
    return out;
  });
}

Result<RunFolder> open_run(const fs::path& folder, RunRecord record) {
  MC_TRY(auto store, Store::open(folder / kStoreName), folder.string());
  MC_TRY(Run run, store->begin(std::move(record)), folder.string());
  return RunFolder{std::move(store), std::move(run)};
}

Result<RunFolder> open_run_to_read(const fs::path& folder) {
  MC_TRY(auto store, Store::open_to_read(folder / kStoreName), folder.string());
  MC_TRY(std::vector<Run> runs, store->runs(), folder.string());
  if (runs.empty()) return Error{ErrorCode::kNotFound, folder.string() + " holds no run yet"};
  return RunFolder{std::move(store), std::move(runs.front())};
}

Status Run::set_tasks(std::span<const TaskRecord> tasks) {
  return database_->call([&](SQLite::Database& connection) -> Status {
    SQLite::Transaction transaction(connection);
    SQLite::Statement remove(connection, "DELETE FROM task WHERE run = ?");
    bind_all(remove, id_);
    remove.exec();
    SQLite::Statement insert(connection, "INSERT INTO task VALUES(?, ?, ?, ?, ?)");
    for (const TaskRecord& task : tasks) {
      const std::string families =
          Json(task.families).dump(-1, ' ', false, Json::error_handler_t::replace);
      bind_all(insert, id_, task.id, task.level, families, task.code);
      insert.exec();
      insert.reset();
    }
    transaction.commit();
    return ok();
  });
}

Status Run::add(const Answer& answer) { return add(std::span(&answer, 1)); }

Status Run::add(std::span<const Answer> answers) {
  return database_->call([&](SQLite::Database& connection) -> Status {
    SQLite::Transaction transaction(connection);
    SQLite::Statement insert(
        connection, "INSERT OR REPLACE INTO answer VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ?)");
    for (const Answer& answer : answers) {
      MC_CHECK(answer.key.sample >= 0 && answer.key.turn >= 0);
      bind_all(insert, id_, answer.key.id, answer.key.sample, answer.key.turn, answer.completion,
               answer.reasoning, answer.finish, answer.num_tokens, answer.reasoning_tokens,
               answer.prompt_tokens, answer.seconds);
      insert.exec();
      insert.reset();
    }
    transaction.commit();
    return ok();
  });
}

Status Run::add(const Judgement& judgement) {
  MC_CHECK(judgement.key.sample >= 0 && judgement.key.turn >= 0 && judgement.seconds >= 0);
  const std::string verdict = task::to_json(judgement.verdict, task::Indent::kCompact);
  return database_->call([&](SQLite::Database& connection) -> Status {
    SQLite::Statement insert(connection,
                             "INSERT OR REPLACE INTO verdict VALUES(?, ?, ?, ?, ?, ?, ?, ?, ?)");
    const char* outcome = task::outcome_name(judgement.verdict.outcome);
    bind_all(insert, id_, judgement.key.id, judgement.key.sample, judgement.key.turn, outcome);
    if (judgement.reward) insert.bind(6, *judgement.reward);
    insert.bind(7, judgement.seconds);
    insert.bind(8, judgement.feedback);
    insert.bind(9, verdict);
    insert.exec();
    return ok();
  });
}

Status Run::put(const std::string& name, const std::string& text) {
  MC_CHECK(!name.empty());
  return database_->call([&](SQLite::Database& connection) -> Status {
    SQLite::Statement insert(connection, "INSERT OR REPLACE INTO text VALUES(?, ?, ?)");
    bind_all(insert, id_, name, text);
    insert.exec();
    return ok();
  });
}

Result<std::vector<TaskRecord>> Run::tasks() const {
  return database_->call([&](SQLite::Database& connection) -> Result<std::vector<TaskRecord>> {
    SQLite::Statement row(connection,
                          "SELECT id, level, families, code FROM task WHERE run = ? ORDER BY id");
    bind_all(row, id_);
    std::vector<TaskRecord> out;
    while (row.executeStep()) {
      const Json families = Json::parse(row.getColumn(2).getString(), nullptr, false);
      TaskRecord task{row.getColumn(0).getString(),
                      row.getColumn(1).getString(),
                      {},
                      row.getColumn(3).getString()};
      if (families.is_array()) {
        for (const Json& family : families) {
          if (family.is_string()) task.families.push_back(family.get<std::string>());
        }
      }
      out.push_back(std::move(task));
    }
    return out;
  });
}

Result<std::vector<Answer>> Run::answers() const {
  return database_->call([&](SQLite::Database& connection) -> Result<std::vector<Answer>> {
    SQLite::Statement row(connection,
                          "SELECT task, sample, turn, completion, reasoning, finish, num_tokens, "
                          "reasoning_tokens, prompt_tokens, seconds FROM answer WHERE run = ? "
                          "ORDER BY task, sample, turn");
    bind_all(row, id_);
    std::vector<Answer> out;
    while (row.executeStep()) {
      out.push_back({key_at(row), row.getColumn(3).getString(), row.getColumn(4).getString(),
                     row.getColumn(5).getString(), row.getColumn(6).getInt64(),
                     row.getColumn(7).getInt64(), row.getColumn(8).getInt64(),
                     row.getColumn(9).getDouble()});
    }
    return out;
  });
}

Result<std::vector<Judgement>> Run::judgements() const {
  return database_->call([&](SQLite::Database& connection) -> Result<std::vector<Judgement>> {
    SQLite::Statement row(connection,
                          "SELECT task, sample, turn, reward, seconds, feedback, verdict FROM "
                          "verdict WHERE run = ? ORDER BY task, sample, turn");
    bind_all(row, id_);
    std::vector<Judgement> out;
    while (row.executeStep()) {
      Judgement one{.key = key_at(row),
                    .reward = {},
                    .seconds = row.getColumn(4).getDouble(),
                    .feedback = row.getColumn(5).getString(),
                    .verdict = {}};
      if (!row.getColumn(3).isNull()) one.reward = row.getColumn(3).getDouble();
      MC_TRY(one.verdict, task::verdict_from_json(row.getColumn(6).getString()),
             "the verdict " + to_string(one.key));
      out.push_back(std::move(one));
    }
    return out;
  });
}

Result<std::optional<std::string>> Run::text(const std::string& name) const {
  return database_->call([&](SQLite::Database& connection) -> Result<std::optional<std::string>> {
    SQLite::Statement row(connection, "SELECT text FROM text WHERE run = ? AND name = ?");
    bind_all(row, id_, name);
    if (!row.executeStep()) return std::optional<std::string>();
    return std::optional(row.getColumn(0).getString());
  });
}

}  // namespace mc::store
