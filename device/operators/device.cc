// SPDX-License-Identifier: Apache-2.0
//
// The device process's side (operators.h).
#ifndef NDEBUG
#define NDEBUG  // PyTorch's libraries are built so.
#endif
#include <ATen/ATen.h>
#include <ATen/CPUGeneratorImpl.h>
#include <ATen/core/dispatch/Dispatcher.h>

#include <cstring>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "operators/operators.h"
#include "operators/values.h"

namespace mc::operators {
namespace {

constexpr uint32_t kArgumentsMax = 64;
constexpr size_t kErrorBytesMax = 4000;
constexpr uint32_t kItemsMax = 1 << 14;
constexpr size_t kResultsMax = 1 << 10;  // Results that wait to be fetched.

// A result, and the device tensors from which it was computed.
struct Result {
  at::Tensor tensor;
  std::vector<uint64_t> sources;
};

struct State {
  void* (*host)(uint64_t address, uint64_t bytes) = nullptr;
  void (*note)(uint64_t target, uint64_t bytes, uint64_t extent, const uint64_t* sources,
               size_t count) = nullptr;
  std::map<uint32_t, Result> results;  // Results without an address, the oldest first.
  uint32_t next_slot = 0;
};

State& state() {
  static State* const instance = new State;
  return *instance;
}

// A device tensor that is written: its number of bytes, and its extent from the first to the last.
struct Written {
  uint64_t begin = 0, bytes = 0, extent = 0;
};

// The arguments of one call.
struct Call {
  std::vector<uint64_t> sources;  // The device tensors that the call reads.
  std::vector<Written> written;
  bool is_written = false;  // The argument that is being read is an output.
  std::vector<at::Tensor> tensors;
  std::vector<std::vector<int64_t>> sizes;  // The tensors' sizes before the operator ran.
  std::map<std::pair<uint64_t, uint64_t>, c10::Storage> storages;
};

c10::Storage storage_at(Call& call, uint64_t address, uint64_t bytes) {
  const auto known = call.storages.find({address, bytes});
  if (known != call.storages.end()) return known->second;
  void* data = bytes == 0 ? nullptr : state().host(address, bytes);
  TORCH_CHECK(data != nullptr || bytes == 0, "a tensor's memory is not the candidate's");
  // An operator resizes an empty output, in this process's memory.
  const bool may_grow = bytes == 0;
  c10::Storage storage(c10::Storage::use_byte_size_t(), bytes, at::DataPtr(data, at::kCPU),
                       may_grow ? c10::GetAllocator(at::kCPU) : nullptr, may_grow);
  call.storages.emplace(std::pair(address, bytes), storage);
  return storage;
}

Written written_of(const at::Tensor& tensor, uint64_t storage) {
  if (tensor.numel() == 0) return {storage, 0, 0};
  int64_t last = 0;
  for (int64_t k = 0; k < tensor.dim(); ++k) last += (tensor.size(k) - 1) * tensor.stride(k);
  const uint64_t item = tensor.itemsize();
  return {storage + static_cast<uint64_t>(tensor.storage_offset()) * item, tensor.nbytes(),
          static_cast<uint64_t>(last + 1) * item};
}

at::Tensor get_tensor(Reader& in, Call& call) {
  const auto type = in.get<at::ScalarType>();
  const auto flags = in.get<uint8_t>();
  const auto address = in.get<uint64_t>(), bytes = in.get<uint64_t>();
  const auto offset = in.get<int64_t>();
  const std::vector<int64_t> sizes = in.get_list(), strides = in.get_list();
  at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(type));
  tensor.set_(storage_at(call, address, bytes), offset, sizes, strides);  // Checks the bounds.
  tensor._set_conj((flags & 1) != 0);
  tensor._set_neg((flags & 2) != 0);
  if (call.is_written) {
    call.written.push_back(written_of(tensor, address));
  } else {
    call.sources.push_back(address);
  }
  call.tensors.push_back(tensor);
  call.sizes.push_back(sizes);
  return tensor;
}

at::Tensor get_host_tensor(Reader& in, Call& call) {
  const auto type = in.get<at::ScalarType>();
  const auto is_wrapped = in.get<uint8_t>();
  const std::vector<int64_t> sizes = in.get_list();
  int64_t count = 1;
  for (const int64_t size : sizes) {
    TORCH_CHECK(size >= 0 && !__builtin_mul_overflow(count, size, &count) &&
                    count <= static_cast<int64_t>(in.left()),
                "a tensor of the host is malformed");
  }
  const size_t bytes = static_cast<size_t>(count) * c10::elementSize(type);
  const char* data = in.get_bytes(bytes);
  at::Tensor tensor = at::empty(sizes, at::TensorOptions().dtype(type));
  if (bytes > 0) std::memcpy(tensor.data_ptr(), data, bytes);
  if (is_wrapped != 0) tensor.unsafeGetTensorImpl()->set_wrapped_number(true);
  call.tensors.push_back(tensor);
  call.sizes.push_back(sizes);
  return tensor;
}

// Random numbers depend on the seed and on the number of draws before.
at::Generator get_generator(Reader& in) {
  const auto seed = in.get<uint64_t>(), offset = in.get<uint64_t>();
  return at::make_generator<at::CPUGeneratorImpl>(seed ^ (offset * 0x9E3779B97F4A7C15));
}

uint32_t get_count(Reader& in) {
  const auto count = in.get<uint32_t>();
  TORCH_CHECK(count <= kItemsMax, "a list of an operator is too long");
  return count;
}

c10::IValue get_value(Reader& in, Call& call);

template <class T, class Get>
c10::List<T> get_items(Reader& in, Get get) {
  c10::List<T> list;
  for (uint32_t left = get_count(in); left > 0; --left) list.push_back(get());
  return list;
}

c10::IValue get_optional_tensors(Reader& in, Call& call) {
  return get_items<std::optional<at::Tensor>>(in, [&]() -> std::optional<at::Tensor> {
    const c10::IValue item = get_value(in, call);
    if (item.isNone()) return std::nullopt;
    return item.toTensor();
  });
}

c10::IValue get_scalars(Reader& in, Call& call) {
  c10::impl::GenericList list(c10::NumberType::get());
  for (uint32_t left = get_count(in); left > 0; --left) list.push_back(get_value(in, call));
  return list;
}

c10::IValue get_value(Reader& in, Call& call) {
  switch (in.get<Tag>()) {
    case Tag::kNone:
      return {};
    case Tag::kBool:
      return in.get<uint8_t>() != 0;
    case Tag::kInt:
      return in.get<int64_t>();
    case Tag::kDouble:
      return in.get<double>();
    case Tag::kComplex: {
      const auto real = in.get<double>(), imaginary = in.get<double>();
      return c10::complex<double>(real, imaginary);
    }
    case Tag::kString:
      return in.get_text();
    case Tag::kDevice:
      return at::Device(at::kCPU);
    case Tag::kGenerator:
      return get_generator(in);
    case Tag::kTensor:
      return get_tensor(in, call);
    case Tag::kHostTensor:
      return get_host_tensor(in, call);
    case Tag::kInts:
      return in.get_list();
    case Tag::kDoubles:
      return get_items<double>(in, [&] { return in.get<double>(); });
    case Tag::kBools:
      return get_items<bool>(in, [&] { return in.get<uint8_t>() != 0; });
    case Tag::kTensors:
      return get_items<at::Tensor>(in, [&] {
        const c10::IValue item = get_value(in, call);
        return item.isNone() ? at::Tensor() : item.toTensor();
      });
    case Tag::kOptionalTensors:
      return get_optional_tensors(in, call);
    case Tag::kScalars:
      return get_scalars(in, call);
    default:
      TORCH_CHECK(false, "an argument of an operator is malformed");
  }
}

// ---- Results ------------------------------------------------------------------------------------

void put_form(Writer& out, const at::Tensor& tensor) {
  out.put_list(tensor.sizes());
  out.put_list(tensor.strides());
}

// Writes a new tensor, which waits for its address.
void put_new(Writer& out, const at::Tensor& tensor, const Call& call) {
  out.put(state().next_slot);
  out.put(tensor.scalar_type());
  put_form(out, tensor);
  auto& results = state().results;
  results[state().next_slot++] = {tensor, call.sources};
  if (results.size() > kResultsMax) results.erase(results.begin());
}

void put_tensor(Writer& out, const at::Tensor& given, const Call& call) {
  if (!given.defined()) return out.put(Tag::kNone);
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    if (!call.tensors[i].is_same(given)) continue;
    const bool has_grown = given.sizes() != at::IntArrayRef(call.sizes[i]);
    out.put(has_grown ? Tag::kResized : Tag::kSame);
    out.put(static_cast<uint32_t>(i));
    return has_grown ? put_new(out, given.contiguous(), call) : void();
  }
  TORCH_CHECK_NOT_IMPLEMENTED(given.layout() == at::kStrided, "the device has no ", given.layout(),
                              " tensors");
  for (size_t i = 0; i < call.tensors.size(); ++i) {
    if (!call.tensors[i].storage().is_alias_of(given.storage())) continue;
    out.put(Tag::kView);
    out.put(static_cast<uint32_t>(i));
    out.put(given.scalar_type());
    out.put(static_cast<int64_t>(given.storage_offset()));
    return put_form(out, given);
  }
  at::Tensor made = given.resolve_conj().resolve_neg();
  if (!made.is_non_overlapping_and_dense()) made = made.contiguous();
  out.put(Tag::kNew);
  put_new(out, made, call);
}

