// SPDX-License-Identifier: Apache-2.0
#include "legality/policy.h"

#include <cstddef>
#include <cstdint>
#include <iterator>
#include <nlohmann/json.hpp>
#include <system_error>
#include <utility>

#include "core/file.h"

namespace mc::legality {
namespace {

using Json = nlohmann::json;

constexpr std::size_t kPolicyBytesMax = std::size_t{1} << 20;

constexpr const char* kPythonMembers[] = {
    "unsupported_languages", "forbidden_imports", "forbidden_names",
    "forbidden_calls",       "allowed",           "parameter_containers"};

// Reads members and records the first error; results after an error are meaningless.
class Reader {
 public:
  const std::string& problem() const { return problem_; }

  void expect_members(const Json& json, const std::string& path, const Words& known) {
    if (!json.is_object()) return fail(path + " is missing or no object");
    for (const auto& [name, value] : json.items()) {
      if (!known.contains(name)) fail(path + " has an unknown member \"" + name + "\"");
    }
  }

  std::string text(const Json& json, const std::string& path, const char* name) {
    const Json member = json.value(name, Json());
    if (member.is_string() && !member.get<std::string>().empty()) return member;
    fail(path + "." + name + " is missing or no text");
    return "";
  }

  const Json& array(const Json& json, const std::string& path, const char* name) {
    static const Json kEmpty = Json::array();
    const auto member = json.find(name);
    if (member != json.end() && member->is_array()) return *member;
    fail(path + "." + name + " is missing or no list");
    return kEmpty;
  }

  std::vector<std::string> texts(const Json& json, const std::string& path, const char* name) {
    std::vector<std::string> list;
    for (const Json& item : array(json, path, name)) {
      if (item.is_string() && !item.get<std::string>().empty()) {
        list.push_back(item);
      } else {
        fail(path + "." + name + " has an item that is no text");
      }
    }
    return list;
  }

  // Empty if there is no such member.
  Words words(const Json& json, const std::string& path, const char* name) {
    if (!json.contains(name)) return {};
    const std::vector<std::string> list = texts(json, path, name);
    return {list.begin(), list.end()};
  }

  void fail(const std::string& problem) {
    if (problem_.empty()) problem_ = problem;
  }

