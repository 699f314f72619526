// SPDX-License-Identifier: Apache-2.0
#include "musify/rules.h"

#include <algorithm>
#include <cstddef>
#include <map>

#include <nlohmann/json.hpp>

#include "core/file.h"

namespace mc::musify {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kRulesBytesMax = std::size_t{1} << 20;

const std::map<std::string, Rule::Kind>& kinds() {
  static const std::map<std::string, Rule::Kind> kKinds = {
      {"header", Rule::Kind::kHeader},       {"quoted_header", Rule::Kind::kQuotedHeader},
      {"threshold", Rule::Kind::kThreshold}, {"phrase", Rule::Kind::kPhrase},
      {"prefix", Rule::Kind::kPrefix},       {"import", Rule::Kind::kImport},
      {"keyword", Rule::Kind::kKeyword},     {"device", Rule::Kind::kDevice},
      {"string", Rule::Kind::kString},       {"flag", Rule::Kind::kFlag}};
  return kKinds;
}

const std::map<std::string, Rule::Next>& nexts() {
  static const std::map<std::string, Rule::Next> kNexts = {
      {"any", Rule::Next::kAny}, {"capital", Rule::Next::kCapital}, {"small", Rule::Next::kSmall}};
  return kNexts;
}

// Reads members and stores the first error; the values after an error are not used.
class Reader {
 public:
  explicit Reader(Target target) : target_(target) {}
  const std::string& problem() const { return problem_; }

  void expect_members(const Json& json, const std::string& path,
                      const std::set<std::string>& known) {
    if (!json.is_object()) return fail(path + " is missing or no object");
    for (const auto& [name, value] : json.items()) {
      if (!known.contains(name)) fail(path + " has an unknown member \"" + name + "\"");
    }
  }

  std::string text(const Json& json, const std::string& path, const char* name) {
    const Json member = json.value(name, Json());
    if (member.is_string()) return member;
    fail(path + "." + name + " is missing or no text");
    return "";
  }

  Json list(const Json& json, const std::string& path, const char* name) {
    Json member = json.value(name, Json());
    if (member.is_array()) return member;
    fail(path + "." + name + " is missing or no list");
    return Json::array();
  }

  // The texts of an array; empty if the member is missing.
  std::vector<std::string> texts(const Json& json, const std::string& path, const char* name) {
    std::vector<std::string> found;
    if (!json.contains(name)) return found;
    for (const Json& item : list(json, path, name)) {
      if (item.is_string()) {
        found.push_back(item);
      } else {
        fail(path + "." + name + " has an item that is no text");
      }
    }
    return found;
  }

  // A pair, swapped if the target requires it.
  Pair pair(const Json& json, const std::string& path) {
    if (!json.is_array() || json.size() != 2 || !json[0].is_string() || !json[1].is_string() ||
        json[0].get<std::string>().empty() || json[1].get<std::string>().empty()) {
      fail(path + " is no pair of texts");
      return {};
    }
    if (target_ == Target::kMusa) return {json[0], json[1]};
    return {json[1], json[0]};
  }

  std::vector<Pair> pairs(const Json& json, const std::string& path, const char* name) {
    std::vector<Pair> found;
    for (const Json& item : list(json, path, name)) {
      found.push_back(pair(item, path + "." + name));
    }
    return found;
  }

  template <typename Value>
  Value choice(const std::map<std::string, Value>& choices, const std::string& name,
               const std::string& path) {
    const auto found = choices.find(name);
    if (found != choices.end()) return found->second;
    fail(path + " has the unknown value \"" + name + "\"");
    return choices.begin()->second;
  }

