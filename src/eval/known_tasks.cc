// SPDX-License-Identifier: Apache-2.0
#include "eval/known_tasks.h"

#include <optional>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/cancel.h"
#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/log.h"

namespace mc::eval {
namespace {

using Json = nlohmann::json;

constexpr size_t kKnownBytesMax = 1 << 20;

std::optional<KnownTask> read(const std::filesystem::path& path) {
  const auto text = read_file(path, kKnownBytesMax);
  if (!text) return std::nullopt;
  try {
    const Json json = Json::parse(*text);
    const Json& memory = json.at("memory");
    return KnownTask{json.at("known").get<std::string>(),
                     {.inputs = memory.at("inputs").get<int64_t>(),
                      .outputs = memory.at("outputs").get<int64_t>(),
                      .state = memory.at("state").get<int64_t>(),
                      .work = memory.at("work").get<int64_t>()}};
  } catch (const Json::exception&) {
    return std::nullopt;  // The task is analysed again, and the file replaced.
  }
}

Status write(const std::filesystem::path& path, const KnownTask& known) {
  const worker::CallMemory& memory = known.memory;
  const Json json{{"known", known.text},
                  {"memory",
                   {{"inputs", memory.inputs},
                    {"outputs", memory.outputs},
                    {"state", memory.state},
                    {"work", memory.work}}}};
  std::error_code failure;
  std::filesystem::create_directories(path.parent_path(), failure);
  return write_file_atomically(path, json.dump());
}

}  // namespace

std::filesystem::path KnownTasks::path_of(const std::string& key) const {
  return directory_ / (content_hash({key, versions_}).substr(0, 32) + ".json");
}

const KnownTask* KnownTasks::look_up(const std::string& key) {
  const auto found = known_.find(key);
  if (found != known_.end()) return &found->second;
  if (directory_.empty()) return nullptr;
  auto kept = read(path_of(key));
  if (!kept) return nullptr;
  if (known_.size() >= kTasksMax) known_.erase(known_.begin());
  return &known_.insert_or_assign(key, std::move(*kept)).first->second;
}

std::unique_ptr<KnownTasks::Turn> KnownTasks::take_turn(const std::string& key) {
  std::unique_lock lock(mutex_);
  changed_.wait(lock, this_cancellation(), [&] { return !looked_into_.contains(key); });
  if (is_cancelled() || look_up(key) != nullptr) return nullptr;
  MC_CHECK(looked_into_.insert(key).second);
  return std::make_unique<Turn>(*this, key);
}

KnownTask KnownTasks::find(const std::string& key) {
  const std::lock_guard lock(mutex_);
  const KnownTask* const found = look_up(key);
  return found == nullptr ? KnownTask() : *found;
}

void KnownTasks::learn(const std::string& key, const KnownTask& known) {
  {
    const std::lock_guard lock(mutex_);
    const KnownTask* const old = look_up(key);
    if (old != nullptr && old->text == known.text) return;
    if (known_.size() >= kTasksMax && old == nullptr) known_.erase(known_.begin());
    known_.insert_or_assign(key, known);
    MC_CHECK(known_.size() <= kTasksMax);
  }
  if (directory_.empty()) return;
  if (const Status written = write(path_of(key), known); !written) {
    log_debug(fmt::format("the facts of a task are not kept: {}", written.error().message));
  }
}

KnownTasks::Turn::~Turn() {
  {
    const std::lock_guard lock(tasks_.mutex_);
    MC_CHECK(tasks_.looked_into_.erase(key_) == 1);
  }
  tasks_.changed_.notify_all();
}

}  // namespace mc::eval
