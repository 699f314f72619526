// SPDX-License-Identifier: Apache-2.0
//
// The emulated device, to PyTorch: a PrivateUse1 backend over the emulator's arena.
//
// It has the operators that every device needs to hold tensors: allocation, views, copies, fills.
// What else a policy allows is done on the host (at::native::cpu_fallback); all the rest is refused
// by name.  Device memory is closed to host code, so each operator opens what it works on, through
// a host tensor over the same memory.
#include <ATen/ATen.h>
#include <ATen/EmptyTensor.h>
#include <ATen/detail/PrivateUse1HooksInterface.h>
#include <ATen/native/CPUFallback.h>
#include <ATen/ops/_reshape_alias_native.h>
#include <ATen/ops/as_strided_native.h>
#include <ATen/ops/resize_native.h>
#include <ATen/ops/set_native.h>
#include <ATen/ops/unfold_native.h>
#include <ATen/ops/view_as_complex_native.h>
#include <ATen/ops/view_as_real_native.h>
#include <ATen/ops/view_native.h>
#include <c10/core/impl/DeviceGuardImplInterface.h>
#include <torch/csrc/autograd/python_variable.h>
#include <torch/library.h>

#include <array>
#include <atomic>
#include <set>
#include <sstream>
#include <string>

#include "runtime/arena.h"
#include "runtime/mc_emu.h"
#include "torch/shim.h"
#include "torch/shim_guard.h"

namespace {

using mc::emu::Origin;

constexpr c10::DeviceType kDeviceType = c10::DeviceType::PrivateUse1;
const c10::Device kDevice(kDeviceType, 0);

// --- Memory.

void release(void* pointer) { mc_emu_arena_release(pointer); }

struct DeviceAllocator final : c10::Allocator {
  c10::DataPtr allocate(size_t size) override {
    void* pointer = nullptr;
    if (size > 0) {
      pointer = mc_emu_arena_allocate(size);
      TORCH_CHECK_WITH(OutOfMemoryError, pointer != nullptr,
                       "CUDA out of memory. Tried to allocate ", size,
                       " bytes on the emulated device.");
    }
    return {pointer, pointer, &release, kDevice};
  }
  c10::DeleterFnPtr raw_deleter() const override { return &release; }
  void copy_data(void* to, const void* from, size_t size) const override {
    mc_emu_copy(to, from, size);
  }
};

DeviceAllocator allocator;
REGISTER_ALLOCATOR(kDeviceType, &allocator);

C10_REGISTER_GUARD_IMPL(PrivateUse1, c10::impl::NoOpDeviceGuardImpl<kDeviceType>);

struct Hooks final : at::PrivateUse1HooksInterface {
  bool isBuilt() const override { return true; }
  bool isAvailable() const override { return true; }
  bool hasPrimaryContext(c10::DeviceIndex) const override { return true; }
  c10::DeviceIndex deviceCount() const override { return 1; }
  c10::DeviceIndex getCurrentDevice() const override { return 0; }
  c10::Device getDeviceFromPtr(void* data) const override {
    return mc_emu_origins(data) == nullptr ? c10::Device(c10::kCPU) : kDevice;
  }
  void resizePrivateUse1Bytes(const c10::Storage& storage, size_t size) const override {
    c10::DataPtr fresh = allocator.allocate(size);
    mc_emu_copy(fresh.get(), storage.data(), std::min(size, storage.nbytes()));
    storage.unsafeGetStorageImpl()->set_data_ptr_noswap(std::move(fresh));
    storage.unsafeGetStorageImpl()->set_nbytes(size);
  }
};

Hooks hooks;

// --- What operators are made of.

// Opens a tensor's memory for as long as it lives; nothing for a host tensor.
class Opened {
 public:
  explicit Opened(const at::Tensor& tensor) : address_(tensor.storage().data()) {
    mc_emu_open(address_);
  }
  Opened(const Opened&) = delete;
  ~Opened() { mc_emu_close(address_); }

