// SPDX-License-Identifier: Apache-2.0
//
// Tests of the commands that replace this process by another program: a script in its place prints
// its words.
#include <cstdlib>
#include <filesystem>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "cli/learner.h"
#include "cli/python.h"
#include "cli/testing/run_line.h"
#include "core/file.h"
#include "core/layout.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using testing::ExitedWithCode;
using testing::HasSubstr;

class Handover : public testing::Test {
 protected:
  Handover() : room_(std::move(TemporaryDirectory::create("handover").value())) {
    fs::create_directories(room_.path() / "bin");
    fs::create_directories(room_.path() / "share/musacoder/python/harness");
    script("python", "for word in \"$@\"; do printf '%s|' \"$word\" >&2; done; exit 7");
    script("bin/musacoder-learn", "printf '%s|' \"$@\" >&2; exit 5");
    ::setenv("MC_PREFIX", room_.path().c_str(), 1);
    ::setenv("MC_PYTHON", (room_.path() / "python").c_str(), 1);
  }
  ~Handover() override {
    ::unsetenv("MC_PREFIX");
    if (python_.empty()) {
      ::unsetenv("MC_PYTHON");
    } else {
      ::setenv("MC_PYTHON", python_.c_str(), 1);
    }
  }

  void script(const std::string& name, const std::string& text) const {
    const fs::path path = room_.path() / name;
    EXPECT_TRUE(write_file_atomically(path, "#!/bin/sh\n" + text + "\n"));
    fs::permissions(path, fs::perms::owner_all);
  }
  std::string at(const std::string& name) const { return (room_.path() / name).string(); }
  std::string share(const std::string& name) const { return at("share/musacoder/" + name); }

  // Expects that a command line becomes the other program with these words.
  void expect_words(const std::vector<std::string>& line, const std::string& words, int code = 7) {
    EXPECT_EXIT(std::exit(code_of_line(line)), ExitedWithCode(code), ::testing::StrEq(words));
  }

  TemporaryDirectory room_;
  const std::string python_ =
      std::getenv("MC_PYTHON") != nullptr ? std::getenv("MC_PYTHON") : std::string();
};

TEST_F(Handover, OfTheAgentsTools) {
  expect_words({"mcp", "--backend", "cpu", "--jobs", "2"},
               "-P|" + share("python/musacoder/mcp.py") + "|--program|" + at("bin/musacoder") +
                   "|--|--backend|cpu|--jobs|2|");
  expect_words({"workspace", "reduction/row_sum", "work"},
               "-P|" + share("python/musacoder/workspace/__main__.py") + "|--program|" +
                   at("bin/musacoder") + "|--|reduction/row_sum|work|");
  expect_words({"workspace", "t", "work", "--judge"},
               "-P|" + share("python/musacoder/workspace/__main__.py") + "|--program|" +
                   at("bin/musacoder") + "|--judge|--|t|work|");
}

TEST_F(Handover, OfTheTasksOfOthers) {
  const std::string library = at("lib/libmc_sandbox.so");
  expect_words({"import", "a", "b", "--out", at("out"), "--limit", "5", "--jobs", "3",
                "--kernelbench", "kb"},
               "-P|-m|harness.importer|--sandbox-lib|" + library + "|--jobs|3|import|--limit|5|" +
                   "--out|" + at("out") + "|--kernelbench|kb|--|a|b|");
  expect_words({"task", "operators", "tasks"}, "-P|-m|harness.importer|--sandbox-lib|" + library +
                                                   "|--jobs|1|operators|--limit|0|--|tasks|");
  expect_words({"task", "export", "--harbor", at("out"), "--solutions", "s"},
               "-P|" + share("python/musacoder/harbor/__main__.py") + "|--program|" +
                   at("bin/musacoder") + "|--out|" + at("out") + "|--solutions|s|--|tasks|");
}

TEST_F(Handover, OfTheService) {
  const std::string server = "-P|" + share("python/musacoder/server/__main__.py") + "|";
  expect_words({"serve", "--jobs", "2", "--backend", "cpu"},
               server + "--host|127.0.0.1|--port|8377|--queue|4096|--grace|30|--|" +
                   at("bin/musacoder") + "|eval|--stream|--jobs|2|--backend|cpu|");
  expect_words(
      {"serve", "--port", "1", "--queue", "2", "--grace", "1.5", "--state", "s", "--token-file",
       "f", "--tokens", "t", "--allow-host", "h", "--host", "::", "-j", "1"},
      server +
          "--host|::|--port|1|--queue|2|--grace|1.5|--state|s|--token-file|f|"
          "--tokens|t|--allow-host|h|--|" +
          at("bin/musacoder") + "|eval|--stream|-j|1|");
  expect_words({"serve", "--ray", "auto"},
               server + "--host|127.0.0.1|--port|8377|--queue|4096|--grace|30|--|" + at("python") +
                   "|-P|" + share("python/musacoder/ray/__main__.py") + "|stream|--address|auto|");
  const Ended ended = run_line({"serve", "--ray", "auto", "--backend", "cpu"});
  EXPECT_EQ(ended.code, kExitInput);
  EXPECT_THAT(ended.err, HasSubstr("--ray: the pool's verifiers have their options already"));
  // The verifier has as many jobs as the machine has cores, unless the user says how many.
  EXPECT_EXIT(std::exit(code_of_line({"serve", "--policy", "musacoder"})), ExitedWithCode(7),
              HasSubstr("|eval|--stream|--jobs|"));
}

