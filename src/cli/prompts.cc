// SPDX-License-Identifier: Apache-2.0
#include "cli/prompts.h"

#include <filesystem>
#include <system_error>

#include <fmt/format.h>

#include "core/file.h"
#include "eval/machine.h"
#include "eval/musa_device.h"
#include "musify/port.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;

constexpr size_t kExampleBytesMax = 1 << 20;
constexpr int64_t kKiB = 1 << 10;

// The device of the CPU backend, as candidates see it (device/ptx_driver/description.h).
constexpr int kMultiprocessors = 132, kThreadsPerMultiprocessor = 2048;
constexpr int64_t kSharedKiBDefault = 48, kSharedKiBMax = 227;

std::string software_facts(const eval::Options& judging) {
  return fmt::format(
      "- a GPU in software of {} multiprocessors; nothing is timed\n"
      "- {} threads a warp, at most {} threads a multiprocessor\n"
      "- shared memory: {} KiB a block, {} KiB where the kernel's attribute asks for it",
      kMultiprocessors, eval::warp_threads(judging.dialect, judging.musa_architecture),
      kThreadsPerMultiprocessor, kSharedKiBDefault, kSharedKiBMax);
}

Result<std::string> device_facts(const eval::Options& judging) {
  MC_TRY(const auto device, eval::backend_of(judging.backend).device(), "device");
  return device ? facts_of(*device) : software_facts(judging);
}

Result<std::string> ported(const std::string& text, const Layout& layout) {
  MC_TRY(const auto rules, musify::load_rules(layout.share("musify"), musify::Target::kMusa),
         "example");
  return musify::port_source(text, musify::Language::kPython, rules, {}).text;
}

// The template's file.
Result<fs::path> find_template(const std::string& name, const Layout& layout) {
  const fs::path built_in = layout.share("prompts") / (name + ".txt");
  std::error_code ignored;
  if (name.find('/') == std::string::npos && fs::is_regular_file(built_in, ignored)) {
    return built_in;
  }
  if (fs::is_regular_file(name, ignored)) return fs::path(name);
  return Error{ErrorCode::kInvalidInput,
               fmt::format("{} is no file, and none of {}", name, kPromptNames)};
}

}  // namespace

Status apply_prompt_template(const std::string& name, const Layout& layout,
                             const eval::Options& judging, std::vector<sample::Item>& items) {
  if (name == kCardPrompt) return ok();
  MC_TRY(const fs::path path, find_template(name, layout), "--prompt-template");
  const bool is_triton = judging.language == task::kTriton;
  const bool is_musa = judging.dialect == task::Dialect::kMusa && !is_triton;
  const auto example = [&](const char* file) -> Result<std::string> {
    MC_TRY(const std::string text, read_file(layout.share("prompts") / file, kExampleBytesMax),
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
         return Result<std::string>(sample::prompt_rules(judging.dialect, judging.language));
       }},
      {"example_task", [&] { return example("example_task.py"); }},
      {"example",
       [&]() -> Result<std::string> {
         const char* file = is_triton ? "example_triton.py" : "example.py";
         MC_TRY(std::string text, example(file), "--prompt-template");
         return is_musa ? ported(text, layout) : text;
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
