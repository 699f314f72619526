// SPDX-License-Identifier: Apache-2.0
//
// The driver's calls about modules, kernels and launches.
#include <algorithm>
#include <span>
#include <utility>

#include "ptx_driver/description.h"
#include "ptx_driver/driver.h"
#include "ptx_driver/fat_binary.h"
#include "ptx_driver/machine_code.h"

using mc::ptx_driver::Driver;
using mc::ptx_driver::Function;
using mc::ptx_driver::Module;
namespace ptx = mc::ptx;

namespace {

CUresult status_of(const mc::Error& error) {
  switch (error.code) {
    case mc::ErrorCode::kNotFound:
      return CUDA_ERROR_NOT_FOUND;
    case mc::ErrorCode::kUnsupported:
      return CUDA_ERROR_NOT_SUPPORTED;
    default:
      return CUDA_ERROR_INVALID_IMAGE;
  }
}

bool has_cluster(const CUlaunchConfig& config) {
  const std::span attributes(config.attrs, config.numAttrs);
  return std::ranges::any_of(attributes, [](const CUlaunchAttribute& one) {
    const auto& [x, y, z] = one.value.clusterDim;
    return one.id == CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION && uint64_t{x} * y * z > 1;
  });
}

bool is_cooperative(const CUlaunchConfig& config) {
  const std::span attributes(config.attrs, config.numAttrs);
  return std::ranges::any_of(attributes, [](const CUlaunchAttribute& one) {
    return one.id == CU_LAUNCH_ATTRIBUTE_COOPERATIVE && one.value.cooperative != 0;
  });
}

// The threads of a block, at most 1025, which is one above the limit.
int threads_of(const CUlaunchConfig& config) {
  const uint64_t threads = uint64_t{config.blockDimX} * config.blockDimY * config.blockDimZ;
  return static_cast<int>(std::min<uint64_t>(threads, 1025));
}

// The occupancy: resident threads of a multiprocessor as a fraction of the maximum.
double occupancy_of(const mc::ptx_driver::Description& device, int threads,
                    const Function& function, uint32_t dynamic) {
  const int blocks = device.resident_blocks(
      {threads, function.registers, uint64_t{function.facts.shared_bytes} + dynamic});
  const int warps = (threads + 31) / 32;
  return blocks * warps * 32.0 / device.at(CU_DEVICE_ATTRIBUTE_MAX_THREADS_PER_MULTIPROCESSOR);
}

// The blocks of a cooperative launch wait for each other, so all of them must be resident.
bool is_too_large(const CUlaunchConfig& config, const Function& function) {
  const uint64_t blocks = uint64_t{config.gridDimX} * config.gridDimY * config.gridDimZ;
  const mc::ptx_driver::Description& device = Driver::get().description;
  const int resident =
      device.resident_blocks({threads_of(config), function.registers,
                              uint64_t{function.facts.shared_bytes} + config.sharedMemBytes});
  const int multiprocessors = device.at(CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT);
  return blocks > static_cast<uint64_t>(resident) * static_cast<uint64_t>(multiprocessors);
}

int registers_of(const Module& module, std::string_view kernel) {
  const auto found = module.registers.find(kernel);
  return found == module.registers.end() ? mc::ptx_driver::kRegisters : found->second;
}

// Reads the arguments from cuLaunchKernelEx's `extra`: keys, each followed by a pointer or a size.
ptx::Arguments arguments_in(void** extra) {
  ptx::Arguments arguments;
  if (extra != nullptr) arguments.add_bytes(extra[1], *static_cast<size_t*>(extra[3]), 1);
  return arguments;
}

}  // namespace

