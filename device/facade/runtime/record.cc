// SPDX-License-Identifier: Apache-2.0
// Records which operators run, whoever calls them; how many bytes of the copies in forward are
// rearranged; and what operators compute while a module is imported and its model constructed.
//
// An operator that computes counts when it is called, even if its result is dropped, since a result
// can leave PyTorch in many ways.  There is one exception: a scaled random draw or constant
// (`torch.randn(n) * 0.02`) initialises memory that the reference's parameters will overwrite.  Its
// storage is marked.  A copy of a marked storage is marked, a storage that is overwritten loses its
// mark, and a storage that is freed does not count.
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
#include <set>
#include <sstream>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "guard.h"
#include "runtime.h"

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

// The state of a call at its begin, the only time at which PyTorch provides the inputs.
struct Begun : at::ObserverContext {
  uint64_t moved_bytes = 0;
  std::string cast;  // "Float Int" for a copy that changes values; otherwise "".
  bool is_counted = false;
  std::vector<at::Tensor> given;
};

// ---- Casts --------------------------------------------------------------------------------------

// The numbers that a type represents: the binary digits and the bits of the exponent.
struct Precision {
  int digits = 0, exponent = 0;
};

Precision precision_of(at::ScalarType type) {
  switch (type) {
    case at::kDouble:
      return {53, 11};
    case at::kFloat:
      return {24, 8};
    case at::kHalf:
      return {11, 5};
    case at::kBFloat16:
      return {8, 8};
    case at::kFloat8_e4m3fn:
      return {4, 4};
    case at::kFloat8_e5m2:
      return {3, 5};
    case at::kBool:
      return {1, 0};
    default:
      return {static_cast<int>(8 * c10::elementSize(type)) - (c10::isSignedType(type) ? 1 : 0), 0};
  }
}

// True if `to` can represent each value of `from`.
bool keeps_values(at::ScalarType from, at::ScalarType to) {
  if (c10::isComplexType(from) && !c10::isComplexType(to)) return false;
  if (c10::isComplexType(from)) from = c10::toRealValueType(from);
  if (c10::isComplexType(to)) to = c10::toRealValueType(to);
  if (from == to) return true;
  if (c10::isFloatingType(from) && !c10::isFloatingType(to)) return false;
  const bool fits_sign =
      c10::isFloatingType(to) || !c10::isSignedType(from) || c10::isSignedType(to);
  const Precision mine = precision_of(from), theirs = precision_of(to);
  return fits_sign && mine.digits <= theirs.digits && mine.exponent <= theirs.exponent;
}

// Returns "Float Int" for a copy that changes values, "" for other copies.  Indices may be
// narrowed.
std::string cast_by(const at::Tensor& target, const at::Tensor& source) {
  const at::ScalarType from = source.scalar_type(), to = target.scalar_type();
  if (keeps_values(from, to) || (from == at::kLong && to == at::kInt)) return "";
  return std::string(c10::toString(from)) + ' ' + c10::toString(to);
}

// The target and the source of a copy; null if the call is not a copy.
std::pair<const at::Tensor*, const at::Tensor*> copied_by(const at::RecordFunction& function) {
  const auto operation = function.operator_name();
  const auto inputs = function.inputs();
  if (!operation || operation->name != "aten::copy_" || inputs.size() < 2) return {};
  if (!inputs[0].isTensor() || !inputs[1].isTensor()) return {};
  return {&inputs[0].toTensor(), &inputs[1].toTensor()};
}

// True if the tensor is all of its memory, in order.
bool is_whole(const at::Tensor& tensor) {
  return tensor.is_contiguous() && tensor.nbytes() == tensor.storage().nbytes();
}

// The bytes that a copy on the device reorders, moves within memory or rounds.
uint64_t moved_by(const at::Tensor& target, const at::Tensor& source) {
  if (!target.has_storage() || !source.has_storage() || target.is_cpu() || source.is_cpu())
    return 0;
  if (source.is_floating_point() && source.scalar_type() != target.scalar_type())
    return std::max(target.nbytes(), source.nbytes());
  const bool is_plain = is_whole(target) && is_whole(source) && target.sizes() == source.sizes();
  return is_plain ? 0 : target.nbytes();
}

std::unique_ptr<at::ObserverContext> on_start(const at::RecordFunction& function) {
  const auto [target, source] = copied_by(function);
  if (target == nullptr) return nullptr;
  auto begun = std::make_unique<Begun>();
  begun->moved_bytes = moved_by(*target, *source);
  begun->cast = cast_by(*target, *source);
  return begun;
}