 private:
  std::string problem_;
};

SourceRule read_source_rule(Reader& reader, const Json& json, const std::string& path) {
  reader.expect_members(json, path,
                        {"message", "operators", "calls", "names", "prefixes", "scopes"});
  if (!reader.problem().empty()) return {};
  SourceRule rule;
  rule.message = reader.text(json, path, "message");
  rule.operators = reader.words(json, path, "operators");
  rule.calls = reader.words(json, path, "calls");
  rule.names = reader.words(json, path, "names");
  rule.prefixes = reader.words(json, path, "prefixes");
  rule.scopes = reader.words(json, path, "scopes");
  return rule;
}

SymbolRule read_symbol_rule(Reader& reader, const Json& json, const std::string& path) {
  reader.expect_members(json, path, {"message", "patterns"});
  if (!reader.problem().empty()) return {};
  SymbolRule rule;
  rule.message = reader.text(json, path, "message");
  rule.patterns = reader.texts(json, path, "patterns");
  return rule;
}

// The rules of a section by their ids, each read by `read`.
template <typename Rule>
std::vector<Rule> read_rules(Reader& reader, const Json& policy, const char* section,
                             Rule (*read)(Reader&, const Json&, const std::string&)) {
  const Json json = policy.value(section, Json());
  reader.expect_members(json, section, {"rules"});
  if (!reader.problem().empty()) return {};
  const Json given = json.value("rules", Json());
  if (!given.is_object()) reader.fail(section + std::string(".rules is missing or no object"));
  std::vector<Rule> rules;
  for (const auto& [id, rule] : given.items()) {
    rules.push_back(read(reader, rule, section + (".rules." + id)));
    rules.back().id = id;
  }
  return rules;
}

std::map<std::string, FlagList, std::less<>> read_flag_lists(Reader& reader, const Json& section) {
  std::map<std::string, FlagList, std::less<>> lists;
  const Json given = section.value("lists", Json::object());
  for (const auto& [name, list] : given.items()) {
    const std::string path = "flags.lists." + name;
    reader.expect_members(list, path, {"passed", "dropped"});
    if (!reader.problem().empty()) return {};
    lists[name] = {reader.texts(list, path, "passed"), reader.texts(list, path, "dropped")};
  }
  for (const char* name : {"cxx", "cuda", "link"}) {
    if (!lists.contains(name)) reader.fail(std::string("flags.lists.") + name + " is missing");
  }
  return lists;
}

FlagRules read_flags(Reader& reader, const Json& policy) {
  const Json section = policy.value("flags", Json());
  reader.expect_members(section, "flags", {"id", "message", "valued", "nested", "lists"});
  if (!reader.problem().empty()) return {};
  FlagRules rules;
  rules.id = reader.text(section, "flags", "id");
  rules.message = reader.text(section, "flags", "message");
  rules.valued = reader.words(section, "flags", "valued");
  rules.lists = read_flag_lists(reader, section);
  const Json nested = section.value("nested", Json::object());
  for (const auto& [option, value] : nested.items()) {
    const std::string list = reader.text(nested, "flags.nested", option.c_str());
    if (!rules.lists.contains(list)) {
      reader.fail("flags.nested." + option + " names no list of flags.lists");
    }
    rules.nested[option] = list;
  }
  return rules;
}

KernelRules::Rule read_kernel_rule(Reader& reader, const Json& section, const char* name) {
  const Json rule = section.value(name, Json());
  const std::string path = std::string("kernels.") + name;
  reader.expect_members(rule, path, {"id", "message"});
  if (!reader.problem().empty()) return {};
  return {reader.text(rule, path, "id"), reader.text(rule, path, "message")};
}

KernelRules read_kernels(Reader& reader, const Json& policy) {
  const Json section = policy.value("kernels", Json());
  reader.expect_members(section, "kernels",
                        {"own_share_min", "foreign", "share", "foreign_owners", "foreign_allowed"});
  if (!reader.problem().empty()) return {};
  KernelRules rules;
  rules.foreign = read_kernel_rule(reader, section, "foreign");
  rules.share = read_kernel_rule(reader, section, "share");
  rules.foreign_owners = reader.texts(section, "kernels", "foreign_owners");
  rules.foreign_allowed = reader.texts(section, "kernels", "foreign_allowed");
  const Json share = section.value("own_share_min", Json());
  if (!share.is_number() || share.get<double>() < 0 || share.get<double>() > 1) {
    reader.fail("kernels.own_share_min is not between 0 and 1");
    return {};
  }
  rules.own_share_min = share.get<double>();
  return rules;
}

std::string read_python(Reader& reader, const Json& policy) {
  const Json section = policy.value("python", Json());
  const Words members(std::begin(kPythonMembers), std::end(kPythonMembers));
  reader.expect_members(section, "python", members);
  if (!reader.problem().empty()) return "";
  for (const char* name : kPythonMembers) reader.texts(section, "python", name);
  Json rules = section;
  rules["operators"] = policy.at("operators");
  return Json{{"python", rules}}.dump();
}

std::string read_version(Reader& reader, const Json& json) {
  std::string version = reader.text(json, "policy", "version");
  const std::size_t slash = version.find('/');
  if (slash == 0 || slash == std::string::npos || slash + 1 == version.size()) {
    reader.fail("policy.version \"" + version + "\" is no name/number");
  }
  return version;
}

int read_launches(Reader& reader, const Json& json) {
  const Json least = json.value("own_launches_min", Json());
  if (least.is_number_unsigned() && least.get<uint64_t>() <= 1) return least;
  reader.fail("policy.own_launches_min is not 0 or 1");
  return 0;
}

Policy read_policy(Reader& reader, const Json& json) {
  reader.expect_members(json, "policy",
                        {"version", "operators", "init_operators", "overloads", "own_launches_min",
                         "python", "cpp", "symbols", "flags", "kernels"});
  if (!reader.problem().empty()) return {};
  Policy policy;
  policy.version = read_version(reader, json);
  const std::vector<std::string> operators = reader.texts(json, "policy", "operators");
  const std::vector<std::string> init = reader.texts(json, "policy", "init_operators");
  const std::vector<std::string> overloads = reader.texts(json, "policy", "overloads");
  if (!reader.problem().empty()) return {};
  policy.operators = {operators.begin(), operators.end()};
  policy.init_operators = {init.begin(), init.end()};
  policy.overloads = {overloads.begin(), overloads.end()};
  policy.own_launches_min = read_launches(reader, json);
  policy.python_json = read_python(reader, json);
  policy.source_rules = read_rules(reader, json, "cpp", read_source_rule);
  policy.symbol_rules = read_rules(reader, json, "symbols", read_symbol_rule);
  policy.flags = read_flags(reader, json);
  policy.kernels = read_kernels(reader, json);
  return policy;
}

// The names of the policies of `folder`, sorted.
Words names_in(const std::filesystem::path& folder) {
  Words names;
  std::error_code ignored;
  for (const auto& entry : std::filesystem::directory_iterator(folder, ignored)) {
    if (entry.path().extension() == ".json") names.insert(entry.path().stem());
  }
  return names;
}

Error unknown_policy(std::string_view name, const std::filesystem::path& folder,
                     const Words& names) {
  if (names.empty()) return {ErrorCode::kNotFound, "no policies in " + folder.string()};
  std::string known;
  for (const std::string& one : names) known += (known.empty() ? "" : " or ") + one;
  return {ErrorCode::kInvalidInput,
          "policy '" + std::string(name) + "' is not known: use " + known};
}

// The name of the policy that this one extends, or "".
std::string base_of(const std::string& text) {
  const Json json = Json::parse(text, nullptr, false);
  return json.is_object() && json.contains("extends") && json["extends"].is_string()
             ? json["extends"].get<std::string>()
             : "";
}

}  // namespace

Result<Policy> parse_policy(std::string_view json, std::string_view patch) {
  try {
    Json merged = Json::parse(json);
    Json changes = Json::parse(patch);
    changes.erase("extends");
    if (!changes.empty()) merged.merge_patch(changes);
    Reader reader;
    Policy policy = read_policy(reader, merged);
    if (reader.problem().empty()) return policy;
    return Error{ErrorCode::kInvalidInput, reader.problem()};
  } catch (const Json::exception& error) {
    return Error{ErrorCode::kInvalidInput, std::string("not JSON: ") + error.what()};
  }
}

Result<Policy> load_policy(const std::filesystem::path& folder, std::string_view name) {
  const Words names = names_in(folder);
  if (!names.contains(name)) return unknown_policy(name, folder, names);
  const std::string file = (folder / name).string() + ".json";
  MC_TRY(std::string text, read_file(file, kPolicyBytesMax), "load policy");
  std::string patch = "{}";
  if (const std::string base = base_of(text); !base.empty()) {
    patch = std::move(text);
    MC_TRY(text, read_file(folder / (base + ".json"), kPolicyBytesMax), "policy " + file);
  }
  MC_TRY(Policy policy, parse_policy(text, patch), "policy " + file);
  if (policy.name() == name) return policy;
  return Error{ErrorCode::kInvalidInput, "policy " + file + ": its version names another policy"};
}

}  // namespace mc::legality
