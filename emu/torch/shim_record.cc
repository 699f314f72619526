// SPDX-License-Identifier: Apache-2.0
// Which operators run, whoever calls them; how much of what they copy in forward they rearrange;
// and which of them computed, while a module was imported and its model constructed, what is still
// there.
//
// The results of those that computed are marked by their storages.  A copy of a marked one is
// marked, one that is overwritten by something else is not, and one that is gone does not count.
#ifndef NDEBUG
#define NDEBUG  // PyTorch's libraries are built so, and the form of RecordFunction depends on it.
#endif
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/record_function.h>

#include <algorithm>
#include <exception>
#include <iterator>
#include <map>
#include <memory>
#include <mutex>
#include <sstream>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "torch/shim.h"
#include "torch/shim_guard.h"

namespace {

struct Recording {
  std::mutex mutex;
  std::map<std::string, uint64_t> calls;  // Guarded by mutex.
  uint64_t moved_bytes = 0;               // Guarded by mutex.
  at::CallbackHandle handle = 0;
  std::string json;
};

Recording& recording() {
  static Recording* const instance = new Recording;
  return *instance;
}

// The facts of a call when it begins: PyTorch has its inputs then alone.
struct Begun : at::ObserverContext {
  uint64_t moved_bytes = 0;
  std::vector<at::Tensor> given;
};

// True if the tensor is all of its memory, in order.
bool is_whole(const at::Tensor& tensor) {
  return tensor.is_contiguous() && tensor.nbytes() == tensor.storage().nbytes();
}

// The bytes that a copy on the device puts into another order or place.
uint64_t moved_by(const at::RecordFunction& function) {
  const auto inputs = function.inputs();
  if (inputs.size() < 2 || !inputs[0].isTensor() || !inputs[1].isTensor()) return 0;
  const at::Tensor& target = inputs[0].toTensor();
  const at::Tensor& source = inputs[1].toTensor();
  if (!target.has_storage() || !source.has_storage() || target.is_cpu() || source.is_cpu())
    return 0;
  const bool is_plain = is_whole(target) && is_whole(source) && target.sizes() == source.sizes();
  return is_plain ? 0 : target.nbytes();
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  const auto operation = function.operator_name();
  if (!operation || operation->name != "aten::copy_") return nullptr;
  auto begun = std::make_unique<Begun>();
  begun->moved_bytes = moved_by(function);
  return begun;
}

// Frames without an operator, such as those of autograd.Function, bear names that anyone may
// choose.  An operator that ends by an exception, as one that was taken away does (shim_guard.cc),
// has computed nothing for anybody.
void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto operation = function.operator_name();
  if (!operation || std::uncaught_exceptions() > 0) return;
  if (mc::shim::is_own(operation->name)) return;  // Its parts are counted.
  const std::lock_guard lock(recording().mutex);
  ++recording().calls[operation->name];
  if (context != nullptr) recording().moved_bytes += static_cast<Begun*>(context)->moved_bytes;
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

// ---- Before the first call of forward -----------------------------------------------------------

struct Mark {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::string name;  // "mul" of the operator that computed it.
  uint64_t build = 0;
};

struct Construction {
  std::mutex mutex;
  // Guarded by mutex.
  std::unordered_set<std::string> allowed;
  std::map<std::string, uint64_t> calls;  // Those that compute, since the last build.
  std::map<const c10::StorageImpl*, Mark> marks;
  uint64_t build = 0;
  bool is_paused = false;
  std::string json;
  at::CallbackHandle handle = 0;
};

Construction& construction() {
  static Construction* const instance = new Construction;
  return *instance;
}

constexpr int64_t kScalarsMax = 16;  // Elements of a result that is no table.

// "mul" of aten::mul_.
std::string short_name(const std::string& name) {
  std::string text = name.substr(name.find("::") + 2);
  if (text.size() > 1 && text.back() == '_' && text[text.size() - 2] != '_') text.pop_back();
  return text;
}

std::vector<at::Tensor> tensors_of(c10::ArrayRef<const c10::IValue> values) {
  std::vector<at::Tensor> found;
  for (const c10::IValue& value : values) {
    if (value.isTensor()) found.push_back(value.toTensor());
    if (value.isTensorList()) {
      for (const at::Tensor& one : value.toTensorVector()) found.push_back(one);
    }
  }
  const auto has_no_memory = [](const at::Tensor& one) {
    return !one.defined() || !one.has_storage() || one.is_meta();
  };
  found.erase(std::remove_if(found.begin(), found.end(), has_no_memory), found.end());
  return found;
}

// True for an operator whose result holds nothing of the tensors that it is given.
bool ignores_values(const std::string& name) {
  constexpr size_t kLike = 5;
  return name.compare(0, kLike, "empty") == 0 || name.compare(0, 4, "new_") == 0 ||
         (name.size() > kLike && name.compare(name.size() - kLike, kLike, "_like") == 0);
}

bool is_made_of_others(const c10::OperatorName& name) {
  const auto op = c10::Dispatcher::singleton().findOp(name);
  return op && op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

std::unique_ptr<at::ObserverContext> on_construction_start(const at::RecordFunction& function) {
  auto begun = std::make_unique<Begun>();
  begun->given = tensors_of(function.inputs());
  return begun;
}

void on_construction(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto operation = function.operator_name();
  if (!operation || context == nullptr || std::uncaught_exceptions() > 0) return;
  if (is_made_of_others(*operation)) return;
  if (mc::shim::is_own(operation->name)) return;
  Construction& c = construction();
  const std::string name = short_name(operation->name);
  const std::vector<at::Tensor>& given = static_cast<Begun*>(context)->given;
  const c10::ArrayRef<const c10::IValue> results(function.outputs().data(),
                                                 function.outputs().size());
  const std::lock_guard lock(c.mutex);
  if (c.is_paused) return;
  const bool computes = c.allowed.count(name) == 0;
  bool has_counted = false;
  for (const at::Tensor& result : tensors_of(results)) {
    const c10::StorageImpl* storage = result.storage().unsafeGetStorageImpl();
    std::string maker;
    if (computes && (result.is_floating_point() || result.is_complex())) {
      maker = name;
      if (!std::exchange(has_counted, true)) ++c.calls[name];
    }
    bool is_view = false, is_target = false;
    for (const at::Tensor& one : given) {
      const c10::StorageImpl* other = one.storage().unsafeGetStorageImpl();
      if (other == storage) {
        is_target = operation->name.back() == '_' || name == "_copy_from";
        is_view = !is_target;
        continue;
      }
      const auto mark = c.marks.find(other);
      if (maker.empty() && !ignores_values(name) && mark != c.marks.end())
        maker = mark->second.name;
    }
    if (is_view) continue;
    if (!maker.empty()) {
      if (result.numel() <= kScalarsMax) continue;
      c.marks.insert_or_assign(
          storage, Mark{result.storage().getWeakStorageImpl(), std::move(maker), c.build});
    } else if (!is_target || result.nbytes() == result.storage().nbytes()) {
      c.marks.erase(storage);
    }
  }
}

}  // namespace

extern "C" {

void mc_init_watch(const char* allowed) {
  Construction& c = construction();
  {
    const std::lock_guard lock(c.mutex);
    std::istringstream stream(allowed);
    for (std::string line; std::getline(stream, line);) c.allowed.insert(short_name("::" + line));
  }
  c.handle =
      at::addGlobalCallback(at::RecordFunctionCallback(on_construction_start, on_construction)
                                .scopes({at::RecordScope::FUNCTION})
                                .needsInputs(true)
                                .needsOutputs(true)
                                .needsIds(false));
}

void mc_init_pause(int is_paused) {
  const std::lock_guard lock(construction().mutex);
  construction().is_paused = is_paused != 0;
}

const char* mc_init_calls(void) {
  Construction& c = construction();
  const std::lock_guard lock(c.mutex);
  c.json = to_json(c.calls);
  return c.json.c_str();
}

void mc_init_end_build(const char* excused) {
  Construction& c = construction();
  const std::lock_guard lock(c.mutex);
  std::istringstream stream(excused);
  for (std::string line; std::getline(stream, line);) {
    for (auto mark = c.marks.begin(); mark != c.marks.end();) {
      const bool is_excused = mark->second.build == c.build && mark->second.name == line;
      mark = is_excused ? c.marks.erase(mark) : std::next(mark);
    }
  }
  c.calls.clear();
  ++c.build;
}

const char* mc_init_computed(void) {
  Construction& c = construction();
  if (c.handle != 0) at::removeCallback(c.handle);
  c.handle = 0;
  const std::lock_guard lock(c.mutex);
  std::map<std::string, uint64_t> alive;
  for (const auto& [storage, mark] : c.marks) {
    if (mark.storage.use_count() > 0) ++alive[mark.name];
  }
  c.json = to_json(alive);
  return c.json.c_str();
}

uint64_t mc_shim_moved_bytes(void) {
  const std::lock_guard lock(recording().mutex);
  return recording().moved_bytes;
}

void mc_shim_record_start(void) {
  Recording& r = recording();
  if (r.handle != 0) at::removeCallback(r.handle);
  {
    const std::lock_guard lock(r.mutex);
    r.calls.clear();
    r.moved_bytes = 0;
  }
  r.handle = at::addGlobalCallback(at::RecordFunctionCallback(on_start, on_end)
                                       .scopes({at::RecordScope::FUNCTION})
                                       .needsInputs(true)
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
