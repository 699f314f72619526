// SPDX-License-Identifier: Apache-2.0
//
// The functions of the CUDA driver and of NVRTC are looked up by name; the few types of theirs that
// we need are declared here.
#include "model/gpu_module.h"

#include <array>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include <c10/core/impl/VirtualGuardImpl.h>
#include <c10/util/Exception.h>
#include <dlfcn.h>

#include "model/gpu_source.h"

namespace mc::model::gpu {
namespace {

constexpr std::array kNames = {
    "add_column_sums", "add_rms_norm", "rms_norm_backward", "make_heads",  "make_heads_backward",
    "attend_cache",    "join_parts",   "fill_cache",        "swiglu",      "swiglu_backward",
    "add_rows",        "gather_rows",  "log_softmax_row",   "sum_squares", "adamw",
    "choose",          "advance"};
static_assert(kNames.size() == static_cast<size_t>(Kernel::kAdvance) + 1);

constexpr int kComputeMajor = 75;  // The attributes of a device have the driver's numbers.
constexpr int kComputeMinor = 76;
constexpr int kCaptureRelaxed = 2;

class Library {
 public:
  explicit Library(const char* name) : handle_(::dlopen(name, RTLD_NOW | RTLD_GLOBAL)) {
    TORCH_CHECK(handle_ != nullptr, "cannot load ", name, ": ", ::dlerror());
  }
  template <typename Function>
  void find(Function*& function, const char* name) const {
    function = reinterpret_cast<Function*>(::dlsym(handle_, name));
    TORCH_CHECK(function != nullptr, "there is no ", name, " in the CUDA libraries");
  }

