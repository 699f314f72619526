// SPDX-License-Identifier: Apache-2.0
#include <dlfcn.h>

#include <string_view>

#include "cuda/libraries.h"

namespace mc::device {

void* find_library_function(const char* name) {
  const std::string_view text = name;
  const char* library = text.starts_with("cudnn")      ? "libcudnn.so.9"
                        : text.starts_with("cublasLt") ? "libcublasLt.so.13"
                                                       : "libcublas.so.13";
  // PyTorch has loaded the library from a folder that is not in the linker's path.
  void* handle = dlopen(library, RTLD_LAZY | RTLD_NOLOAD);
  return handle == nullptr ? nullptr : dlsym(handle, name);
}

}  // namespace mc::device
