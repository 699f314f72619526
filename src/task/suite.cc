// SPDX-License-Identifier: Apache-2.0
#include "task/suite.h"

#include <algorithm>
#include <cctype>
#include <charconv>
#include <functional>
#include <optional>
#include <set>
#include <string_view>
#include <system_error>
#include <tuple>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/utf8.h"
#include "task/text.h"

namespace mc::task {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kSuiteTasksMax = 100'000;
constexpr size_t kSubmissionsMax = 10'000'000;

// A task with its sort key.
struct Numbered {
  int64_t level = 0;
  int64_t problem = 0;
  Task task;
};

std::string numbered_id(const std::string& suite, int64_t level, int64_t problem) {
  return suite + ':' + std::to_string(level) + '/' + std::to_string(problem);
}

// ---- JSON Lines ---------------------------------------------------------------------------------

// The second argument is the location, "<file>: line <n>", as context for the handler's own errors.
using LineHandler = std::function<Status(std::string_view, const std::string&)>;

// Calls `handle` for each line that is not blank; its first error ends the loop.
Status for_each_line(const fs::path& path, size_t bytes_max, const LineHandler& handle) {
  const auto text = read_file(path, bytes_max);
  if (!text) return text.error();
  std::string_view rest = *text;
  if (rest.starts_with("\xef\xbb\xbf")) rest.remove_prefix(3);
  for (size_t number = 1; !rest.empty(); ++number) {
    const std::string_view line = rest.substr(0, rest.find('\n'));
    rest.remove_prefix(std::min(rest.size(), line.size() + 1));
    if (line.find_first_not_of(" \t\r") == std::string_view::npos) continue;
    const std::string place = path.string() + ": line " + std::to_string(number);
    MC_TRY_VOID(handle(line, place), place);
  }
  return ok();
}

Result<Json> parse_object(std::string_view line) {
  Json json = Json::parse(line, nullptr, false);
  if (json.is_object()) return json;
  if (!json.is_discarded()) return invalid("not a JSON object");
  const bool is_whole = !Json::parse(without_lone_surrogates(line), nullptr, false).is_discarded();
  return invalid(is_whole ? kLoneSurrogate : "not JSON");
}

Result<std::string> text_field(const Json& json, const char* name, size_t bytes_max) {
  const auto found = json.find(name);
  if (found == json.end()) return invalid(std::string("\"") + name + "\" is missing");
  if (!found->is_string()) return invalid(std::string("\"") + name + "\" is not a string");
  std::string text = found->get<std::string>();
  if (text.size() > bytes_max) {
    return invalid(std::string("\"") + name + "\" holds " + std::to_string(text.size()) +
                   " bytes, more than " + std::to_string(bytes_max));
  }
  return text;
}

Result<int64_t> count_field(const Json& json, const char* name) {
  constexpr int64_t kCountMax = 1'000'000'000;
  const auto found = json.find(name);
  if (found == json.end()) return invalid(std::string("\"") + name + "\" is missing");
  const bool fits = found->is_number_unsigned() && found->get<uint64_t>() <= uint64_t{kCountMax};
  if (!fits) return invalid(std::string("\"") + name + "\" is not a number from 0 to 10^9");
  return found->get<int64_t>();
}

constexpr size_t kNameBytesMax = 1000;

// ---- Files --------------------------------------------------------------------------------------

// The text of a file, which must not be empty.
Result<std::string> read_text(const fs::path& path, size_t bytes_max) {
  auto text = read_file(path, bytes_max);
  if (!text) return text;
  if (const size_t offset = first_invalid_utf8(*text); offset != text->size()) {
    return invalid(path.string() + " is not UTF-8 at byte " + std::to_string(offset));
  }
  if (text->find_first_not_of(" \t\r\n") == std::string::npos) {
    return invalid(path.string() + " is empty");
  }
  return text;
}

Result<Task> read_task(const fs::path& path, const std::string& id) {
  auto code = read_text(path, kTaskBytesMax);
  if (!code) return code.error();
  return Task{id, path.stem().string(), std::move(*code)};
}

// The entries of a directory, sorted by name; an error names the directory.
Result<std::vector<fs::path>> entries_of(const fs::path& directory) {
  std::error_code failure;
  std::vector<fs::path> out;
  for (fs::directory_iterator entry(directory, failure), end; !failure && entry != end;
       entry.increment(failure)) {
    out.push_back(entry->path());
  }
  if (failure)
    return Error{ErrorCode::kIo, "cannot list " + directory.string() + ": " + failure.message()};
  std::sort(out.begin(), out.end());
  return out;
}

bool is_folder(const fs::path& path) {
  std::error_code ignored;
  return fs::is_directory(path, ignored);
}

bool is_there(const fs::path& path) { return path_exists(path); }

// The number at the start of `text` after `prefix`: ("level12", "level") is 12.
std::optional<int64_t> leading_number(std::string_view text, std::string_view prefix) {
  if (!text.starts_with(prefix)) return std::nullopt;
  text.remove_prefix(prefix.size());
  int64_t number = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), number);
  if (failure != std::errc() || number < 0) return std::nullopt;
  return number;
}

