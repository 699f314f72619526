// SPDX-License-Identifier: Apache-2.0
#include "train/metrics.h"

#include <array>
#include <chrono>
#include <sstream>
#include <string>
#include <utility>

#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/file.h"

namespace mc::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kMetricsBytesMax = size_t{1} << 30;

double wall_time_s() {
  return std::chrono::duration<double>(std::chrono::system_clock::now().time_since_epoch()).count();
}

// A line or record is one write, so that a kill leaves it whole or away.
Status append(const Fd& fd, const std::string& text, const char* name) {
  const ssize_t written = ::write(fd.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return ok();
  if (written < 0) return system_error(ErrorCode::kIo, std::string("cannot write ") + name);
  return Error{ErrorCode::kIo, std::string("cannot write ") + name + ": the disk is full"};
}

// The lines up to `last_step`.
std::string lines_until(const std::string& text, int64_t last_step) {
  std::istringstream stream(text);
  std::string kept;
  for (std::string line; std::getline(stream, line);) {
    const Json json = Json::parse(line, nullptr, /*allow_exceptions=*/false);
    if (!json.is_object() || json.value("step", last_step + 1) > last_step) break;
    kept += line + "\n";
  }
  return kept;
}

}  // namespace

Result<MetricsFiles> MetricsFiles::open(const fs::path& run, int64_t last_step) {
  const fs::path path = run / "metrics.jsonl";
  const auto before = read_file(path, kMetricsBytesMax);
  const std::string kept = before ? lines_until(*before, last_step) : "";
  MC_TRY_VOID(write_file_atomically(path, kept), "write metrics");
  Fd lines(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  const double now = wall_time_s();
  const fs::path events_path = run / fmt::format("events.out.tfevents.{:.0f}.musacoder", now);
  Fd events(::open(events_path.c_str(), O_WRONLY | O_CREAT | O_APPEND | O_CLOEXEC, 0644));
  if (!lines.is_open() || !events.is_open()) {
    return system_error(ErrorCode::kIo, "cannot write metrics in " + run.string());
  }
  MC_TRY_VOID(append(events, event_file_header(now), "events"), "metrics");
  return MetricsFiles(std::move(lines), std::move(events));
}

Status MetricsFiles::add(const StepMetrics& m) {
  Json line;
  line["step"] = m.step;
  line["loss"] = m.loss;
  line["grad_norm"] = m.grad_norm;
  line["lr"] = m.lr;
  line["tokens"] = m.tokens;
  line["epoch"] = m.epoch;
  line["elapsed_s"] = m.elapsed_s;
  line["tokens_per_s"] = m.tokens_per_s;
  MC_TRY_VOID(append(lines_, line.dump() + "\n", "metrics.jsonl"), "metrics");
  const std::array<Scalar, 4> scalars = {
      Scalar{"train/loss", m.loss}, Scalar{"train/grad_norm", m.grad_norm},
      Scalar{"train/lr", m.lr}, Scalar{"train/tokens_per_s", m.tokens_per_s}};
  return append(events_, event_record(wall_time_s(), m.step, scalars), "events");
}

Status MetricsFiles::add(int64_t step, std::span<const Scalar> scalars) {
  Json line;
  line["step"] = step;
  for (const auto& [name, number] : scalars) line[std::string(name)] = number;
  MC_TRY_VOID(append(lines_, line.dump() + "\n", "metrics.jsonl"), "metrics");
  return append(events_, event_record(wall_time_s(), step, scalars), "events");
}

}  // namespace mc::train
