// SPDX-License-Identifier: Apache-2.0
#include "eval/steps.h"

#include <algorithm>

#include <fmt/format.h>

#include "core/log.h"

namespace mc::eval {

void add_time(task::Verdict& verdict, const char* step,
              std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  verdict.telemetry.stages.push_back({step, taken.count()});
  log_debug(fmt::format("{}: {} took {:.0f} ms", verdict.candidate, step, taken.count()));
}

void add_wait(task::Verdict& verdict, const char* what,
              std::chrono::steady_clock::time_point start) {
  const std::chrono::duration<double, std::milli> taken = std::chrono::steady_clock::now() - start;
  auto& stages = verdict.telemetry.stages;
  const auto known = std::ranges::find(stages, what, &task::StageTime::stage);
  if (known == stages.end()) {
    stages.push_back({what, taken.count()});
  } else {
    known->ms += taken.count();
  }
}

}  // namespace mc::eval
