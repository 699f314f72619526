// SPDX-License-Identifier: Apache-2.0
// Conversions between Python and C++ for the candidate's binding, compiled against the user's
// PyTorch. The recording of operations is in record.cc.
#include <Python.h>

#include <ATen/ATen.h>
#include <torch/csrc/Device.h>
#include <torch/csrc/Dtype.h>
#include <torch/csrc/Exceptions.h>
#include <torch/csrc/autograd/python_variable.h>

#include <cstdint>
#include <exception>
#include <memory>
#include <new>
#include <stdexcept>
#include <string>
#include <vector>

#include "mc_bind/bind_abi.h"
#include "runtime.h"

namespace {

PyObject* as_python(McShimObject* object) { return static_cast<PyObject*>(object); }

// --- Bound functions.

struct Parameter {
  std::string name;
  bool has_default;
};

struct Overload {
  std::string signature;
  McShimCall call;
  void* closure;
  std::vector<Parameter> parameters;
};

struct Function {
  std::string name;
  std::string doc;
  std::vector<Overload> overloads;
  PyMethodDef method;
};

constexpr const char* kCapsuleName = "mc_bind.function";

// Assigns the arguments to the overload's parameters; false if they do not fit.
bool match(const Overload& overload, PyObject* args, PyObject* kwargs,
           std::vector<McShimObject*>* slots) {
  const size_t given = static_cast<size_t>(PyTuple_GET_SIZE(args));
  const size_t count = overload.parameters.size();
  if (given > count) return false;
  slots->assign(count, nullptr);
  for (size_t i = 0; i < given; ++i) {
    (*slots)[i] = PyTuple_GET_ITEM(args, static_cast<Py_ssize_t>(i));
  }
  Py_ssize_t used = 0;
  for (size_t i = given; i < count && kwargs != nullptr; ++i) {
    const std::string& name = overload.parameters[i].name;
    PyObject* value = PyDict_GetItemString(kwargs, name.c_str());
    if (value == nullptr) continue;
    (*slots)[i] = value;
    ++used;
  }
  if (kwargs != nullptr && used != PyDict_Size(kwargs)) return false;
  for (size_t i = 0; i < count; ++i) {
    if ((*slots)[i] == nullptr && !overload.parameters[i].has_default) return false;
  }
  return true;
}

void set_mismatch_error(const Function& function, PyObject* args) {
  std::string given;
  for (Py_ssize_t i = 0; i < PyTuple_GET_SIZE(args); ++i) {
    given += (i == 0 ? "" : ", ") + std::string(Py_TYPE(PyTuple_GET_ITEM(args, i))->tp_name);
  }
  std::string wanted;
  for (const Overload& overload : function.overloads) {
    wanted += (wanted.empty() ? "" : " or ") + std::to_string(overload.parameters.size());
  }
  PyErr_Format(PyExc_TypeError,
               "%s(): incompatible function arguments: takes %s arguments, was given (%s)",
               function.name.c_str(), wanted.c_str(), given.c_str());
}

PyObject* call_function(PyObject* self, PyObject* args, PyObject* kwargs) {
  auto* function = static_cast<Function*>(PyCapsule_GetPointer(self, kCapsuleName));
  if (function == nullptr) return nullptr;
  std::vector<McShimObject*> slots;
  for (const Overload& overload : function->overloads) {
    if (!match(overload, args, kwargs, &slots)) continue;
    int mismatch = 0;
    McShimObject* result = overload.call(overload.closure, slots.data(), &mismatch);
    if (mismatch == 0) return as_python(result);
  }
  set_mismatch_error(*function, args);
  return nullptr;
}

PyObject* make_callable(Function* function) {
  function->method = {function->name.c_str(),
                      reinterpret_cast<PyCFunction>(reinterpret_cast<void (*)()>(call_function)),
                      METH_VARARGS | METH_KEYWORDS, function->doc.c_str()};
  PyObject* capsule = PyCapsule_New(function, kCapsuleName, nullptr);
  if (capsule == nullptr) return nullptr;
  PyObject* callable = PyCFunction_NewEx(&function->method, capsule, nullptr);
  Py_DECREF(capsule);
  return callable;
}

// The function with this name that a candidate's binding already added to the module, or null.
Function* find_function(PyObject* module, const char* name) {
  PyObject* existing = PyDict_GetItemString(PyModule_GetDict(module), name);
  if (existing == nullptr || !PyCFunction_Check(existing)) return nullptr;
  PyObject* self = PyCFunction_GET_SELF(existing);
  if (self == nullptr || !PyCapsule_IsValid(self, kCapsuleName)) return nullptr;
  return static_cast<Function*>(PyCapsule_GetPointer(self, kCapsuleName));
}

Overload make_overload(const McShimFunction& description) {
  Overload overload{description.signature, description.call, description.closure, {}};
  for (int i = 0; i < description.num_parameters; ++i) {
    const McShimParameter& p = description.parameters[i];
    overload.parameters.push_back(
        {p.name == nullptr ? "arg" + std::to_string(i) : p.name, p.has_default != 0});
  }
  return overload;
}

PyObject* error_type(int kind) {
  switch (kind) {
    case kMcShimValue:
      return PyExc_ValueError;
    case kMcShimType:
      return PyExc_TypeError;
    case kMcShimIndex:
      return PyExc_IndexError;
    case kMcShimMemory:
      return PyExc_MemoryError;
    case kMcShimNotImplemented:
      return PyExc_NotImplementedError;
    default:
      return PyExc_RuntimeError;
  }
}

}  // namespace

