// SPDX-License-Identifier: Apache-2.0
//
// The functions of cuBLAS, cuBLASLt and cuDNN that cross to the device process (library_calls.h),
// under their own names: the dynamic linker finds them before the real functions, whose libraries
// stay loaded.
//
// A handle is an address that is not mapped, so one of the real functions that is given it by a
// function which does not cross faults there, and the verdict names the library.
#include <cuda_runtime_api.h>
#include <dlfcn.h>
#include <signal.h>
#include <sys/mman.h>
#include <ucontext.h>
#include <unistd.h>

#include <algorithm>
#include <atomic>
#include <cstring>
#include <mutex>
#include <vector>

#include "client/client.h"
#include "library_calls.h"

namespace mc::device {

int note_unsupported_name(const char* name);

namespace {

constexpr uint64_t kHandleRoom = 1u << 30;  // In addresses; a handle takes kHandleStep of them.
constexpr uint64_t kHandleStep = 16;
constexpr uint64_t kFirstObject = 1u << 20;  // Lower numbers are handles.
constexpr int kFailed = 14;  // CUBLAS_STATUS_INTERNAL_ERROR; also an error of cuDNN.
constexpr uint64_t kPageBytes = 4096;

struct sigaction action_before;
uintptr_t handles = 0;  // The address of the first handle; 0 until a handle is needed.

// Handles SIGSEGV: reports a fault at a handle's address.
void on_fault(int signal, siginfo_t* info, void* context) {
  const auto address = reinterpret_cast<uintptr_t>(info->si_addr);
  if (address >= handles && address - handles < kHandleRoom) {
    const auto* machine = static_cast<const ucontext_t*>(context);
    Dl_info found{};
    const auto at = static_cast<uintptr_t>(machine->uc_mcontext.gregs[REG_RIP]);
    const bool is_known = dladdr(reinterpret_cast<const void*>(at), &found) != 0;
    const char* path = is_known && found.dli_fname != nullptr ? found.dli_fname : "a library";
    const char* slash = std::strrchr(path, '/');
    note_unsupported_name(slash == nullptr ? path : slash + 1);
    _exit(1);
  }
  // The fault is elsewhere: it occurs again when this handler returns.
  sigaction(signal, &action_before, nullptr);
}

uintptr_t handles_begin() {
  static std::once_flag once;
  std::call_once(once, [] {
    void* room =
        mmap(nullptr, kHandleRoom, PROT_NONE, MAP_PRIVATE | MAP_ANONYMOUS | MAP_NORESERVE, -1, 0);
    if (room == MAP_FAILED) _exit(1);
    handles = reinterpret_cast<uintptr_t>(room);
    struct sigaction action{};
    action.sa_sigaction = on_fault;
    action.sa_flags = SA_SIGINFO | SA_ONSTACK;
    sigaction(SIGSEGV, &action, &action_before);
  });
  return handles;
}

uint64_t handle_of(uint64_t number) {
  return number == 0 ? 0 : handles_begin() + number * kHandleStep % kHandleRoom;
}
uint64_t number_of(uint64_t handle) {
  return handle == 0 ? 0 : (handle - handles_begin()) / kHandleStep;
}

// The registers and the stack of a function's arguments.
struct Arguments {
  uint64_t words[kLibraryWordsMax];
  double reals[kLibraryRealsMax];
};

// Builds a command's arguments and remembers where its results go.
class Crossing {
 public:
  Crossing(uint32_t function, const Arguments& arguments)
      : function_(function), given_(arguments) {}

  int make() {
    for (const char* mark = kLibraryFunctions[function_].marks; *mark != 0; ++mark) {
      const bool has_letter = std::strchr("onxaq", *mark) != nullptr;
      put(*mark, has_letter ? mark[1] : 0);
      mark += has_letter ? 1 : 0;
    }
    return send();
  }

 private:
  struct Result {
    uint64_t target;
    size_t bytes;
    bool is_handle;
    size_t element_bytes;  // If not 0, the previous result is the number of elements.
  };

  void word(uint64_t value) { packed_.push_back(value); }

  void bytes(uint64_t source, size_t size) {
    const size_t begin = packed_.size();
    packed_.resize(begin + words_of(size));
    if (size > 0) std::memcpy(&packed_[begin], reinterpret_cast<const void*>(source), size);
  }

  void result(uint64_t target, size_t size, bool is_handle = false, size_t element_bytes = 0) {
    results_.push_back({target, size, is_handle, element_bytes});
  }

  // The client chooses a new object's number, so that creating it needs no reply.
  void object(uint64_t target) {
    static std::atomic<uint64_t> last{kFirstObject};
    const uint64_t number = ++last;
    made_ = handle_of(number);
    made_at_ = target;
    word(number);
  }