 private:
  void* handle_;
};

struct Driver {
  Driver() {
    const Library library("libcuda.so.1");
    library.find(get_error_string, "cuGetErrorString");
    library.find(ctx_get_device, "cuCtxGetDevice");
    library.find(get_attribute, "cuDeviceGetAttribute");
    library.find(mem_get_info, "cuMemGetInfo_v2");
    library.find(module_load, "cuModuleLoadData");
    library.find(module_get_function, "cuModuleGetFunction");
    library.find(launch, "cuLaunchKernel");
    library.find(begin_capture, "cuStreamBeginCapture_v2");
    library.find(end_capture, "cuStreamEndCapture");
    library.find(instantiate, "cuGraphInstantiateWithFlags");
    library.find(graph_launch, "cuGraphLaunch");
    library.find(graph_destroy, "cuGraphDestroy");
    library.find(exec_destroy, "cuGraphExecDestroy");
  }
  int (*get_error_string)(int, const char**);
  int (*ctx_get_device)(int*);
  int (*get_attribute)(int*, int, int);
  int (*mem_get_info)(size_t*, size_t*);
  int (*module_load)(void**, const void*);
  int (*module_get_function)(void**, void*, const char*);
  int (*launch)(void*, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, unsigned, void*,
                void**, void**);
  int (*begin_capture)(void*, int);
  int (*end_capture)(void*, void**);
  int (*instantiate)(void**, void*, unsigned long long);
  int (*graph_launch)(void*, void*);
  int (*graph_destroy)(void*);
  int (*exec_destroy)(void*);
};

const Driver& driver() {
  static const Driver kDriver;
  return kDriver;
}

void check(int code, const char* what) {
  if (code == 0) return;
  const char* text = "unknown";
  driver().get_error_string(code, &text);
  TORCH_CHECK(false, what, " failed on the GPU: ", text);
}

struct Compiler {
  // PyTorch finds and loads the NVRTC library.
  Compiler() {
    const Library library("libcaffe2_nvrtc.so");
    library.find(create, "nvrtcCreateProgram");
    library.find(compile, "nvrtcCompileProgram");
    library.find(log_size, "nvrtcGetProgramLogSize");
    library.find(log, "nvrtcGetProgramLog");
    library.find(cubin_size, "nvrtcGetCUBINSize");
    library.find(cubin, "nvrtcGetCUBIN");
    library.find(destroy, "nvrtcDestroyProgram");
  }
  int (*create)(void**, const char*, const char*, int, const char* const*, const char* const*);
  int (*compile)(void*, int, const char* const*);
  int (*log_size)(void*, size_t*);
  int (*log)(void*, char*);
  int (*cubin_size)(void*, size_t*);
  int (*cubin)(void*, char*);
  int (*destroy)(void**);
};

std::vector<std::string> compile_options(const Sizes& sizes) {
  int device = 0, major = 0, minor = 0;
  check(driver().ctx_get_device(&device), "a look at the device");
  check(driver().get_attribute(&major, kComputeMajor, device), "a look at the device");
  check(driver().get_attribute(&minor, kComputeMinor, device), "a look at the device");
  std::vector<std::string> options = {
      "--gpu-architecture=sm_" + std::to_string(major) + std::to_string(minor), "-std=c++17"};
  const auto define = [&](const char* name, int64_t value) {
    options.push_back("-D" + std::string(name) + "=" + std::to_string(value));
  };
  if (sizes.width > 0) define("WIDTH", sizes.width);
  if (sizes.head_dim > 0) {
    define("HEAD_DIM", sizes.head_dim);
    define("HEADS", sizes.heads);
    define("KV_HEADS", sizes.kv_heads);
  }
  if (sizes == Sizes{}) define("PLAIN", 1);
  return options;
}

std::string compile_source(const Sizes& sizes) {
  static const Compiler kCompiler;
  void* program = nullptr;
  TORCH_CHECK(kCompiler.create(&program, kGpuSource, "gpu_kernels.cu", 0, nullptr, nullptr) == 0,
              "NVRTC does not start");
  const std::vector<std::string> options = compile_options(sizes);
  std::vector<const char*> pointers;
  for (const std::string& option : options) pointers.push_back(option.c_str());
  const int code = kCompiler.compile(program, static_cast<int>(pointers.size()), pointers.data());
  size_t size = 0;
  std::string text;
  if (code != 0) {
    kCompiler.log_size(program, &size);
    text.resize(size);
    kCompiler.log(program, text.data());
    TORCH_CHECK(false, "NVRTC does not compile the kernels for ", options[0], ": ", text);
  }
  kCompiler.cubin_size(program, &size);
  text.resize(size);
  kCompiler.cubin(program, text.data());
  kCompiler.destroy(&program);
  return text;
}

// The kernels of one set of sizes; null for kernels that these sizes do not define.  A module stays
// loaded until the process ends.
using Functions = std::array<void*, kNames.size()>;

Functions load_functions(const Sizes& sizes) {
  const std::string cubin = compile_source(sizes);
  void* module = nullptr;
  check(driver().module_load(&module, cubin.data()), "loading the kernels");
  Functions functions{};
  for (size_t i = 0; i < kNames.size(); ++i) {
    void* function = nullptr;
    if (driver().module_get_function(&function, module, kNames[i]) == 0) functions[i] = function;
  }
  return functions;
}

void* find_function(Kernel kernel, const Sizes& sizes) {
  static std::mutex mutex;
  static std::map<std::pair<int, Sizes>, Functions> loaded;
  const int device = c10::impl::VirtualGuardImpl(at::kCUDA).getDevice().index();
  const std::lock_guard lock(mutex);
  auto found = loaded.find({device, sizes});
  if (found == loaded.end()) {
    found = loaded.emplace(std::pair(device, sizes), load_functions(sizes)).first;
  }
  void* function = found->second[static_cast<size_t>(kernel)];
  TORCH_CHECK(function != nullptr, "a kernel was asked for without its sizes");
  return function;
}

void* current_stream() {
  const c10::impl::VirtualGuardImpl cuda(at::kCUDA);
  return cuda.getStreamNativeHandle(cuda.getStream(cuda.getDevice()));
}

}  // namespace

void launch_kernel(Kernel kernel, const Sizes& sizes, const Grid& grid, int64_t threads,
                   void** arguments) {
  const auto number = [](int64_t value) { return static_cast<unsigned>(value); };
  check(
      driver().launch(find_function(kernel, sizes), number(grid.x), number(grid.y), number(grid.z),
                      number(threads), 1, 1, 0, current_stream(), arguments, nullptr),
      kNames[static_cast<size_t>(kernel)]);
}

Graph::Graph(Graph&& other) noexcept : executable_(std::exchange(other.executable_, nullptr)) {}

Graph::~Graph() {
  if (executable_ != nullptr) driver().exec_destroy(executable_);
}

void Graph::begin() {
  check(driver().begin_capture(current_stream(), kCaptureRelaxed), "recording a graph");
}

void Graph::end() {
  void* graph = nullptr;
  check(driver().end_capture(current_stream(), &graph), "recording a graph");
  const int code = driver().instantiate(&executable_, graph, 0);
  driver().graph_destroy(graph);
  check(code, "making a graph");
}

void Graph::replay() const {
  check(driver().graph_launch(executable_, current_stream()), "replaying a graph");
}

int64_t memory_used() {
  size_t available = 0, total = 0;
  check(driver().mem_get_info(&available, &total), "a look at the memory");
  return static_cast<int64_t>(total - available);
}

}  // namespace mc::model::gpu
