// SPDX-License-Identifier: Apache-2.0
#include "sample/suite.h"

#include <algorithm>
#include <regex>
#include <set>
#include <string_view>
#include <system_error>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "task/musa_device.h"
#include "task/suite.h"

namespace mc::sample {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kItemsMax = 100'000;
constexpr size_t kTemplateBytesMax = 1 << 20;

// ---- Rows ---------------------------------------------------------------------------------------

// The string at a path of member names; "" if it is missing.
std::string text_at(const Json& json, std::initializer_list<const char*> path) {
  const Json* at = &json;
  for (const char* name : path) {
    const auto found = at->is_object() ? at->find(name) : at->end();
    if (!at->is_object() || found == at->end()) return "";
    at = &*found;
  }
  return at->is_string() ? at->get<std::string>() : "";
}

Result<Messages> messages_of(const Json& row) {
  const auto found = row.find("prompt");
  if (found == row.end() || !found->is_array() || found->empty()) {
    return invalid("\"prompt\" is no list of messages");
  }
  Messages out;
  for (const Json& message : *found) {
    out.push_back({text_at(message, {"role"}), text_at(message, {"content"})});
    if (out.back().role.empty() || out.back().content.empty()) {
      return invalid("a message of \"prompt\" lacks \"role\" or \"content\"");
    }
  }
  if (out.back().role != "user") return invalid("the last message of \"prompt\" is not the user's");
  return out;
}

void read_level_and_families(const Json& row, Item& item) {
  const Json info = row.value("extra_info", Json::object());
  if (!info.is_object()) return;
  const auto depth = info.find("depth");
  if (depth != info.end() && depth->is_number_integer()) {
    item.level = fmt::format("depth {}", depth->get<int64_t>());
  }
  const auto families = info.find("families");
  if (families == info.end() || !families->is_array()) return;
  for (const Json& family : *families) {
    if (family.is_string()) item.families.push_back(family.get<std::string>());
  }
}

Result<Item> item_of(const Json& row) {
  Item item;
  item.task.id = text_at(row, {"id"});
  if (item.task.id.empty()) return invalid("\"id\" is missing");
  item.task.name = item.task.id;
  item.task.code = text_at(row, {"reward_model", "ground_truth"});
  if (item.task.code.empty()) return invalid("\"reward_model\".\"ground_truth\" is missing");
  if (item.task.code.size() > task::kTaskBytesMax) return invalid("the task is larger than 1 MiB");
  MC_TRY(item.prompt, messages_of(row), "prompt");
  read_level_and_families(row, item);
  return item;
}

Result<std::vector<Item>> load_rows(const fs::path& path, std::string_view text) {
  std::vector<Item> out;
  std::set<std::string> ids;
  for (size_t number = 1; !text.empty(); ++number) {
    const std::string_view line = text.substr(0, text.find('\n'));
    text.remove_prefix(std::min(text.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = fmt::format("{}: line {}", path.string(), number);
    const Json row = Json::parse(line, nullptr, false);
    if (!row.is_object()) return invalid(place + ": not a JSON object");
    MC_TRY(Item item, item_of(row), place);
    if (!ids.insert(item.task.id).second) {
      return invalid(fmt::format("{}: a second task {}", place, item.task.id));
    }
    if (out.size() == kItemsMax) return invalid(place + ": more than 100000 tasks");
    out.push_back(std::move(item));
  }
  return out;
}

// True if the first line is a row in the forge's format, not in that of KernelBench's data set.
bool holds_rows(std::string_view text) {
  const Json first = Json::parse(text.substr(0, text.find('\n')), nullptr, false);
  return first.is_object() && first.contains("prompt");
}

// ---- Suites of tasks alone ----------------------------------------------------------------------

Item item_of(task::Task task, task::Dialect dialect, const std::string& language,
             const std::string& musa_architecture) {
  Item item;
  item.prompt = generation_prompt(task, dialect, language, musa_architecture);
  const size_t colon = task.id.rfind(':');
  const size_t slash = task.id.rfind('/');
  if (slash != std::string::npos) {
    const bool is_numbered = colon != std::string::npos && colon < slash;
    if (is_numbered) item.level = "level " + task.id.substr(colon + 1, slash - colon - 1);
    if (!is_numbered) item.families.push_back(task.id.substr(0, slash));
  }
  item.task = std::move(task);
  return item;
}

// The rules for MUSA that cannot be seen in a CUDA program.
std::string musa_rules(const std::string& architecture) {
  constexpr int kFirstWithBfloat16 = 220;
  const auto device = task::described(task::Dialect::kMusa, architecture);
  std::string limits =
      fmt::format("warps have {} threads", task::warp_threads(task::Dialect::kMusa, architecture));
  if (const auto bytes = device.find("shared_memory_per_block"); bytes != device.end()) {
    limits += fmt::format(", and a block at most {} KiB of shared memory", bytes->second >> 10);
  }
  const bool has_bfloat16 = task::architecture_number(architecture) >= kFirstWithBfloat16;
  return fmt::format(
      "- The module imports `torch_musa`. Devices are \"musa\", and names of the runtime begin "
      "with "
      "`musa`: CUDA's do not exist.\n"
      "- The device is {0}, for which `extra_musa_cflags=[\"--offload-arch={0}\"]` compiles: {1}.\n"
      "- In C++, tensors of the device are `x.is_privateuseone()`, and its stream is "
      "`c10::musa::getCurrentMUSAStream()` of \"torch_musa/csrc/core/MUSAStream.h\". {2}\n",
      architecture, limits,
      has_bfloat16 ? "Numbers of bfloat16 are `__mt_bfloat16` of <musa_bf16.h>."
                   : "There is no type for bfloat16.");
}

// ---- Templates ----------------------------------------------------------------------------------

struct Part {
  std::string text;
  bool is_task = false;  // True for the position of the task's program.
};

Error unknown(const std::string& name, const TemplateValues& values) {
  std::string known = "{{task}}";
  for (const auto& [other, value] : values) known += fmt::format(", {{{{{}}}}}", other);
  return invalid(fmt::format("{{{{{}}}}} is not known: use {}", name, known));
}

// Splits a template into its texts and the values of its names.
Result<std::vector<Part>> parts_of(const std::string& text, const TemplateValues& values) {
  static const std::regex kName(R"(\{\{\s{0,9}(\w{1,40})\s{0,9}\}\})");
  std::vector<Part> parts;
  size_t from = 0;
  for (std::sregex_iterator name(text.begin(), text.end(), kName), end; name != end; ++name) {
    const auto at = static_cast<size_t>(name->position());
    parts.push_back({text.substr(from, at - from)});
    from = at + static_cast<size_t>(name->length());
    const std::string word = name->str(1);
    const auto found = values.find(word);
    if (word == "task") {
      parts.push_back({"", true});
    } else if (found == values.end()) {
      return unknown(word, values);
    } else {
      MC_TRY(std::string value, found->second(), word);
      parts.push_back({std::move(value)});
    }
  }
  parts.push_back({text.substr(from)});
  if (std::ranges::none_of(parts, &Part::is_task)) {
    return invalid("it has no {{task}}, so all prompts would be equal");
  }
  return parts;
}

}  // namespace

Result<std::vector<Item>> load_bench_suite(const fs::path& path, task::Dialect dialect,
                                           const std::string& language,
                                           const std::string& musa_architecture) {
  std::error_code ignored;
  if (fs::is_regular_file(path, ignored)) {
    const auto text = read_file(path, task::kSuiteBytesMax);
    if (!text) return text.error();
    if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
      return invalid(path.string() + " is empty");
    }
    if (holds_rows(*text)) return load_rows(path, *text);
  }
  auto tasks = task::load_suite(path, "kernelbench");
  if (!tasks) return tasks.error();
  std::vector<Item> out;
  for (task::Task& task : *tasks) {
    out.push_back(item_of(std::move(task), dialect, language, musa_architecture));
  }
  return out;
}

std::string prompt_lines(std::span<const Item> items) {
  std::string out;
  for (const Item& item : items) {
    Json prompt = Json::array();
    for (const Message& message : item.prompt) {
      prompt.push_back({{"role", message.role}, {"content", message.content}});
    }
    const Json row = {{"id", item.task.id}, {"prompt", std::move(prompt)}};
    out += row.dump(-1, ' ', false, Json::error_handler_t::replace) + '\n';
  }
  return out;
}

std::string prompt_rules(task::Dialect dialect, const std::string& language,
                         const std::string& musa_architecture) {
  const bool is_musa = dialect == task::Dialect::kMusa;
  const std::string compiled =
      is_musa ? "`torch_musa.utils.musa_extension.load_inline` (`musa_sources`)"
              : "`torch.utils.cpp_extension.load_inline`";
  const std::string native = is_musa ? "MUSA" : "CUDA";
  const bool is_triton = language == task::kTriton;
  const std::string platform = is_triton ? "Triton" : native;
  const std::string form = is_triton ? "are functions with `@triton.jit`; `forward` launches them"
                                     : fmt::format(
                                           "are {} C++ in a string that is compiled by {}; "
                                           "`forward` calls the functions that it exports",
                                           native, compiled);
  return fmt::format(
      "Rewrite this PyTorch program so that its computation runs in {0} kernels that you write "
      "yourself.\n\n"
      "Answer with one complete Python module in a single ```python block:\n"
      "- It defines `ModelNew`, with the constructor arguments, the parameters and the `forward` "
      "signature of `Model`, and returns the same values.\n"
      "- The kernels {1}.\n"
      "{2}"
      "- `forward` may allocate, view and copy tensors. What computes is in your kernels.\n"
      "- The kernels are right for other sizes than those below, and for any values.\n",
      platform, form, is_musa ? musa_rules(musa_architecture) : "");
}

Messages generation_prompt(const task::Task& task, task::Dialect dialect,
                           const std::string& language, const std::string& musa_architecture) {
  const std::string rules = prompt_rules(dialect, language, musa_architecture);
  return {{"user", fmt::format("{}\n```python\n{}\n```\n", rules, task.code)}};
}

Status apply_template(const fs::path& path, const TemplateValues& values,
                      std::vector<Item>& items) {
  MC_TRY(const std::string text, read_file(path, kTemplateBytesMax), "template");
  MC_TRY(const std::vector<Part> parts, parts_of(text, values), path.string());
  for (Item& item : items) {
    std::string prompt;
    for (const Part& part : parts) prompt += part.is_task ? item.task.code : part.text;
    item.prompt = {{"user", std::move(prompt)}};
  }
  return ok();
}

}  // namespace mc::sample
