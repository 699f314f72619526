// SPDX-License-Identifier: Apache-2.0
#include "forge/musa_rows.h"

#include <algorithm>
#include <regex>
#include <set>
#include <utility>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/check.h"
#include "forge/variants.h"
#include "musify/port.h"

namespace mc::forge {
namespace {

using Json = nlohmann::ordered_json;

constexpr std::string_view kFence = "```python\n";
constexpr std::string_view kFenceEnd = "```\n";
constexpr const char* kPortRequest =
    "Port this answer from CUDA to MUSA. List the names that change.\n";

std::string dumped(const Json& row) {
  return row.dump(-1, ' ', false, Json::error_handler_t::replace);
}

// The number of lines before the kernels' source; 0 if there is no source.
int64_t lines_before_source(std::string_view text) {
  const size_t source = text.find("r\"\"\"");
  return source == std::string_view::npos ? 0 : std::ranges::count(text.substr(0, source), '\n');
}

// Adds `shift` to the line numbers of an answer that a text mentions ("Line 8:", "candidate:8").
std::string with_lines_shifted(const std::string& text, int64_t shift) {
  static const std::regex kLine("(^Line |\\ncandidate:|\\nLine | candidate:)(\\d+)");
  std::string made;
  auto last = text.cbegin();
  for (std::sregex_iterator it(text.begin(), text.end(), kLine), end; it != end; ++it) {
    made.append(last, (*it)[2].first);
    made += std::to_string(std::stoll((*it)[2]) + shift);
    last = (*it)[2].second;
  }
  return made.append(last, text.cend());
}

}  // namespace

MusaRows::MusaRows(musify::Rules to_musa, musify::Rules to_cuda)
    : to_musa_(std::move(to_musa)), to_cuda_(std::move(to_cuda)) {}

Result<MusaRows> MusaRows::create(const std::filesystem::path& folder) {
  MC_TRY(auto to_musa, musify::load_rules(folder, musify::Target::kMusa), "rules");
  MC_TRY(auto to_cuda, musify::load_rules(folder, musify::Target::kCuda), "rules");
  return MusaRows(std::move(to_musa), std::move(to_cuda));
}

std::optional<std::string> MusaRows::module_of(std::string_view cuda) const {
  const auto there = musify::port_source(cuda, musify::Language::kPython, to_musa_, {});
  if (!there.refusals.empty() || !there.remnants.empty()) return std::nullopt;
  if (musify::first_loss(cuda, there, musify::Language::kPython, to_cuda_, {})) return std::nullopt;
  return there.text;
}

// Ports code in fences, and names in the text between them.  The ported answer has more lines
// before its source.
std::optional<std::string> MusaRows::text_of(std::string_view cuda, int64_t& shift) const {
  std::string musa;
  for (size_t at = 0; at < cuda.size();) {
    const size_t fence = std::min(cuda.find(kFence, at), cuda.size());
    musa += with_lines_shifted(musify::port_message(cuda.substr(at, fence - at), to_musa_), shift);
    if (fence == cuda.size()) break;
    const size_t begin = fence + kFence.size();
    const size_t end = std::min(cuda.find(kFenceEnd, begin), cuda.size());
    const auto module = module_of(cuda.substr(begin, end - begin));
    if (!module) return std::nullopt;
    const std::string_view before = cuda.substr(begin, end - begin);
    if (lines_before_source(before) > 0) {
      shift = lines_before_source(*module) - lines_before_source(before);
    }
    musa.append(kFence).append(*module);
    at = end;
    if (cuda.substr(at).starts_with(kFenceEnd)) {
      musa += kFenceEnd;
      at += kFenceEnd.size();
    }
  }
  return musa;
}

std::optional<std::string> MusaRows::object_of(std::string_view cuda) const {
  auto variants = read_variants(cuda);
  MC_CHECK(variants.has_value());
  for (Variant* one : all_of(*variants)) {
    const auto module = module_of(one->code);
    if (!module) return std::nullopt;
    one->code = *module;
    for (std::string& line : one->reason) line = musify::port_message(line, to_musa_);
  }
  return variants_text(*variants);
}

std::optional<std::string> MusaRows::port(const std::string& row) const {
  Json json = Json::parse(row);
  json["id"] = json["id"].get<std::string>() + "-musa";
  int64_t shift = 0;
  for (const char* member : {"messages", "prompt"}) {
    const auto messages = json.find(member);
    if (messages == json.end()) continue;
    for (Json& message : *messages) {
      const bool is_object = json.value("kind", "") == "variants" && message["role"] == "assistant";
      const std::string cuda = message["content"];
      const auto text = is_object ? object_of(cuda) : text_of(cuda, shift);
      if (!text) return std::nullopt;
      message["content"] = *text;
    }
  }
  json["dialect"] = "musa";
  for (const char* member : {"extra_info", "metadata"}) {
    if (json.contains(member)) json[member]["dialect"] = "musa";
  }
  return dumped(json);
}

std::optional<std::string> MusaRows::lesson(const std::string& row) const {
  Json json = Json::parse(row);
  if (json.value("kind", "") != "generation") return std::nullopt;
  const std::string answer = json["messages"].back()["content"];
  const size_t begin = answer.rfind(kFence);
  if (begin == std::string::npos || !answer.ends_with(kFenceEnd)) return std::nullopt;
  const std::string cuda = answer.substr(begin + kFence.size(),
                                         answer.size() - begin - kFence.size() - kFenceEnd.size());
  const auto musa = module_of(cuda);
  if (!musa) return std::nullopt;
  std::string said = "Names that change:\n";
  std::set<std::string> seen;
  const auto port = musify::port_source(cuda, musify::Language::kPython, to_musa_, {});
  for (const musify::Change& change : port.changes) {
    if (change.before.empty() || change.after.empty() || !seen.insert(change.before).second) {
      continue;
    }
    said += fmt::format("{} -> {}\n", change.before, change.after);
  }
  json["id"] = json["id"].get<std::string>() + "-port";
  json["kind"] = "port";
  json["messages"] =
      Json::array({{{"role", "user"}, {"content", kPortRequest + answer.substr(begin)}},
                   {{"role", "assistant"},
                    {"content", said + std::string(kFence) + *musa + std::string(kFenceEnd)}}});
  json["dialect"] = "musa";
  return dumped(json);
}

}  // namespace mc::forge
