// SPDX-License-Identifier: Apache-2.0
//
// Tests of invalid options: the line that a command prints, and its exit code.  No command of these
// tables begins its work.
#include <cstdlib>
#include <map>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <gtest/gtest.h>
#include <CLI/CLI.hpp>

#include "cli/commands.h"
#include "cli/testing/run_line.h"
#include "core/file.h"

namespace mc::cli {
namespace {

using Words = std::vector<std::string>;

struct Wrong {
  Words words;
  std::string printed;
};

void expect_lines(const Words& first, const std::vector<Wrong>& table) {
  for (const Wrong& row : table) {
    Words words = first;
    words.insert(words.end(), row.words.begin(), row.words.end());
    std::string shown;
    for (const std::string& word : words) shown += word + " ";
    const Ended end = run_line(words);
    const std::string line = "musacoder: " + row.printed;
    EXPECT_EQ(end.code, kExitInput) << shown;
    // Advice may follow: "…; musacoder eval --help lists what there is".
    EXPECT_TRUE(end.err == line + "\n" || end.err.starts_with(line + "; musacoder "))
        << shown << end.err;
  }
}

TEST(WrongOptions, OfBenchAreReportedBeforeAnyWork) {
  expect_lines(
      {"bench", "--suite", "s", "--out", ::testing::TempDir() + "none/o"},
      {
          {{}, "bench: give one of --model, --endpoint, --answers and --runs"},
          {{"--answers", "a", "--runs", "r"},
           "bench: give one of --model, --endpoint, --answers and --runs"},
          {{"--answers", "a", "--turns", "2"},
           "bench: --turns needs --model or --endpoint: stored answers have the turns they have"},
          {{"--model", "/dev/null/none"},
           "bench: /dev/null/none is no model's folder: it has no config.json"},
          {{"--endpoint", "h", "--model-name", "m"},
           "bench: --endpoint: expected a URL, such as http://host:8000/v1, got \"h\""},
          {{"--endpoint", "http://h/v1"},
           "bench: --endpoint needs --model-name: which of its models to ask"},
          {{"--endpoint", "http://h/v1", "--model-name", "m", "--extra-body", "[]"},
           "bench: --extra-body: expected a JSON object, such as {\"top_k\": 20}"},
          {{"--endpoint", "http://h/v1", "--model-name", "m", "--header", "x"},
           "bench: --header: expected \"Name: value\" in one line"},
          {{"--endpoint", "http://h/v1", "--model-name", "m", "--header", "a: b\nc: d"},
           "bench: --header: expected \"Name: value\" in one line"},
          {{"--answers", "a", "--backend", "tpu"},
           "bench: no backend or architecture is called 'tpu': use auto, cuda, musa, cpu"},
          {{"--answers", "a", "--samples", "0"},
           "--samples: expected a whole number from 1 to 10000, got \"0\""},
          {{"--answers", "a", "--prices", "1"}, "--prices: expected 2 values, got 1"},
          {{"--answers", "a", "--prices", "1,nan"},
           "--prices: expected a number from 0 on, got \"nan\""},
          {{"--answers", "a", "--temperature", "nan"},
           "--temperature: expected a number from 0 to 10, got \"nan\""},
          {{"--answers", "a", "--top-p", "1.5"},
           "--top-p: expected a number from 0 to 1, got \"1.5\""},
          {{"--answers", "a", "--jobs", "0"},
           "--jobs: expected a whole number from 1 to 256, got \"0\""},
          {{"--answers", "a", "--also", "nosuch"}, "bench: --also nosuch: unknown option --nosuch"},
      });
}

TEST(WrongOptions, OfEvalAreReportedBeforeAnyWork) {
  expect_lines(
      {"eval"},
      {
          {{}, "give a candidate, musacoder eval --task TASK FILE, or --stream"},
          {{"--backend", "tpu"},
           "eval: no backend or architecture is called 'tpu': use auto, cuda, musa, cpu"},
          {{"--musa-arch", "mp_31"}, "eval: --musa-arch: add --dialect musa"},
          {{"--dialect", "hip"}, "--dialect: expected cuda or musa, got \"hip\""},
          {{"--candidate", "/dev/null/none.py"}, "cannot read /dev/null/none.py: Not a directory"},
          {{"--stream", "--candidate", "c.py"},
           "--candidate and --stream cannot be given together"},
          {{"--architecture", "90"}, "--architecture needs --stream"},
          {{"--trials", "0"}, "--trials: expected a whole number from 1 to 100, got \"0\""},
          {{"--jobs", "x"}, "--jobs: expected a whole number from 1 to 256, got \"x\""},
          {{"--seed", "x"}, "--seed: expected a number from 0 on, got \"x\""},
          {{"--task"}, "--task: expected a value"},
          {{"--frobnicate", "3"}, "unknown option --frobnicate"},
          {{"--memory", "0"},
           "--memory: expected a size of 256MiB or more, such as 4GiB, got \"0\""},
          {{"--memory", "10"},
           "--memory: expected a size of 256MiB or more, such as 4GiB, got \"10\""},
          {{"--timing", "slow"}, "--timing: expected full or quick, got \"slow\""},
      });
}

TEST(WrongOptions, OfForgeAreReportedBeforeAnyWork) {
  expect_lines(
      {"forge", "--out", ::testing::TempDir() + "none/o"},
      {
          {{"--tasks", "1", "--samples", "1"}, "forge: give one of --tasks and --samples"},
          {{"--tasks", "1", "--families", "magic"},
           "--families: no family magic: there are attention, backward, broadcast, convolution, "
           "elementwise, indexing, integer, loss, matmul, normalisation, pooling, reduction, scan, "
           "softmax and all"},
          {{"--tasks", "1", "--operators", "rellu"},
           "--operators: no operator rellu; did you mean relu?"},
          {{"--tasks", "1", "--types", "int64"},
           "--types: no type int64: there are float32, float16 and bfloat16"},
          {{"--tasks", "1", "--test-share", "0.95"},
           "--test-share: expected a number from 0 to 0.9, got \"0.95\""},
          {{"--tasks", "1", "--bugs-share", "nan"},
           "--bugs-share: expected a number from 0 to 1, got \"nan\""},
          {{"--tasks", "1", "--seed", "-1"}, "--seed: expected a number from 0 on, got \"-1\""},
          {{"--tasks", "1", "--mix", "/dev/null/none"},
           "forge: --mix: /dev/null/none: no store /dev/null/none/store.sqlite"},
      });
}

TEST(WrongOptions, OfOtherCommandsAreReportedBeforeAnyWork) {
  expect_lines(
      {},
      {
          {{"optimize", "/dev/null"}, "optimize: give one of --model and --endpoint"},
          {{"optimize", "/dev/null", "--model", "a", "--endpoint", "b"},
           "optimize: give one of --model and --endpoint"},
          {{"optimize", "/dev/null", "--watch"},
           "optimize: --watch needs the file of a candidate behind the module's"},
          {{"optimize", "/dev/null", "/dev/null/none.py", "--watch"},
           "optimize: no file /dev/null/none.py"},
          {{"optimize", "/dev/null", "c.py", "--model", "a"},
           "optimize: a candidate's file needs --watch"},
          {{"report", "/dev/null/none"},
           "report: give --out PAGE.html, --markdown, --csv, --junit, --inspect, --json "
           "or --kernelbench"},
          {{"report", "/dev/null/none", "--csv", "/dev/null"}, "report: no store /dev/null/none"},
          {{"musify", "/dev/null/none.cu"}, "/dev/null/none.cu: no such file or folder"},
          {{"musify", "/dev/null/none.cu", "--to", "hip"},
           "--to: expected musa or cuda, got \"hip\""},
          {{"measure", "/dev/null/none.prepared"},
           "/dev/null/none.prepared: cannot read /dev/null/none.prepared: Not a directory"},
          {{"eval", "--out", "/tmp"}, "--out: /tmp is a folder: name a file"},
          {{"measure", "m", "--out", ""}, "--out: expected a file to write, got \"\""},
          {{"report", "s", "--json", "/dev/null/none/j"},
           "--json: cannot write /dev/null/none/j: the folder /dev/null/none is not there"},
          {{"import", "a.py", "--out", "/dev/null/none"},
           "--out: cannot write /dev/null/none: /dev/null is not a folder"},
          {{"prepare", "--candidate", "c.py"}, "--out is missing"},
          {{"import", "/dev/null/none"}, "--out is missing"},
          {{"task"}, "a subcommand is missing"},
          {{"musify", "a.cu", "--limit", "b"}, "unknown option --limit"},
          {{"optimize", "/dev/null/none.py"}, "optimize: no file /dev/null/none.py"},
          {{"task", "check", "/dev/null/none"},
           "task: not a task: \"/dev/null/none\"; give a .py file, suite:level/number or "
           "family/name; musacoder task list tasks shows what there is"},
      });
}

// Not-a-number is neither below nor above a bound, so ranges must reject it explicitly.
TEST(WrongOptions, NumericOptionsRejectNan) {
  CLI::App app{"test"};
  int exit_code = 0;
  add_commands(app, exit_code);
  int num_checked = 0;
  for (CLI::App* command : app.get_subcommands({})) {
    for (CLI::Option* option : command->get_options()) {
      const std::string type = option->get_type_name();
      const bool is_number = type == "FLOAT" || type == "INT" || type == "UINT" || type == "SIZE";
      if (!is_number || option->get_expected_max() > 1) continue;
      option->add_result("nan");
      EXPECT_THROW(option->run_callback(), CLI::Error)
          << command->get_name() << " " << option->get_name() << " " << type;
      option->clear();
      ++num_checked;
    }
  }
  EXPECT_GT(num_checked, 40);
}

// ---- All options --------------------------------------------------------------------------------

std::string names_of(const std::set<CLI::Option*>& options) {
  std::set<std::string> names;
  for (const CLI::Option* option : options) names.insert(option->get_name());
  return fmt::format("{}", fmt::join(names, " "));
}

// The replies of an option to some values: the values that it accepts, and for each error the
// values that have it.
std::string answers_of(CLI::Option& option) {
  const std::vector<std::string> values = {"",    "-1",   "0",   "1",   "2",      "15",   "16",
                                           "17",  "1.5",  "nan", "65",  "300",    "1e9",  "100000",
                                           "all", "1GiB", "/",   "a:b", "100001", "65536"};
  std::vector<std::string> accepted;
  std::map<std::string, std::vector<std::string>> rejected;
  for (const std::string& value : values) {
    option.clear();
    try {
      option.add_result(value);
      option.run_callback();
      accepted.push_back(fmt::format("{:?}", value));
    } catch (const CLI::Error& error) {
      std::string text = error.what();
      for (size_t at; !value.empty() && (at = text.find('"' + value + '"')) != std::string::npos;) {
        text.replace(at, value.size() + 2, "VALUE");
      }
      rejected[text].push_back(fmt::format("{:?}", value));
    }
  }
  option.clear();
  std::string text;
  if (accepted.size() < values.size() && !accepted.empty()) {
    text += fmt::format("    accepts {}\n", fmt::join(accepted, " "));
  }
  for (const auto& [error, some] : rejected) {
    text += fmt::format("    {} {}\n", fmt::join(some, " "), error);
  }
  return text;
}

std::string description_of(CLI::Option& option) {
  std::string text = fmt::format("  {}", option.get_name(/*positional=*/true, /*all=*/true));
  const auto add = [&](std::string_view name, const std::string& value) {
    if (!value.empty()) text += fmt::format(", {} {}", name, value);
  };
  add("in", option.get_group() == "Options" ? "" : option.get_group());
  add("takes", option.get_type_name());
  add("default", option.get_default_str());
  add("needs", names_of(option.get_needs()));
  add("excludes", names_of(option.get_excludes()));
  add("from", option.get_envname());
  if (option.get_required()) text += ", required";
  if (option.get_items_expected_max() != 1) {
    text += fmt::format(", {} to {} words", option.get_items_expected_min(),
                        option.get_items_expected_max());
  }
  return text + "\n";
}

std::string description_of(CLI::App& command, const std::string& path) {
  std::string text = path + "\n";
  for (CLI::Option* option : command.get_options()) {
    const std::string name = option->get_name();
    text += description_of(*option);
    // The values of these three are not read: they print a text or set the log's level.
    if (name == "--help" || name == "--version" || name == "--verbose") continue;
    text += answers_of(*option);
  }
  for (CLI::App* inner : command.get_subcommands({})) {
    text += description_of(*inner, path + " " + inner->get_name());
  }
  return text;
}

// All options of all commands, so that no change of a bound, a default or a link is unintended.
TEST(AllOptions, AreGolden) {
  const std::string path = MC_SOURCE_DIR "/src/cli/testdata/options.txt";
  CLI::App app{"test"};
  int exit_code = 0;
  add_commands(app, exit_code);
  const std::string golden = description_of(app, "musacoder");
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, golden));
  }
  EXPECT_EQ(golden, read_file(path, 1 << 20).value()) << "UPDATE_GOLDEN=1 renews the file.";
}

}  // namespace
}  // namespace mc::cli
