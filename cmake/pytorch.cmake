# SPDX-License-Identifier: Apache-2.0
# mc_torch: libtorch of the Python in use ($MC_PYTHON, else python3), where it has PyTorch.  The
# folder is found without importing the package, which takes seconds, and remembered.  The libraries
# of a device are not linked: musacoder-learn loads them when a device is asked for.
if(NOT MC_TORCH_FOLDER)
  set(python python3)
  if(DEFINED ENV{MC_PYTHON})
    set(python $ENV{MC_PYTHON})
  endif()
  execute_process(
    COMMAND ${python} -c "import importlib.util as u; print(u.find_spec('torch').origin)"
    OUTPUT_VARIABLE origin OUTPUT_STRIP_TRAILING_WHITESPACE ERROR_QUIET)
  cmake_path(GET origin PARENT_PATH found)
  set(MC_TORCH_FOLDER "${found}" CACHE PATH "The folder of the Python package torch" FORCE)
endif()
if(MC_TORCH_FOLDER AND EXISTS ${MC_TORCH_FOLDER}/include/ATen/ATen.h)
  set(MC_TORCH_LIB ${MC_TORCH_FOLDER}/lib)
  add_library(mc_torch INTERFACE)
  target_include_directories(mc_torch SYSTEM INTERFACE ${MC_TORCH_FOLDER}/include)
  target_compile_definitions(mc_torch INTERFACE AT_PER_OPERATOR_HEADERS)
  # OpenMP is PyTorch's own copy, so that there is one pool of threads.
  target_compile_options(mc_torch INTERFACE -fopenmp)
  target_link_libraries(mc_torch INTERFACE ${MC_TORCH_LIB}/libtorch_cpu.so
    ${MC_TORCH_LIB}/libc10.so ${MC_TORCH_LIB}/libgomp.so.1)
  target_link_options(mc_torch INTERFACE -Wl,--disable-new-dtags)
else()
  message(STATUS "musacoder-learn is not built: $MC_PYTHON has no PyTorch")
endif()
