// SPDX-License-Identifier: Apache-2.0
//
// For each operator that a candidate may not use, the dispatcher gets a kernel that throws, for
// every dispatch key of a backend.  Every call (from Python, C++, TorchScript, autograd, another
// operator) goes through the dispatcher's table and reaches that kernel.  An operator that PyTorch
// composes of others needs no such kernel: the operators that it calls throw.
#include <ATen/core/dispatch/Dispatcher.h>
#include <c10/util/Exception.h>

#include <map>
#include <mutex>
#include <set>
#include <sstream>
#include <string>
#include <string_view>
#include <unordered_map>
#include <unordered_set>
#include <vector>

#include "guard.h"
#include "runtime.h"

namespace {

using c10::DispatchKey;

struct Guard {
  std::mutex mutex;
  // Guarded by mutex.
  std::string policy;
  std::set<DispatchKey> guarded;  // The dispatch keys whose operators were replaced.
  std::vector<c10::RegistrationHandleRAII> registrations;  // Never released.
  std::map<std::string, uint64_t> refused;
  std::string json;
  // Constant once candidate code runs.
  std::unordered_set<std::string> known;  // PyTorch's operators, without overloads.
  std::unordered_map<c10::OperatorName, std::string> kernels;
};

Guard& guard() {
  static Guard* const instance = new Guard;
  return *instance;
}

std::string full_name(const c10::OperatorName& name) {
  return name.overload_name.empty() ? name.name : name.name + "." + name.overload_name;
}

// All kernels of the operator, one per line, including replaced kernels.
std::string kernels_of(const c10::OperatorHandle& op) { return op.dumpState(); }

[[noreturn]] void refuse_boxed(const c10::OperatorHandle& op, torch::jit::Stack*) {
  mc::shim::refuse(op);
}

class Allowed {
 public:
  explicit Allowed(const char* lines) {
    std::istringstream stream(lines);
    for (std::string line; std::getline(stream, line);) names_.insert(line);
  }

  // True for an operator that the list has by name or by overload.
  bool holds(const c10::OperatorName& name) const {
    constexpr std::string_view kAten = "aten::";
    if (name.name.compare(0, kAten.size(), kAten) != 0) return false;
    const std::string full = full_name(name).substr(kAten.size());
    return names_.count(full) != 0 || names_.count(name.name.substr(kAten.size())) != 0;
  }

 private:
  std::set<std::string> names_;
};

// The keys of the backend's dense, sparse, quantized and nested tensors.
std::vector<DispatchKey> keys_of(DispatchKey dense) {
  std::vector<DispatchKey> keys;
  for (const DispatchKey kind : {DispatchKey::Dense, DispatchKey::Sparse, DispatchKey::SparseCsr,
                                 DispatchKey::Quantized, DispatchKey::NestedTensor}) {
    keys.push_back(c10::toRuntimePerBackendFunctionalityKey(kind, c10::toBackendComponent(dense)));
  }
  if (dense == DispatchKey::CPU) keys.push_back(DispatchKey::MkldnnCPU);
  return keys;
}

// True if a call for this key would run a kernel; false if the operator is composed of others.
bool computes(const c10::OperatorHandle& op, DispatchKey key) {
  if (op.hasKernelForDispatchKey(key)) return true;
  const bool is_dense = c10::toFunctionalityKey(key) == DispatchKey::Dense;
  return is_dense &&
         (op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutograd) ||
          op.hasKernelForDispatchKey(DispatchKey::CompositeExplicitAutogradNonFunctional));
}

// Drops PyTorch's warning that a kernel is replaced, which is intended here.
class Quiet : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

int remove(DispatchKey key, const Allowed& allowed) {
  auto& dispatcher = c10::Dispatcher::singleton();
  int removed = 0;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    const auto op = dispatcher.findOp(name);
    if (!op || allowed.holds(name) || mc::shim::is_own(name.name) || !computes(*op, key)) continue;
    guard().registrations.push_back(dispatcher.registerImpl(
        name, key, c10::KernelFunction::makeFromBoxedFunction<&refuse_boxed>(), std::nullopt,
        nullptr, "not available to a candidate"));
    if (const auto found = guard().kernels.find(name); found != guard().kernels.end()) {
      found->second = kernels_of(*op);
    }
    ++removed;
  }
  return removed;
}

std::string quoted(const std::string& text) {
  std::string result = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\') result += '\\';
    if (static_cast<unsigned char>(c) >= 0x20) result += c;
  }
  return result + '"';
}

}  // namespace

void mc::shim::refuse(const c10::OperatorHandle& op) {
  const std::string name = full_name(op.operator_name());
  std::string policy;
  {
    const std::lock_guard lock(guard().mutex);
    ++guard().refused[name];
    policy = guard().policy;
  }
  C10_THROW_ERROR(NotImplementedError,
                  name + " is not available to a candidate (policy " + policy + ")");
}

bool mc::shim::is_own(const std::string& name) {
  return !guard().known.empty() && guard().known.count(name) == 0;
}

void mc::shim::remember_kernels(const c10::OperatorHandle& op) {
  guard().kernels.emplace(op.operator_name(), kernels_of(op));
}

void mc::shim::require_same_kernels(const c10::OperatorHandle& op) {
  const auto found = guard().kernels.find(op.operator_name());
  if (found != guard().kernels.end() && found->second != kernels_of(op)) refuse(op);
}

extern "C" {

void mc_guard_know(void) {
  for (const c10::OperatorName& name : c10::Dispatcher::singleton().getAllOpNames()) {
    guard().known.insert(name.name);
  }
}

int mc_guard_remove(const char* dispatch_key, const char* allowed, const char* policy) {
  const std::lock_guard lock(guard().mutex);
  Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard while_quiet(&quiet);
  try {
    const DispatchKey dense = c10::parseDispatchKey(dispatch_key);
    if (!guard().guarded.insert(dense).second) return 0;
    guard().policy = policy;
    const Allowed names(allowed);
    int removed = 0;
    for (const DispatchKey key : keys_of(dense)) removed += remove(key, names);
    return removed;
  } catch (const std::exception&) {
    return -1;
  }
}

const char* mc_guard_refused(void) {
  const std::lock_guard lock(guard().mutex);
  std::string& json = guard().json;
  json = "[";
  for (const auto& [name, count] : guard().refused) {
    json += std::string(json.size() == 1 ? "" : ", ") + "{\"name\": " + quoted(name) +
            ", \"count\": " + std::to_string(count) + "}";
  }
  json += "]";
  return json.c_str();
}

}  // extern "C"
