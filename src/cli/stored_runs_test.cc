// SPDX-License-Identifier: Apache-2.0
//
// Tests of commands on stored runs, which judge nothing: `report`, `bench` on answers that have
// their verdicts, and `forge` on chunks that are made.
#include <algorithm>
#include <filesystem>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "cli/bench_arguments.h"
#include "cli/testing/run_line.h"
#include "core/file.h"
#include "forge/run.h"
#include "sample/suite.h"
#include "store/store.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

constexpr const char* kTaskCode =
    "import torch\n\n\nclass Model(torch.nn.Module):\n    def forward(self, x):\n"
    "        return x + 1\n\n\ndef get_inputs():\n    return [torch.rand(8)]\n\n\n"
    "def get_init_inputs():\n    return []\n";

class StoredRuns : public testing::Test {
 protected:
  StoredRuns() : room_(std::move(TemporaryDirectory::create("runs").value())) {}

  std::string path(const std::string& name) const { return room_.path() / name; }
  std::string read(const std::string& name) const {
    const auto text = read_file(room_.path() / name, 1 << 24);
    return text ? *text : "";
  }
  void write(const std::string& name, const std::string& text) const {
    fs::create_directories(fs::path(path(name)).parent_path());
    EXPECT_TRUE(write_file_atomically(path(name), text));
  }

  // A store with runs of these names, each with two tasks of KernelBench and two answers.
  void store_runs(const std::string& folder, const std::vector<std::string>& names) const {
    auto store = store::Store::open(room_.path() / folder / store::kStoreName);
    ASSERT_TRUE(store) << store.error().message;
    for (const std::string& name : names) {
      auto run = (*store)->begin({.name = name, .kind = "bench", .settings = "{\"samples\":1}"});
      ASSERT_TRUE(run) << run.error().message;
      const std::vector<store::TaskRecord> tasks = {
          {"kernelbench:1/1", "level 1", {"matmul"}, kTaskCode},
          {"kernelbench:2/3", "level 2", {"softmax"}, kTaskCode}};
      ASSERT_TRUE(run->set_tasks(tasks));
      for (const auto& task : tasks) {
        ASSERT_TRUE(run->add(store::Answer{.key = {task.id, 0, 0}, .completion = "text"}));
        store::Judgement judgement;
        judgement.key = {task.id, 0, 0};
        judgement.verdict.task = task.id;
        const bool passes = task.level == "level 1";
        if (passes) judgement.verdict.outcome = task::Passed{};
        if (!passes) judgement.verdict.outcome = task::Wrong{};
        judgement.reward = passes ? 1 : -0.5;
        ASSERT_TRUE(run->add(judgement));
      }
    }
  }

  TemporaryDirectory room_;
};

// ---- report -------------------------------------------------------------------------------------

TEST_F(StoredRuns, AReportIsADocument) {
  store_runs("bench", {"m/one", "two"});
  const Ended ended = run_line({"report", path("bench"), "--json", path("d.json"), "--title", "T"});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  const auto document = nlohmann::json::parse(read("d.json"));
  EXPECT_THAT(document.dump(), HasSubstr("m/one"));
  EXPECT_THAT(document.dump(), HasSubstr("two"));
  const Ended one =
      run_line({"report", path("bench/store.sqlite"), "--json", path("e.json"), "--run", "two"});
  EXPECT_EQ(one.code, kExitDone) << one.err;
  EXPECT_THAT(read("e.json"), Not(HasSubstr("m/one")));
  EXPECT_THAT(read("e.json"), HasSubstr("two"));
}

TEST_F(StoredRuns, AReportIsAFolderOfKernelBench) {
  store_runs("bench", {"m/one"});
  const Ended ended = run_line({"report", path("bench"), "--kernelbench", path("kb")});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  EXPECT_EQ(ended.out, path("kb/m_one_level1/eval_results.json") + "\n" +
                           path("kb/m_one_level2/eval_results.json") + "\n");
  EXPECT_NE(read("kb/m_one_level1/eval_results.json"), "");
}

