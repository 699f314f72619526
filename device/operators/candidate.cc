// SPDX-License-Identifier: Apache-2.0
//
// The candidate process's side (operators.h).
#ifndef NDEBUG
#define NDEBUG  // PyTorch's libraries are built so.
#endif
#include <ATen/ATen.h>
#include <ATen/core/dispatch/Dispatcher.h>
#include <ATen/cuda/CUDAGeneratorImpl.h>
#include <cuda_runtime_api.h>
#include <torch/library.h>

#include <memory>
#include <set>
#include <string>
#include <vector>

#include "operators/operators.h"
#include "operators/values.h"

// Functions of the client (device/client/cudart.cc), which the device process does not load.  The
// first sends a call, waits for the reply, copies its beginning to `reply` and returns a
// cudaError_t.
extern "C" [[gnu::weak]] int mc_device_operator(const void* call, size_t bytes, void* reply,
                                                size_t reply_max);
extern "C" [[gnu::weak]] void mc_device_operator_result(uint32_t slot, uint64_t address,
                                                        uint64_t bytes);

namespace mc::operators {
namespace {

constexpr size_t kReplyMax = 1 << 20;
constexpr size_t kHostBytesMax = 512 << 10;
constexpr uint64_t kOffsetStep = 4;  // The generator's offset grows by this for each draw.

// PyTorch's CUDA operators that need no kernel.
const std::set<std::string>& kept_operators() {
  static const auto* const names = new std::set<std::string>{"empty.memory_format",
                                                             "empty_strided",
                                                             "as_strided",
                                                             "view",
                                                             "view.dtype",
                                                             "_reshape_alias",
                                                             "resize_",
                                                             "set_",
                                                             "set_.source_Storage",
                                                             "set_.source_Storage_storage_offset",
                                                             "set_.source_Tensor",
                                                             "unfold",
                                                             "view_as_real",
                                                             "view_as_complex",
                                                             "is_set_to",
                                                             "record_stream",
                                                             "_local_scalar_dense",
                                                             "is_pinned",
                                                             "_pin_memory",
                                                             "copy_"};
  return *names;
}

at::CUDAGeneratorImpl* generator_of(const std::optional<at::Generator>& given) {
  const at::Generator& standard = at::globalContext().defaultGenerator(at::Device(at::kCUDA, 0));
  return at::get_generator_or_default<at::CUDAGeneratorImpl>(given, standard);
}

void put_generator(Writer& out, const std::optional<at::Generator>& given) {
  at::CUDAGeneratorImpl* generator = generator_of(given);
  const std::lock_guard<std::mutex> lock(generator->mutex_);
  const auto [seed, offset] = generator->philox_engine_inputs(kOffsetStep);
  out.put(Tag::kGenerator);
  out.put(seed);
  out.put(offset);
}

// The tensors of a call, in order.
using Given = std::vector<at::Tensor>;

void put_tensor(Writer& out, const at::Tensor& tensor, Given& given) {
  if (!tensor.defined()) return out.put(Tag::kNone);
  given.push_back(tensor);
  if (!tensor.is_cuda()) {
    TORCH_CHECK(tensor.device().is_cpu() && tensor.nbytes() <= kHostBytesMax,
                "an operator on the device was given a tensor on ", tensor.device());
    const at::Tensor plain = tensor.contiguous().resolve_conj().resolve_neg();
    out.put(Tag::kHostTensor);
    out.put(plain.scalar_type());
    out.put(static_cast<uint8_t>(tensor.unsafeGetTensorImpl()->is_wrapped_number()));
    out.put_list(plain.sizes());
    return out.put_bytes(plain.data_ptr(), plain.nbytes());
  }
  TORCH_CHECK(tensor.layout() == at::kStrided, "the device has no ", tensor.layout(), " tensors");
  out.put(Tag::kTensor);
  out.put(tensor.scalar_type());
  out.put(static_cast<uint8_t>((tensor.is_conj() ? 1 : 0) | (tensor.is_neg() ? 2 : 0)));
  out.put(reinterpret_cast<uint64_t>(tensor.storage().data_ptr().get()));
  out.put(static_cast<uint64_t>(tensor.storage().nbytes()));
  out.put(static_cast<int64_t>(tensor.storage_offset()));
  out.put_list(tensor.sizes());
  out.put_list(tensor.strides());
}

void put_value(Writer& out, const c10::IValue& value, Given& given);

void put_items(Writer& out, const c10::IValue& value, Given& given) {
  const auto items = value.toListRef();
  const bool are_numbers =
      !items.empty() && (items[0].isInt() || items[0].isDouble() || items[0].isBool());
  out.put(are_numbers ? Tag::kScalars : Tag::kOptionalTensors);
  out.put(static_cast<uint32_t>(items.size()));
  for (const c10::IValue& item : items) put_value(out, item, given);
}

void put_value(Writer& out, const c10::IValue& value, Given& given) {
  if (value.isNone()) {
    out.put(Tag::kNone);
  } else if (value.isTensor()) {
    put_tensor(out, value.toTensor(), given);
  } else if (value.isBool()) {
    out.put(Tag::kBool);
    out.put(static_cast<uint8_t>(value.toBool()));
  } else if (value.isInt()) {
    out.put(Tag::kInt);
    out.put(value.toInt());
  } else if (value.isDouble()) {
    out.put(Tag::kDouble);
    out.put(value.toDouble());
  } else if (value.isComplexDouble()) {
    out.put(Tag::kComplex);
    out.put(value.toComplexDouble().real());
    out.put(value.toComplexDouble().imag());
  } else if (value.isString()) {
    out.put(Tag::kString);
    out.put_text(value.toStringRef());
  } else if (value.isDevice()) {
    out.put(Tag::kDevice);
  } else if (value.isGenerator()) {
    put_generator(out, value.toGenerator());
  } else if (value.isIntList()) {
    out.put(Tag::kInts);
    out.put_list(value.toIntVector());
  } else if (value.isDoubleList()) {
    const auto list = value.toDoubleVector();
    out.put(Tag::kDoubles);
    out.put(static_cast<uint32_t>(list.size()));
    for (const double item : list) out.put(item);
  } else if (value.isBoolList()) {
    const auto list = value.toBoolList();
    out.put(Tag::kBools);
    out.put(static_cast<uint32_t>(list.size()));
    for (const bool item : list) out.put(static_cast<uint8_t>(item));
  } else if (value.isTensorList()) {
    const auto list = value.toTensorVector();
    out.put(Tag::kTensors);
    out.put(static_cast<uint32_t>(list.size()));
    for (const at::Tensor& item : list) put_tensor(out, item, given);
  } else if (value.isList()) {
    put_items(out, value, given);
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "the device takes no argument of type ", value.tagKind());
  }
}

// ---- Results ------------------------------------------------------------------------------------

at::Tensor get_new(Reader& in) {
  const auto slot = in.get<uint32_t>();
  const auto type = in.get<at::ScalarType>();
  const std::vector<int64_t> sizes = in.get_list(), strides = in.get_list();
  const at::Tensor made =
      at::empty_strided(sizes, strides, at::TensorOptions().dtype(type).device(at::kCUDA));
  mc_device_operator_result(slot, reinterpret_cast<uint64_t>(made.data_ptr()), made.nbytes());
  return made;
}

at::Tensor get_resized(Reader& in, const Given& given) {
  const at::Tensor& tensor = given.at(in.get<uint32_t>());
  const auto slot = in.get<uint32_t>();
  TORCH_CHECK(in.get<at::ScalarType>() == tensor.scalar_type(), "an output has another type");
  tensor.resize_(in.get_list());
  in.get_list();  // Strides, which follow from the sizes.
  mc_device_operator_result(slot, reinterpret_cast<uint64_t>(tensor.data_ptr()), tensor.nbytes());
  return tensor;
}

at::Tensor get_view(Reader& in, const Given& given) {
  const at::Tensor& base = given.at(in.get<uint32_t>());
  const auto type = in.get<at::ScalarType>();
  const auto offset = in.get<int64_t>();
  const std::vector<int64_t> sizes = in.get_list(), strides = in.get_list();
  at::Tensor view = at::empty({0}, base.options().dtype(type));
  return view.set_(base.storage(), offset, sizes, strides);
}

c10::IValue get_result(Reader& in, const Given& given) {
  switch (in.get<Tag>()) {
    case Tag::kNone:
      return {};
    case Tag::kSame:
      return given.at(in.get<uint32_t>());
    case Tag::kResized:
      return get_resized(in, given);
    case Tag::kView:
      return get_view(in, given);
    case Tag::kNew:
      return get_new(in);
    case Tag::kBool:
      return in.get<uint8_t>() != 0;
    case Tag::kInt:
      return in.get<int64_t>();
    case Tag::kDouble:
      return in.get<double>();
    case Tag::kTensors: {
      c10::List<at::Tensor> list;
      for (auto left = in.get<uint32_t>(); left > 0; --left) {
        list.push_back(get_result(in, given).toTensor());
      }
      return list;
    }
    default:
      TORCH_CHECK(false, "the device process sent a result of an unknown kind");
  }
}

bool takes_generator(const c10::FunctionSchema& schema) {
  for (const c10::Argument& argument : schema.arguments()) {
    if (argument.name() == "generator") return true;
  }
  return false;
}

// Runs an operator in the device process.
void call_there(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const c10::FunctionSchema& schema = op.schema();
  const size_t count = schema.arguments().size();
  Writer out;
  Given given;
  out.put_text(schema.name());
  out.put_text(schema.overload_name());
  out.put(static_cast<uint32_t>(count));
  const auto arguments = torch::jit::last(*stack, count);
  for (size_t i = 0; i < count; ++i) {
    const bool is_default = arguments[i].isNone() && schema.arguments()[i].name() == "generator";
    is_default ? put_generator(out, std::nullopt) : put_value(out, arguments[i], given);
  }
  const bool draws = op.hasTag(at::Tag::nondeterministic_seeded) && !takes_generator(schema);
  draws ? put_generator(out, std::nullopt) : out.put(Tag::kNone);
  std::vector<char> reply(kReplyMax);
  const int status =
      mc_device_operator(out.bytes().data(), out.bytes().size(), reply.data(), reply.size());
  TORCH_CHECK(status == 0, "CUDA error: ", cudaGetErrorString(static_cast<cudaError_t>(status)));
  Reader in(reply.data(), reply.size());
  const End end = in.get<End>();
  if (end != End::kDone) {
    const std::string message = in.get_text();
    TORCH_CHECK_NOT_IMPLEMENTED(end != End::kUnsupported, message);
    TORCH_CHECK(false, message);
  }
  torch::jit::drop(*stack, count);
  for (auto left = in.get<uint32_t>(); left > 0; --left) {
    torch::jit::push(*stack, get_result(in, given));
  }
}

// ---- Copies between host and device -------------------------------------------------------------

void check(cudaError_t status) {
  TORCH_CHECK(status == cudaSuccess, "CUDA error: ", cudaGetErrorString(status));
}

bool is_packed(const at::Tensor& tensor) {
  return tensor.is_non_overlapping_and_dense() && !tensor.is_conj() && !tensor.is_neg();
}

void copy_up(const at::Tensor& target, const at::Tensor& source) {
  if (!is_packed(target)) {
    const at::Tensor dense = at::empty(target.sizes(), target.options());
    copy_up(dense, source);
    target.copy_(dense);
    return;
  }
  at::Tensor host =
      at::empty_strided(target.sizes(), target.strides(), target.options().device(at::kCPU));
  host.copy_(source.expand(target.sizes()));
  check(cudaMemcpy(target.data_ptr(), host.data_ptr(), host.nbytes(), cudaMemcpyHostToDevice));
}

void copy_down(const at::Tensor& target, const at::Tensor& source) {
  if (!is_packed(source)) {
    const at::Tensor dense = at::empty(source.sizes(), source.options());
    dense.copy_(source);
    return copy_down(target, dense);
  }
  at::Tensor host =
      at::empty_strided(source.sizes(), source.strides(), source.options().device(at::kCPU));
  check(cudaMemcpy(host.data_ptr(), source.data_ptr(), host.nbytes(), cudaMemcpyDeviceToHost));
  target.copy_(host.expand(target.sizes()));
}

// True if a copy moves the bytes unchanged and in order, so that a plain copy does, as on a GPU.
bool are_alike(const at::Tensor& target, const at::Tensor& source) {
  return target.scalar_type() == source.scalar_type() && target.sizes() == source.sizes() &&
         target.strides() == source.strides() && is_packed(target) && is_packed(source);
}

// A copy between two device tensors of different dtype or layout is an operator like the others.
void copy(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  const auto arguments = torch::jit::last(*stack, 3);
  const at::Tensor target = arguments[0].toTensor(), source = arguments[1].toTensor();
  const bool are_there = target.is_cuda() && source.is_cuda();
  if (are_there && !are_alike(target, source)) return call_there(op, stack);
  if (target.numel() > 0 && are_there) {
    check(cudaMemcpy(target.data_ptr(), source.data_ptr(), target.nbytes(),
                     cudaMemcpyDeviceToDevice));
  } else if (target.numel() > 0) {
    target.is_cuda() ? copy_up(target, source) : copy_down(target, source);
  }
  torch::jit::drop(*stack, 3);
  torch::jit::push(*stack, target);
}

// ---- Operators that PyTorch has for CUDA alone --------------------------------------------------

using Cell = std::tuple<at::Tensor, at::Tensor, at::Tensor>;

at::Tensor with_bias(const at::Tensor& gates, const std::optional<at::Tensor>& bias) {
  return bias && bias->defined() ? gates + *bias : gates;
}

// The LSTM cell; only the gradient uses the third result.
Cell lstm_cell(const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cx,
               const std::optional<at::Tensor>& input_bias,
               const std::optional<at::Tensor>& hidden_bias) {
  const at::Tensor gates =
      with_bias(input_gates, input_bias) + with_bias(hidden_gates, hidden_bias);
  const std::vector<at::Tensor> parts = gates.chunk(4, 1);
  const at::Tensor input = parts[0].sigmoid(), forget = parts[1].sigmoid();
  const at::Tensor cell = parts[2].tanh(), output = parts[3].sigmoid();
  const at::Tensor cy = forget * cx + input * cell;
  return {output * cy.tanh(), cy, at::cat({input, forget, cell, output}, 1)};
}

// The GRU cell.
std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates,
                                            const at::Tensor& hidden_gates, const at::Tensor& hx,
                                            const std::optional<at::Tensor>& input_bias,
                                            const std::optional<at::Tensor>& hidden_bias) {
  const std::vector<at::Tensor> x = with_bias(input_gates, input_bias).chunk(3, 1);
  const std::vector<at::Tensor> h = with_bias(hidden_gates, hidden_bias).chunk(3, 1);
  const at::Tensor reset = (x[0] + h[0]).sigmoid(), update = (x[1] + h[1]).sigmoid();
  const at::Tensor fresh = (x[2] + reset * h[2]).tanh();
  return {fresh + update * (hx - fresh), at::cat({reset, update, fresh, hx, h[2]}, 1)};
}

