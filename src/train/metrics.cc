// SPDX-License-Identifier: Apache-2.0
#include "train/metrics.h"

#include <sstream>
#include <string>
#include <utility>

#include <fcntl.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/file.h"

namespace mc::train {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

constexpr size_t kMetricsBytesMax = size_t{1} << 30;

// The lines of the steps up to `last_step`.
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

// A line is one write, so that a kill leaves either the whole line or nothing of it.
Status MetricsFile::append(const std::string& line) {
  const std::string text = line + "\n";
  const ssize_t written = ::write(lines_.get(), text.data(), text.size());
  if (written == static_cast<ssize_t>(text.size())) return ok();
  if (written < 0) return system_error(ErrorCode::kIo, "cannot write metrics.jsonl");
  return Error{ErrorCode::kIo, "cannot write metrics.jsonl: the disk is full"};
}

Result<MetricsFile> MetricsFile::open(const fs::path& run, int64_t last_step) {
  const fs::path path = run / "metrics.jsonl";
  const auto before = read_file(path, kMetricsBytesMax);
  const std::string kept = before ? lines_until(*before, last_step) : "";
  MC_TRY_VOID(write_file_atomically(path, kept), "write metrics");
  Fd lines(::open(path.c_str(), O_WRONLY | O_APPEND | O_CLOEXEC));
  if (!lines.is_open()) return system_error(ErrorCode::kIo, "cannot write " + path.string());
  return MetricsFile(std::move(lines));
}

Status MetricsFile::add(const StepMetrics& m) {
  Json line;
  line["step"] = m.step;
  line["loss"] = m.loss;
  line["grad_norm"] = m.grad_norm;
  line["lr"] = m.lr;
  line["tokens"] = m.tokens;
  line["epoch"] = m.epoch;
  line["elapsed_s"] = m.elapsed_s;
  line["tokens_per_s"] = m.tokens_per_s;
  return append(line.dump());
}

Status MetricsFile::add(int64_t step, std::span<const Scalar> scalars) {
  Json line;
  line["step"] = step;
  for (const auto& [name, number] : scalars) line[std::string(name)] = number;
  return append(line.dump());
}

}  // namespace mc::train