TEST_F(StoredRuns, AReportNeedsRuns) {
  store_runs("bench", {"one"});
  EXPECT_THAT(run_line({"report", path("bench"), "--json", path("d"), "--run", "none"}).err,
              HasSubstr("--run: no run none in the stores"));
  auto store = store::Store::open(room_.path() / "empty" / store::kStoreName);
  ASSERT_TRUE(store);
  ASSERT_TRUE((*store)->begin({.name = "x", .kind = "forge", .settings = "{}"}));
  store->reset();
  EXPECT_THAT(run_line({"report", path("empty"), "--json", path("d")}).err,
              HasSubstr("no run in the stores"));
  EXPECT_THAT(run_line({"report", path("bench"), "--manifest", path("m")}).err,
              HasSubstr("--parquet and --manifest are for folders of forge and import"));
}

TEST_F(StoredRuns, ADataSetHasACard) {
  write("rows/forge.json", "{}");
  write("more/import.json", "{}");
  const Ended ended = run_line({"report", path("rows"), path("more"), "--csv", path("c")});
  EXPECT_EQ(ended.code, kExitInput);
  EXPECT_THAT(ended.err, HasSubstr("give --out CARD.html, --parquet or --manifest"));
}

TEST_F(StoredRuns, ARunWithoutAVerdictIsNoted) {
  {
    auto store = store::Store::open(room_.path() / "new" / store::kStoreName);
    ASSERT_TRUE(store);
    auto run = (*store)->begin({.name = "fresh", .kind = "bench", .settings = "{}"});
    ASSERT_TRUE(run);
    const std::vector<store::TaskRecord> tasks = {{"t", "", {}, kTaskCode}};
    ASSERT_TRUE(run->set_tasks(tasks));
  }
  const Ended ended = run_line({"report", path("new"), "--json", path("d.json")});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("report: the run fresh has no verdict yet"));
}

// ---- bench --------------------------------------------------------------------------------------

class StoredBench : public StoredRuns {
 protected:
  // A suite of three tasks, and an answer to each of them.
  StoredBench() {
    std::string answers;
    for (const char* name : {"a", "b", "c"}) {
      write(fmt::format("suite/{}.py", name), kTaskCode);
      answers +=
          nlohmann::json{{"id", name}, {"sample", 0}, {"completion", "no code"}}.dump() + "\n";
    }
    write("answers.jsonl", answers);
  }

  Ended bench(const std::vector<std::string>& more = {}) const {
    std::vector<std::string> words = {
        "bench", "--answers", path("answers.jsonl"), "--suite", path("suite"),
        "--out", path("out"), "--backend",           "cpu",     "--jobs",
        "1"};
    words.insert(words.end(), more.begin(), more.end());
    return run_line(words);
  }

  // Stores the answers with their verdicts, so that the command has nothing left to judge: the
  // answer to task a passes, and the others are wrong.
  void store_verdicts() const {
    BenchArguments arguments;
    arguments.answers = path("answers.jsonl");
    arguments.judging.options.backend = task::Backend::kCpu;
    const auto items = sample::load_bench_suite(path("suite"));
    ASSERT_TRUE(items) << items.error().message;
    ASSERT_EQ(items->size(), 3U);
    auto store = store::Store::open(room_.path() / "out" / store::kStoreName);
    ASSERT_TRUE(store) << store.error().message;
    auto run = (*store)->begin(
        {.name = name_of(arguments), .kind = "bench", .settings = settings_of(arguments, *items)});
    ASSERT_TRUE(run) << run.error().message;
    for (const sample::Item& item : *items) {
      store::Judgement judgement;
      judgement.key = {item.task.id, 0, 0};
      judgement.verdict.task = item.task.id;
      const bool passes = item.task.id.ends_with('a');
      if (passes) judgement.verdict.outcome = task::Passed{};
      if (!passes) judgement.verdict.outcome = task::Wrong{};
      judgement.reward = passes ? 1 : 0;
      ASSERT_TRUE(run->add(store::Answer{
          .key = judgement.key, .completion = "no code", .finish = passes ? "length" : ""}));
      ASSERT_TRUE(run->add(judgement));
    }
  }
};

