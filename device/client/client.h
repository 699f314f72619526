// SPDX-License-Identifier: Apache-2.0
//
// Client: the state of a candidate process for its device: the channel, the kernels that its
// libraries registered, and the allocated memory.  There is one client per process; cudart.cc
// exports it under the names of libcudart.
//
// Libraries register kernels before there is a channel (PyTorch registers its own when it is
// imported, in the zygote).  So registration sends no command: a module is loaded, and a function
// looked up, at its first use.
#ifndef MC_DEVICE_CLIENT_CLIENT_H_
#define MC_DEVICE_CLIENT_CLIENT_H_

#include <driver_types.h>

#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <unordered_map>
#include <vector>

#include "arena_map.h"
#include "client/sender.h"

namespace mc::device {

// A fat binary that a library registered, or a text that a program loaded.
struct Binary {
  const void* image = nullptr;  // In the library's file.
  std::string text;             // PTX; `image` is then null.
  uint32_t module = 0;          // The module's handle.
  bool is_loaded = false;
  std::vector<void**> managed;  // The host's pointers to the binary's managed variables.
};

struct Function {
  Binary* binary = nullptr;
  const char* name = nullptr;  // In the library's memory, or `text_name`.
  std::string text_name;       // The name of a function of a text.
  uint32_t handle = 0;
  std::unique_ptr<FunctionFacts> facts;  // Null until it is first used.
};

struct Variable {
  Binary* binary = nullptr;
  const char* name = nullptr;
  uint64_t bytes = 0;
  uint64_t address = 0;  // 0 until it is first used.
};

// The runtime's opaque pointers, such as a stream's, are handles of commands.
inline uint32_t handle_of(const void* pointer) {
  return static_cast<uint32_t>(reinterpret_cast<uintptr_t>(pointer));
}
template <typename Type>
Type pointer_of(uint32_t handle) {
  return reinterpret_cast<Type>(static_cast<uintptr_t>(handle));
}

class Client {
 public:
  static Client& get();

  // Maps the channel behind the descriptor for this process; false if that fails.
  bool open(int descriptor);
  // The sending end of the channel.  Without a channel it ends the process, since no result could
  // be right.
  Sender& sender();
  bool is_open() const { return sender_.is_open(); }
  // The program is one that src/check runs: its findings name the calling source location.
  void set_checked() { is_checked_ = true; }
  bool is_checked() const { return is_checked_; }
  // A location in the program's code goes with the commands of this thread that follow.
  void note_location(const void* caller) const;

  // ---- What libraries register.
  Binary* add_binary(const void* image);
  void remove_binary(Binary* binary);
  // Loads a module from its PTX.
  cudaError_t add_text(std::string text, Binary** binary);
  // Looks up a function of that module; find_function() accepts the result, too.
  cudaError_t add_function_of_text(Binary* binary, const char* name, Function** function);
  void add_function(Binary* binary, const void* host, const char* name);
  void add_variable(Binary* binary, const void* host, const char* name, uint64_t bytes);
  // Registers a managed variable.  open_managed() stores its device address in `*host`; that
  // address is then a key for find_variable().
  void add_managed(Binary* binary, void** host, const char* name, uint64_t bytes);
  cudaError_t open_managed(Binary& binary);
  // The function that belongs to a host stub, or to an earlier result of find_function(); null for
  // any other pointer.  prepare() looks it up in the device process.
  Function* find_function(const void* host);
  cudaError_t prepare(Function& function);
  // Null for an address that no library registered.
  Variable* find_variable(const void* host);
  cudaError_t prepare(Variable& variable);

  // ---- Memory.
  cudaError_t allocate(void** pointer, uint64_t bytes);
  cudaError_t release(void* pointer);
  // Allocates in stream order: freed memory is used again for an allocation of the same size in the
  // same stream.
  cudaError_t allocate_in_order(void** pointer, uint64_t bytes, cudaStream_t stream);
  cudaError_t release_in_order(void* pointer, cudaStream_t stream);
  bool is_on_device(const void* pointer);
  void* allocate_host(uint64_t bytes);
  bool release_host(void* pointer);
  bool is_allocated_host(const void* pointer);
  uint64_t bytes_used();

  // True while the harness makes a timed call, after a first batch of timed calls.
  void set_in_timed_call(bool is_in_it) { is_in_timed_call_ = is_in_it; }
  bool is_in_timed_call() const { return is_in_timed_call_; }

  // A number for a new stream, event, graph or executable graph.
  uint32_t new_handle() { return next_handle_++; }

 private:
  struct Kept {
    uint64_t address;
    cudaStream_t stream;
  };
  cudaError_t load(Binary& binary);
  cudaError_t load_text(Binary& binary);
  void drop_kept();

  Sender sender_;
  bool is_checked_ = false;
  std::atomic<bool> is_in_timed_call_{false};
  std::recursive_mutex mutex_;
  // Guarded by mutex_:
  std::vector<std::unique_ptr<Binary>> binaries_;
  std::vector<std::unique_ptr<Function>> functions_;
  std::unordered_map<const void*, Function*> functions_by_host_;
  std::unordered_map<const void*, std::unique_ptr<Variable>> variables_;
  ArenaMap arena_;
  std::map<uint64_t, uint64_t> bytes_in_order_;  // The sizes of allocate_in_order()'s blocks.
  std::multimap<uint64_t, Kept> kept_;           // Blocks freed in stream order, by their size.
  std::map<const void*, uint64_t> host_blocks_;
  std::atomic<uint32_t> next_handle_{kFirstStream};
};

// Notes for the verdict that the program called an unsupported function; returns the error for the
// caller.
cudaError_t note_unsupported(const char* name);

}  // namespace mc::device

#endif  // MC_DEVICE_CLIENT_CLIENT_H_
