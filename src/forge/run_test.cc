// SPDX-License-Identifier: Apache-2.0
//
// Tests of a run whose chunks are already in its store, so that nothing is compiled.
#include "forge/run.h"

#include <algorithm>
#include <filesystem>
#include <iterator>
#include <map>
#include <set>
#include <string>
#include <utility>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "forge/chunk.h"
#include "forge/testing/fake_verifier.h"
#include "store/store.h"

namespace mc::forge {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const Library& run_library() {
  static const Library kLibrary = load_library(MC_SOURCE_DIR "/data/forge").value();
  return kLibrary;
}

Settings run_settings() {
  Settings settings;
  settings.seed = 3;
  settings.graph.depth = 3;
  settings.bugs_share = 0.5;
  settings.lessons_share = 0.5;
  settings.unit_tests = true;
  settings.test_share = 0.4;
  settings.tasks = 20;
  return settings;
}

class ForgeRun : public testing::Test {
 protected:
  ForgeRun() : room_(std::move(TemporaryDirectory::create("forge").value())) {
    options_.settings = run_settings();
    options_.library = &run_library();
    options_.out = room_.path() / "out";
    options_.jobs = 3;
  }

  // Puts chunks into the store of the run.
  void store(const std::vector<std::string>& chunks) {
    auto folder = store::open_run(
        options_.out,
        {.name = "forge", .kind = "forge", .settings = settings_text(options_.settings)});
    ASSERT_TRUE(folder) << folder.error().message;
    for (size_t i = 0; i < chunks.size(); ++i) {
      ASSERT_TRUE(folder->run.put(fmt::format("chunk {:06}", i), chunks[i]));
    }
  }

  static const std::vector<std::string>& made_chunks() {
    static const std::vector<std::string> kChunks = [] {
      std::vector<std::string> chunks;
      NoAuditor auditor;
      for (int i = 0; i < 10; ++i) {  // More than any of these runs takes.
        chunks.push_back(
            make_chunk(run_settings(), run_library(), i, fake_results, 0, auditor).value());
      }
      return chunks;
    }();
    return kChunks;
  }

  Counts run() {
    const auto counts = forge::run(
        options_, [&](std::string_view note) { notes_.emplace_back(note); },
        [&](const Progress& progress) { progress_ = progress; });
    EXPECT_TRUE(counts) << (counts ? "" : counts.error().message);
    return counts ? *counts : Counts{};
  }

  std::string text(const std::string& name) const {
    const auto found = read_file(options_.out / name, 1 << 26);
    return found ? *found : "";
  }
  int64_t lines(const std::string& name) const {
    const std::string all = text(name);
    return std::count(all.begin(), all.end(), '\n');
  }
  size_t files(const std::string& folder) const {
    const fs::directory_iterator entries(options_.out / folder);
    return static_cast<size_t>(std::distance(begin(entries), end(entries)));
  }

