// SPDX-License-Identifier: Apache-2.0
//
// A simulation of machines that judge KernelBench's tasks under the schedule, in virtual time.  It
// tests the schedule and not the speed of a machine: the times of the stages are rounded figures of
// an H100 with 16 cores (lab/), the same in all runs.
#include <algorithm>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <queue>
#include <random>
#include <utility>
#include <vector>

#include <gtest/gtest.h>

#include "eval/memory_need.h"
#include "eval/pipeline.h"
#include "eval/schedule.h"

namespace mc::eval {
namespace {

// The size in MiB of a task's inputs, outputs and weights.
struct TaskSizes {
  int64_t inputs;
  int64_t outputs;
  int64_t state;
};

// 169 tasks of the three levels, by the shapes of their tensors.
// clang-format off
constexpr TaskSizes kTasksOfToday[] = {
    {128, 64, 0}, {192, 32, 0}, {8196, 0, 0}, {4096, 4096, 0}, {1024, 0, 0}, {16, 4096, 0},
    {8, 4096, 0}, {134, 48, 0}, {1025, 3072, 0}, {64, 64, 0}, {128, 64, 0}, {128, 64, 0},
    {192, 32, 0}, {192, 32, 0}, {6144, 6144, 0}, {6144, 6144, 0}, {6144, 6144, 0}, {6144, 6144, 0},
    {6144, 6144, 0}, {6144, 6144, 0}, {6144, 6144, 0}, {6144, 6144, 0}, {6144, 6144, 0},
    {6144, 6144, 0}, {6144, 6144, 0}, {6144, 6144, 0}, {7168, 7168, 0}, {7168, 7168, 0},
    {7168, 7168, 0}, {7168, 7168, 0}, {8192, 8192, 0}, {256, 256, 32}, {3072, 3071, 0},
    {2048, 2040, 0}, {2048, 2048, 0}, {16384, 135, 0}, {8192, 1024, 0}, {8190, 2, 0}, {8190, 2, 0},
    {147, 284, 0}, {8190, 4, 0}, {8190, 4, 0}, {48, 931, 0}, {1024, 2036, 0}, {256, 496, 1},
    {2048, 2056, 0}, {120, 2520, 0}, {48, 843, 0}, {384, 421, 0}, {256, 500, 0}, {2048, 2048, 0},
    {512, 520, 0}, {24, 414, 0}, {1024, 2048, 0}, {512, 1056, 0}, {1296, 689, 0}, {512, 515, 0},
    {14, 108, 0}, {512, 1024, 0}, {64, 769, 0}, {8192, 5461, 0}, {32, 545, 0}, {256, 1024, 0},
    {256, 492, 0}, {16, 793, 0}, {1024, 1016, 0}, {4096, 4048, 0}, {512, 492, 0}, {1024, 2048, 0},
    {4096, 8192, 0}, {4096, 4096, 0}, {4096, 4096, 0}, {4096, 4096, 0}, {4096, 4096, 0},
    {8192, 0, 0}, {512, 0, 0}, {8192, 0, 0}, {6144, 2048, 0}, {3072, 0, 0}, {4096, 0, 0},
    {512, 2048, 0}, {64, 128, 0}, {512, 2056, 0}, {256, 901, 0}, {256, 0, 0}, {2048, 0, 0},
    {32, 32, 256}, {512, 64, 0}, {16, 240, 0}, {512, 992, 0}, {32, 0, 256}, {32, 512, 0},
    {32, 0, 256}, {36, 0, 0}, {512, 32, 0}, {192, 0, 0}, {64, 32, 256}, {32, 32, 256},
    {1024, 16, 0}, {32, 32, 256}, {512, 248, 0}, {128, 512, 16}, {512, 1024, 0}, {256, 256, 64},
    {1024, 0, 0}, {256, 1, 0}, {128, 0, 48}, {256, 450, 0}, {96, 420, 0}, {24, 113, 0},
    {256, 496, 0}, {64, 64, 256}, {16, 0, 4096}, {64, 496, 0}, {24, 60, 0}, {24, 961, 0},
    {32, 32, 256}, {32, 32, 256}, {576, 0, 0}, {256, 0, 0}, {8, 8, 1024}, {32, 32, 256},
    {24, 13, 0}, {64, 496, 0}, {32, 32, 256}, {64, 0, 4}, {64, 0, 1}, {32, 0, 256}, {256, 124, 0},
    {96, 420, 0}, {64, 30, 0}, {256, 2016, 0}, {32, 32, 256}, {256, 1682, 0}, {64, 8, 0},
    {128, 1056, 1}, {32, 32, 256}, {32, 32, 256}, {32, 0, 256}, {216, 3314, 1}, {8, 4, 2560},
    {32, 32, 124}, {16, 0, 0}, {919, 980, 1}, {6, 122, 0}, {1, 0, 45}, {6, 0, 528}, {1024, 512, 0},
    {61, 429, 1}, {6, 0, 115}, {192, 0, 5}, {6, 0, 16}, {214, 92, 1}, {7, 0, 10}, {1, 0, 26},
    {6, 0, 13}, {1, 0, 78}, {16, 16, 0}, {32, 8, 2560}, {8, 1, 1}, {3, 0, 12}, {3, 0, 33},
    {3, 5, 9}, {3, 10, 25}, {192, 192, 13}, {192, 192, 31}, {400, 128, 0}, {512, 512, 264},
    {512, 64, 264},
};
// clang-format on

constexpr int64_t kDeviceBytes = int64_t{80} << 30;
// One pass generates, copies or compares tensors.
constexpr int64_t kPassMiBPerMs = 200;

// ---- The stages of an evaluation ----------------------------------------------------------------

struct Stage {
  enum Kind { kHost, kCompute, kPlace, kMemory, kTurn, kPause, kEndTurn, kEndMemory } kind;
  int64_t amount = 0;  // Milliseconds of a core or of the device, or bytes.
  Schedule::Use use = Schedule::Use::kShared;
};

// The work for a candidate that passes and is timed for a reward.
std::vector<Stage> stages_of(const TaskSizes& sizes) {
  constexpr int64_t kMiB = int64_t{1} << 20;
  const worker::CallMemory call{
      .inputs = sizes.inputs * kMiB, .outputs = sizes.outputs * kMiB, .state = sizes.state * kMiB};
  const int64_t capacity = capacity_of(kDeviceBytes);
  const int64_t io_ms = (sizes.inputs + sizes.outputs) / kPassMiBPerMs;
  const int64_t state_ms = sizes.state / kPassMiBPerMs;
  using enum Stage::Kind;
  std::vector<Stage> stages{{kHost, 1000},  // Inspector and recorder.
                            {kPlace},
                            {kMemory, need_of_opening(call, capacity)},
                            {kTurn},  // Open the task.
                            {kHost, 800},
                            {kCompute, 2 * io_ms + state_ms},
                            {kEndTurn},
                            {kTurn},  // Begin the candidate.
                            {kHost, 500},
                            {kCompute, io_ms},
                            {kEndTurn},
                            {kEndMemory},
                            {kMemory, need_of_trials(call, 3)},
                            {kTurn},
                            {kHost, 400}};
  for (int trial = 0; trial < 5; ++trial) {
    stages.insert(stages.end(), {{kHost, 80},
                                 {kCompute, state_ms},
                                 {kPause},
                                 {kHost, 70},
                                 {kCompute, io_ms / 2},
                                 {kPause},
                                 {kHost, 60},
                                 {kCompute, io_ms},
                                 {kPause}});
  }
  stages.insert(stages.end(), {{kEndTurn},
                               {kEndMemory},
                               {kMemory, need_of_timing(call, capacity)},
                               {kTurn},  // Warm up.
                               {kHost, 200},
                               {kCompute, io_ms},
                               {kPause},
                               {kHost, 200},
                               {kCompute, io_ms},
                               {kEndTurn},
                               {kTurn, 0, Schedule::Use::kExclusive},
                               {kCompute, 300},
                               {kEndTurn},
                               {kTurn},  // Compare the outputs.
                               {kHost, 100},
                               {kCompute, 2 * io_ms},
                               {kEndTurn},
                               {kEndMemory}});
  return stages;
}

// ---- The machine --------------------------------------------------------------------------------

struct Size {
  size_t num_devices = 1;
  size_t jobs_a_device = 1;
  size_t cores_a_device = 16;
};

class Simulation {
 public:
  Simulation(const Size& size, const std::vector<TaskSizes>& tasks)
      : tasks_(tasks),
        schedule_(std::vector<int64_t>(size.num_devices, capacity_of(kDeviceBytes))),
        cores_{size.num_devices * size.cores_a_device},
        compute_(size.num_devices, Server{1}),
        jobs_(size.num_devices * size.jobs_a_device) {
    for (Job& job : jobs_) ready_.push_back(&job);
    while (!ready_.empty() || !events_.empty()) {
      if (ready_.empty()) end_of_service();
      Job* job = ready_.front();
      ready_.pop_front();
      go_on(*job);
    }
  }