 private:
  const void* address_;
};

bool is_on_device(const at::Tensor& tensor) { return tensor.device().type() == kDeviceType; }

// An operator by which the host works on device memory: PyTorch's own kernel, or none.
class HostOperator {
 public:
  HostOperator(const char* name, const char* overload)
      : op_(c10::Dispatcher::singleton().findSchemaOrThrow(name, overload)) {}
  void remember() const { mc::shim::remember_kernels(op_); }
  void require_same() const { mc::shim::require_same_kernels(op_); }

 private:
  c10::OperatorHandle op_;
};

struct HostOperators {
  HostOperator copy{"aten::copy_", ""};
  HostOperator item{"aten::_local_scalar_dense", ""};
  HostOperator fill{"aten::fill_", "Scalar"};
  HostOperator zero{"aten::zero_", ""};
  HostOperator normal{"aten::normal_", ""};
  HostOperator uniform{"aten::uniform_", ""};
  HostOperator random{"aten::random_", ""};
  HostOperator random_to{"aten::random_", "to"};
  HostOperator random_from{"aten::random_", "from"};

  std::array<const HostOperator*, 9> all() const {
    return {&copy, &item, &fill, &zero, &normal, &uniform, &random, &random_to, &random_from};
  }
};

const HostOperators& host_operators() {
  static const HostOperators* const instance = new HostOperators;
  return *instance;
}

// A host tensor over the same memory, which reads it as the tensor does: conjugated or negated.
at::Tensor on_host(const at::Tensor& tensor) {
  if (!is_on_device(tensor)) return tensor;
  at::Tensor host = at::from_blob(tensor.data_ptr(), tensor.sizes(), tensor.strides(),
                                  tensor.options().device(c10::kCPU));
  host._set_conj(tensor.is_conj());
  host._set_neg(tensor.is_neg());
  return host;
}

// One byte for each byte of the tensor: its shape with the bytes of an item as last dimension.
at::Tensor origins_of(const at::Tensor& tensor) {
  const int64_t item = static_cast<int64_t>(tensor.itemsize());
  std::vector<int64_t> sizes(tensor.sizes().begin(), tensor.sizes().end());
  std::vector<int64_t> strides;
  for (const int64_t stride : tensor.strides()) strides.push_back(stride * item);
  sizes.push_back(item);
  strides.push_back(1);
  return at::from_blob(mc_emu_origins(tensor.data_ptr()), sizes, strides, at::kByte);
}

void set_origin(const at::Tensor& tensor, Origin origin) {
  if (tensor.numel() > 0) origins_of(tensor).fill_(static_cast<int64_t>(origin));
}

// True while an operator that is allowed as a whole runs on the host: what it moves for that is not
// the candidate's transfer.
thread_local bool runs_on_host = false;

at::Tensor copy_from(const at::Tensor& source, const at::Tensor& target, bool) {
  if (target.numel() == 0) return target;
  const at::Tensor from = source.expand(target.sizes());
  mc_emu_note_write(target.data_ptr());
  host_operators().copy.require_same();
  {
    const Opened opened_source(source), opened_target(target);
    on_host(target).copy_(on_host(from));
  }
  if (!is_on_device(target)) {
    if (!runs_on_host) mc_emu_note_to_host(source.nbytes());
  } else if (!is_on_device(source)) {
    set_origin(target, !mc_emu_in_call() ? Origin::kGiven
                       : runs_on_host    ? Origin::kFill
                                         : Origin::kHost);
  } else if (source.itemsize() == target.itemsize()) {
    origins_of(target).copy_(origins_of(from));
  } else {  // An item comes from where its first byte does.
    origins_of(target).copy_(origins_of(from).narrow(-1, 0, 1).expand_as(origins_of(target)));
  }
  return target;
}

at::Tensor copy_from_and_resize(const at::Tensor& source, const at::Tensor& target) {
  target.resize_(source.sizes());
  return copy_from(source, target, false);
}

at::Scalar local_scalar_dense(const at::Tensor& self) {
  if (!runs_on_host) mc_emu_note_to_host(self.itemsize());
  host_operators().item.require_same();
  const Opened opened(self);
  return at::_local_scalar_dense(on_host(self));
}

template <class Function>
at::Tensor& fill_on_host(at::Tensor& self, const HostOperator& op, Function function) {
  if (self.numel() == 0) return self;
  op.require_same();
  mc_emu_note_write(self.data_ptr());
  const Opened opened(self);
  at::Tensor host = on_host(self);
  function(host);
  set_origin(self, Origin::kFill);
  return self;
}

at::Tensor& fill_scalar(at::Tensor& self, const at::Scalar& value) {
  return fill_on_host(self, host_operators().fill, [&](at::Tensor& host) { host.fill_(value); });
}

at::Tensor& fill_tensor(at::Tensor& self, const at::Tensor& value) {
  TORCH_CHECK(value.dim() == 0, "fill_ only supports 0-dimension value tensor");
  return fill_scalar(self, value.item());
}

at::Tensor& zero(at::Tensor& self) {
  return fill_on_host(self, host_operators().zero, [](at::Tensor& host) { host.zero_(); });
}

using Generator = std::optional<at::Generator>;

at::Tensor& normal(at::Tensor& self, double mean, double deviation, Generator generator) {
  return fill_on_host(self, host_operators().normal,
                      [&](at::Tensor& host) { host.normal_(mean, deviation, generator); });
}

at::Tensor& uniform(at::Tensor& self, double from, double to, Generator generator) {
  return fill_on_host(self, host_operators().uniform,
                      [&](at::Tensor& host) { host.uniform_(from, to, generator); });
}

at::Tensor& random_full(at::Tensor& self, Generator generator) {
  return fill_on_host(self, host_operators().random,
                      [&](at::Tensor& host) { host.random_(generator); });
}

at::Tensor& random_to(at::Tensor& self, int64_t to, Generator generator) {
  return fill_on_host(self, host_operators().random_to,
                      [&](at::Tensor& host) { host.random_(to, generator); });
}

at::Tensor& random_from(at::Tensor& self, int64_t from, std::optional<int64_t> to,
                        Generator generator) {
  return fill_on_host(self, host_operators().random_from,
                      [&](at::Tensor& host) { host.random_(from, to, generator); });
}

at::Tensor empty(at::IntArrayRef size, std::optional<at::ScalarType> dtype,
                 std::optional<at::Layout>, std::optional<at::Device>, std::optional<bool>,
                 std::optional<at::MemoryFormat> format) {
  return at::detail::empty_generic(size, &allocator,
                                   c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                   c10::dtype_or_default(dtype), format);
}

at::Tensor empty_strided(at::IntArrayRef size, at::IntArrayRef stride,
                         std::optional<at::ScalarType> dtype, std::optional<at::Layout>,
                         std::optional<at::Device>, std::optional<bool>) {
  return at::detail::empty_strided_generic(size, stride, &allocator,
                                           c10::DispatchKeySet(c10::DispatchKey::PrivateUse1),
                                           c10::dtype_or_default(dtype));
}

at::Tensor& set_source(at::Tensor& self, at::Storage source) {
  const int64_t count =
      static_cast<int64_t>(source.nbytes()) / static_cast<int64_t>(self.itemsize());
  return at::native::set_storage_cpu_(self, std::move(source), 0, {count}, {});
}

at::Tensor cat(const at::ITensorListRef& tensors, int64_t dim) {
  std::vector<at::Tensor> parts;
  for (const at::Tensor& one : tensors) {
    if (one.dim() != 1 || one.size(0) != 0) parts.push_back(one);  // PyTorch does so too.
  }
  TORCH_CHECK(!parts.empty(), "cat(): expected a non-empty list of Tensors");
  dim = c10::maybe_wrap_dim(dim, parts[0].dim());
  std::vector<int64_t> sizes = parts[0].sizes().vec();
  at::ScalarType dtype = parts[0].scalar_type();
  sizes[dim] = 0;
  for (const at::Tensor& part : parts) {
    TORCH_CHECK(part.dim() == parts[0].dim(), "Tensors must have same number of dimensions");
    sizes[dim] += part.size(dim);
    dtype = c10::promoteTypes(dtype, part.scalar_type());
  }
  at::Tensor result = at::empty(sizes, parts[0].options().dtype(dtype));
  int64_t start = 0;
  for (const at::Tensor& part : parts) {
    result.narrow(dim, start, part.size(dim)).copy_(part);
    start += part.size(dim);
  }
  return result;
}

// --- All other operators.

struct Allowed {
  bool everything = false;
  std::set<std::string> names;
};

Allowed& allowed() {
  static Allowed* const instance = new Allowed;
  return *instance;
}

// While it lives, what is done on the host for an allowed operator.
class OnHost {
 public:
  explicit OnHost(const c10::OperatorHandle& op) {
    const std::string& name = op.operator_name().name;
    if (!allowed().everything && allowed().names.count(name) == 0) mc::shim::refuse(op);
    before_ = std::exchange(runs_on_host, true);
  }
  explicit OnHost(const char* name)
      : OnHost(c10::Dispatcher::singleton().findSchemaOrThrow(name, "")) {}
  ~OnHost() { runs_on_host = before_; }

