// SPDX-License-Identifier: Apache-2.0
#include "core/log.h"

#include <spdlog/sinks/stdout_sinks.h>
#include <spdlog/spdlog.h>

namespace mc {

void enable_log() {
  spdlog::set_default_logger(spdlog::stderr_logger_mt("musacoder"));
  spdlog::set_pattern("%H:%M:%S.%e [%t] %v");
  spdlog::set_level(spdlog::level::debug);
}

bool is_log_enabled() { return spdlog::should_log(spdlog::level::debug); }

void log_debug(std::string_view message) { spdlog::debug(message); }

}  // namespace mc