  double verdicts_a_minute() const {
    return 60'000.0 * static_cast<double>(tasks_.size()) / static_cast<double>(now_ms_);
  }
  // The longest wait of a small task, in multiples of the time that it takes alone.  A small task
  // needs at most an eighth of the device's memory.
  double longest_wait() const { return longest_wait_; }

 private:
  struct Job {
    std::vector<Stage> stages;
    size_t next = 0;
    std::optional<Schedule::Id> place, memory, turn;
    int64_t waits_since_ms = 0;
    int64_t waited_ms = 0;
  };
  struct Server {  // Serves several jobs at once, in the order of arrival.
    size_t num_free;
    std::deque<Job*> waiting{};
  };
  struct Event {
    int64_t time_ms;
    int64_t number;
    Job* job;
    Server* server;
    bool operator<(const Event& other) const {
      return std::pair(time_ms, number) > std::pair(other.time_ms, other.number);
    }
  };

  // Runs the stages up to the first one that takes time or blocks.
  void go_on(Job& job) {
    while (job.next < job.stages.size()) {
      if (!has_passed(job, job.stages[job.next++])) return;
    }
    if (job.place) end(job);
    if (next_task_ == tasks_.size()) return;
    job = {.stages = stages_of(tasks_[next_task_++]), .place = {}, .memory = {}, .turn = {}};
    ready_.push_back(&job);
  }

