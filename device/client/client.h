// SPDX-License-Identifier: Apache-2.0
//
// Client: what a candidate process knows of its device: the channel, what its libraries registered,
// and which memory is allocated.  One a process; cudart.cc gives it the names of libcudart.
//
// Libraries register kernels before there is a channel (PyTorch's as it is imported, in the
// zygote), so nothing is sent for that: a module is loaded and a function is looked up when it is
// first used.
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
  std::string text;             // PTX; then there is no image.
  uint32_t module = 0;          // Its handle.
  bool is_loaded = false;
  std::vector<void**> managed;  // The host's pointers to its managed variables.
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

class Client {
 public:
  static Client& get();

  // The channel behind the descriptor serves this process from now on; false where it cannot.
  bool open(int descriptor);
  // The channel.  Ends the process where there is none: no answer could be right.
  Sender& sender();
  bool is_open() const { return sender_.is_open(); }
  // The program is one of src/check: findings say where its code calls.
  void set_checked() { is_checked_ = true; }
  bool is_checked() const { return is_checked_; }
  // A place in the program's code goes with the commands of this thread that follow.
  void note_place(const void* place) const;

  // ---- What libraries register.
  Binary* add_binary(const void* image);
  void remove_binary(Binary* binary);
  // Loads a module's PTX.
  cudaError_t add_text(std::string text, Binary** binary);
  // A function of it, by which find_function() finds it, too.
  cudaError_t add_function_of_text(Binary* binary, const char* name, Function** function);
  void add_function(Binary* binary, const void* host, const char* name);
  void add_variable(Binary* binary, const void* host, const char* name, uint64_t bytes);
  // `host` is where its address goes, by which find_variable() finds it; by open_managed().
  void add_managed(Binary* binary, void** host, const char* name, uint64_t bytes);
  cudaError_t open_managed(Binary& binary);
  // The function of a host's stub, or of what find_function() returned before; null for others.
  // Looks it up in the device process where that has not been done; `status` tells why not.
  Function* find_function(const void* host);
  cudaError_t prepare(Function& function);
  // Null for an address that no library registered.
  Variable* find_variable(const void* host);
  cudaError_t prepare(Variable& variable);

  // ---- Memory.
  cudaError_t allocate(void** pointer, uint64_t bytes);
  cudaError_t release(void* pointer);
  // In the order of a stream: memory goes to later allocations of the same size and stream.
  cudaError_t allocate_in_order(void** pointer, uint64_t bytes, cudaStream_t stream);
  cudaError_t release_in_order(void* pointer, cudaStream_t stream);
  bool is_on_device(const void* pointer);
  void* allocate_host(uint64_t bytes);
  bool release_host(void* pointer);
  bool is_allocated_host(const void* pointer);
  uint64_t bytes_used();

  // The harness makes a call that the device process times, as it has made others before.
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
  std::map<uint64_t, uint64_t> bytes_in_order_;  // The bytes of allocations of allocate_in_order().
  std::multimap<uint64_t, Kept> kept_;           // Freed in the order of a stream, by their bytes.
  std::map<const void*, uint64_t> host_blocks_;
  std::atomic<uint32_t> next_handle_{kFirstStream};
};

// For the verdict, that the program asked for what is not there; the result is its error.
cudaError_t note_unsupported(const char* name);

}  // namespace mc::device

#endif  // MC_DEVICE_CLIENT_CLIENT_H_