  TemporaryDirectory room_;
  RunOptions options_;
  std::vector<std::string> notes_;
  Progress progress_;
};

// The tasks of the chunks that a run of this number of tasks takes, in order and without the
// duplicates.
std::vector<Json> chunk_tasks_of(const std::vector<std::string>& chunks, size_t num_tasks) {
  std::vector<Json> tasks;
  std::set<std::string> seen;
  for (const std::string& chunk : chunks) {
    const Json made = Json::parse(chunk);
    for (const Json& task : made["tasks"]) {
      if (tasks.size() < num_tasks && seen.insert(task["source"]).second) tasks.push_back(task);
    }
  }
  return tasks;
}

TEST_F(ForgeRun, WritesTheRowsOfItsChunks) {
  store(made_chunks());
  Counts counts = run();
  std::string sft, rl, test, unit_tests;
  std::map<std::string, int64_t> expected;
  for (const Json& task : chunk_tasks_of(made_chunks(), 20)) {
    const std::string split = task["split"];
    for (const Json& row : task["sft"]) sft += row.get<std::string>() + "\n";
    (split == "train" ? rl : test) += task["row"].get<std::string>() + "\n";
    if (task.contains("unit_tests")) unit_tests += task["unit_tests"].get<std::string>() + "\n";
    ++expected["tasks_" + split];
    expected["solutions"] += task["counts"]["solutions"].get<int64_t>();
    EXPECT_EQ(text("tasks/" + split + "/" + task["id"].get<std::string>() + ".py"),
              task["source"].get<std::string>());
  }
  EXPECT_EQ(text("sft.jsonl"), sft);
  EXPECT_EQ(text("rl.jsonl"), rl);
  EXPECT_EQ(text("test.jsonl"), test);
  EXPECT_EQ(text("unit_tests.jsonl"), unit_tests);
  EXPECT_EQ(counts["tasks"], 20);
  EXPECT_GT(counts["tasks_train"], 0);
  EXPECT_GT(counts["tasks_test"], 0);
  for (const auto& [name, count] : expected) EXPECT_EQ(counts[name], count) << name;
  EXPECT_EQ(counts["samples_sft"], lines("sft.jsonl"));
  EXPECT_EQ(files("tasks/train"), static_cast<size_t>(counts["tasks_train"]));
  EXPECT_EQ(files("tasks/test"), static_cast<size_t>(counts["tasks_test"]));
  EXPECT_GE(progress_.tasks, 20);
  EXPECT_GE(progress_.rows, lines("sft.jsonl"));
  EXPECT_GE(progress_.solutions, counts["solutions"]);

  const Json forge = Json::parse(text("forge.json"));
  EXPECT_EQ(forge["counts"], Json(counts));
  EXPECT_EQ(forge["settings"]["tasks"], 20);
  EXPECT_EQ(forge["settings"]["dialect"], "cuda");
  EXPECT_EQ(forge["settings"]["version"], kChunksVersion);
  EXPECT_FALSE(forge["settings"].contains("samples"));
  EXPECT_FALSE(forge["settings"].contains("mix"));
  int rejected = 0;
  for (const auto& [why, n] : forge["rejected"].items()) rejected += n.get<int>();
  int stored = 0;
  for (size_t i = 0; i < made_chunks().size() && stored < 20; ++i) {
    const Json chunk = Json::parse(made_chunks()[i]);
    for (const auto& [why, n] : chunk["rejected"].items()) rejected -= n.get<int>();
    stored += static_cast<int>(chunk["tasks"].size());
  }
  EXPECT_EQ(rejected, 0);
  EXPECT_EQ(counts["solutions_that_do_not_compile"], static_cast<int64_t>(forge["errors"].size()));
  const bool is_noted = std::ranges::any_of(notes_, [](const std::string& note) {
    return note.starts_with("error: solutions of the forge do not compile: ");
  });
  EXPECT_EQ(is_noted, !forge["errors"].empty());
}

TEST_F(ForgeRun, TheNumberOfJobsDoesNotChangeTheRows) {
  store(made_chunks());
  run();
  const std::string sft = text("sft.jsonl"), forge = text("forge.json");
  fs::remove_all(options_.out);
  options_.jobs = 1;
  store(made_chunks());
  run();
  EXPECT_EQ(text("sft.jsonl"), sft);
  EXPECT_EQ(text("forge.json"), forge);
}

TEST_F(ForgeRun, DuplicatesAreLeftOut) {
  const std::string& first = made_chunks()[0];
  const auto size = static_cast<int64_t>(Json::parse(first)["tasks"].size());
  std::vector<std::string> chunks = made_chunks();
  chunks.insert(chunks.begin(), first);
  store(chunks);
  Counts counts = run();
  EXPECT_EQ(counts["tasks"], 20);
  EXPECT_EQ(counts["duplicates"], size);
}

TEST_F(ForgeRun, EndsAtTheNumberOfSamples) {
  options_.samples = 30;
  store(made_chunks());
  run();
  EXPECT_GE(lines("sft.jsonl"), 30);
  // The last task is the one that reaches the number.
  const int64_t last = static_cast<int64_t>(
      chunk_tasks_of(made_chunks(), static_cast<size_t>(lines("rl.jsonl") + lines("test.jsonl")))
          .back()["sft"]
          .size());
  EXPECT_LT(lines("sft.jsonl") - last, 30);
  const Json forge = Json::parse(text("forge.json"));
  EXPECT_EQ(forge["settings"]["samples"], 30);
  EXPECT_FALSE(forge["settings"].contains("tasks"));
}

TEST_F(ForgeRun, RowsAreInTheRequestedDialect) {
  options_.dialects = Dialects::kMusa;
  store(made_chunks());
  Counts counts = run();
  EXPECT_EQ(counts["rows_musa"] + counts["rows_without_musa"] + counts["questions"],
            counts["samples_sft"] + counts["tasks"]);
  EXPECT_GT(counts["rows_musa"], 20);
  EXPECT_EQ(counts["rows_port"], 0);
  EXPECT_THAT(text("rl.jsonl"), HasSubstr("musa"));
  EXPECT_EQ(Json::parse(text("forge.json"))["settings"]["dialect"], "musa");
}

TEST_F(ForgeRun, WithBothDialectsATaskIsInOneOfThem) {
  options_.dialects = Dialects::kBoth;
  options_.mix = "the mix";
  store(made_chunks());
  Counts counts = run();
  EXPECT_GT(counts["rows_musa"], 0);
  EXPECT_GT(counts["rows_port"], 0);
  EXPECT_EQ(lines("sft.jsonl"), counts["samples_sft"] + counts["rows_port"]);
  EXPECT_EQ(lines("rl.jsonl") + lines("test.jsonl"), counts["tasks"]);
  const Json forge = Json::parse(text("forge.json"));
  EXPECT_EQ(forge["settings"]["dialect"], "both");
  EXPECT_EQ(forge["settings"]["mix"], "the mix");
}

TEST_F(ForgeRun, EndsAfterManyChunksWithoutATask) {
  const std::string empty = R"({"tasks": [], "rejected": {"why": 2}, "errors": []})";
  store(std::vector<std::string>(30, empty));
  Counts counts = run();
  EXPECT_EQ(counts["tasks"], 0);
  EXPECT_EQ(Json::parse(text("forge.json"))["rejected"]["why"], 40);  // 20 chunks.
}

TEST_F(ForgeRun, ADamagedChunkIsAnError) {
  options_.jobs = 1;
  store({made_chunks()[0], "[", made_chunks()[1]});
  const auto counts = forge::run(options_, [](std::string_view) {}, [](const Progress&) {});
  ASSERT_FALSE(counts);
  EXPECT_THAT(counts.error().message, HasSubstr("chunk 000001 in the store is damaged"));
}

TEST_F(ForgeRun, OtherSettingsAreRefused) {
  store(made_chunks());
  options_.settings.seed = 4;
  EXPECT_FALSE(forge::run(options_, [](std::string_view) {}, [](const Progress&) {}));
}

}  // namespace
}  // namespace mc::forge