void put_result(Writer& out, const c10::IValue& value, const Call& call) {
  if (value.isNone()) {
    out.put(Tag::kNone);
  } else if (value.isTensor()) {
    put_tensor(out, value.toTensor(), call);
  } else if (value.isBool()) {
    out.put(Tag::kBool);
    out.put(static_cast<uint8_t>(value.toBool()));
  } else if (value.isInt()) {
    out.put(Tag::kInt);
    out.put(value.toInt());
  } else if (value.isDouble()) {
    out.put(Tag::kDouble);
    out.put(value.toDouble());
  } else if (value.isTensorList()) {
    const auto list = value.toTensorVector();
    out.put(Tag::kTensors);
    out.put(static_cast<uint32_t>(list.size()));
    for (const at::Tensor& item : list) put_tensor(out, item, call);
  } else {
    TORCH_CHECK_NOT_IMPLEMENTED(false, "the device has no results of type ", value.tagKind());
  }
}

c10::OperatorHandle find(const std::string& name, const std::string& overload) {
  const auto op = c10::Dispatcher::singleton().findSchema({name, overload});
  TORCH_CHECK(op && name.rfind("aten::", 0) == 0, "no operator is called ", name);
  return *op;
}

// GPUs have operators of their own for depthwise convolutions; a CPU computes them as any others.
void call_here(const c10::OperatorHandle& op, torch::jit::Stack& stack) {
  const c10::OperatorName& name = op.operator_name();
  const bool is_depthwise =
      name.name == "aten::_conv_depthwise2d" || name.name == "aten::conv_depthwise3d";
  if (!is_depthwise || !name.overload_name.empty()) return op.callBoxed(&stack);
  const at::Tensor x = stack[0].toTensor(), weight = stack[1].toTensor();
  const std::vector<int64_t> stride = stack[4].toIntVector(), padding = stack[5].toIntVector();
  const std::vector<int64_t> no_padding(stride.size(), 0);
  at::Tensor y = at::convolution(x, weight, stack[3].toOptional<at::Tensor>(), stride, padding,
                                 stack[6].toIntVector(), false, no_padding, x.size(1));
  stack.assign(1, std::move(y));
}

