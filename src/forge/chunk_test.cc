// SPDX-License-Identifier: Apache-2.0
//
// Tests of whole chunks, with a verifier that does not compile.  The content of a chunk depends
// only on the settings and its number, so the bytes of some chunks are golden: a change of them
// needs another kChunksVersion.
#include "forge/chunk.h"

#include <cstdlib>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include <fmt/format.h>
#include <gmock/gmock.h>
#include <nlohmann/json.hpp>

#include "core/file.h"
#include "core/hash.h"
#include "forge/samples.h"
#include "forge/testing/fake_verifier.h"

namespace mc::forge {
namespace {

using ::testing::HasSubstr;
using Json = nlohmann::ordered_json;

const Library& chunk_library() {
  static const Library kLibrary = load_library(MC_SOURCE_DIR "/data/forge").value();
  return kLibrary;
}

Settings full_settings() {
  Settings settings;
  settings.seed = 17;
  settings.graph.families = chunk_library().families();
  settings.graph.style = Style::kFull;
  settings.graph.depth = 5;
  settings.graph.views_share = 0.3;
  settings.graph.types = {Type::kFloat32, Type::kFloat16, Type::kBfloat16};
  settings.bugs_share = 1;
  settings.lessons_share = 0.5;
  settings.variants_share = 0.5;
  settings.unit_tests = true;
  return settings;
}

Settings compact_settings() {
  Settings settings;
  settings.seed = 5;
  settings.graph.families = chunk_library().families();
  settings.graph.depth = 3;
  settings.solutions_max = 6;
  settings.bugs_share = 0.7;
  return settings;
}

Settings weighted_settings() {
  Settings settings = full_settings();
  settings.seed = 6;
  settings.graph.depth = 8;
  settings.graph.size = Size::kNative;
  settings.weights = {{"matmul", 2}, {"scan", 1}, {"integer", 1}};
  settings.test_share = 0.4;
  return settings;
}

// All numbers of a JSON text with five digits, because functions such as exp() differ in their last
// bits between machines.
std::string rounded_json(const Json& json) {
  if (json.is_number_float()) return fmt::format("{:.5g}", json.get<double>());
  if (!json.is_structured()) return json.dump();
  std::string text = json.is_object() ? "{" : "[";
  for (const auto& [key, value] : json.items()) text += key + ":" + rounded_json(value) + ",";
  return text + "}";
}

std::string rounded_probe(const std::string& text) {
  return text.empty() ? "" : rounded_json(Json::parse(text));
}

// The work that the forge sends to be verified, as a text.
std::string text_of_works(const std::vector<TaskWork>& works) {
  std::string text;
  for (const TaskWork& work : works) {
    text += fmt::format("# {} seed {}\n{}\n{}\n", work.task.id, work.seed, work.task.code,
                        rounded_probe(work.probe));
    for (const std::string& test : work.tests) text += rounded_probe(test) + "\n";
    for (const auto* attempts : {&work.attempts, &work.may_not_compile}) {
      for (const Attempt& attempt : *attempts) {
        text += attempt.candidate.id + "\n" + attempt.candidate.answer + attempt.module + "\n";
      }
    }
  }
  return text;
}

struct MadeChunk {
  std::string chunk;
  std::string works;
};

MadeChunk made_chunk(const Settings& settings, int number) {
  NoAuditor auditor;
  MadeChunk made;
  const auto chunk = make_chunk(
      settings, chunk_library(), number,
      [&](const std::vector<TaskWork>& works) {
        made.works = text_of_works(works);
        return fake_results(works);
      },
      0, auditor);
  EXPECT_TRUE(chunk) << (chunk ? "" : chunk.error().message);
  if (chunk) made.chunk = *chunk;
  return made;
}

TEST(Chunk, BytesAreGolden) {
  const std::string path = MC_SOURCE_DIR "/src/forge/testdata/chunks.txt";
  const std::map<std::string, Settings> kinds = {{"full", full_settings()},
                                                 {"compact", compact_settings()},
                                                 {"weighted", weighted_settings()}};
  std::string golden = fmt::format("version {}\n", kChunksVersion);
  for (const auto& [name, settings] : kinds) {
    golden += fmt::format("{} {}\n", name, content_hash({settings_text(settings)}));
    for (int number = 0; number < 6; ++number) {
      const MadeChunk made = made_chunk(settings, number);
      golden += fmt::format("{} {} {} {}\n", name, number, content_hash({made.works}),
                            content_hash({made.chunk}));
      const std::string base = fmt::format("{}chunk_{}_{}", testing::TempDir(), name, number);
      EXPECT_TRUE(write_file_atomically(base + ".works", made.works));
      EXPECT_TRUE(write_file_atomically(base + ".json", made.chunk));
    }
  }
  if (std::getenv("UPDATE_GOLDEN") != nullptr) {
    ASSERT_TRUE(write_file_atomically(path, golden));
  }
  EXPECT_EQ(golden, read_file(path, 1 << 20).value())
      << "The same settings give other chunks (" << testing::TempDir()
      << "chunk_*).  If that is intended, raise kChunksVersion and set UPDATE_GOLDEN=1.";
}

TEST(Chunk, HasAllKindsOfRows) {
  std::map<std::string, int> kinds;
  std::set<std::string> counts;
  for (int number = 0; number < 6; ++number) {
    const Json chunk = Json::parse(made_chunk(full_settings(), number).chunk);
    for (const Json& task : chunk["tasks"]) {
      for (const auto& [name, count] : task["counts"].items()) counts.insert(name);
      for (const Json& row : task["sft"]) {
        ++kinds[Json::parse(row.get<std::string>()).value("kind", "")];
      }
    }
  }
  for (const char* kind : {"review", "repair", "retry", "variants", "question"}) {
    EXPECT_GT(kinds[kind], 0) << kind;
  }
  for (const char* name : {"solutions", "tasks_with_three_solutions", "bugs", "bugs_confirmed",
                           "unit_tests", "unit_tests_dropped", "variants", "questions"}) {
    EXPECT_TRUE(counts.contains(name)) << name;
  }
}

// An auditor that gives the outcomes of the verifier, or another one.
class ChunkAuditor : public task::Evaluator {
 public:
  task::Verdict evaluate(const task::Task&, const task::Candidate& candidate) override {
    task::Verdict verdict;
    verdict.outcome = other ? *other : outcomes.at(candidate.answer);
    return verdict;
  }

