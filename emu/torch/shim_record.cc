// SPDX-License-Identifier: Apache-2.0
// Which dispatcher operations run, and which operation called them.
#include <ATen/record_function.h>

#include <map>
#include <memory>
#include <mutex>
#include <set>
#include <string>
#include <vector>

#include "torch/shim.h"

namespace {

struct Counts {
  uint64_t count = 0;
  uint64_t top = 0;
  std::set<std::string> parents;
};

struct Recording {
  std::mutex mutex;
  std::map<std::string, Counts> operations;  // Guarded by mutex.
  at::CallbackHandle handle = 0;
  std::string json;
};

Recording& recording() {
  static Recording* const instance = new Recording;
  return *instance;
}

thread_local std::vector<std::string> running;  // The operations this thread is inside of.

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  const std::string name = function.name();
  {
    const std::lock_guard lock(recording().mutex);
    Counts& counts = recording().operations[name];
    ++counts.count;
    if (running.empty()) {
      ++counts.top;
    } else {
      counts.parents.insert(running.back());
    }
  }
  running.push_back(name);
  return nullptr;
}

void on_end(const at::RecordFunction&, at::ObserverContext*) {
  if (!running.empty()) running.pop_back();
}

std::string quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

std::string to_json(const std::map<std::string, Counts>& operations) {
  std::string json = "[";
  for (const auto& [name, counts] : operations) {
    std::string parents;
    for (const std::string& parent : counts.parents) {
      parents += (parents.empty() ? "" : ",") + quote(parent);
    }
    json += std::string(json.size() == 1 ? "" : ",") + "{\"name\":" + quote(name) +
            ",\"count\":" + std::to_string(counts.count) +
            ",\"top\":" + std::to_string(counts.top) + ",\"parents\":[" + parents + "]}";
  }
  return json + "]";
}

}  // namespace

extern "C" {

void mc_shim_record_start(void) {
  Recording& r = recording();
  if (r.handle != 0) at::removeCallback(r.handle);
  {
    const std::lock_guard lock(r.mutex);
    r.operations.clear();
  }
  running.clear();
  r.handle = at::addGlobalCallback(at::RecordFunctionCallback(on_start, on_end)
                                       .scopes({at::RecordScope::FUNCTION})
                                       .needsInputs(false)
                                       .needsIds(false));
}

const char* mc_shim_record_stop(void) {
  Recording& r = recording();
  if (r.handle != 0) at::removeCallback(r.handle);
  r.handle = 0;
  const std::lock_guard lock(r.mutex);
  r.json = to_json(r.operations);
  return r.json.c_str();
}

}  // extern "C"