// ---- Suites -------------------------------------------------------------------------------------

Status append_jsonl(const fs::path& path, const std::string& suite, std::vector<Numbered>& out) {
  return for_each_line(
      path, kSuiteBytesMax, [&](std::string_view line, const auto& place) -> Status {
        MC_TRY(const Json json, parse_object(line), place);
        MC_TRY(const int64_t level, count_field(json, "level"), place);
        MC_TRY(const int64_t problem, count_field(json, "problem_id"), place);
        MC_TRY(std::string name, text_field(json, "name", kNameBytesMax), place);
        MC_TRY(std::string code, text_field(json, "code", kTaskBytesMax), place);
        if (code.empty()) return invalid("\"code\" is empty");
        if (out.size() == kSuiteTasksMax) return invalid("more than 100000 tasks");
        Task task{numbered_id(suite, level, problem), name, std::move(code)};
        if (json.contains("entry_point")) {
          MC_TRY(const std::string entry, text_field(json, "entry_point", kNameBytesMax), place);
          MC_TRY(task, with_entry_point(std::move(task), entry), place);
        }
        out.push_back({level, problem, std::move(task)});
        return ok();
      });
}

// level<n>/<problem>_<name>.py of a checkout.
Status append_level(const fs::path& directory, int64_t level, const std::string& suite,
                    std::vector<Numbered>& out) {
  const auto files = entries_of(directory);
  if (!files) return files.error();
  for (const fs::path& file : *files) {
    const auto problem = leading_number(file.stem().string(), "");
    if (file.extension() != ".py" || !problem) continue;
    if (out.size() == kSuiteTasksMax) return invalid("more than 100000 tasks");
    auto task = read_task(file, numbered_id(suite, level, *problem));
    if (!task) return task.error();
    out.push_back({level, *problem, std::move(*task)});
  }
  return ok();
}

Status append_levels(const fs::path& directory, const std::string& suite,
                     std::vector<Numbered>& out) {
  const auto entries = entries_of(directory);
  if (!entries) return entries.error();
  for (const fs::path& entry : *entries) {
    const auto level = leading_number(entry.stem().string(), "level");
    if (!level) continue;
    Status appended = ok();
    if (entry.extension() == ".jsonl") appended = append_jsonl(entry, suite, out);
    if (is_folder(entry)) appended = append_level(entry, *level, suite, out);
    if (!appended) return appended;
  }
  return ok();
}

// Sorted tasks, or an error with the id that two of them share.
Result<std::vector<Task>> in_order(std::vector<Numbered> numbered) {
  std::stable_sort(numbered.begin(), numbered.end(), [](const Numbered& a, const Numbered& b) {
    return std::tie(a.level, a.problem) < std::tie(b.level, b.problem);
  });
  std::vector<Task> out;
  for (Numbered& one : numbered) {
    if (!out.empty() && out.back().id == one.task.id) {
      return invalid("two tasks with the id " + one.task.id);
    }
    out.push_back(std::move(one.task));
  }
  return out;
}

