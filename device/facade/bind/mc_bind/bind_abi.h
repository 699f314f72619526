// SPDX-License-Identifier: Apache-2.0
// The C interface between a candidate's binding code (bind.h) and the shim that calls Python's API.
//
// Python objects are opaque pointers; `borrowed` ones are not owned by the receiver, `new` ones
// are. A converter returns 1 on success; on failure 0, with no Python error set.  All functions
// need the GIL, which a call from Python holds.
#ifndef MC_BIND_ABI_H_
#define MC_BIND_ABI_H_

#include <stddef.h>
#include <stdint.h>

#pragma GCC visibility push(default)
extern "C" {

typedef void McShimObject;

// One way to call a bound function.  `arguments` are borrowed, one for each parameter; null for a
// parameter that was not given.  Returns a new object; null with *mismatch = 1 when an argument
// does not convert, null with a Python error set when the function failed.
typedef McShimObject* (*McShimCall)(void* closure, McShimObject* const* arguments, int* mismatch);

struct McShimParameter {
  const char* name;  // Null: positional only.
  int has_default;
};

struct McShimFunction {
  const char* name;
  const char* doc;
  const char* signature;  // For error messages.
  McShimCall call;
  void* closure;  // Lives as long as the process.
  const McShimParameter* parameters;
  int num_parameters;
};

// The kinds of Python numbers.
enum McShimNumberKind { kMcShimBool, kMcShimInt, kMcShimDouble };
struct McShimNumber {
  int kind;
  int64_t integer;  // A bool or int.
  double real;
};

// Returns a new module object, or null with a Python error set.
McShimObject* mc_shim_module_new(const char* name);
// Adds a function, as one more overload if the name is taken.  Copies the description.  0 on
// failure.
int mc_shim_module_def(McShimObject* module, const struct McShimFunction* function);
// Adds an object and takes ownership of it.
int mc_shim_module_set(McShimObject* module, const char* name, McShimObject* value);
void mc_shim_module_doc(McShimObject* module, const char* text);

int mc_shim_to_tensor(McShimObject* object, void* tensor);  // An at::Tensor*.
int mc_shim_to_int(McShimObject* object, int64_t* value);
int mc_shim_to_double(McShimObject* object, double* value);
int mc_shim_to_bool(McShimObject* object, int* value);
int mc_shim_to_string(McShimObject* object, const char** text, size_t* size);  // Borrowed.
int mc_shim_to_number(McShimObject* object, struct McShimNumber* number);
int mc_shim_to_dtype(McShimObject* object, int* dtype);
int mc_shim_to_device(McShimObject* object, int* type, int* index);
int mc_shim_is_none(McShimObject* object);
// The number of items of a list or tuple; -1 for any other object.
ptrdiff_t mc_shim_sequence_size(McShimObject* object);
McShimObject* mc_shim_sequence_item(McShimObject* object, ptrdiff_t index);  // Borrowed.

McShimObject* mc_shim_from_tensor(const void* tensor);
McShimObject* mc_shim_from_int(int64_t value);
McShimObject* mc_shim_from_double(double value);
McShimObject* mc_shim_from_bool(int value);
McShimObject* mc_shim_from_string(const char* text, size_t size);
McShimObject* mc_shim_from_none(void);
McShimObject* mc_shim_tuple_new(size_t size);
McShimObject* mc_shim_list_new(size_t size);
// Takes ownership of `item`.
void mc_shim_tuple_set(McShimObject* tuple, size_t index, McShimObject* item);
void mc_shim_list_set(McShimObject* list, size_t index, McShimObject* item);
void mc_shim_release(McShimObject* object);

enum McShimError {
  kMcShimRuntime,
  kMcShimValue,
  kMcShimType,
  kMcShimIndex,
  kMcShimMemory,
  kMcShimNotImplemented
};
void mc_shim_set_error(int kind, const char* message);
// Sets the current C++ exception as Python's error.  REQUIRES: the caller is in its handler.
void mc_shim_set_current_error(void);

}  // extern "C"
#pragma GCC visibility pop

#endif  // MC_BIND_ABI_H_