TEST_F(Handover, OfTheLearner) {
  expect_words({"sft", "--model", "m", "--help"}, "sft|--model|m|--help|", 5);
  expect_words({"init"}, "init|", 5);
  fs::remove(at("bin/musacoder-learn"));
  const Ended ended = run_line({"rl"});
  EXPECT_EQ(ended.code, kExitInput);
  EXPECT_THAT(ended.err, HasSubstr("bin/musacoder-learn is not there: use"));
}

TEST_F(Handover, TheEndOfAChildIsAResult) {
  const Layout layout = find_layout().value();
  const auto run = [&] {
    testing::internal::CaptureStderr();
    Status status = run_learner(layout, {"generate", "--model", "m"});
    EXPECT_EQ(testing::internal::GetCapturedStderr(), "generate|--model|m|");
    return status;
  };
  const Status failed = run();
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(failed.error().message, HasSubstr("musacoder-learn generate failed"));
  script("bin/musacoder-learn", "printf '%s|' \"$@\" >&2; exit 2");
  EXPECT_EQ(run().error().code, ErrorCode::kInvalidInput);
  script("bin/musacoder-learn", "printf '%s|' \"$@\" >&2");
  EXPECT_TRUE(run());
  script("bin/musacoder-learn", "printf '%s|' \"$@\" >&2; kill -9 $$");
  EXPECT_EQ(run().error().code, ErrorCode::kUnavailable);
}

TEST_F(Handover, AModuleOfReportsSaysWhyItFailed) {
  script("python", "echo \"$PYTHONPATH $*\"");
  testing::internal::CaptureStdout();
  EXPECT_TRUE(run_report_module("report.card", {"a", "b"}, "the data card"));
  EXPECT_EQ(testing::internal::GetCapturedStdout(), share("python") + " -P -m report.card a b\n");
  script("python", "echo 'Traceback' >&2; echo 'error: no such run' >&2; exit 1");
  const Status input = run_report_module("report", {}, "the page");
  ASSERT_FALSE(input);
  EXPECT_EQ(input.error().code, ErrorCode::kInvalidInput);
  EXPECT_THAT(input.error().message, HasSubstr("the page was not made: no such run"));
  script("python", "echo 'No module named jinja2' >&2; exit 1");
  const Status machine = run_report_module("report", {}, "the page");
  ASSERT_FALSE(machine);
  EXPECT_EQ(machine.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(machine.error().message,
              HasSubstr("the page was not made: No module named jinja2 (it needs: " + at("python") +
                        " -m pip install jinja2 pygments)"));
}

TEST_F(Handover, OptimizeAsksPythonForTheTask) {
  ASSERT_TRUE(write_file_atomically(at("net.py"), "class Net: pass\n"));
  script("python", "echo \"$*\" > " + at("words") +
                       "; echo '{\"name\": \"Net\", \"task\": \"class Model: the_task\"}'");
  const std::vector<std::string> line = {"optimize", at("net.py"), "--print-prompt",
                                         "--class",  "Net",        "--init",
                                         "3",        "--backend",  "cpu"};
  const Ended ended = run_line(line);
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("class Model: the_task"));
  EXPECT_EQ(read_file(at("words"), 1000).value(),
            "-P -m optimize task " + at("net.py") + " --class=Net --init=3 --inputs=\n");
  script("python", "echo '{\"error\": \"two classes\"}'");
  const Ended failed = run_line(line);
  EXPECT_EQ(failed.code, kExitInput);
  EXPECT_THAT(failed.err, HasSubstr("two classes"));
  script("python", "echo no JSON");
  EXPECT_EQ(run_line(line).code, kExitMachine);
  EXPECT_THAT(run_line({"optimize", at("net.py"), at("net.py"), "--watch", "--print-prompt"}).err,
              HasSubstr("--print-prompt asks for a kernel"));
  EXPECT_THAT(run_line({"optimize", at("net.py"), at("net.py"), "--watch", "--json"}).err,
              HasSubstr("--json is for a search"));
}

TEST_F(Handover, AMissingPythonIsAnError) {
  ::setenv("MC_PYTHON", "/dev/null/python", 1);
  const Ended ended = run_line({"mcp"});
  EXPECT_EQ(ended.code, kExitMachine);
  EXPECT_THAT(ended.err, HasSubstr("cannot start /dev/null/python"));
  ::setenv("MC_PREFIX", "/dev/null/none", 1);
  EXPECT_NE(run_line({"workspace", "a", "b"}).code, kExitDone);
}

}  // namespace
}  // namespace mc::cli