extern "C" {

// --- Modules.

McShimObject* mc_shim_module_new(const char* name) {
  // The interpreter keeps the definition and its name as long as the module.
  auto* definition = new PyModuleDef{PyModuleDef_HEAD_INIT,
                                     (new std::string(name))->c_str(),
                                     "",
                                     -1,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr,
                                     nullptr};
  return PyModule_Create(definition);
}

int mc_shim_module_def(McShimObject* module, const McShimFunction* description) {
  if (Function* existing = find_function(as_python(module), description->name)) {
    existing->overloads.push_back(make_overload(*description));
    return 1;
  }
  // Never freed: any code may keep the module.
  auto* function = new Function{description->name, description->doc, {}, {}};
  function->overloads.push_back(make_overload(*description));
  PyObject* callable = make_callable(function);
  return callable != nullptr &&
         PyModule_AddObject(as_python(module), description->name, callable) == 0;
}

int mc_shim_module_set(McShimObject* module, const char* name, McShimObject* value) {
  return PyModule_AddObject(as_python(module), name, as_python(value)) == 0;
}

void mc_shim_module_doc(McShimObject* module, const char* text) {
  PyModule_SetDocString(as_python(module), text);
}

// --- From Python.

int mc_shim_to_tensor(McShimObject* object, void* tensor) {
  if (!THPVariable_Check(as_python(object))) return 0;
  *static_cast<at::Tensor*>(tensor) = THPVariable_Unpack(as_python(object));
  return 1;
}

int mc_shim_to_int(McShimObject* object, int64_t* value) {
  if (PyFloat_Check(as_python(object)) || !PyIndex_Check(as_python(object))) return 0;
  PyObject* index = PyNumber_Index(as_python(object));
  if (index != nullptr) {
    *value = PyLong_AsLongLong(index);
    Py_DECREF(index);
  }
  if (PyErr_Occurred() == nullptr) return 1;
  PyErr_Clear();
  return 0;
}

int mc_shim_to_double(McShimObject* object, double* value) {
  if (!PyFloat_Check(as_python(object)) && !PyLong_Check(as_python(object)) &&
      !PyNumber_Check(as_python(object))) {
    return 0;
  }
  *value = PyFloat_AsDouble(as_python(object));
  if (PyErr_Occurred() == nullptr) return 1;
  PyErr_Clear();
  return 0;
}

int mc_shim_to_bool(McShimObject* object, int* value) {
  if (!PyBool_Check(as_python(object))) return 0;
  *value = as_python(object) == Py_True;
  return 1;
}

int mc_shim_to_string(McShimObject* object, const char** text, size_t* size) {
  if (!PyUnicode_Check(as_python(object))) return 0;
  Py_ssize_t bytes = 0;
  *text = PyUnicode_AsUTF8AndSize(as_python(object), &bytes);
  *size = static_cast<size_t>(bytes);
  if (*text != nullptr) return 1;
  PyErr_Clear();
  return 0;
}

int mc_shim_to_number(McShimObject* object, McShimNumber* number) {
  int flag = 0;
  if (mc_shim_to_bool(object, &flag) != 0) {
    number->kind = kMcShimBool;
    number->integer = flag;
  } else if (mc_shim_to_int(object, &number->integer) != 0) {
    number->kind = kMcShimInt;
  } else if (mc_shim_to_double(object, &number->real) != 0) {
    number->kind = kMcShimDouble;
  } else {
    return 0;
  }
  return 1;
}

int mc_shim_to_dtype(McShimObject* object, int* dtype) {
  if (!THPDtype_Check(as_python(object))) return 0;
  *dtype = static_cast<int>(reinterpret_cast<THPDtype*>(object)->scalar_type);
  return 1;
}

int mc_shim_to_device(McShimObject* object, int* type, int* index) {
  if (!THPDevice_Check(as_python(object))) return 0;
  const at::Device device = reinterpret_cast<THPDevice*>(object)->device;
  *type = static_cast<int>(device.type());
  *index = device.index();
  return 1;
}

int mc_shim_is_none(McShimObject* object) { return object == Py_None; }

ptrdiff_t mc_shim_sequence_size(McShimObject* object) {
  if (!PyList_Check(as_python(object)) && !PyTuple_Check(as_python(object))) return -1;
  return PySequence_Fast_GET_SIZE(as_python(object));
}

McShimObject* mc_shim_sequence_item(McShimObject* object, ptrdiff_t index) {
  return PySequence_Fast_GET_ITEM(as_python(object), index);
}

// --- To Python.

McShimObject* mc_shim_from_tensor(const void* tensor) {
  return THPVariable_Wrap(*static_cast<const at::Tensor*>(tensor));
}
McShimObject* mc_shim_from_int(int64_t value) { return PyLong_FromLongLong(value); }
McShimObject* mc_shim_from_double(double value) { return PyFloat_FromDouble(value); }
McShimObject* mc_shim_from_bool(int value) { return PyBool_FromLong(value); }
McShimObject* mc_shim_from_string(const char* text, size_t size) {
  return PyUnicode_DecodeUTF8(text, static_cast<Py_ssize_t>(size), "replace");
}
McShimObject* mc_shim_from_none(void) {
  Py_INCREF(Py_None);
  return Py_None;
}
McShimObject* mc_shim_tuple_new(size_t size) { return PyTuple_New(static_cast<Py_ssize_t>(size)); }
McShimObject* mc_shim_list_new(size_t size) { return PyList_New(static_cast<Py_ssize_t>(size)); }
void mc_shim_tuple_set(McShimObject* tuple, size_t index, McShimObject* item) {
  PyTuple_SET_ITEM(as_python(tuple), static_cast<Py_ssize_t>(index), as_python(item));
}
void mc_shim_list_set(McShimObject* list, size_t index, McShimObject* item) {
  PyList_SET_ITEM(as_python(list), static_cast<Py_ssize_t>(index), as_python(item));
}
void mc_shim_release(McShimObject* object) { Py_XDECREF(as_python(object)); }

void mc_shim_set_error(int kind, const char* message) {
  PyErr_SetString(error_type(kind), message);
}

void mc_shim_set_current_error(void) {
  try {
    throw;
  } catch (const c10::Error&) {
    torch::translate_exception_to_python(std::current_exception());
  } catch (const std::bad_alloc& e) {
    mc_shim_set_error(kMcShimMemory, e.what());
  } catch (const std::invalid_argument& e) {
    mc_shim_set_error(kMcShimValue, e.what());
  } catch (const std::domain_error& e) {
    mc_shim_set_error(kMcShimValue, e.what());
  } catch (const std::length_error& e) {
    mc_shim_set_error(kMcShimValue, e.what());
  } catch (const std::range_error& e) {
    mc_shim_set_error(kMcShimValue, e.what());
  } catch (const std::out_of_range& e) {
    mc_shim_set_error(kMcShimIndex, e.what());
  } catch (const std::exception& e) {
    mc_shim_set_error(kMcShimRuntime, e.what());
  } catch (...) {
    mc_shim_set_error(kMcShimRuntime, "a C++ exception of unknown type");
  }
}

}  // extern "C"
