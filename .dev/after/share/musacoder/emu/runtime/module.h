// SPDX-License-Identifier: Apache-2.0
// A loaded candidate module, as the emulator knows it: its static shared memory.
//
// `__shared__` variables are thread-local variables of the module, and each OS thread that runs
// blocks has its own copy: exactly one block uses it at a time.  The module's whole thread-local
// segment is taken for shared memory; names and sizes come from the ELF symbol table.
#ifndef MC_EMU_RUNTIME_MODULE_H_
#define MC_EMU_RUNTIME_MODULE_H_

#include <cstddef>
#include <cstdint>
#include <string>
#include <vector>

namespace mc::emu {

struct SharedArray {
  size_t offset = 0;  // In the thread-local segment.
  size_t size = 0;
  std::string owner;  // The demangled function, with its signature.
  std::string name;   // The variable.
  // The compiler's mark that a variable's constructor ran.  Shared variables have no constructors
  // in CUDA; the poison in the mark reads as "ran".
  bool is_guard = false;
};

struct FunctionSymbol {
  uintptr_t address = 0;
  std::string name;  // Mangled.
};

class Module {
 public:
  // The module that holds `code`; loaded once and kept.  Thread-safe.  Null for unknown addresses.
  static const Module* containing(const void* code);

  // This OS thread's copy of the static shared memory, or an empty range.
  char* shared_begin() const;
  size_t shared_bytes() const { return tls_bytes_; }

  // Its variables, `__device__` ones among them, and one record for each four bytes of them
  // (worker.h); no shadow where there is no memory for it.
  uintptr_t data_begin() const { return data_begin_; }
  uintptr_t data_end() const { return data_end_; }
  uint64_t* data_shadow() const { return data_shadow_; }

  // Forgets the records of all modules.
  static void clear_shadows();

  // The array that holds the byte at `offset`, or the nearest one below it; null when unknown.
  const SharedArray* array_at(size_t offset) const;

  // Bytes of all arrays declared in functions with this base name, for the instance of a template
  // that has the most and for the one that has the least.
  struct SharedBytes {
    size_t least = 0;
    size_t most = 0;
  };
  SharedBytes shared_bytes_of(const std::string& base_name) const;

  // The module defines a function with this base name.
  bool has_function(const std::string& base_name) const;

  // The base name of the function at exactly this address; empty when unknown.
  std::string function_at(uintptr_t address) const;

 private:
  void read_symbols(const char* path);
  void make_shadow();

  uintptr_t load_address_ = 0;
  size_t tls_id_ = 0;
  size_t tls_bytes_ = 0;
  uintptr_t data_begin_ = 0, data_end_ = 0;
  uint64_t* data_shadow_ = nullptr;
  std::vector<SharedArray> arrays_;
  std::vector<FunctionSymbol> functions_;
};

// "ns::kernel<float, (N > 2)>" -> "kernel"; also accepts a demangled signature.
std::string kernel_base_name(const std::string& callee);

}  // namespace mc::emu

#endif  // MC_EMU_RUNTIME_MODULE_H_
