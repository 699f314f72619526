// SPDX-License-Identifier: Apache-2.0
#include "cli/python.h"

#include <iostream>
#include <string_view>

#include <unistd.h>

#include "cli/learner.h"
#include "compile/pytorch.h"
#include "compile/tool.h"
#include "core/check.h"
#include "core/fd.h"
#include "task/text.h"

namespace mc::cli {
namespace {

// The last line of a tool's output, without the prefix that run_tool() adds.
std::string_view last_line(std::string_view text) {
  constexpr std::string_view kFailed = "env failed: ";
  if (text.starts_with(kFailed)) text.remove_prefix(kFailed.size());
  while (text.ends_with('\n') || text.ends_with('\r')) text.remove_suffix(1);
  return text.substr(text.find_last_of("\r\n") + 1);  // If there is no line break, npos + 1 is 0.
}

}  // namespace

Error exec_python(std::vector<std::string> words,
                  std::optional<std::vector<std::string>> environment) {
  MC_CHECK(!words.empty());
  words.insert(words.begin(), {compile::default_python().string(), "-P"});
  ::execvpe(words.front().c_str(), pointers_to(words).data(),
            environment ? pointers_to(*environment).data() : environ);
  return system_error(ErrorCode::kUnavailable, "cannot start " + words.front());
}

Error exec_python_program(const char* file, const std::vector<std::string>& arguments) {
  const Result<Layout> layout = find_layout();
  if (!layout) return layout.error();
  std::vector<std::string> words = {(layout->share("python") / file).string(), "--program",
                                    (layout->prefix / "bin/musacoder").string()};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return exec_python(std::move(words));
}

Result<std::string> run_module(const Layout& layout, const std::string& module,
                               const std::vector<std::string>& arguments) {
  std::vector<std::string> words = {
      "env", "PYTHONPATH=" + layout.share("python").string(), compile::default_python(), "-P", "-m",
      module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  return compile::run_tool(words);
}

Status run_report_module(const std::string& module, const std::vector<std::string>& arguments,
                         const std::string& what) {
  MC_TRY(const Layout layout, find_layout(), "report");
  const auto printed = run_module(layout, module, arguments);
  if (printed) {
    std::cout << *printed;
    return ok();
  }
  constexpr std::string_view kMark = "error: ";
  constexpr size_t kReasonBytesMax = 300;
  const std::string reason = task::plain_line(last_line(printed.error().message), kReasonBytesMax);
  const std::string message = what + " was not made: ";
  if (reason.starts_with(kMark)) return invalid(message + reason.substr(kMark.size()));
  return Error{ErrorCode::kUnavailable, message + reason +
                                            " (it needs: " + compile::default_python().string() +
                                            " -m pip install jinja2 pygments)"};
}

}  // namespace mc::cli