  bool has_passed(Job& job, const Stage& stage) {
    switch (stage.kind) {
      case Stage::kHost:
        return serve(cores_, job);
      case Stage::kCompute:
        return serve(compute_[device_of(job)], job);
      case Stage::kPlace:
        return request(job, job.place, {});
      case Stage::kMemory:
        return request(job, job.memory, {.device = device_of(job), .bytes = stage.amount});
      case Stage::kPause:
        if (!schedule_.is_exclusive_wanted(device_of(job))) return true;
        release(job.turn);
        [[fallthrough]];
      case Stage::kTurn:
        return request(job, job.turn, {.device = device_of(job), .turn = stage.use});
      case Stage::kEndTurn:
        return release(job.turn);
      case Stage::kEndMemory:
        return release(job.memory);
    }
    return true;
  }

  size_t device_of(const Job& job) const { return schedule_.device_of(*job.place); }

  bool serve(Server& server, Job& job) {
    server.waiting.push_back(&job);
    start_service(server);
    return false;
  }
  void start_service(Server& server) {
    if (server.num_free == 0 || server.waiting.empty()) return;
    Job* job = server.waiting.front();
    server.waiting.pop_front();
    --server.num_free;
    const int64_t ms = job->stages[job->next - 1].amount;
    events_.push({now_ms_ + ms, ++num_events_, job, &server});
  }
  void end_of_service() {
    const Event event = events_.top();
    events_.pop();
    now_ms_ = event.time_ms;
    ++event.server->num_free;
    start_service(*event.server);
    ready_.push_back(event.job);
  }

  bool request(Job& job, std::optional<Schedule::Id>& slot, const Schedule::Request& wanted) {
    slot = schedule_.request(wanted);
    job.waits_since_ms = now_ms_;
    if (schedule_.is_granted(*slot)) return true;
    waiting_[*slot] = &job;
    return false;
  }
  bool release(std::optional<Schedule::Id>& slot) {
    for (const Schedule::Id id : schedule_.release(*slot)) {
      Job* job = waiting_.at(id);
      job->waited_ms += now_ms_ - job->waits_since_ms;
      ready_.push_back(job);
    }
    slot.reset();
    return true;
  }

  void end(Job& job) {
    release(job.place);
    int64_t own_ms = 0;
    int64_t need = 0;
    for (const Stage& stage : job.stages) {
      if (stage.kind <= Stage::kCompute) own_ms += stage.amount;
      if (stage.kind == Stage::kMemory) need = std::max(need, stage.amount);
    }
    if (need > capacity_of(kDeviceBytes) / 8) return;
    longest_wait_ =
        std::max(longest_wait_, static_cast<double>(job.waited_ms) / static_cast<double>(own_ms));
  }

