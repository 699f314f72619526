// SPDX-License-Identifier: Apache-2.0
// Which operators run, whoever calls them.
#include <ATen/record_function.h>

#include <exception>
#include <map>
#include <mutex>
#include <string>

#include "torch/shim.h"
#include "torch/shim_guard.h"

namespace {

struct Recording {
  std::mutex mutex;
  std::map<std::string, uint64_t> calls;  // Guarded by mutex.
  at::CallbackHandle handle = 0;
  std::string json;
};

Recording& recording() {
  static Recording* const instance = new Recording;
  return *instance;
}

// Frames without an operator, such as those of autograd.Function, bear names that anyone may
// choose.  An operator that ends by an exception, as one that was taken away does (shim_guard.cc),
// has computed nothing for anybody.
void on_end(const at::RecordFunction& function, at::ObserverContext*) {
  const auto operation = function.operator_name();
  if (!operation || std::uncaught_exceptions() > 0) return;
  if (mc::shim::is_own(operation->name)) return;  // Its parts are counted.
  const std::lock_guard lock(recording().mutex);
  ++recording().calls[operation->name];
}

std::string quote(const std::string& text) {
  std::string quoted = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') quoted += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) quoted += c;
  }
  return quoted + '"';
}

std::string to_json(const std::map<std::string, uint64_t>& calls) {
  std::string json = "{";
  for (const auto& [name, count] : calls) {
    json += (json.size() == 1 ? "" : ",") + quote(name) + ":" + std::to_string(count);
  }
  return json + "}";
}

}  // namespace

extern "C" {

void mc_shim_record_start(void) {
  Recording& r = recording();
  if (r.handle != 0) at::removeCallback(r.handle);
  {
    const std::lock_guard lock(r.mutex);
    r.calls.clear();
  }
  r.handle = at::addGlobalCallback(at::RecordFunctionCallback(nullptr, on_end)
                                       .scopes({at::RecordScope::FUNCTION})
                                       .needsInputs(false)
                                       .needsIds(false));
}

const char* mc_shim_record_stop(void) {
  Recording& r = recording();
  if (r.handle != 0) at::removeCallback(r.handle);
  r.handle = 0;
  const std::lock_guard lock(r.mutex);
  r.json = to_json(r.calls);
  return r.json.c_str();
}

}  // extern "C"