void run(Reader& in, Writer& out) {
  const std::string name = in.get_text();
  const c10::OperatorHandle op = find(name, in.get_text());
  const auto count = in.get<uint32_t>();
  TORCH_CHECK(count == op.schema().arguments().size() && count <= kArgumentsMax, "a call of ", name,
              " has another number of arguments");
  Call call;
  torch::jit::Stack stack;
  for (uint32_t i = 0; i < count; ++i) {
    const c10::AliasInfo* alias = op.schema().arguments()[i].alias_info();
    call.is_written = alias != nullptr && alias->isWrite();
    stack.push_back(get_value(in, call));
  }
  const c10::IValue drawn = get_value(in, call);
  if (drawn.isGenerator()) {
    at::Generator standard = at::globalContext().defaultGenerator(at::kCPU);
    standard.set_current_seed(drawn.toGenerator().current_seed());
  }
  const at::AutoDispatchBelowADInplaceOrView below;
  call_here(op, stack);
  for (const auto& [begin, bytes, extent] : call.written) {
    state().note(begin, bytes, extent, call.sources.data(), call.sources.size());
  }
  out.put(static_cast<uint32_t>(stack.size()));
  for (const c10::IValue& value : stack) put_result(out, value, call);
}

// An exception's text without PyTorch's source locations.
std::string text_of(const std::exception& error) {
  const auto* known = dynamic_cast<const c10::Error*>(&error);
  return known == nullptr ? error.what() : known->what_without_backtrace();
}

size_t write_reply(const Writer& body, End end, void* reply, size_t reply_max) {
  auto* target = static_cast<char*>(reply);
  if (body.bytes().size() + 1 > reply_max) return 0;
  target[0] = static_cast<char>(end);
  std::memcpy(target + 1, body.bytes().data(), body.bytes().size());
  return body.bytes().size() + 1;
}

}  // namespace
}  // namespace mc::operators

void mc_operators_open(void* (*host)(uint64_t address, uint64_t bytes),
                       void (*note)(uint64_t target, uint64_t bytes, uint64_t extent,
                                    const uint64_t* sources, size_t count)) {
  mc::operators::state().host = host;
  mc::operators::state().note = note;
}

size_t mc_operators_run(const void* call, size_t bytes, void* reply, size_t reply_max) {
  using namespace mc::operators;
  Writer body, failed;
  try {
    Reader in(call, bytes);
    run(in, body);
    return write_reply(body, End::kDone, reply, reply_max);
  } catch (const c10::NotImplementedError& error) {
    failed.put_text(text_of(error).substr(0, kErrorBytesMax));
    return write_reply(failed, End::kUnsupported, reply, reply_max);
  } catch (const std::exception& error) {
    failed.put_text(text_of(error).substr(0, kErrorBytesMax));
    return write_reply(failed, End::kFailed, reply, reply_max);
  }
}

int mc_operators_fetch(uint32_t slot, uint64_t address, uint64_t bytes) {
  auto& results = mc::operators::state().results;
  const auto found = results.find(slot);
  if (found == results.end() || found->second.tensor.nbytes() != bytes) return 0;
  void* target = bytes == 0 ? nullptr : mc::operators::state().host(address, bytes);
  if (bytes > 0 && target == nullptr) return 0;
  const auto& [tensor, sources] = found->second;
  if (bytes > 0) std::memcpy(target, tensor.data_ptr(), bytes);
  mc::operators::state().note(address, bytes, bytes, sources.data(), sources.size());
  results.erase(found);
  return 1;
}