  void fail(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

 private:
  Target target_;
  std::string problem_;
};

Rule read_rule(Reader& reader, const Json& json, Target target, const std::string& path) {
  reader.expect_members(json, path,
                        {"id", "kind", "language", "pairs", "followed_by", "name", "not_after",
                         "keywords", "dropped", "one_way"});
  if (!reader.problem().empty()) return {};
  Rule rule;
  rule.id = reader.text(json, path, "id");
  rule.kind = reader.choice(kinds(), reader.text(json, path, "kind"), path + ".kind");
  const std::string language = reader.text(json, path, "language");
  rule.is_for_cpp = language != "python";
  rule.is_for_python = language != "cpp";
  rule.pairs = reader.pairs(json, path, "pairs");
  rule.next = reader.choice(nexts(), json.value("followed_by", "any"), path + ".followed_by");
  if (rule.kind == Rule::Kind::kThreshold) {
    rule.macro = reader.pair(json.value("name", Json()), path + ".name");
  }
  for (const std::string& word : reader.texts(json, path, "not_after")) rule.not_after.insert(word);
  for (const std::string& word : reader.texts(json, path, "keywords")) rule.keywords.insert(word);
  const std::vector<std::string> one_way = reader.texts(json, path, "one_way");
  if (target == Target::kMusa) {
    rule.dropped = reader.texts(json, path, "dropped");
  } else {
    std::erase_if(rule.pairs, [&](const Pair& pair) {
      return std::find(one_way.begin(), one_way.end(), pair.to) != one_way.end();
    });
  }
  return rule;
}

Notice read_notice(Reader& reader, const Json& json, const std::string& path) {
  reader.expect_members(json, path, {"id", "language", "message", "names", "headers", "strings"});
  if (!reader.problem().empty()) return {};
  Notice notice;
  notice.id = reader.text(json, path, "id");
  notice.message = reader.text(json, path, "message");
  notice.is_for_cpp = reader.text(json, path, "language") == "cpp";
  notice.names = reader.texts(json, path, "names");
  notice.headers = reader.texts(json, path, "headers");
  notice.strings = reader.texts(json, path, "strings");
  return notice;
}

std::vector<Notice> read_notices(Reader& reader, const Json& json, const char* name) {
  std::vector<Notice> notices;
  for (const Json& item : reader.list(json, "rules", name)) {
    notices.push_back(read_notice(reader, item, name));
  }
  return notices;
}

Remnants read_remnants(Reader& reader, const Json& json, const char* source) {
  const Json section = json.value("remnants", Json::object()).value(source, Json());
  const std::string path = std::string("remnants.") + source;
  reader.expect_members(section, path, {"contains", "names", "headers", "allowed"});
  if (!reader.problem().empty()) return {};
  return {reader.texts(section, path, "contains"), reader.texts(section, path, "names"),
          reader.texts(section, path, "headers"), reader.texts(section, path, "allowed")};
}

Rules read_rules(Reader& reader, const Json& json, Target target) {
  reader.expect_members(json, "rules",
                        {"version", "suffixes", "cpp_markers", "architecture_flag", "refused",
                         "warned", "rules", "remnants"});
  if (!reader.problem().empty()) return {};
  Rules rules;
  rules.target = target;
  rules.version = reader.text(json, "rules", "version");
  rules.suffixes = reader.pairs(json, "rules", "suffixes");
  rules.cpp_markers = reader.texts(json, "rules", "cpp_markers");
  rules.architecture_flag = reader.text(json, "rules", "architecture_flag");
  if (target == Target::kMusa) {
    rules.refused = read_notices(reader, json, "refused");
    rules.warned = read_notices(reader, json, "warned");
  }
  for (const Json& item : reader.list(json, "rules", "rules")) {
    const std::string path = "rules[" + std::to_string(rules.rules.size()) + "]";
    rules.rules.push_back(read_rule(reader, item, target, path));
  }
  rules.remnants = read_remnants(reader, json, target == Target::kMusa ? "cuda" : "musa");
  return rules;
}

}  // namespace

std::optional<Target> target_named(std::string_view name) {
  if (name == "musa") return Target::kMusa;
  if (name == "cuda") return Target::kCuda;
  return std::nullopt;
}

bool matches(std::string_view pattern, std::string_view text) {
  if (!pattern.ends_with('*')) return pattern == text;
  return text.starts_with(pattern.substr(0, pattern.size() - 1));
}

Result<Rules> parse_rules(std::string_view json, Target target) {
  try {
    Reader reader(target);
    Rules rules = read_rules(reader, Json::parse(json), target);
    if (reader.problem().empty()) return rules;
    return invalid(reader.problem());
  } catch (const Json::exception& error) {
    return invalid(std::string("not JSON: ") + error.what());
  }
}

Result<Rules> load_rules(const std::filesystem::path& folder, Target target) {
  const std::filesystem::path file = folder / "rules.json";
  MC_TRY(const std::string text, read_file(file, kRulesBytesMax), "load rules");
  MC_TRY(Rules rules, parse_rules(text, target), "rules " + file.string());
  return rules;
}

}  // namespace mc::musify
