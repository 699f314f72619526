// SPDX-License-Identifier: Apache-2.0
#include "forge/templates.h"

#include <algorithm>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "forge/text.h"

namespace mc::forge {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kFileBytesMax = 1 << 18;
constexpr std::string_view kLaunch = "// Launch.\n";

// Rejects sites without a name or an end, and holes and sections without an end, which would never
// be filled.
Status check_marks(std::string_view text) {
  int depth = 0;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text.substr(i).starts_with("[[")) {
      const size_t bar = text.find('|', i);
      if (bar == std::string_view::npos || bar > text.find("]]", i)) {
        return invalid("kernel.cu: a \"[[\" has no name and \"|\"");
      }
      ++depth;
      i = bar;
    } else if (depth > 0 && text.substr(i).starts_with("]]")) {
      --depth;
      ++i;
    }
  }
  if (depth > 0) return invalid("kernel.cu: a \"[[\" has no \"]]\"");
  for (size_t i = text.find("{{"); i != std::string_view::npos; i = text.find("{{", i + 2)) {
    const size_t end = text.find("}}", i);
    if (end == std::string_view::npos) return invalid("kernel.cu: a \"{{\" has no \"}}\"");
    if (text.substr(i + 2, 1) != "#") continue;
    const std::string close = fmt::format("{{{{/{}}}}}", text.substr(i + 3, end - i - 3));
    if (text.find(close, end) == std::string_view::npos) {
      return invalid("kernel.cu: a section has no " + close);
    }
  }
  return ok();
}

// Replaces "[[guard|text]]" by the marks of a site.  REQUIRES: check_marks() succeeded.
std::string marked(std::string_view text) {
  std::string made;
  int depth = 0;
  for (size_t i = 0; i < text.size();) {
    if (text.substr(i).starts_with("[[")) {
      const size_t bar = text.find('|', i);
      made.append("\x01").append(text.substr(i + 2, bar - i - 2)).append("\x02");
      ++depth;
      i = bar + 1;
    } else if (depth > 0 && text.substr(i).starts_with("]]")) {
      made += '\x03';
      --depth;
      i += 2;
    } else {
      made += text[i++];
    }
  }
  return made;
}

Result<Fault> read_fault(const Json& json) {
  Fault fault;
  fault.site = json.value("site", "");
  fault.kind = json.at("kind");
  fault.matches = json.value("matches", "");
  fault.becomes = json.value("becomes", "");
  fault.expected = json.value("expected", "wrong");
  fault.cause = json.at("cause");
  fault.fix = json.value("fix", "Use $.");
  if (json.contains("when")) {
    MC_TRY(fault.when, parse_expr(json["when"].get<std::string>()), fault.kind);
  }
  return fault;
}

Result<std::vector<Fault>> read_faults(const Json& list) {
  std::vector<Fault> faults;
  for (const Json& json : list) {
    MC_TRY(Fault fault, read_fault(json), "faults");
    faults.push_back(std::move(fault));
  }
  return faults;
}

// A template's faults, with keys "site kind"; missing members are taken from the shared faults.
Result<std::vector<Fault>> read_faults_of_template(const Json& own, const Json& shared) {
  Json list = Json::array();
  for (const auto& [name, members] : own.items()) {
    const size_t space = name.find(' ');
    if (space == std::string::npos)
      return invalid("a fault's name is its site and kind, not " + name);
    Json fault = shared.value(name, Json::object());
    fault.update(members);
    fault["site"] = name.substr(0, space);
    fault["kind"] = name.substr(space + 1);
    list.push_back(std::move(fault));
  }
  return read_faults(list);
}

// The variant's values; for each number T, {{T-1}} is defined too.
std::map<std::string, std::string> values_of(const Json& variant) {
  auto values = variant.get<std::map<std::string, std::string>>();
  for (const auto& [name, value] : variant.items()) {
    const auto text = value.get<std::string>();
    constexpr size_t kDigitsMax = 9;
    const bool is_number = !text.empty() && text.size() <= kDigitsMax &&
                           text.find_first_not_of("0123456789") == std::string::npos;
    if (is_number) values[name + "-1"] = std::to_string(std::stoi(text) - 1);
  }
  return values;
}

Result<Walk> read_walk(const std::string& name) {
  if (name == "elements") return Walk::kElements;
  if (name == "rows") return Walk::kRows;
  if (name == "tiles") return Walk::kTiles;
  if (name == "scans") return Walk::kScans;
  return invalid("\"walk\" is elements, rows, tiles or scans, not " + name);
}

