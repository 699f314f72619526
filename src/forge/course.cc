// SPDX-License-Identifier: Apache-2.0
#include "forge/course.h"

#include <algorithm>
#include <chrono>
#include <future>
#include <map>
#include <utility>

#include "core/check.h"
#include "core/hash.h"
#include "legality/extract.h"

namespace mc::forge {
namespace {

constexpr size_t kBatchMax = 16;
constexpr std::chrono::milliseconds kBurst{50};  // A batch takes seconds.
constexpr std::string_view kOpening = "r\"\"\"";
constexpr std::string_view kClosing = "\"\"\"";

task::Outcome no_form() {
  return task::Unextractable{"no_code", "the module has no r\"\"\" text with CUDA source", {}};
}

// Macros hold for all answers of a unit.
bool defines_macros(std::string_view cuda) {
  return cuda.find("#define") != std::string_view::npos ||
         cuda.find("#undef") != std::string_view::npos;
}

}  // namespace

std::optional<std::string> cuda_of(const std::string& module) {
  const size_t opening = module.find(kOpening);
  if (opening == std::string::npos) return std::nullopt;
  const size_t begin = opening + kOpening.size();
  const size_t end = module.find(kClosing, begin);
  if (end == std::string::npos) return std::nullopt;
  if (module.find(kOpening, end + kClosing.size()) != std::string::npos) return std::nullopt;
  return module.substr(begin, end - begin);
}

Course::Course(std::vector<std::unique_ptr<BatchVerifier>> bulks, const CourseOptions& options)
    : options_(options), bulks_(std::move(bulks)) {
  for (const auto& bulk : bulks_) threads_.emplace_back([this, &bulk] { work(*bulk); });
}

Result<std::unique_ptr<Course>> Course::create(const CourseOptions& options,
                                               const BatchVerifier::Progress& progress) {
  MC_CHECK(options.num_workers > 0);
  std::vector<std::unique_ptr<BatchVerifier>> bulks;
  bulks.emplace_back();
  MC_TRY(bulks.back(), BatchVerifier::create(progress), "course");
  // A start takes a second or two, so the others start at once when the first has prepared all.
  std::vector<std::future<Result<std::unique_ptr<BatchVerifier>>>> others;
  for (int i = 1; i < options.num_workers; ++i) {
    others.push_back(
        std::async(std::launch::async, [&] { return BatchVerifier::create(progress); }));
  }
  for (auto& other : others) {
    MC_TRY(auto bulk, other.get(), "course");
    bulks.push_back(std::move(bulk));
  }
  return std::unique_ptr<Course>(new Course(std::move(bulks), options));
}

Course::~Course() {
  {
    const std::lock_guard lock(mutex_);
    MC_CHECK(waiting_.empty());  // Whoever waits would wait for ever.
    is_closing_ = true;
  }
  changed_.notify_all();
  for (std::thread& thread : threads_) thread.join();
}

Result<task::Verdict> Course::judge(const task::Task& task, const task::Candidate& candidate) {
  task::Verdict verdict;
  verdict.task = task.id;
  verdict.candidate = candidate.id;
  verdict.seed = options_.seed;
  verdict.protocol.policy = "bulk";
  legality::Extraction extracted = legality::extract(candidate.answer);
  if (auto* reason = std::get_if<task::Unextractable>(&extracted)) {
    verdict.outcome = std::move(*reason);
    return verdict;
  }
  Waiting waiting{&task, {std::get<legality::Extracted>(std::move(extracted)).module, ""}};
  verdict.candidate_hash = content_hash({waiting.attempt.module});
  auto cuda = cuda_of(waiting.attempt.module);
  if (!cuda) {
    verdict.outcome = no_form();
    return verdict;
  }
  waiting.attempt.cuda = *std::move(cuda);
  std::unique_lock lock(mutex_);
  waiting_.push_back(&waiting);
  changed_.notify_all();
  changed_.wait(lock, [&] { return waiting.outcome.has_value(); });
  MC_TRY(verdict.outcome, std::move(*waiting.outcome), "course");
  return verdict;
}

void Course::work(BatchVerifier& bulk) {
  while (true) {
    const std::vector<Waiting*> batch = take();
    if (batch.empty()) return;
    verify(bulk, batch);
  }
}

// The first that waits, with all others to its task, and further tasks as far as they fit: each
// batch prepares each of its tasks once.  Answers come in bursts, of which the first is not taken
// before the others are there.
std::vector<Course::Waiting*> Course::take() {
  std::unique_lock lock(mutex_);
  std::vector<Waiting*> batch;
  do {
    changed_.wait(lock, [&] { return is_closing_ || !waiting_.empty(); });
    if (waiting_.empty()) return batch;
    changed_.wait_for(lock, kBurst, [&] { return waiting_.size() >= kBatchMax * bulks_.size(); });
  } while (waiting_.empty());  // Others took them.
  const size_t fair = (waiting_.size() + bulks_.size() - 1) / bulks_.size();
  const size_t wanted = std::min(kBatchMax, fair);
  while (!waiting_.empty() && batch.size() < wanted) {
    const std::string code = waiting_.front()->task->code;
    const auto others = std::ranges::stable_partition(
        waiting_, [&](const Waiting* one) { return one->task->code == code; });
    const auto all = static_cast<size_t>(others.begin() - waiting_.begin());
    if (!batch.empty() && batch.size() + all > wanted) break;
    const auto end = waiting_.begin() + static_cast<ptrdiff_t>(std::min(all, wanted));
    batch.insert(batch.end(), waiting_.begin(), end);
    waiting_.erase(waiting_.begin(), end);
  }
  return batch;
}

void Course::verify(BatchVerifier& bulk, const std::vector<Waiting*>& batch) {
  std::vector<TaskWork> works;
  std::map<std::string, size_t> places;
  struct CompiledFunction {
    size_t work = 0;
    bool is_alone = false;
    size_t number = 0;
  };
  std::vector<CompiledFunction> homes;
  for (const Waiting* one : batch) {
    const auto [place, is_new] = places.emplace(one->task->code, works.size());
    if (is_new) {
      works.emplace_back();
      works.back().source = one->task->code;
      works.back().seed = derive_seed(options_.seed, one->task->code);
      works.back().explains = options_.explains;
    }
    TaskWork& work = works[place->second];
    const bool is_alone = defines_macros(one->attempt.cuda);
    auto& attempts = is_alone ? work.may_not_compile : work.attempts;
    homes.push_back({place->second, is_alone, attempts.size()});
    attempts.push_back(one->attempt);
  }
  const auto results = bulk.verify(works);
  const std::lock_guard lock(mutex_);
  for (size_t i = 0; i < batch.size(); ++i) {
    if (!results) {
      batch[i]->outcome = Result<task::Outcome>(results.error());
      continue;
    }
    const CompiledFunction& home = homes[i];
    const TaskResult& result = (*results)[home.work];
    const size_t first = home.is_alone ? works[home.work].attempts.size() : 0;
    batch[i]->outcome = result.gate.empty()
                            ? result.outcomes[first + home.number]
                            : task::Outcome(task::Unsupported{{{"task.gate", result.gate[0], {}}}});
  }
  changed_.notify_all();
}

}  // namespace mc::forge
