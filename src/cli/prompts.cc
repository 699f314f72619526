// SPDX-License-Identifier: Apache-2.0
#include "cli/prompts.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "core/file.h"
#include "eval/machine.h"
#include "musify/port.h"
#include "task/musa_device.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kExampleBytesMax = 1 << 20;
constexpr int64_t kKiB = 1 << 10;

// The sizes of the software device as candidates see them, those of an H100
// (device/ptx_driver/description.h); for MUSA, with the known differences.
std::string software_facts(const eval::Options& judging) {
  auto device = task::described(judging.dialect, judging.musa_architecture);
  const bool has_own_memory = device.contains("shared_memory_per_block");
  device.insert({{"multi_processor_count", 132},
                 {"max_threads_per_multi_processor", 2048},
                 {"shared_memory_per_block", 48 * kKiB}});
  return fmt::format(
      "- a GPU in software of {} multiprocessors; nothing is timed\n"
      "- {} threads a warp, at most {} threads a multiprocessor\n"
      "- shared memory: {} KiB a block{}",
      device["multi_processor_count"],
      task::warp_threads(judging.dialect, judging.musa_architecture),
      device["max_threads_per_multi_processor"], device["shared_memory_per_block"] / kKiB,
      has_own_memory ? "" : ", 227 KiB where the kernel's attribute asks for it");
}

Result<std::string> device_facts(const eval::Options& judging) {
  MC_TRY(const auto device, eval::backend_of(judging.backend).device(), "device");
  return device ? facts_of(*device) : software_facts(judging);
}

Result<std::string> ported(const std::string& text, const std::string& architecture,
                           const Layout& layout) {
  MC_TRY(const auto rules, musify::load_rules(layout.share("data/musify"), musify::Target::kMusa),
         "example");
  const musify::PortOptions options{.architecture = architecture, .project = {}};
  return musify::port_source(text, musify::Language::kPython, rules, options).text;
}

// The path of a template.
Result<fs::path> find_template(const std::string& name, const Layout& layout) {
  const fs::path built_in = layout.share("data/prompts") / (name + ".txt");
  std::error_code ignored;
  if (name.find('/') == std::string::npos && fs::is_regular_file(built_in, ignored)) {
    return built_in;
  }
  if (fs::is_regular_file(name, ignored)) return fs::path(name);
  return invalid(fmt::format("{} is no file, and none of {}", name, kPromptNames));
}

}  // namespace

Status apply_prompt_template(const std::string& name, const Layout& layout,
                             const eval::Options& judging, std::vector<sample::Item>& items) {
  if (name == kCardPrompt) return ok();
  MC_TRY(const fs::path path, find_template(name, layout), "--prompt-template");
  const bool is_triton = judging.language == task::kTriton;
  const bool is_musa = judging.dialect == task::Dialect::kMusa && !is_triton;
  const auto example = [&](const char* file) -> Result<std::string> {
    MC_TRY(const std::string text, read_file(layout.share("data/prompts") / file, kExampleBytesMax),
           "example");
    return text.substr(text.find('\n') + 1);  // The first line is the licence.
  };
  const sample::TemplateValues values = {
      {"platform",
       [&] {
         return Result<std::string>(is_triton ? "Triton" : is_musa ? "MUSA" : "CUDA");
       }},
      {"rules",
       [&] {
         return Result<std::string>(
             sample::prompt_rules(judging.dialect, judging.language, judging.musa_architecture));
       }},
      {"example_task", [&] { return example("example_task.py"); }},
      {"example",
       [&]() -> Result<std::string> {
         const char* file = is_triton ? "example_triton.py" : "example.py";
         MC_TRY(std::string text, example(file), "--prompt-template");
         return is_musa ? ported(text, judging.musa_architecture, layout) : text;
       }},
      {"device", [&] { return device_facts(judging); }}};
  return sample::apply_template(path, values, items);
}

std::string facts_of(const execute::CudaDevice& device) {
  constexpr double kGiB = 1 << 30;
  return fmt::format(
      "- {}, compute capability {}.{}, {} multiprocessors, 32 threads a warp\n"
      "- shared memory: at most {} KiB a block\n"
      "- L2 cache: {} MiB\n"
      "- memory: {:.0f} GiB, at most {:.0f} GB/s",
      device.name, device.major, device.minor, device.multiprocessors,
      device.shared_bytes_max / kKiB, device.l2_bytes / (kKiB * kKiB),
      static_cast<double>(device.bytes) / kGiB, device.bandwidth_gbs);
}

}  // namespace mc::cli