  void scalar(uint64_t address) {
    if (address == 0) return word(kScalarIsNull);
    if (Client::get().is_on_device(reinterpret_cast<const void*>(address))) return word(address);
    word(kScalarFollows);
    // The scalar may be shorter; the copy must not read past the end of its page.
    char value[kScalarBytes] = {};
    const uint64_t left = kPageBytes - address % kPageBytes;
    std::memcpy(value, reinterpret_cast<const void*>(address), std::min(kScalarBytes, left));
    bytes(reinterpret_cast<uint64_t>(value), kScalarBytes);
  }

  // Attribute elements, whose kind and count are two other arguments.
  void elements(uint64_t address, uint32_t kind, uint64_t count) {
    if (kind != kAttributeHandle && kind != kAttributeDescriptor) {
      return bytes(address, count * attribute_bytes(kind));
    }
    for (uint64_t i = 0; i < count; ++i) {
      word(number_of(reinterpret_cast<const uint64_t*>(address)[i]));
    }
  }

  void put(char mark, char letter) {
    if (mark == 'f' || mark == 'd') {
      uint64_t bits = 0;
      std::memcpy(&bits, &given_.reals[num_reals_++], mark == 'f' ? 4 : 8);
      return word(bits);
    }
    const size_t index = num_words_++;
    const uint64_t value = given_.words[index];
    const auto count_at = [&](size_t at, uint64_t most = kLibraryElementsMax) {
      return std::min(most, at < index ? uint64_t{uint32_t(given_.words[at])} : 0);
    };
    switch (mark) {
      case 'i':
        return word(static_cast<uint32_t>(value));
      case 'h':
      case 'X':
      case 'o':
      case 'x':
        return word(number_of(value));
      case 'H':
        return result(value, 8, /*is_handle=*/true);
      case 'n':
        return object(value);
      case 's':
        return scalar(value);
      case 'b': {
        const uint64_t size = std::min(kLibraryElementsMax, given_.words[index + 1]);
        word(size);
        return bytes(value, size);
      }
      case 'a': {
        const uint64_t count = count_at(static_cast<size_t>(letter - '0'), kLibraryArrayMax);
        word(count);
        return bytes(value, count * 4);
      }
      case 'r':
        return result(value, 4);
      case 'R':
        return result(value, 8);
      case 'O':
        word(value == 0 ? 0 : 1);
        if (value != 0) result(value, 8);
        return;
      case 'q':
        return result(value, count_at(static_cast<size_t>(letter - '0')) * 4);
      case 'e':
        return result(value, count_at(index - 1) * kHeuristicBytes);
      case 'A':
        return word(value == 0 ? 0 : *reinterpret_cast<const uint64_t*>(value));
      case 'V': {
        const uint64_t count = std::min(kLibraryElementsMax, given_.words[index - 1]);
        word(count);
        return elements(value, static_cast<uint32_t>(given_.words[index - 2]), count);
      }
      case 'W': {
        const uint64_t count = std::min(kLibraryElementsMax, given_.words[index - 2]);
        const auto kind = static_cast<uint32_t>(given_.words[index - 3]);
        word(value == 0 ? 0 : count);
        if (value == 0) return;
        // A descriptor is an input that the call fills; other elements are results.
        if (kind == kAttributeDescriptor) return elements(value, kind, count);
        return result(value, count * attribute_bytes(kind), false, attribute_bytes(kind));
      }
      case 'p':
        if (value != 0 && !Client::get().is_on_device(reinterpret_cast<const void*>(value))) {
          note_unsupported_name(kLibraryFunctions[function_].name);
        }
        return word(value);
      default:  // The marks l and t.
        return word(value);
    }
  }

  int send() {
    const LibraryCall command{function_, static_cast<uint32_t>(packed_.size()),
                              results_.empty() && Client::get().is_in_timed_call() ? 0u : 1u};
    const Tail tail{packed_.data(), packed_.size() * 8};
    int own_status = 0;
    if (command.has_reply == 0) {
      // The same call succeeded in an earlier trial, so no reply is needed.
      Client::get().sender().send(Op::kLibraryCall, command, tail);
    } else {
      size_t reply_words = 1;
      for (const Result& one : results_) reply_words += words_of(one.bytes);
      std::vector<uint64_t> reply(reply_words);
      const uint32_t status = Client::get().sender().call(Op::kLibraryCall, command, reply.data(),
                                                          reply.size() * 8, tail);
      if (status != 0) return kFailed;
      own_status = static_cast<int>(reply[0]);
      if (own_status == 0) take(reply);
    }
    if (own_status == 0 && made_at_ != 0) {
      std::memcpy(reinterpret_cast<void*>(made_at_), &made_, sizeof made_);
    }
    return own_status;
  }