Status read_template(const fs::path& folder, const Json& shared_faults,
                     std::vector<Template>& templates) {
  MC_TRY(const std::string manifest, read_file(folder / "manifest.json", kFileBytesMax),
         "manifest");
  MC_TRY(const std::string text, read_file(folder / "kernel.cu", kFileBytesMax), "kernel");
  const Json json = Json::parse(manifest, nullptr, true, true);
  Template made;
  made.name = folder.filename().string();
  MC_TRY(made.walk, read_walk(json.at("walk")), "walk");
  for (const std::string need : json.value("needs", Json::array())) made.needs.insert(need);
  made.feature = json.at("feature");
  made.combines = json.value("combines", std::vector<std::string>());
  if (json.contains("limit")) {
    MC_TRY(made.limit, parse_expr(json["limit"].get<std::string>()), "limit");
  }
  made.plan = json.at("plan");
  made.check = json.value("check", "");
  made.names = json.value("names", std::map<std::string, std::string>());
  for (const auto& [name, formula] : json.at("cost").items()) {
    MC_TRY(made.cost[name], parse_expr(formula.get<std::string>()), "cost");
  }
  made.buffers = json.value("buffers", std::vector<std::string>());
  MC_TRY(made.faults, read_faults_of_template(json.at("faults"), shared_faults), "faults");
  const size_t host = text.find(kLaunch);
  const size_t begin = text.find('\n') + 1;  // The licence line is not a part of kernels.
  if (host == std::string::npos) return invalid("kernel.cu has no line \"// Launch.\"");
  const std::string parts[] = {text.substr(begin, host - begin),
                               text.substr(host + kLaunch.size())};
  for (const std::string& part : parts) MC_TRY_VOID(check_marks(part), "marks");
  made.device = marked(parts[0]);
  made.host = marked(parts[1]);
  for (const auto& [variant, values] : json.at("variants").items()) {
    made.variant = variant;
    made.values = values_of(values);
    templates.push_back(made);
    Template& own = templates.back();
    for (const auto& [name, value] : own.values) {
      own.device = substituted(std::move(own.device), "{{" + name + "}}", value);
      own.host = substituted(std::move(own.host), "{{" + name + "}}", value);
      own.plan = substituted(std::move(own.plan), "{{" + name + "}}", value);
      own.check = substituted(std::move(own.check), "{{" + name + "}}", value);
    }
  }
  return ok();
}

Result<std::vector<fs::path>> folders_in(const fs::path& folder) {
  std::vector<fs::path> folders;
  std::error_code failure;
  for (const auto& entry : fs::directory_iterator(folder, failure)) {
    if (entry.is_directory()) folders.push_back(entry.path());
  }
  std::ranges::sort(folders);  // Sorted, because a directory's order differs between machines.
  if (folders.empty()) return invalid(folder.string() + " holds no templates");
  return folders;
}

size_t line_begin(std::string_view text, size_t at) {
  return at == 0 ? 0 : text.rfind('\n', at - 1) + 1;
}

bool is_blank(std::string_view text) { return text.find_first_not_of(' ') == std::string::npos; }

// A hole that is alone on its line gives whole lines with the same indentation.
void append_hole(std::string& made, std::string value, std::string_view rest) {
  const size_t begin = line_begin(made, made.size());
  const bool is_alone = is_blank(std::string_view(made).substr(begin)) && rest.starts_with("\n");
  if (!is_alone) {
    made += value;
    return;
  }
  const size_t blanks = made.size() - begin;
  made.resize(begin);
  if (value.ends_with("\n")) value.pop_back();
  made += value.empty() ? "" : indented(value, blanks);
}

}  // namespace

Result<TemplateLibrary> load_templates(const fs::path& folder) {
  TemplateLibrary library;
  MC_TRY(const std::vector<fs::path> folders, folders_in(folder), "templates");
  try {
    MC_TRY(const std::string text, read_file(folder / "faults.json", kFileBytesMax), "faults");
    const Json faults = Json::parse(text);
    MC_TRY(library.faults, read_faults(faults.at("of_formulas")), "faults.json");
    for (const fs::path& path : folders) {
      MC_TRY_VOID(read_template(path, faults.at("of_templates"), library.templates), path.string());
    }
  } catch (const Json::exception& exception) {
    return invalid(folder.string() + ": " + exception.what());
  }
  return library;
}

std::string filled(std::string_view text, const Filling& filling) {
  std::string made;
  size_t repetition = 0;
  const std::function<void(std::string_view)> fill = [&](std::string_view part) {
    for (size_t i = 0; i < part.size();) {
      const size_t open = part.find("{{", i);
      made += part.substr(i, open - i);
      if (open == std::string_view::npos) return;
      const size_t close = part.find("}}", open);
      const std::string name(part.substr(open + 2, close - open - 2));
      i = close + 2;
      if (!name.starts_with("#")) {
        std::string value = filling.hole(name, repetition);
        const bool is_empty = value.empty();
        const size_t begin = line_begin(made, made.size());
        const bool is_alone =
            is_blank(std::string_view(made).substr(begin)) && part.substr(i).starts_with("\n");
        append_hole(made, std::move(value), part.substr(i));
        if (is_empty && is_alone) ++i;
        continue;
      }
      const std::string end = "{{/" + name.substr(1) + "}}";
      const size_t stop = part.find(end, i);
      std::string_view body = part.substr(i, stop - i);
      i = std::min(stop + end.size(), part.size());
      // Lines that contain only the section's marks are removed.
      if (body.starts_with("\n")) {
        body.remove_prefix(1);
        made.resize(line_begin(made, made.size()));
        body = body.substr(0, line_begin(body, body.size()));
        if (part.substr(i).starts_with("\n")) ++i;
      }
      const size_t outer = repetition;
      const size_t count = filling.repeat(name.substr(1));
      for (size_t k = 0; k < count; ++k) {
        if (count > 1 || name == "#passes" || name == "#reducers") repetition = k;
        fill(body);
      }
      repetition = outer;
    }
  };
  fill(text);
  return made;
}

}  // namespace mc::forge