 private:
  bool before_;
};

// The kernel that a candidate registered for CUDA, which is what this device stands for.  Its
// kernel for the host would get copies of device memory that nobody counts.
void run_own(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  TORCH_CHECK_NOT_IMPLEMENTED(
      op.hasKernelForDispatchKey(c10::DispatchKey::CUDA), "Could not run '",
      op.operator_name().name,
      "' with arguments from the 'CUDA' backend: no kernel was registered for CUDA tensors");
  op.callBoxedForDispatchKey(c10::DispatchKey::CUDA, *stack);
}

void run_or_refuse(const c10::OperatorHandle& op, torch::jit::Stack* stack) {
  if (mc::shim::is_own(op.operator_name().name)) return run_own(op, stack);
  const OnHost on_host(op);
  if (!allowed().everything) {
    mc::shim::require_same_kernels(op);
    // The operator may be made of these, and would hand them copies of device memory.
    for (const HostOperator* one : host_operators().all()) one->require_same();
  }
  at::native::cpu_fallback(op, stack);
}

// The operator has nothing for this device but run_or_refuse.
bool falls_back(const c10::OperatorHandle& op) {
  for (const c10::DispatchKey key :
       {c10::DispatchKey::PrivateUse1, c10::DispatchKey::CompositeImplicitAutograd,
        c10::DispatchKey::CompositeExplicitAutograd}) {
    if (op.hasKernelForDispatchKey(key)) return false;
  }
  return true;
}

std::optional<at::Tensor> to_host(const std::optional<at::Tensor>& tensor) {
  if (!tensor || !tensor->defined()) return tensor;
  return tensor->cpu();
}

// A convolution of a device that PyTorch does not know.
at::Tensor convolution(const at::Tensor& input, const at::Tensor& weight,
                       const std::optional<at::Tensor>& bias, c10::SymIntArrayRef stride,
                       c10::SymIntArrayRef padding, c10::SymIntArrayRef dilation, bool transposed,
                       c10::SymIntArrayRef output_padding, c10::SymInt groups) {
  const OnHost on_host("aten::convolution_overrideable");
  return at::convolution_symint(input.cpu(), weight.cpu(), to_host(bias), stride, padding, dilation,
                                transposed, output_padding, groups)
      .to(kDevice);
}

// Its schema does not say that it writes the running statistics, so the fallback would lose them.
std::tuple<at::Tensor, at::Tensor, at::Tensor> batch_norm(
    const at::Tensor& input, const std::optional<at::Tensor>& weight,
    const std::optional<at::Tensor>& bias, const std::optional<at::Tensor>& mean,
    const std::optional<at::Tensor>& variance, bool training, double momentum, double eps) {
  const OnHost on_host("aten::native_batch_norm");
  const std::optional<at::Tensor> host_mean = to_host(mean), host_variance = to_host(variance);
  const auto [output, save_mean, save_invstd] =
      at::native_batch_norm(input.cpu(), to_host(weight), to_host(bias), host_mean, host_variance,
                            training, momentum, eps);
  if (training && host_mean && host_mean->defined()) mean->copy_(*host_mean);
  if (training && host_variance && host_variance->defined()) variance->copy_(*host_variance);
  return {output.to(kDevice), save_mean.to(kDevice), save_invstd.to(kDevice)};
}

at::Tensor or_zero(const std::optional<at::Tensor>& bias, const at::Tensor& like) {
  return bias && bias->defined() ? bias->cpu() : at::zeros({1}, like.options());
}

// One step of an LSTM and of a GRU.  PyTorch calls these cells on any device but the host, which
// has no kernel for them.  The last result is what a backward pass would need.
std::tuple<at::Tensor, at::Tensor, at::Tensor> lstm_cell(
    const at::Tensor& input_gates, const at::Tensor& hidden_gates, const at::Tensor& cx,
    const std::optional<at::Tensor>& input_bias, const std::optional<at::Tensor>& hidden_bias) {
  const OnHost on_host("aten::_thnn_fused_lstm_cell");
  const at::Tensor of_input = input_gates.cpu();
  const at::Tensor sum = of_input + hidden_gates.cpu() + or_zero(input_bias, of_input) +
                         or_zero(hidden_bias, of_input);
  const std::vector<at::Tensor> gates = sum.chunk(4, 1);
  const at::Tensor cy = gates[1].sigmoid() * cx.cpu() + gates[0].sigmoid() * gates[2].tanh();
  const at::Tensor hy = gates[3].sigmoid() * cy.tanh();
  return {hy.to(kDevice), cy.to(kDevice), sum.to(kDevice)};
}

std::tuple<at::Tensor, at::Tensor> gru_cell(const at::Tensor& input_gates,
                                            const at::Tensor& hidden_gates, const at::Tensor& hx,
                                            const std::optional<at::Tensor>& input_bias,
                                            const std::optional<at::Tensor>& hidden_bias) {
  const OnHost on_host("aten::_thnn_fused_gru_cell");
  const at::Tensor of_input = input_gates.cpu(), of_hidden = hidden_gates.cpu();
  const std::vector<at::Tensor> given = (of_input + or_zero(input_bias, of_input)).chunk(3, 1);
  const std::vector<at::Tensor> kept = (of_hidden + or_zero(hidden_bias, of_hidden)).chunk(3, 1);
  const at::Tensor reset = (given[0] + kept[0]).sigmoid(), update = (given[1] + kept[1]).sigmoid();
  const at::Tensor fresh = (given[2] + reset * kept[2]).tanh();
  const at::Tensor hy = fresh + update * (hx.cpu() - fresh);
  return {hy.to(kDevice), at::cat({reset, update, fresh}, 1).to(kDevice)};
}

TORCH_LIBRARY_IMPL(_, PrivateUse1, m) {
  m.fallback(torch::CppFunction::makeFromBoxedFunction<&run_or_refuse>());
}

TORCH_LIBRARY_IMPL(aten, PrivateUse1, m) {
  m.impl("empty.memory_format", TORCH_FN(empty));
  m.impl("empty_strided", TORCH_FN(empty_strided));
  m.impl("_copy_from", TORCH_FN(copy_from));
  m.impl("_copy_from_and_resize", TORCH_FN(copy_from_and_resize));
  m.impl("_local_scalar_dense", TORCH_FN(local_scalar_dense));
  m.impl("fill_.Scalar", TORCH_FN(fill_scalar));
  m.impl("fill_.Tensor", TORCH_FN(fill_tensor));
  m.impl("zero_", TORCH_FN(zero));
  m.impl("normal_", TORCH_FN(normal));
  m.impl("uniform_", TORCH_FN(uniform));
  m.impl("random_", TORCH_FN(random_full));
  m.impl("random_.to", TORCH_FN(random_to));
  m.impl("random_.from", TORCH_FN(random_from));
  m.impl("as_strided", TORCH_FN(at::native::as_strided_tensorimpl));
  m.impl("view", TORCH_FN(at::native::view));
  m.impl("view_as_complex", TORCH_FN(at::native::view_as_complex));
  m.impl("view_as_real", TORCH_FN(at::native::view_as_real));
  m.impl("_reshape_alias", TORCH_FN(at::native::_reshape_alias));
  m.impl("unfold", TORCH_FN(at::native::unfold));
  m.impl("resize_", TORCH_FN(at::native::resize_));
  m.impl("set_.source_Storage", TORCH_FN(set_source));
  m.impl("convolution_overrideable", TORCH_FN(convolution));
  m.impl("native_batch_norm", TORCH_FN(batch_norm));
  m.impl("_thnn_fused_lstm_cell", TORCH_FN(lstm_cell));
  m.impl("_thnn_fused_gru_cell", TORCH_FN(gru_cell));
  m.impl("set_.source_Storage_storage_offset", TORCH_FN(at::native::set_storage_cpu_));
  m.impl("set_.source_Tensor", TORCH_FN(at::native::set_tensor_));
  m.impl("cat", TORCH_FN(cat));
}

// copy_ takes conjugated and negated views as they are, and calls this.  PyTorch's own way to
// resolve them is such a copy, which would call itself without end.
TORCH_LIBRARY_IMPL(aten, Conjugate, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

TORCH_LIBRARY_IMPL(aten, Negative, m) {
  m.impl("_copy_from", torch::CppFunction::makeFallthrough());
}

}  // namespace

extern "C" {

void mc_shim_allow(const char* names) {
  if (std::string(names) == "*") allowed().everything = true;
  std::istringstream stream(names);
  for (std::string line; std::getline(stream, line);) allowed().names.insert("aten::" + line);
  for (const HostOperator* one : host_operators().all()) one->remember();
  auto& dispatcher = c10::Dispatcher::singleton();
  for (const c10::OperatorName& name : dispatcher.getAllOpNames()) {
    if (allowed().names.count(name.name) == 0) continue;
    const auto op = dispatcher.findOp(name);
    if (op && falls_back(*op)) mc::shim::remember_kernels(*op);
  }
}

void* mc_shim_map(int descriptor, uint64_t offset, size_t size) {
  if (!at::isPrivateUse1HooksRegistered()) at::RegisterPrivateUse1HooksInterface(&hooks);
  try {
    void* pointer = mc_emu_arena_map(descriptor, offset, size);
    TORCH_CHECK(pointer != nullptr, "not enough memory: cannot map ", size, " bytes of a region");
    const int64_t numel = static_cast<int64_t>(size);
    const c10::Storage storage(c10::Storage::use_byte_size_t(), size,
                               c10::DataPtr(pointer, pointer, &release, kDevice), nullptr, false);
    at::Tensor tensor = at::empty({0}, at::TensorOptions().dtype(at::kByte).device(kDevice));
    return THPVariable_Wrap(tensor.set_(storage, 0, {numel}, {1}));
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
    return nullptr;
  }
}

int mc_shim_export(void* object, void* target) {
  try {
    const at::Tensor tensor = THPVariable_Unpack(static_cast<PyObject*>(object));
    TORCH_CHECK(is_on_device(tensor), "an output lies on the host, not on the device");
    const at::Tensor whole = tensor.contiguous();
    const Opened opened(whole);
    if (whole.nbytes() == 0) return 1;
    std::memcpy(target, whole.data_ptr(), whole.nbytes());
    mc_emu_note_output(target, whole.nbytes(), mc_emu_origins(whole.data_ptr()));
    return 1;
  } catch (const std::exception& e) {
    PyErr_SetString(PyExc_RuntimeError, e.what());
    return 0;
  }
}

}  // extern "C"
