// SPDX-License-Identifier: Apache-2.0
#include "cli/report_package.h"

#include <iostream>
#include <string_view>

#include "compile/pytorch.h"
#include "compile/tool.h"
#include "core/layout.h"
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

Status run_package(const std::string& module, const std::vector<std::string>& arguments,
                   const std::string& what) {
  MC_TRY(const Layout layout, find_layout(), "report");
  const std::string python = compile::default_python();
  std::vector<std::string> words = {
      "env", "PYTHONPATH=" + layout.share("python").string(), python, "-P", "-m", module};
  words.insert(words.end(), arguments.begin(), arguments.end());
  const auto printed = compile::run_tool(words);
  if (printed) {
    std::cout << *printed;
    return ok();
  }
  constexpr std::string_view kMark = "error: ";
  const std::string reason = task::plain_line(last_line(printed.error().message), 300);
  const std::string message = what + " was not made: ";
  if (reason.starts_with(kMark))
    return Error{ErrorCode::kInvalidInput, message + reason.substr(kMark.size())};
  return Error{ErrorCode::kUnavailable,
               message + reason + " (it needs: " + python + " -m pip install jinja2 pygments)"};
}

}  // namespace mc::cli
