// SPDX-License-Identifier: Apache-2.0
#include "eval/machine.h"

#include <algorithm>
#include <iterator>
#include <sstream>
#include <string>

#include "compile/artifact_store.h"
#include "compile/cuda_toolchain.h"
#include "core/check.h"
#include "core/file.h"

namespace mc::eval {

std::span<const Backend* const> backends() {
  static constexpr const Backend* kBackends[] = {&kCudaBackend, &kMusaBackend, &kCpuBackend};
  return kBackends;
}

const Backend& backend_of(task::Backend name) {
  const auto found = std::ranges::find(backends(), name, &Backend::name);
  MC_CHECK(found != backends().end());
  return **found;
}

namespace {

Result<compile::PyTorch> pytorch_of(const std::filesystem::path& python) {
  return compile::find_pytorch(python.empty() ? compile::default_python() : python);
}

}  // namespace

Result<Machine> find_machine(const Options& options, const Progress& progress) {
  Machine machine;
  machine.backend = options.backend;
  if (const Status cache = prepare_cache_directory(); !cache) return cache.error();
  MC_TRY(machine.layout, find_layout(), "set-up");
  MC_TRY(machine.pytorch, pytorch_of(options.python), "set-up");
  MC_TRY_VOID(backend_of(options.backend).set_up(machine, options, progress), "set-up");
  MC_CHECK(machine.toolchain != nullptr);
  const bool is_of_none = machine.devices.empty() && options.architecture.empty();
  if (is_of_none && options.devices != kAllDevices) {
    return Error{ErrorCode::kInvalidInput, "--devices: kernels run on the CPU here, without one"};
  }
  if (!machine.race_checker && options.race_check == RaceCheckMode::kOn) {
    return Error{ErrorCode::kInvalidInput,
                 std::string("--race-check on: --backend ") + to_string(options.backend) +
                     " has no such check; leave it out, or use --backend cuda"};
  }
  return machine;
}

namespace {

bool are_alike(const execute::CudaDevice& one, const execute::CudaDevice& other) {
  return one.name == other.name && one.major == other.major && one.minor == other.minor;
}

bool is_number(std::string_view text) {
  return !text.empty() && text.size() < 5 &&
         std::ranges::all_of(text, [](char c) { return '0' <= c && c <= '9'; });
}

// The device that an item of --devices names; null where no device, or more than one, has the name.
const execute::CudaDevice* device_named(const std::string& word,
                                        const std::vector<execute::CudaDevice>& shown) {
  if (is_number(word)) {
    const size_t index = std::stoul(word);
    return index < shown.size() ? &shown[index] : nullptr;
  }
  const auto is_meant = [&](const execute::CudaDevice& one) {
    return !word.empty() && one.uuid.starts_with(word);
  };
  const auto found = std::ranges::find_if(shown, is_meant);
  return std::ranges::count_if(shown, is_meant) == 1 ? &*found : nullptr;
}

std::string names_of(const std::vector<execute::CudaDevice>& shown) {
  std::string text;
  for (size_t i = 0; i < shown.size(); ++i) {
    text += (i == 0 ? "" : ", ") + std::to_string(i) + " (" + shown[i].uuid + ", " + shown[i].name +
            ")";
  }
  return text;
}

}  // namespace

Result<std::vector<execute::CudaDevice>> chosen_devices(
    const std::string& names, const std::vector<execute::CudaDevice>& shown) {
  std::vector<execute::CudaDevice> chosen;
  if (names == kAllDevices) {
    std::ranges::copy_if(shown, std::back_inserter(chosen),
                         [&](const auto& one) { return are_alike(one, shown.front()); });
    return chosen;
  }
  std::istringstream words(names + ",");
  for (std::string word; std::getline(words, word, ',');) {
    const execute::CudaDevice* device = device_named(word, shown);
    if (device == nullptr) {
      return Error{ErrorCode::kInvalidInput, "--devices: no one device is called \"" + word +
                                                 "\"; there are " + names_of(shown)};
    }
    if (std::ranges::find(chosen, *device) == chosen.end()) chosen.push_back(*device);
    if (are_alike(*device, chosen.front())) continue;
    return Error{ErrorCode::kInvalidInput,
                 "--devices: " + device->name + " is not like " + chosen.front().name +
                     "; give devices of one kind, and start another musacoder for the others"};
  }
  return chosen;
}

execute::JudgeOptions judge_options(const task::Correctness& correctness, const Machine& machine,
                                    const Options& options) {
  return {correctness, machine.cost_max, machine.bytes_max, options.timing.tf32};
}

task::Protocol protocol_of(const Options& options, const Device* device, const std::string& policy,
                           const task::Correctness& correctness) {
  task::Protocol protocol{.policy = policy, .correctness = correctness, .strict = options.strict};
  protocol.tf32 = options.timing.tf32;
  protocol.language = options.language;
  if (device == nullptr) return protocol;
  protocol.device = device->id;
  protocol.race_check = options.race_check == RaceCheckMode::kOn;
  if (!options.timing.enabled) return protocol;
  protocol.timing = options.timing.is_quick ? "quick" : "full";
  protocol.baseline = options.timing.baseline;
  protocol.compile_mode = options.timing.compile_mode;
  return protocol;
}

// The folder for Python's bytecode where PyTorch has none beside its sources, as in many images:
// its import then compiles 1,500 modules, which takes 4 of 6 s.  Empty where PyTorch has it.
std::filesystem::path bytecode_directory(const compile::PyTorch& pytorch) {
  std::error_code error;
  for (const auto& file :
       std::filesystem::directory_iterator(pytorch.root / "__pycache__", error)) {
    if (file.path().filename().string().starts_with("__init__.")) return {};
  }
  return cache_directory() / "bytecode";
}

execute::ZygoteOptions zygote_options(const Machine& machine, execute::Roles roles) {
  execute::ZygoteOptions options;
  options.roles = roles;
  options.python = machine.pytorch.python;
  options.harness = machine.layout.share("python/harness");
  options.sandbox_lib = machine.layout.library("libmc_sandbox.so");
  options.bytecode = bytecode_directory(machine.pytorch);
  options.arguments = {"--device", task::to_string(machine.backend)};
  std::ranges::copy(machine.arguments, std::back_inserter(options.arguments));
  if (roles == execute::Roles::kCandidates) {
    std::ranges::copy(machine.candidates_arguments, std::back_inserter(options.arguments));
  }
  options.environment = machine.environment;
  if (roles == execute::Roles::kCandidates) {
    std::ranges::copy(machine.candidates_environment, std::back_inserter(options.environment));
  }
  return options;
}

std::vector<std::string> device_nodes(const char* folder, std::string_view prefix) {
  std::vector<std::string> nodes;
  std::error_code failure;
  for (const auto& entry : std::filesystem::directory_iterator(folder, failure)) {
    const std::string name = entry.path().filename().string();
    if (name.starts_with(prefix) && entry.is_character_file(failure)) {
      nodes.push_back(entry.path().string());
    }
  }
  std::ranges::sort(nodes);
  return nodes;
}

// Both names are links to the one library: libcudart.so.13, and libcuda.so.1 for PyTorch's NVRTC.
void add_cuda_client(Machine& machine, const std::filesystem::path& client) {
  const std::filesystem::path folder = client.parent_path();
  std::error_code failure;
  std::filesystem::create_symlink(client.filename(), folder / "libcuda.so.1", failure);
  machine.candidates_arguments.insert(machine.candidates_arguments.end(),
                                      {"--client-lib", client.string()});
  machine.candidates_environment = {"LD_LIBRARY_PATH=" + folder.string(),
                                    "LD_PRELOAD=libcudart.so.13:libcuda.so.1"};
}

Status set_toolchain(Machine& machine, compile::CudaRuntime runtime) {
  MC_CHECK(machine.toolchain == nullptr);
  MC_TRY(const uint64_t bytes_max, compile::artifact_bytes_max(), "set-up");
  machine.toolchain = std::make_unique<compile::CudaToolchain>(
      std::move(runtime), cache_directory() / "artifacts", bytes_max);
  return ok();
}

task::Backend best_backend(const std::filesystem::path& python) {
  const auto pytorch = pytorch_of(python);
  if (!pytorch) return kCpuBackend.name;
  const auto best = std::ranges::find_if(
      backends(), [&](const Backend* backend) { return backend->is_here(*pytorch); });
  MC_CHECK(best != backends().end());  // The CPU backend is available everywhere.
  return (*best)->name;
}

std::optional<task::Backend> backend_named(std::string_view name) {
  for (const Backend* backend : backends()) {
    const bool is_its_device = backend->knows_architecture(name);
    if (is_its_device || task::to_string(backend->name) == name) return backend->name;
  }
  return std::nullopt;
}

std::string backend_names() {
  std::string names = "auto";
  for (const Backend* backend : backends()) names += std::string(", ") + to_string(backend->name);
  return names;
}

}  // namespace mc::eval