// Drops PyTorch's warning that a kernel is replaced, which is intended here.
class Quiet : public c10::WarningHandler {
 public:
  void process(const c10::Warning&) override {}
};

}  // namespace
}  // namespace mc::operators

int mc_operators_install() {
  if (mc_device_operator == nullptr || mc_device_operator_result == nullptr) return -1;
  using mc::operators::kept_operators;
  constexpr std::string_view kAten = "aten::";
  mc::operators::Quiet quiet;
  const c10::WarningUtils::WarningHandlerGuard while_quiet(&quiet);
  // The registrations stay until the process ends.
  auto* library =
      new torch::Library(torch::Library::IMPL, "aten", c10::DispatchKey::CUDA, __FILE__, __LINE__);
  auto& dispatcher = c10::Dispatcher::singleton();
  int replaced = 0;
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (name.name.rfind(kAten, 0) != 0) continue;
    const auto op = dispatcher.findOp(name);
    if (!op || !op->hasKernelForDispatchKey(c10::DispatchKey::CUDA)) continue;
    std::string full = name.name.substr(kAten.size());
    if (!name.overload_name.empty()) full += "." + name.overload_name;
    if (kept_operators().count(full) != 0 || full.rfind("_thnn_fused_", 0) == 0) continue;
    library->impl(full.c_str(),
                  torch::CppFunction::makeFromBoxedFunction<&mc::operators::call_there>());
    ++replaced;
  }
  library->impl("copy_", torch::CppFunction::makeFromBoxedFunction<&mc::operators::copy>());
  library->impl("_thnn_fused_lstm_cell", TORCH_FN(mc::operators::lstm_cell));
  library->impl("_thnn_fused_gru_cell", TORCH_FN(mc::operators::gru_cell));
  return replaced + 1;
}
