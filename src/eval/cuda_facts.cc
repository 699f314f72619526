// SPDX-License-Identifier: Apache-2.0
#include "eval/cuda_facts.h"

#include <cstdlib>
#include <sstream>

#include <fmt/format.h>

#include "compile/cuda_runtime.h"
#include "compile/tool.h"
#include "core/file.h"

namespace mc::eval {
namespace {

namespace fs = std::filesystem;

using Facts = std::vector<Fact>;

constexpr const char* kModuleFile = "/proc/driver/nvidia/version";
constexpr const char* kControlFile = "/dev/nvidiactl";
constexpr CudaVersion kCudaDefault{13,
                                   0};  // The version of the PyTorch that ./run.sh setup installs.

// ---- Detection ----------------------------------------------------------------------------------

// The first word of digits and at least one dot: "NVRM version: … Module  580.159.04  Tue …".
std::string dotted_number(const std::string& text) {
  std::istringstream words(text);
  for (std::string word; words >> word;) {
    const bool is_number = word.find_first_not_of("0123456789.") == std::string::npos;
    if (is_number && word.find('.') != std::string::npos) return word;
  }
  return "";
}

std::optional<Nvcc> nvcc_for(const compile::PyTorch& pytorch) {
  const auto path = compile::find_nvcc(pytorch);
  if (!path) return std::nullopt;
  const auto text = compile::run_tool({path->string(), "--version"});
  const size_t at = text ? text->find(", V") : std::string::npos;
  if (at == std::string::npos) return Nvcc{*path, ""};
  return Nvcc{*path, dotted_number(text->substr(at + 3))};
}

// The directory in which NVIDIA's wheels, which PyTorch's wheels require, install CUPTI.
fs::path find_cupti(const compile::PyTorch& pytorch) {
  const int major = cuda_of(pytorch.version).value_or(kCudaDefault).major;
  const fs::path wheels = pytorch.root.parent_path() / "nvidia";
  const std::string name = fmt::format("libcupti.so.{}", major);
  for (const fs::path& folder : {wheels / fmt::format("cu{}", major), wheels / "cuda_cupti"}) {
    if (path_exists(folder / "lib" / name)) return folder / "lib" / name;
  }
  return {};
}

// ---- Description --------------------------------------------------------------------------------

Fact present(std::string name, std::string detail) {
  return {"GPU", std::move(name), State::kPresent, std::move(detail), ""};
}

Fact absent(std::string name, std::string detail, std::string remedy) {
  return {"GPU", std::move(name), State::kMissing, std::move(detail), std::move(remedy)};
}

CudaVersion cuda_wanted(const GpuFindings& found) {
  const auto built_for = found.pytorch ? cuda_of(found.pytorch->version) : std::nullopt;
  return built_for.value_or(kCudaDefault);
}

// A package of NVIDIA's repository, at the version that PyTorch is built for.
std::string install(const char* package, CudaVersion version) {
  return fmt::format(
      "apt-get install {}-{}-{} (after adding https://developer.nvidia.com/cuda-downloads), "
      "or set CUDA_HOME",
      package, version.major, version.minor);
}

// The install command for the wheels of the compiler and its dependencies; those before CUDA 13
// have other names.
std::string install_toolkit(const GpuFindings& found, CudaVersion version) {
  if (version.major < 13) return install("cuda-toolkit", version);
  const std::string python = found.pytorch ? found.pytorch->python.string() : "python3";
  return fmt::format(
      "{} -m pip install 'cuda-toolkit[nvcc,nvvm,crt,cccl,cudart]=={}.{}.*' "
      "for the cpu backend alone; for a GPU {}",
      python, version.major, version.minor, install("cuda-toolkit", version));
}

// The driver's library may exist without its kernel module's files, as in some virtual machines.
bool has_driver(const GpuFindings& found) {
  return found.has_driver || found.cuda || found.cuda.error().code != ErrorCode::kNotFound;
}

Fact driver_fact(const GpuFindings& found) {
  if (!has_driver(found)) {
    return absent("driver", "no NVIDIA driver: the CPU backend is used",
                  "where there is a GPU: https://www.nvidia.com/drivers; in a container: "
                  "docker run --gpus all");
  }
  const std::string version = found.driver_version.empty() ? "present" : found.driver_version;
  if (!found.cuda) return present("driver", version);
  const std::string detail = fmt::format("{}, for CUDA {}.{} and older", version,
                                         found.cuda->cuda_major, found.cuda->cuda_minor);
  const int wanted = cuda_wanted(found).major;
  if (found.cuda->cuda_major >= wanted) return present("driver", detail);
  return absent("driver", fmt::format("{}, but PyTorch is built for {}", detail, wanted),
                fmt::format("a driver for CUDA {}: https://www.nvidia.com/drivers", wanted));
}

Fact no_device_fact(const GpuFindings& found) {
  const Error& error = found.cuda.error();
  const std::string detail = error.message + ": the CPU backend is used";
  if (error.code == ErrorCode::kTimeout) {
    return absent("devices", detail, "look for NVRM in what dmesg says, then restart the machine");
  }
  if (error.code == ErrorCode::kUnavailable) {
    return absent("devices", detail,
                  "after an update of the driver: restart the machine; "
                  "in a container: restart that");
  }
  if (found.hides_devices) return absent("devices", detail, "unset CUDA_VISIBLE_DEVICES");
  return absent("devices", detail, "in a container: docker run --gpus all");
}

void add_devices(const GpuFindings& found, Facts& facts) {
  if (!found.cuda) {
    if (has_driver(found)) facts.push_back(no_device_fact(found));
    return;
  }
  constexpr double kGiB = 1 << 30;
  int index = 0;
  for (const execute::CudaDevice& device : found.cuda->devices) {
    facts.push_back(
        present(fmt::format("device {}", index++),
                fmt::format("{}, compute capability {}.{}, {:.1f} GiB", device.name, device.major,
                            device.minor, static_cast<double>(device.bytes) / kGiB)));
  }
}

Fact nvcc_fact(const GpuFindings& found) {
  const CudaVersion wanted = cuda_wanted(found);
  const std::string remedy = install_toolkit(found, wanted);
  if (!found.nvcc) {
    return absent("nvcc", "not in $CUDA_HOME/bin, PATH, /usr/local/cuda/bin or beside PyTorch",
                  remedy);
  }
  const std::string detail = fmt::format("{}, {}", found.nvcc->version, found.nvcc->path.string());
  if (found.nvcc->version.starts_with(std::to_string(wanted.major) + ".")) {
    return present("nvcc", detail);
  }
  return absent("nvcc", fmt::format("{}, but PyTorch is built for {}", detail, wanted.major),
                remedy);
}

Fact pytorch_fact(const GpuFindings& found) {
  if (!found.pytorch) return absent("PyTorch for CUDA", "no PyTorch", "see Python above");
  const std::string& version = found.pytorch->version;
  if (const auto cuda = cuda_of(version)) {
    return present("PyTorch for CUDA",
                   fmt::format("{}, built for CUDA {}.{}", version, cuda->major, cuda->minor));
  }
  return absent("PyTorch for CUDA", version + " is not built for CUDA",
                fmt::format("{} -m pip install --force-reinstall torch=={}",
                            found.pytorch->python.string(), version.substr(0, version.find('+'))));
}

Fact sanitizer_fact(const GpuFindings& found) {
  if (!found.sanitizer.empty()) return present("compute-sanitizer", found.sanitizer.string());
  Fact fact =
      absent("compute-sanitizer",
             "not in $CUDA_HOME/bin, PATH or /usr/local/cuda/bin; eval --strict does without",
             install("cuda-sanitizer", cuda_wanted(found)));
  fact.state = State::kOptional;
  return fact;
}

Fact cupti_fact(const GpuFindings& found) {
  if (!found.cupti.empty()) return present("libcupti", found.cupti.string());
  const CudaVersion wanted = cuda_wanted(found);
  const std::string python = found.pytorch ? found.pytorch->python.string() : "python3";
  // Package names before CUDA 13 contain the version.
  const char* suffix = wanted.major < 13 ? "-cu12" : "";
  return absent("libcupti", "not beside PyTorch",
                fmt::format("{} -m pip install 'nvidia-cuda-cupti{}=={}.{}.*'", python, suffix,
                            wanted.major, wanted.minor));
}

}  // namespace

std::optional<CudaVersion> cuda_of(const std::string& pytorch_version) {
  const size_t at = pytorch_version.find("+cu");
  if (at == std::string::npos) return std::nullopt;
  const std::string digits = pytorch_version.substr(at + 3);
  const bool is_number = digits.find_first_not_of("0123456789") == std::string::npos;
  if (!is_number || digits.size() < 2 || digits.size() > 4) return std::nullopt;
  const int number = std::stoi(digits);
  return CudaVersion{number / 10, number % 10};
}

GpuFindings look_for_gpu(const compile::PyTorch* pytorch) {
  GpuFindings found;
  std::error_code failure;
  const auto module = read_file(kModuleFile, 1 << 16);
  found.has_driver = module.has_value() || fs::exists(kControlFile, failure);
  if (module) found.driver_version = dotted_number(*module);
  found.cuda = execute::query_cuda_driver();
  found.hides_devices = std::getenv("CUDA_VISIBLE_DEVICES") != nullptr;
  found.nvcc = nvcc_for(pytorch == nullptr ? compile::PyTorch() : *pytorch);
  found.sanitizer = compile::find_sanitizer(
      found.nvcc ? found.nvcc->path.parent_path().parent_path() : fs::path());
  if (pytorch != nullptr) {
    found.pytorch = *pytorch;
    found.cupti = find_cupti(*pytorch);
  }
  return found;
}

std::vector<Fact> gpu_facts(const GpuFindings& found) {
  Facts facts = {driver_fact(found)};
  add_devices(found, facts);
  facts.push_back(nvcc_fact(found));
  facts.push_back(pytorch_fact(found));
  facts.push_back(sanitizer_fact(found));
  facts.push_back(cupti_fact(found));
  return facts;
}

}  // namespace mc::eval