  const std::vector<TaskSizes> tasks_;
  Schedule schedule_;
  Server cores_;
  std::vector<Server> compute_;
  std::vector<Job> jobs_;
  std::priority_queue<Event> events_;
  std::deque<Job*> ready_;
  std::map<Schedule::Id, Job*> waiting_;
  size_t next_task_ = 0;
  int64_t num_events_ = 0;
  int64_t now_ms_ = 0;
  double longest_wait_ = 0;
};

const std::vector<TaskSizes>& tasks_of_today() {
  static const std::vector<TaskSizes> tasks(std::begin(kTasksOfToday), std::end(kTasksOfToday));
  return tasks;
}

std::vector<TaskSizes> shuffled(std::vector<TaskSizes> tasks, uint64_t seed) {
  std::mt19937_64 random(seed);
  for (size_t i = tasks.size(); i > 1; --i) std::swap(tasks[i - 1], tasks[random() % i]);
  return tasks;
}

struct Figures {
  double verdicts_a_minute = 0;  // The mean.
  double longest_wait = 0;
};

// The figures over several orders of the tasks, from the seeds 1, 2 and 3.
Figures figures_of(const Size& size, const std::vector<TaskSizes>& tasks = tasks_of_today()) {
  constexpr uint64_t kSeeds = 3;
  Figures figures;
  for (uint64_t seed = 1; seed <= kSeeds; ++seed) {
    const Simulation simulation(size, shuffled(tasks, seed));
    figures.verdicts_a_minute += simulation.verdicts_a_minute() / kSeeds;
    figures.longest_wait = std::max(figures.longest_wait, simulation.longest_wait());
  }
  return figures;
}

// The figures of 1 to 16 jobs on one device.
const std::vector<Figures>& figures_of_jobs() {
  static const std::vector<Figures> figures = [] {
    std::vector<Figures> found;
    for (size_t jobs = 1; jobs <= 16; ++jobs) found.push_back(figures_of({.jobs_a_device = jobs}));
    return found;
  }();
  return figures;
}

TEST(ScheduleLoad, GivesTwoDevicesNearlyTwiceTheVerdictsOfOne) {
  for (const size_t jobs : {4, 8, 12}) {
    const double one = figures_of({.num_devices = 1, .jobs_a_device = jobs}).verdicts_a_minute;
    const double two = figures_of({.num_devices = 2, .jobs_a_device = jobs}).verdicts_a_minute;
    EXPECT_GE(two, 1.8 * one) << jobs << " jobs a device";
  }
}

TEST(ScheduleLoad, LetsNoSmallTaskWaitTenTimesItsOwnTime) {
  for (const Figures& figures : figures_of_jobs()) EXPECT_LT(figures.longest_wait, 10);
  EXPECT_LT(figures_of({.num_devices = 2, .jobs_a_device = 16}).longest_wait, 10);
}

// A task with 8 GiB of inputs and as much of outputs takes all of the device while it is timed.
TEST(ScheduleLoad, LetsNoSmallTaskWaitLongAmongManyOfTheLargest) {
  std::vector<TaskSizes> tasks;
  for (int i = 0; i < 100; ++i) {
    tasks.push_back(i % 5 < 2 ? TaskSizes{8192, 8192, 0} : TaskSizes{64, 64, 0});
  }
  for (const size_t jobs : {4, 8, 12, 16}) {
    EXPECT_LT(figures_of({.jobs_a_device = jobs}, tasks).longest_wait, 10) << jobs << " jobs";
  }
}

TEST(ScheduleLoad, IsNeverMuchSlowerWithMoreJobs) {
  double best = 0;
  for (const Figures& figures : figures_of_jobs()) {
    EXPECT_GE(figures.verdicts_a_minute, 0.9 * best);
    best = std::max(best, figures.verdicts_a_minute);
  }
}

TEST(ScheduleLoad, KeepsADeviceBusyWithTheJobsOfTheDefault) {
  double best = 0;
  for (const Figures& figures : figures_of_jobs()) best = std::max(best, figures.verdicts_a_minute);
  EXPECT_GE(figures_of_jobs().at(kJobsADevice - 1).verdicts_a_minute, 0.9 * best);
}

TEST(ScheduleLoad, IsTheSameInEachRun) {
  const Simulation one({.jobs_a_device = 8}, shuffled(tasks_of_today(), 1));
  const Simulation other({.jobs_a_device = 8}, shuffled(tasks_of_today(), 1));
  EXPECT_EQ(one.verdicts_a_minute(), other.verdicts_a_minute());
  EXPECT_EQ(one.longest_wait(), other.longest_wait());
}

}  // namespace
}  // namespace mc::eval