extern "C" {

CUresult cuModuleLoadData(CUmodule* made, const void* image) {
  Driver& driver = Driver::get();
  const auto code = mc::ptx_driver::code_in(image, mc::ptx_driver::kArchitecture);
  if (!code) {
    driver.report().add_unsupported("", code.error().message);
    return CUDA_ERROR_NO_BINARY_FOR_GPU;
  }
  const auto id = driver.device().load(code->ptx);
  if (!id) {
    driver.report().add_unsupported("", id.error().message);
    return status_of(id.error());
  }
  *made = reinterpret_cast<CUmodule>(
      new Module{*id, mc::ptx_driver::registers_in(code->machine_code), {}});
  return CUDA_SUCCESS;
}

CUresult cuModuleUnload(CUmodule module) {
  auto* known = reinterpret_cast<Module*>(module);
  const auto unloaded = Driver::get().device().unload(known->id);
  delete known;
  return unloaded ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult cuModuleGetFunction(CUfunction* function, CUmodule module, const char* name) {
  auto* known = reinterpret_cast<Module*>(module);
  auto& entry = known->functions[name];
  if (entry == nullptr) {
    Driver& driver = Driver::get();
    auto facts = driver.device().facts(known->id, name);
    if (!facts) {
      if (facts.error().code == mc::ErrorCode::kUnsupported) {
        driver.report().add_unsupported(name, facts.error().message);
      }
      known->functions.erase(name);
      return status_of(facts.error());
    }
    const int shared_bytes_max = driver.description.shared_bytes_default();
    const int dynamic = shared_bytes_max - static_cast<int>(facts->shared_bytes);
    if (dynamic < 0) {
      known->functions.erase(name);
      return driver.refuse(name, std::to_string(facts->shared_bytes) +
                                     " bytes of static shared memory; at most " +
                                     std::to_string(shared_bytes_max) + " are possible");
    }
    entry = std::make_unique<Function>(
        Function{known->id, name, std::move(*facts), registers_of(*known, name), dynamic});
  }
  *function = reinterpret_cast<CUfunction>(entry.get());
  return CUDA_SUCCESS;
}

CUresult cuModuleGetGlobal_v2(CUdeviceptr* address, size_t* bytes, CUmodule module,
                              const char* name) {
  const auto* known = reinterpret_cast<Module*>(module);
  const ptx::Device& device = Driver::get().device();
  const auto found = device.variable(known->id, name);
  const auto size = device.variable_bytes(known->id, name);
  if (!found || !size) return CUDA_ERROR_NOT_FOUND;
  *address = *found;
  *bytes = *size;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetAttribute(int* value, CUfunction_attribute attribute, CUfunction function) {
  const auto* known = reinterpret_cast<Function*>(function);
  switch (attribute) {
    case CU_FUNC_ATTRIBUTE_MAX_THREADS_PER_BLOCK:
      *value = std::min(static_cast<int>(known->facts.threads_max),
                        mc::ptx_driver::threads_by_registers(known->registers));
      break;
    case CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES:
      *value = static_cast<int>(known->facts.shared_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_LOCAL_SIZE_BYTES:
      *value = static_cast<int>(known->facts.local_bytes);
      break;
    case CU_FUNC_ATTRIBUTE_NUM_REGS:
      *value = known->registers;
      break;
    case CU_FUNC_ATTRIBUTE_PTX_VERSION:
    case CU_FUNC_ATTRIBUTE_BINARY_VERSION:
      *value = mc::ptx_driver::kArchitecture;
      break;
    case CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES:
      *value = known->dynamic_bytes_max;
      break;
    case CU_FUNC_ATTRIBUTE_PREFERRED_SHARED_MEMORY_CARVEOUT:
      *value = -1;
      break;
    default:
      *value = 0;
  }
  return CUDA_SUCCESS;
}

CUresult cuFuncSetAttribute(CUfunction function, CUfunction_attribute attribute, int value) {
  auto* known = reinterpret_cast<Function*>(function);
  if (attribute != CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES) return CUDA_SUCCESS;
  const int most =
      Driver::get().description.shared_bytes_max() - static_cast<int>(known->facts.shared_bytes);
  if (value < 0 || value > most) return CUDA_ERROR_INVALID_VALUE;
  known->dynamic_bytes_max = value;
  return CUDA_SUCCESS;
}

CUresult cuFuncGetParamInfo(CUfunction function, size_t index, size_t* offset, size_t* bytes) {
  const auto& parameters = reinterpret_cast<Function*>(function)->facts.parameters;
  if (index >= parameters.size()) return CUDA_ERROR_INVALID_VALUE;
  *offset = parameters[index].offset;
  *bytes = parameters[index].bytes;
  return CUDA_SUCCESS;
}

CUresult cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(int* blocks, CUfunction function,
                                                              int threads, size_t dynamic,
                                                              unsigned) {
  const auto* known = reinterpret_cast<Function*>(function);
  *blocks = Driver::get().description.resident_blocks(
      {threads, known->registers, known->facts.shared_bytes + dynamic});
  return CUDA_SUCCESS;
}

CUresult cuLaunchKernelEx(const CUlaunchConfig* config, CUfunction function, void**, void** extra) {
  Driver& driver = Driver::get();
  const auto* known = reinterpret_cast<Function*>(function);
  if (has_cluster(*config)) {
    driver.report().add_unsupported(known->name, "clusters of several blocks");
    return CUDA_ERROR_NOT_SUPPORTED;
  }
  if (config->sharedMemBytes > static_cast<unsigned>(known->dynamic_bytes_max)) {
    driver.report_refusal(known->name, std::to_string(config->sharedMemBytes) +
                                           " bytes of dynamic shared memory: at most " +
                                           std::to_string(known->dynamic_bytes_max) +
                                           " without (or beyond) cudaFuncSetAttribute");
    return CUDA_ERROR_INVALID_VALUE;
  }
  const int threads = threads_of(*config);
  const int threads_max = mc::ptx_driver::threads_by_registers(known->registers);
  if (threads <= 1024 && threads > threads_max) {
    driver.report_refusal(known->name, "a block of " + std::to_string(threads) + " threads with " +
                                           std::to_string(known->registers) +
                                           " registers each: at most " +
                                           std::to_string(threads_max) + " threads have room");
    return CUDA_ERROR_LAUNCH_OUT_OF_RESOURCES;
  }
  const bool cooperates = is_cooperative(*config);
  if (cooperates && is_too_large(*config, *known)) {
    driver.report_refusal(known->name, "a cooperative grid whose blocks are not all resident");
    return CUDA_ERROR_COOPERATIVE_LAUNCH_TOO_LARGE;
  }
  // A kernel without a loop is limited by memory, and each worker would have to save old bytes.
  ptx::LaunchOptions options{.module = known->module,
                             .kernel = known->name,
                             .grid = {config->gridDimX, config->gridDimY, config->gridDimZ},
                             .block = {config->blockDimX, config->blockDimY, config->blockDimZ},
                             .shared_bytes = config->sharedMemBytes,
                             .arguments = arguments_in(extra),
                             .is_cooperative = cooperates,
                             .workers_max = known->facts.has_loops ? ptx::kWorkersMax : 1};
  const double occupancy = occupancy_of(driver.description, threads, *known, options.shared_bytes);
  return driver.queue(config->hStream, [options = std::move(options), occupancy] {
    return Driver::get().launch(options, occupancy);
  });
}

}  // extern "C"
