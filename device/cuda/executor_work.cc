// SPDX-License-Identifier: Apache-2.0
//
// Modules, kernels and library calls.
#include <algorithm>
#include <cstring>
#include <string>
#include <string_view>
#include <utility>

#include "check.h"
#include "cuda/executor.h"
#include "cuda/kernels.h"

namespace mc::device {
namespace {

constexpr uint32_t kHandlesMax = 1u << 20;
constexpr uint32_t kEntriesOfLibraryCall = 3;
// The first byte of a reply of operators/operators.h, and the offset of its text.
constexpr char kUnsupportedOperator = 2;
constexpr size_t kOperatorTextAt = 5;

// The text, which must end with a zero byte, behind a command's fixed part; otherwise null.
const char* text_in(std::string_view rest) {
  return rest.size() <= kNameBytesMax && rest.find('\0') != rest.npos ? rest.data() : nullptr;
}

}  // namespace

// MUSA's name of the device's architecture.
std::string Executor::architecture() const { return "mp_" + std::to_string(capability()); }

CUresult Executor::load_module(const LoadModule& command, std::string_view rest) {
  const char* path = text_in(rest);
  if (path == nullptr) return CUDA_ERROR_INVALID_VALUE;
  const auto file = files_.find(path);
  if (file == files_.end()) return CUDA_ERROR_FILE_NOT_FOUND;
  if (command.module > kHandlesMax || modules_.contains(command.module)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  File& entry = file->second;
  Module module{nullptr, entry.is_own, entry.path_here, command.offset};
  CUmodule& kept = kept_modules_[{entry.path_here, command.offset}];
  if (entry.is_own || kept == nullptr) {
    if (entry.file == nullptr) entry.file = ImageFile::open(entry.path_here);
    const void* image =
        entry.file == nullptr ? nullptr : entry.file->image_at(command.offset, architecture());
    if (image == nullptr) return CUDA_ERROR_INVALID_IMAGE;
    if (const CUresult status = cuModuleLoadData(&module.module, image)) return status;
    if (!entry.is_own) kept = module.module;
  } else {
    module.module = kept;
  }
  modules_.emplace(command.module, module);
  return CUDA_SUCCESS;
}

// Such a module is the candidate's own, since libraries have their images in files.  It must be PTX
// text, because the driver would accept machine code, too.
CUresult Executor::load_text(const LoadText& command, std::string_view rest) {
  if (command.bytes > rest.size() || command.module > kHandlesMax ||
      modules_.contains(command.module)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  MC_CHECK(text_bytes_ <= kTextBytesMax);
  const std::string_view part = rest.substr(0, command.bytes);
  if (part.size() > kTextBytesMax - text_bytes_) return CUDA_ERROR_OUT_OF_MEMORY;
  std::string& text = texts_[command.module];
  text += part;
  text_bytes_ += part.size();
  if (command.is_last == 0) return CUDA_SUCCESS;
  const std::string whole = std::move(texts_.extract(command.module).mapped());
  MC_CHECK(text_bytes_ >= whole.size());
  text_bytes_ -= whole.size();
  const bool is_text = std::ranges::none_of(whole, [](char c) {
    return static_cast<unsigned char>(c) < ' ' && c != '\n' && c != '\t' && c != '\r';
  });
  if (!is_text || whole.find(".version") == std::string::npos) return CUDA_ERROR_INVALID_IMAGE;
  Module module{nullptr, /*is_own=*/true, {}, 0};
  if (const CUresult status = cuModuleLoadData(&module.module, whole.c_str())) return status;
  modules_.emplace(command.module, module);
  return CUDA_SUCCESS;
}

CUresult Executor::unload_module(const Handle& command, std::string_view) {
  // Functions of an unloaded module must not be launched, so it stays until the candidate ends.
  return modules_.contains(command.handle) ? CUDA_SUCCESS : CUDA_ERROR_INVALID_HANDLE;
}

CUresult Executor::find_function(const Find& command, std::string_view rest) {
  FunctionFacts facts{};
  const CUresult status = describe_function(command, text_in(rest), facts);
  set_reply(&facts, sizeof facts);
  return status;
}

CUresult Executor::describe_function(const Find& command, const char* name, FunctionFacts& facts) {
  const auto module = modules_.find(command.module);
  if (module == modules_.end() || command.function > kHandlesMax || name == nullptr) {
    return CUDA_ERROR_INVALID_HANDLE;
  }
  if (!module->second.is_own && !may_run_foreign(name)) return CUDA_ERROR_NOT_PERMITTED;
  FunctionEntry entry{nullptr, module->second.is_own, {}, 0, command.module};
  if (const CUresult status = cuModuleGetFunction(&entry.function, module->second.module, name)) {
    return status;
  }
  for (uint32_t i = 0; i < kFunctionAttributes; ++i) {
    cuFuncGetAttribute(&facts.attributes[i], static_cast<CUfunction_attribute>(i), entry.function);
  }
  entry.item.name = name;
  if (!entry.is_own) entry.item.owner = module->second.path;
  entry.item.registers = static_cast<uint32_t>(facts.attributes[CU_FUNC_ATTRIBUTE_NUM_REGS]);
  entry.item.shared_bytes =
      static_cast<uint32_t>(facts.attributes[CU_FUNC_ATTRIBUTE_SHARED_SIZE_BYTES]);
  size_t offset = 0, bytes = 0;
  while (facts.num_parameters < kParametersMax &&
         cuFuncGetParamInfo(entry.function, facts.num_parameters, &offset, &bytes) ==
             CUDA_SUCCESS) {
    facts.parameters[facts.num_parameters++] = {static_cast<uint32_t>(offset),
                                                static_cast<uint32_t>(bytes)};
    entry.argument_bytes = std::max(entry.argument_bytes, static_cast<uint32_t>(offset + bytes));
  }
  functions_[command.function] = std::move(entry);
  return CUDA_SUCCESS;
}

CUresult Executor::find_variable(const Find& command, std::string_view rest) {
  const char* name = text_in(rest);
  const auto module = modules_.find(command.module);
  if (module == modules_.end() || name == nullptr) return CUDA_ERROR_INVALID_HANDLE;
  VariableFacts facts{};
  CUdeviceptr address = 0;
  size_t bytes = 0;
  const CUresult status = cuModuleGetGlobal(&address, &bytes, module->second.module, name);
  facts = {address, bytes};
  set_reply(&facts, sizeof facts);
  if (status != CUDA_SUCCESS) return status;
  variables_[address] = bytes;
  forget_after_this(module->second);
  return status;
}

CUresult Executor::set_attribute(const SetAttribute& command, std::string_view) {
  const auto found = functions_.find(command.function);
  if (found == functions_.end()) return CUDA_ERROR_INVALID_HANDLE;
  const auto module = modules_.find(found->second.module);
  MC_CHECK(module != modules_.end());  // A module stays until the candidate ends.
  forget_after_this(module->second);
  return cuFuncSetAttribute(found->second.function,
                            static_cast<CUfunction_attribute>(command.attribute), command.value);
}

// This candidate may change PyTorch's module, so the next candidate loads it again.
void Executor::forget_after_this(const Module& module) {
  if (!module.is_own) changed_modules_.emplace(module.path, module.offset);
}

CUresult Executor::occupancy(const Occupancy& command, std::string_view) {
  const auto found = functions_.find(command.function);
  if (found == functions_.end()) return CUDA_ERROR_INVALID_HANDLE;
  int32_t blocks = 0;
  const CUresult status = cuOccupancyMaxActiveBlocksPerMultiprocessorWithFlags(
      &blocks, found->second.function, command.block_threads, command.shared_bytes, command.flags);
  set_reply(&blocks, sizeof blocks);
  return status;
}

#ifdef MC_DEVICE_MUSA  // MUSA has descriptors of another form.
CUresult Executor::tensor_map(const TensorMap&, std::string_view) {
  return CUDA_ERROR_NOT_SUPPORTED;
}
#else
CUresult Executor::tensor_map(const TensorMap& command, std::string_view) {
  if (command.rank == 0 || command.rank > kTensorMapRankMax) return CUDA_ERROR_INVALID_VALUE;
  CUtensorMap map{};
  static_assert(sizeof map == kTensorMapBytes);
  const CUresult status = cuTensorMapEncodeTiled(
      &map, static_cast<CUtensorMapDataType>(command.kinds[0]), command.rank,
      reinterpret_cast<void*>(command.address),  // NOLINT: the driver takes it as a pointer.
      command.sizes, command.strides, command.box, command.steps,
      static_cast<CUtensorMapInterleave>(command.kinds[1]),
      static_cast<CUtensorMapSwizzle>(command.kinds[2]),
      static_cast<CUtensorMapL2promotion>(command.kinds[3]),
      static_cast<CUtensorMapFloatOOBfill>(command.kinds[4]));
  set_reply(&map, sizeof map);
  return status;
}
#endif

// False if a handle is unknown.
bool Executor::configure(const Launch& command, Configuration& configuration) {
  auto& [config, attributes, entry] = configuration;
  const auto function = functions_.find(command.function);
  if (function == functions_.end() || !stream_of(command.stream, config.hStream)) return false;
  entry = &function->second;
  config.gridDimX = command.grid[0];
  config.gridDimY = command.grid[1];
  config.gridDimZ = command.grid[2];
  config.blockDimX = command.block[0];
  config.blockDimY = command.block[1];
  config.blockDimZ = command.block[2];
  config.sharedMemBytes = command.shared_bytes;
  config.attrs = attributes;
  if (command.cluster[0] != 0) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_CLUSTER_DIMENSION;
    attribute.value.clusterDim = {command.cluster[0], command.cluster[1], command.cluster[2]};
  }
  if (command.is_cooperative != 0) {
    CUlaunchAttribute& attribute = attributes[config.numAttrs++];
    attribute.id = CU_LAUNCH_ATTRIBUTE_COOPERATIVE;
    attribute.value.cooperative = 1;
  }
  MC_CHECK(config.numAttrs <= std::size(attributes));
  return true;
}

// The client already returned the error; a GPU would do no more.
CUresult Executor::note_refused(const Launch& command, std::string_view) {
  Configuration configuration;
  if (!is_in_software()) return CUDA_SUCCESS;
  if (!configure(command, configuration)) return CUDA_ERROR_INVALID_HANDLE;
  cuLaunchKernelEx(&configuration.config, configuration.function->function, nullptr, nullptr);
  return CUDA_SUCCESS;
}

CUresult Executor::launch(const Launch& command, std::string_view arguments) {
  if (command.argument_bytes > std::min<size_t>(arguments.size(), kArgumentBytesMax)) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  Configuration configuration;
  if (!configure(command, configuration)) return CUDA_ERROR_INVALID_HANDLE;
  const auto& [config, attributes, function] = configuration;
  // The driver would read beyond the end of an argument block that is too short.
  if (command.argument_bytes < function->argument_bytes) return CUDA_ERROR_INVALID_VALUE;
  size_t bytes = command.argument_bytes;
  void* extra[] = {CU_LAUNCH_PARAM_BUFFER_POINTER, const_cast<char*>(arguments.data()),
                   CU_LAUNCH_PARAM_BUFFER_SIZE, &bytes, CU_LAUNCH_PARAM_END};
  count(config.hStream, {.launches = 1, .launches_own = function->is_own ? 1u : 0u});
  const CUresult status =
      cuLaunchKernelEx(&config, function->function, nullptr, bytes > 0 ? extra : nullptr);
  if (items_.is_on()) {
    CallItem item = function->item;
    std::ranges::copy(command.grid, item.grid);
    std::ranges::copy(command.block, item.block);
    item.shared_bytes += command.shared_bytes;
    end_item(std::move(item));
  }
  return status;
}

// Ends the item that a command queued last, in an itemised batch.
void Executor::end_item(CallItem item) {
  has_failed_ = items_.end(std::move(item)) != CUDA_SUCCESS || has_failed_;
}

// A library call counts as one launch, however many kernels it launches.
CUresult Executor::call_library(const LibraryCall& command, std::string_view rest) {
  if (command.function >= kNumLibraryFunctions || command.num_words > rest.size() / 8) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  const LibraryFunction& function = kLibraryFunctions[command.function];
  if (!may_run_foreign(function.name)) return CUDA_ERROR_NOT_PERMITTED;
  std::vector<uint64_t> words(command.num_words), results;
  if (!words.empty()) std::memcpy(words.data(), rest.data(), words.size() * 8);
  if (!libraries_.call(command.function, words, results) || results.size() * 8 > kReplyBytesMax) {
    return CUDA_ERROR_INVALID_VALUE;
  }
  MC_CHECK(!results.empty());  // The function's status comes first.
  if (is_in_software() && results[0] == Libraries::kNotSupported) {
    note_unsupported(function.name);
    note_missing_library(function.name);
  }
  if (may_launch(function)) {
    ++use_.launches;
    if (batch_ != nullptr && batch_->is_in_call()) count_entries(kEntriesOfLibraryCall);
    const bool is_dnn = std::string_view(function.name).starts_with("cudnn");
    end_item({.name = function.name, .owner = is_dnn ? "cuDNN" : "cuBLAS"});
  }
  if (command.has_reply == 0) return results[0] == 0 ? CUDA_SUCCESS : CUDA_ERROR_UNKNOWN;
  set_reply(results.data(), results.size() * 8);
  return CUDA_SUCCESS;
}

// The device's queued work must end first.
CUresult Executor::run_operator(const OperatorCall& command, std::string_view rest) {
  if (operators_.run == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  if (command.bytes > rest.size()) return CUDA_ERROR_INVALID_VALUE;
  if (num_captures_ > 0) return CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED;
  if (const CUresult status = cuCtxSynchronize()) return status;
  ++use_.operators;
  const size_t size = operators_.run(rest.data(), command.bytes, reply_area_, kReplyBytesMax);
  if (operators_.end != nullptr) operators_.end();
  if (size > kOperatorTextAt && reply_area_[0] == kUnsupportedOperator) {
    note_unsupported({reply_area_ + kOperatorTextAt, size - kOperatorTextAt});
  }
  set_reply(reply_area_, size);
  return size > 0 ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Executor::fetch_result(const OperatorResult& command, std::string_view) {
  if (operators_.fetch == nullptr) return CUDA_ERROR_NOT_SUPPORTED;
  const bool is_there = operators_.fetch(command.slot, command.target, command.bytes) != 0;
  if (operators_.end != nullptr) operators_.end();
  return is_there ? CUDA_SUCCESS : CUDA_ERROR_INVALID_VALUE;
}

CUresult Executor::host_access(const HostAccess& command, std::string_view) {
  note_host_access(command);
  return CUDA_SUCCESS;
}

CUresult Executor::unsupported(const Handle&, std::string_view rest) {
  if (const char* name = text_in(rest); name != nullptr) note_unsupported(name);
  return CUDA_SUCCESS;
}

}  // namespace mc::device