  void take(const std::vector<uint64_t>& reply) const {
    const uint64_t* next = &reply[1];
    uint64_t before = 0;
    for (const Result& one : results_) {
      const uint64_t handle = one.is_handle ? handle_of(*next) : 0;
      // The reported count may exceed the caller's room: only what fits is copied.
      const size_t size = one.element_bytes == 0
                              ? one.bytes
                              : std::min<uint64_t>(one.bytes, before * one.element_bytes);
      if (one.target != 0) {
        std::memcpy(reinterpret_cast<void*>(one.target), one.is_handle ? &handle : next, size);
      }
      if (one.bytes > 0) before = *next;
      next += words_of(one.bytes);
    }
  }

  uint32_t function_;
  const Arguments& given_;
  size_t num_words_ = 0;
  size_t num_reals_ = 0;
  std::vector<uint64_t> packed_;
  std::vector<Result> results_;
  uint64_t made_ = 0;  // The new object's number and target address.
  uint64_t made_at_ = 0;
};

int status_of(cudaError_t error) { return error == cudaSuccess ? 0 : kFailed; }

enum FunctionIndex : uint32_t {
#define MC_LIBRARY_CALL(name, marks) index_of_##name,
#include "library_calls.inc"
#undef MC_LIBRARY_CALL
};

}  // namespace
}  // namespace mc::device

// Every function here is declared with the most parameters that any of them has; those that a
// caller did not pass are not read. The calling conventions of x86-64 and AArch64 allow this:
// integers and pointers have their own registers and stack slots, in order, and so have floats and
// doubles.
extern "C" {
#define MC_LIBRARY_CALL(name, marks)                                                              \
  int name(uint64_t a, uint64_t b, uint64_t c, uint64_t d, uint64_t e, uint64_t f, uint64_t g,    \
           uint64_t h, uint64_t i, uint64_t j, uint64_t k, uint64_t l, uint64_t m, uint64_t n,    \
           uint64_t o, uint64_t p, uint64_t q, uint64_t r, uint64_t s, uint64_t t, uint64_t u,    \
           uint64_t v, uint64_t w, uint64_t x, double real, double other) {                       \
    const mc::device::Arguments arguments{                                                        \
        {a, b, c, d, e, f, g, h, i, j, k, l, m, n, o, p, q, r, s, t, u, v, w, x}, {real, other}}; \
    const auto* const caller = static_cast<const char*>(__builtin_return_address(0));             \
    mc::device::Client::get().note_location(caller - 1);                                          \
    return mc::device::Crossing(mc::device::index_of_##name, arguments).make();                   \
  }
#include "library_calls.inc"
#undef MC_LIBRARY_CALL
}

// ---- What cuBLAS does without a device, for programs that are linked with this library alone ----

extern "C" {

int cublasSetMatrix(int rows, int columns, int element_bytes, const void* source, int source_stride,
                    void* target, int target_stride) {
  const auto bytes = static_cast<size_t>(element_bytes);
  return mc::device::status_of(cudaMemcpy2D(target, target_stride * bytes, source,
                                            source_stride * bytes, rows * bytes, columns,
                                            cudaMemcpyHostToDevice));
}

int cublasGetMatrix(int rows, int columns, int element_bytes, const void* source, int source_stride,
                    void* target, int target_stride) {
  const auto bytes = static_cast<size_t>(element_bytes);
  return mc::device::status_of(cudaMemcpy2D(target, target_stride * bytes, source,
                                            source_stride * bytes, rows * bytes, columns,
                                            cudaMemcpyDeviceToHost));
}

// Its elements are the only row of a matrix.
int cublasSetVector(int count, int element_bytes, const void* source, int source_step, void* target,
                    int target_step) {
  return cublasSetMatrix(1, count, element_bytes, source, source_step, target, target_step);
}

int cublasGetVector(int count, int element_bytes, const void* source, int source_step, void* target,
                    int target_step) {
  return cublasGetMatrix(1, count, element_bytes, source, source_step, target, target_step);
}

const char* cublasGetStatusName(int status) {
  switch (status) {
    case 0:
      return "CUBLAS_STATUS_SUCCESS";
    case 1:
      return "CUBLAS_STATUS_NOT_INITIALIZED";
    case 7:
      return "CUBLAS_STATUS_INVALID_VALUE";
    case 13:
      return "CUBLAS_STATUS_EXECUTION_FAILED";
    case 15:
      return "CUBLAS_STATUS_NOT_SUPPORTED";
    default:
      return "CUBLAS_STATUS_INTERNAL_ERROR";
  }
}

const char* cublasGetStatusString(int status) { return cublasGetStatusName(status); }

}  // extern "C"