// The .py files of a directory; their ids begin with `prefix`.
Status append_files(const fs::path& directory, const std::string& prefix, std::vector<Task>& out) {
  const auto files = entries_of(directory);
  if (!files) return files.error();
  for (const fs::path& file : *files) {
    if (file.extension() != ".py") continue;
    if (out.size() == kSuiteTasksMax) return invalid("more than 100000 tasks");
    auto task = read_task(file, prefix + file.stem().string());
    if (!task) return task.error();
    out.push_back(std::move(*task));
  }
  return ok();
}

// <family>/<name>.py, and <name>.py.
Result<std::vector<Task>> load_families(const fs::path& directory) {
  std::vector<Task> out;
  const auto families = entries_of(directory);
  if (!families) return families.error();
  for (const fs::path& family : *families) {
    const std::string name = family.filename().string();
    if (!is_folder(family) || name.starts_with('.')) continue;
    MC_TRY_VOID(append_files(family, name + '/', out), "family");
  }
  MC_TRY_VOID(append_files(directory, "", out), "suite");
  return out;
}

// ---- One task -----------------------------------------------------------------------------------

struct NumberedSpec {
  std::string suite;
  int64_t level = 0;
  int64_t problem = 0;
};

// "<suite>:<level>/<problem>".
std::optional<NumberedSpec> parse_numbered(const std::string& spec) {
  const size_t colon = spec.rfind(':');
  const size_t slash = spec.rfind('/');
  if (colon == std::string::npos || slash == std::string::npos || slash < colon) return {};
  const std::string level = spec.substr(colon + 1, slash - colon - 1);
  const std::string problem = spec.substr(slash + 1);
  const auto is_number = [](const std::string& text) {
    return !text.empty() && text.size() <= 9 &&
           std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isdigit(c); });
  };
  if (colon == 0 || !is_number(level) || !is_number(problem)) return {};
  return NumberedSpec{spec.substr(0, colon), std::stoll(level), std::stoll(problem)};
}

Result<Task> load_numbered(const NumberedSpec& spec, const Roots& roots) {
  const bool named = spec.suite == "kernelbench";
  if (named && roots.kernelbench.empty()) return no_kernelbench();
  const fs::path path = named ? roots.kernelbench : fs::path(spec.suite);
  auto tasks = load_suite(path, spec.suite);
  if (!tasks) return tasks.error();
  const std::string id = numbered_id(spec.suite, spec.level, spec.problem);
  for (Task& task : *tasks) {
    if (task.id == id) return std::move(task);
  }
  return Error{ErrorCode::kNotFound, "no task " + id};
}

// Two plain names, which cannot lead out of the directory of tasks.
bool is_family_and_name(const std::string& spec) {
  const auto is_plain = [](unsigned char c) { return std::isalnum(c) || c == '_' || c == '-'; };
  const size_t slash = spec.find('/');
  if (slash == std::string::npos || slash == 0 || slash + 1 == spec.size()) return false;
  return std::all_of(spec.begin(), spec.begin() + static_cast<std::ptrdiff_t>(slash), is_plain) &&
         std::all_of(spec.begin() + static_cast<std::ptrdiff_t>(slash) + 1, spec.end(), is_plain);
}

// ---- Candidates ---------------------------------------------------------------------------------

// The sample: a number, as in harnesses, or a name from a user.
Result<std::string> sample_field(const Json& json) {
  if (json.contains("sample") && json["sample"].is_string()) {
    return text_field(json, "sample", kNameBytesMax);
  }
  const auto number = count_field(json, "sample");
  if (!number) return number.error();
  return std::to_string(*number);
}

// The text of the member with the name that `eval` uses, or the one that `bench` uses.
Result<std::string> text_of_either(const Json& json, const char* name, const char* of_bench,
                                   size_t bytes_max) {
  return text_field(json,
                    json.contains(name)       ? name
                    : json.contains(of_bench) ? of_bench
                                              : name,
                    bytes_max);
}

// "#0", and "#0.1" for a later turn of an episode.
Result<std::string> answer_suffix(const Json& json) {
  const auto sample = sample_field(json);
  if (!sample) return sample.error();
  if (!json.contains("turn")) return '#' + *sample;
  const auto turn = count_field(json, "turn");
  if (!turn) return turn.error();
  return '#' + *sample + (*turn == 0 ? "" : '.' + std::to_string(*turn));
}