// Frames without an operator, such as those of autograd.Function, have names that any code may
// choose.  An operator that throws, as a forbidden one does (guard.cc), has computed nothing.
void on_end(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto operation = function.operator_name();
  if (!operation || std::uncaught_exceptions() > 0) return;
  if (mc::shim::is_own(operation->name)) return;  // The operators that it calls are counted.
  const std::lock_guard lock(recording().mutex);
  ++recording().calls[operation->name];
  if (context == nullptr) return;
  const Begun& begun = *static_cast<Begun*>(context);
  recording().moved_bytes += begun.moved_bytes;
  if (!begun.cast.empty()) ++recording().calls["cast " + begun.cast];
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

// A random draw or a constant, possibly scaled.
struct Mark {
  c10::weak_intrusive_ptr<c10::StorageImpl> storage;
  std::string scaled_by;  // "mul.Tensor[300]" of the call that scaled it; "" before.
  uint64_t build = 0;
};

struct Construction {
  std::mutex mutex;
  // Guarded by mutex.
  std::unordered_set<std::string> allowed;
  // Calls that compute, since the last build: "mul.Tensor[300][300]", or "cast Float Int".
  std::map<std::string, uint64_t> calls;
  std::map<std::string, uint64_t> elements;  // The elements of the calls' results.
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

constexpr int64_t kScalarsMax = 16;  // A larger result may be a precomputed table.

// Returns "mul" for aten::mul_.
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

// True for an operator whose result does not depend on its tensors' values.
bool ignores_values(const std::string& name) {
  constexpr size_t kLike = 5;
  return name.compare(0, kLike, "empty") == 0 || name.compare(0, 4, "new_") == 0 ||
         (name.size() > kLike && name.compare(name.size() - kLike, kLike, "_like") == 0);
}

bool is_made_of_others(const c10::OperatorName& name) {
  const auto op = c10::Dispatcher::singleton().findOp(name);
  return op && op->hasKernelForDispatchKey(c10::DispatchKey::CompositeImplicitAutograd);
}

// True for an operator that scales its argument or changes its distribution.
bool scales(const std::string& name) {
  static const std::set<std::string> kNames = {"add", "sub", "mul", "div", "erfinv", "clamp"};
  return kNames.count(name) != 0;
}

bool makes_draws(const std::string& name) {
  static const std::set<std::string> kNames = {"normal", "uniform", "random", "bernoulli",
                                               "rand",   "randn",   "fill",   "zero",
                                               "zeros",  "ones",    "full"};
  return kNames.count(name) != 0;
}

// Products of weights count inside other operators, too.
bool is_product(const std::string& name) {
  static const std::set<std::string> kNames = {"mm", "bmm",   "addmm", "baddbmm", "addbmm",
                                               "mv", "addmv", "dot",   "vdot",    "convolution"};
  return kNames.count(name) != 0;
}

bool is_number(const at::Tensor& tensor) {
  return tensor.unsafeGetTensorImpl()->is_wrapped_number();
}

// Returns "mul.Tensor[300][300]": python/harness/judge/operators.py gives a reference's calls the
// same names.
std::string signature_of(const std::string& name, const std::string& overload,
                         const std::vector<at::Tensor>& given) {
  std::string text = name + "." + overload;
  for (const at::Tensor& one : given) {
    if (is_number(one)) continue;
    text += '[';
    for (int64_t i = 0; i < one.dim(); ++i) {
      text += (i == 0 ? "" : ",") + std::to_string(one.size(i));
    }
    text += ']';
  }
  return text;
}

// The number of nested computing operators in this thread: an operator that they call is not
// counted.
thread_local int num_computing = 0;

std::unique_ptr<at::ObserverContext> on_construction_start(const at::RecordFunction& function) {
  auto begun = std::make_unique<Begun>();
  begun->given = tensors_of(function.inputs());
  if (const auto [target, source] = copied_by(function); target != nullptr) {
    begun->cast = cast_by(*target, *source);
  }
  const auto operation = function.operator_name();
  if (!operation || is_made_of_others(*operation)) return begun;
  if (mc::shim::is_own(operation->name)) return begun;
  const std::string name = short_name(operation->name);
  const std::lock_guard lock(construction().mutex);
  begun->is_counted = construction().allowed.count(name) == 0;
  if (begun->is_counted) ++num_computing;
  return begun;
}

// The mark of a draw if that is the operator's only argument besides numbers; otherwise null.
const Mark* draw_among(const std::vector<at::Tensor>& given) {
  const Mark* found = nullptr;
  for (const at::Tensor& one : given) {
    if (is_number(one)) continue;
    const auto mark = construction().marks.find(one.storage().unsafeGetStorageImpl());
    if (found != nullptr || mark == construction().marks.end()) return nullptr;
    found = &mark->second;
  }
  return found;
}

// Marks the storages of draws, scaled draws and their copies.  REQUIRES: the mutex is held.
void follow_draws(const c10::OperatorName& operation, const std::string& name,
                  const std::string& scaled_by, const std::vector<at::Tensor>& given,
                  const at::Tensor& result) {
  Construction& c = construction();
  const c10::StorageImpl* storage = result.storage().unsafeGetStorageImpl();
  bool is_view = false, is_target = false, is_drawn = makes_draws(name) || !scaled_by.empty();
  std::string scaled = scaled_by;
  for (const at::Tensor& one : given) {
    const c10::StorageImpl* other = one.storage().unsafeGetStorageImpl();
    if (other == storage) {
      is_target = operation.name.back() == '_' || name == "_copy_from";
      is_view = !is_target;
      continue;
    }
    const auto mark = c.marks.find(other);
    if (ignores_values(name) || mark == c.marks.end() || c.allowed.count(name) == 0) continue;
    is_drawn = true;
    if (scaled.empty()) scaled = mark->second.scaled_by;
  }
  if (is_view) return;
  if (is_drawn) {
    if (result.numel() <= kScalarsMax) scaled.clear();
    c.marks.insert_or_assign(
        storage, Mark{result.storage().getWeakStorageImpl(), std::move(scaled), c.build});
  } else if (!is_target || result.nbytes() == result.storage().nbytes()) {
    c.marks.erase(storage);
  }
}

void count(const std::string& signature, uint64_t elements) {
  ++construction().calls[signature];
  construction().elements[signature] += elements;
}

void on_construction(const at::RecordFunction& function, at::ObserverContext* context) {
  const auto operation = function.operator_name();
  if (!operation || context == nullptr) return;
  const Begun& begun = *static_cast<Begun*>(context);
  if (begun.is_counted) --num_computing;
  if (std::uncaught_exceptions() > 0) return;
  if (is_made_of_others(*operation)) return;
  if (mc::shim::is_own(operation->name)) return;
  Construction& c = construction();
  const std::string name = short_name(operation->name);
  const std::vector<at::Tensor>& given = begun.given;
  const c10::ArrayRef<const c10::IValue> values(function.outputs().data(),
                                                function.outputs().size());
  const std::vector<at::Tensor> results = tensors_of(values);
  const std::lock_guard lock(c.mutex);
  if (c.is_paused) return;
  if (!begun.cast.empty() && num_computing == 0) count("cast " + begun.cast, given[0].numel());
  uint64_t elements = 0;
  for (const at::Tensor& result : results) {
    if (result.is_floating_point() || result.is_complex()) elements += result.numel();
  }
  std::string scaled_by;
  if (begun.is_counted && elements > 0 && (num_computing == 0 || is_product(name))) {
    const std::string signature = signature_of(name, operation->overload_name, given);
    const bool is_scaled_draw = scales(name) && draw_among(given) != nullptr;
    if (is_scaled_draw) scaled_by = signature;
    count(signature, is_scaled_draw ? 0 : elements);
  }
  for (const at::Tensor& result : results) follow_draws(*operation, name, scaled_by, given, result);
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
  c.json = '[' + to_json(c.calls) + ',' + to_json(c.elements) + ']';
  return c.json.c_str();
}

void mc_init_end_build(const char* allowed_calls) {
  Construction& c = construction();
  const std::lock_guard lock(c.mutex);
  std::istringstream stream(allowed_calls);
  for (std::string line; std::getline(stream, line);) {
    for (auto mark = c.marks.begin(); mark != c.marks.end();) {
      const bool is_allowed = mark->second.build == c.build && mark->second.scaled_by == line;
      mark = is_allowed ? c.marks.erase(mark) : std::next(mark);
    }
  }
  c.calls.clear();
  c.elements.clear();
  ++c.build;
}

const char* mc_init_computed(void) {
  Construction& c = construction();
  if (c.handle != 0) at::removeCallback(c.handle);
  c.handle = 0;
  const std::lock_guard lock(c.mutex);
  std::map<std::string, uint64_t> alive;
  for (const auto& [storage, mark] : c.marks) {
    if (mark.storage.use_count() > 0 && !mark.scaled_by.empty()) ++alive[mark.scaled_by];
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
