// SPDX-License-Identifier: Apache-2.0
//
// BenchFolder: what a benchmark has on disk, and where it goes on.
//
//   bench.json      what is measured: suite, source of answers, how they are judged
//   answers.jsonl   an answer a line (answers.h)
//   verdicts.jsonl  {"id", "sample", "turn", "reward", "seconds", "verdict"} a line
//   summary.json    the figures, at the end
//
// A folder belongs to one benchmark: opened for another one it is refused.  A verdict of `infra`
// says nothing and is not kept for good: its answer is judged again when the folder is opened
// again.
//
//   MC_TRY(auto folder, BenchFolder::open(out, settings), "--out");
//   for (const Answer& answer : folder->answers()) if (!folder->is_judged(answer.key)) …
#ifndef MC_SAMPLE_BENCH_FOLDER_H_
#define MC_SAMPLE_BENCH_FOLDER_H_

#include <filesystem>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <vector>

#include "core/result.h"
#include "sample/answers.h"
#include "sample/line_file.h"
#include "task/verdict.h"

namespace mc::sample {

struct Judgement {
  AnswerKey key;
  std::optional<double> reward;
  double seconds = 0;
  task::Verdict verdict;
};
std::string json_line(const Judgement& judgement);
Result<Judgement> judgement_from_json(std::string_view line);

class BenchFolder {
 public:
  // `settings` is one line of JSON that says all that the figures depend on.
  // kInvalidInput where the folder holds a benchmark with others, or what is no benchmark.
  static Result<std::unique_ptr<BenchFolder>> open(const std::filesystem::path& path,
                                                   const std::string& settings);
  // The verdicts of a benchmark that ran, to be compared with; the last of each answer.
  static Result<std::vector<Judgement>> load_judgements(const std::filesystem::path& path);

  const std::filesystem::path& path() const { return path_; }
  std::filesystem::path answers_path() const { return path_ / "answers.jsonl"; }

  // Thread-safe, all of them.
  bool is_answered(const AnswerKey& key) const;
  bool is_judged(const AnswerKey& key) const;
  std::vector<Answer> answers() const;        // By key.
  std::vector<Judgement> judgements() const;  // By key.
  Status add(Answer answer);
  Status add(Judgement judgement);

  // Reads answers again, that another program appended.
  Status reload_answers();
  Status write_summary(const std::string& json) const;

 private:
  explicit BenchFolder(std::filesystem::path path) : path_(std::move(path)) {}
  Status open_files();

  const std::filesystem::path path_;
  mutable std::mutex mutex_;  // Guards the rest.
  std::map<AnswerKey, Answer> answers_;
  std::map<AnswerKey, Judgement> judgements_;
  std::optional<LineFile> answers_file_;
  std::optional<LineFile> judgements_file_;
};

}  // namespace mc::sample

#endif  // MC_SAMPLE_BENCH_FOLDER_H_