TEST_F(StoredBench, TheFiguresAreReported) {
  store_verdicts();
  const Ended ended = bench({"--prices", "0.5,1.5", "--details"});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr("correct 33.3 % of 3 scored"));
  EXPECT_THAT(ended.out, HasSubstr("1 cut off at the limit of tokens (--max-tokens)"));
  const auto lines = [&](const std::string& name) {
    const std::string text = read(name);
    return std::count(text.begin(), text.end(), '\n');
  };
  EXPECT_EQ(lines("out/answers.jsonl"), 3);
  EXPECT_EQ(lines("out/verdicts.jsonl"), 3);
  EXPECT_TRUE(nlohmann::json::accept(read("out/summary.json")));
  const Ended short_text = bench();
  EXPECT_LT(short_text.out.size(), ended.out.size());  // Without --details.
}

TEST_F(StoredBench, EventsAreOnStandardOutput) {
  store_verdicts();
  const Ended ended = bench({"--json"});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  const auto event = nlohmann::json::parse(ended.out);
  EXPECT_EQ(event["event"], "end");
  EXPECT_EQ(event["run"], "answers");
  EXPECT_TRUE(event.contains("summary"));
  EXPECT_THAT(ended.err, HasSubstr("correct 33.3 % of 3 scored"));
  const Ended failed = bench({"--json", "--problem", "z"});
  EXPECT_EQ(failed.code, kExitInput);
  EXPECT_THAT(nlohmann::json::parse(failed.out)["error"].get<std::string>(),
              HasSubstr("the suite has no task"));
}

TEST_F(StoredBench, RunsAreCompared) {
  store_verdicts();
  fs::copy(path("out"), path("other"));
  const Ended ended = bench({"--against", path("other")});
  EXPECT_THAT(ended.out, HasSubstr("against " + path("other") +
                                   ", 3 tasks of both: 33.3 % there, 33.3 % here, difference +0.0 "
                                   "points"));
  EXPECT_THAT(bench({"--against", path("other") + "#answers"}).out, HasSubstr("3 tasks of both"));
  EXPECT_THAT(bench({"--against", path("other") + "#none"}).err,
              HasSubstr("--against: " + path("other") + " has no such run"));
}

TEST_F(StoredBench, AnotherAnswerIsRefused) {
  store_verdicts();
  write("answers.jsonl", R"({"id": "a", "sample": 0, "completion": "other"})"
                         "\n");
  const Ended ended = bench();
  EXPECT_EQ(ended.code, kExitInput);
  EXPECT_THAT(ended.err, HasSubstr("the run \"answers\" has another answer "));
}

TEST_F(StoredBench, ChoosesTasks) {
  EXPECT_THAT(bench({"--problem", "z"}).err,
              HasSubstr("the suite has no task of that --level, --family or --problem"));
  EXPECT_THAT(bench({"--level", "1"}).err, HasSubstr("the suite has no task of that"));
  EXPECT_THAT(bench({"--family", "matmul"}).err, HasSubstr("the suite has no task of that"));
}

// ---- forge --------------------------------------------------------------------------------------

class StoredForge : public StoredRuns {
 protected:
  // The chunk of two tasks.
  static std::string chunk(int first) {
    nlohmann::ordered_json tasks = nlohmann::ordered_json::array();
    for (int i = first; i < first + 2; ++i) {
      tasks.push_back({{"id", fmt::format("forge_{}", i)},
                       {"source", fmt::format("# {}\n", i)},
                       {"structure", fmt::format("s{}", i)},
                       {"split", i == 1 ? "test" : "train"},
                       {"sft", {"{\"a\":1}", "{\"b\":2}"}},
                       {"row", "{\"c\":3}"},
                       {"counts", {{"solutions", 2}}}});
    }
    return nlohmann::ordered_json{{"tasks", tasks},
                                  {"rejected", nlohmann::json::object()},
                                  {"errors", nlohmann::json::array()}}
        .dump();
  }