  std::map<std::string, task::Outcome> outcomes;
  std::optional<task::Outcome> other;
};

Result<std::string> audited(ChunkAuditor& auditor) {
  return make_chunk(
      full_settings(), chunk_library(), 0,
      [&](const std::vector<TaskWork>& works) {
        auto results = fake_results(works);
        for (size_t i = 0; i < works.size(); ++i) {
          std::vector<const Attempt*> attempts;
          for (const Attempt& one : works[i].attempts) attempts.push_back(&one);
          for (const Attempt& one : works[i].may_not_compile) attempts.push_back(&one);
          for (size_t k = 0; k < (*results)[i].outcomes.size(); ++k) {
            auditor.outcomes[fenced(attempts[k]->module)] = (*results)[i].outcomes[k];
          }
        }
        return results;
      },
      1, auditor);
}

TEST(Chunk, IsAuditedByTheWholeEvaluation) {
  ChunkAuditor auditor;
  const auto chunk = audited(auditor);
  ASSERT_TRUE(chunk) << chunk.error().message;
  size_t num_audited = 0;
  const Json made = Json::parse(*chunk);
  for (const Json& task : made["tasks"]) {
    num_audited += task["counts"].value("audited", size_t{0});
  }
  EXPECT_GT(num_audited, 12U);
  auditor.other = task::Infra{};
  const auto failed = audited(auditor);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_THAT(failed.error().message, HasSubstr("the audit failed: infra"));
  auditor.other = task::TimedOut{};
  const auto differs = audited(auditor);
  ASSERT_FALSE(differs);
  EXPECT_EQ(differs.error().code, ErrorCode::kProtocol);
  EXPECT_THAT(differs.error().message, HasSubstr("the forge and MooreEval disagree on"));
}

}  // namespace
}  // namespace mc::forge