Result<Submission> submission_of(std::string_view line) {
  auto json = parse_object(line);
  if (!json) return json.error();
  auto task = text_of_either(*json, "task", "id", kNameBytesMax);
  if (!task) return task.error();
  if (task->empty()) return invalid("\"task\" is empty");
  const auto suffix = answer_suffix(*json);
  if (!suffix) return suffix.error();
  auto response = text_of_either(*json, "response", "completion", kAnswerBytesMax);
  if (!response) return response.error();
  const std::string id = *task + *suffix;
  return Submission{std::move(*task), {id, std::move(*response)}, ""};
}

Result<Submissions> load_many(const fs::path& path) {
  Submissions out;
  std::set<std::string> ids;
  const auto add = [&](std::string_view line, const std::string& place) -> Status {
    if (out.good.size() == kSubmissionsMax) return invalid("more than 10^7 candidates");
    auto submission = submission_of(line);
    if (submission && !ids.insert(submission->candidate.id).second) {
      submission = invalid("a second answer " + submission->candidate.id);
    }
    if (!submission) {
      out.bad.push_back(with_context(submission.error(), place));
      return ok();
    }
    submission->place = place;
    out.good.push_back(std::move(*submission));
    return ok();
  };
  const Status read = for_each_line(path, kSubmissionsBytesMax, add);
  if (!read) return read.error();
  if (out.good.empty() && out.bad.empty()) return invalid(path.string() + " is empty");
  return out;
}

}  // namespace

Result<std::vector<Task>> load_suite(const fs::path& path, const std::string& name) {
  if (!is_there(path)) return Error{ErrorCode::kNotFound, "no suite at " + path.string()};
  std::vector<Numbered> numbered;
  const fs::path inner = path / "KernelBench";
  const Status read = is_folder(path)
                          ? append_levels(is_folder(inner) ? inner : path, name, numbered)
                          : append_jsonl(path, name, numbered);
  if (!read) return read.error();
  if (!numbered.empty()) return in_order(std::move(numbered));
  auto tasks = is_folder(path) ? load_families(path) : std::vector<Task>();
  if (tasks && tasks->empty()) return invalid(path.string() + " holds no tasks");
  return tasks;
}

Result<Task> with_entry_point(Task task, const std::string& name) {
  if (name == "Model") return task;
  const bool is_name = !name.empty() && std::ranges::all_of(name, [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_';
  });
  if (!is_name) return invalid("the entry point \"" + name + "\" is no name of a class");
  const std::string head = "class " + name;
  size_t at = task.code.find(head);
  while (at != task.code.npos && at + head.size() < task.code.size() &&
         (std::isalnum(static_cast<unsigned char>(task.code[at + head.size()])) != 0 ||
          task.code[at + head.size()] == '_')) {
    at = task.code.find(head, at + 1);
  }
  if (at == task.code.npos) return invalid("the task defines no class " + name);
  task.code += "\n\nModel = " + name + "\n";
  return task;
}

Error no_kernelbench() {
  return {ErrorCode::kNotFound,
          "no copy of KernelBench: set MC_KERNELBENCH to a checkout or to a directory of "
          "level*.jsonl"};
}

Result<Task> load_task(const std::string& spec, const Roots& roots) {
  if (spec.ends_with(".py")) return read_task(spec, spec);
  if (const auto numbered = parse_numbered(spec)) return load_numbered(*numbered, roots);
  if (!is_family_and_name(spec)) {
    return invalid("not a task: \"" + spec +
                   "\"; give a .py file, suite:level/number or family/name");
  }
  const fs::path file = roots.tasks / (spec + ".py");
  if (roots.tasks.empty() || !is_there(file)) {
    return Error{ErrorCode::kNotFound, "no task " + spec};
  }
  return read_task(file, spec);
}

Result<Submissions> load_submissions(const fs::path& path) {
  if (path.extension() == ".jsonl") return load_many(path);
  auto answer = read_text(path, kAnswerBytesMax);
  if (!answer) return answer.error();
  Submissions out;
  out.good.push_back({"", {path.string(), std::move(*answer)}, path.string()});
  return out;
}

}  // namespace mc::task