  // Stores chunks under the settings that a command line gives.
  void store_chunks(const forge::Settings& settings) const {
    auto folder = store::open_run(
        room_.path() / "rows",
        {.name = "forge", .kind = "forge", .settings = forge::settings_text(settings)});
    ASSERT_TRUE(folder) << folder.error().message;
    for (int i = 0; i < 4; ++i) {
      ASSERT_TRUE(folder->run.put(fmt::format("chunk {:06}", i), chunk(2 * i)));
    }
  }

  Ended forge(const std::vector<std::string>& more) const {
    std::vector<std::string> words = {"forge", "--out", path("rows")};
    words.insert(words.end(), more.begin(), more.end());
    return run_line(words);
  }
};

TEST_F(StoredForge, TheCountsArePrinted) {
  forge::Settings settings;
  settings.seed = 9;
  store_chunks(settings);
  const Ended ended = forge({"--tasks", "3", "--seed", "9"});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  EXPECT_THAT(ended.out, HasSubstr(fmt::format("{:<40} 3\n", "tasks")));
  EXPECT_THAT(ended.out, HasSubstr(fmt::format("{:<40} 1\n", "tasks_test")));
  EXPECT_EQ(read("rows/sft.jsonl"),
            "{\"a\":1}\n{\"b\":2}\n{\"a\":1}\n{\"b\":2}\n{\"a\":1}\n{\"b\":2}\n");
}

TEST_F(StoredForge, TheOptionsAreTheSettings) {
  forge::Settings settings;
  settings.graph.families = {"softmax", "scan"};
  settings.graph.operators = {"relu"};
  settings.graph.types = {forge::Type::kFloat16, forge::Type::kBfloat16};
  settings.graph.depth = 7;
  settings.graph.style = forge::Style::kFull;
  settings.graph.size = forge::Size::kLarge;
  settings.graph.views_share = 0.25;
  settings.solutions_max = 3;
  settings.test_share = 0.5;
  settings.bugs_share = settings.lessons_share = 1;
  settings.variants_share = 0.25;
  settings.unit_tests = true;
  settings.weights = {{"scan", 1}, {"softmax", 1}};
  store_chunks(settings);
  const Ended ended = forge({"--samples",     "3",
                             "--families",    "softmax,scan",
                             "--operators",   "relu",
                             "--types",       "float16,bfloat16",
                             "--depth",       "7",
                             "--style",       "full",
                             "--size",        "large",
                             "--views-share", "0.25",
                             "--solutions",   "3",
                             "--test-share",  "0.5",
                             "--all-kinds",   "--unit-tests",
                             "--mix",         "balanced"});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  const auto json = nlohmann::json::parse(read("rows/forge.json"));
  EXPECT_EQ(json["settings"]["samples"], 3);
  EXPECT_EQ(json["settings"]["mix"], "balanced");
}

TEST_F(StoredForge, InCompactStyleAllKindsHaveNoVariants) {
  forge::Settings settings;
  settings.bugs_share = settings.lessons_share = 1;
  store_chunks(settings);
  EXPECT_EQ(forge({"--tasks", "1", "--all-kinds"}).code, kExitDone);
  EXPECT_THAT(forge({"--tasks", "1", "--variants-share", "0.1"}).err,
              HasSubstr("--variants-share: variants need --style full"));
  EXPECT_THAT(forge({"--tasks", "1", "--types", "int32"}).err, HasSubstr("no type int32"));
}

TEST_F(StoredForge, TheMixComesFromARunOfBench) {
  // At level 1 one of one passes, at level 2 none of one.
  store_runs("bench", {"m"});
  store_chunks({});  // Chunks of other settings end the command before it draws tasks.
  const Ended ended =
      forge({"--tasks", "1", "--families", "matmul,softmax", "--mix", path("bench")});
  EXPECT_EQ(ended.code, kExitInput);
  EXPECT_THAT(ended.err, HasSubstr("musacoder: matmul: 1 of 1 passed, weight "));
  EXPECT_THAT(ended.err, HasSubstr("musacoder: softmax: 0 of 1 passed, weight "));
}

}  // namespace
}  // namespace mc::cli
