// SPDX-License-Identifier: Apache-2.0
#include "ptx/undo_log.h"

#include <algorithm>
#include <atomic>
#include <cstring>
#include <set>

#include "core/check.h"
#include "ptx/program.h"

namespace mc::ptx {
namespace {

// Memory for this many lines is kept from launch to launch.
constexpr size_t kLinesKept = 1 << 19;

}  // namespace

Result<std::unique_ptr<UndoLog>> UndoLog::create(const GlobalMemory& memory, int workers) {
  MC_CHECK(workers >= 1);
  const size_t lines = (memory.size() >> kLineShift) + 2;
  MC_TRY(Reserved marks, Reserved::create(lines * sizeof(uint32_t)), "undo log");
  return std::unique_ptr<UndoLog>(new UndoLog(std::move(marks), memory.origin(), workers));
}

void UndoLog::begin_launch() {
  for (auto& saved : saved_) {
    saved.clear();
    if (saved.capacity() > kLinesKept) saved.shrink_to_fit();
  }
  if (++launch_ != 0) return;
  marks_.clear();
  launch_ = 1;
}

void UndoLog::save(int worker, uint64_t address, uint64_t bytes) {
  uint32_t* marks = reinterpret_cast<uint32_t*>(marks_.data());
  const uint64_t end = (address - kGlobalBase + bytes - 1) >> kLineShift;
  for (uint64_t line = (address - kGlobalBase) >> kLineShift; line <= end; ++line) {
    std::atomic_ref<uint32_t> mark(marks[line]);
    uint32_t seen = mark.load(std::memory_order_acquire);
    if (seen == launch_) continue;
    Saved copy;
    copy.line = line;
    std::memcpy(copy.bytes.data(), origin_ + kGlobalBase + (line << kLineShift), copy.bytes.size());
    if (mark.compare_exchange_strong(seen, launch_)) {
      MC_CHECK(worker >= 0 && static_cast<size_t>(worker) < saved_.size());
      saved_[static_cast<size_t>(worker)].push_back(copy);
    }
  }
}

bool UndoLog::workers_conflict(std::span<const std::unique_ptr<ShadowMemory>> shadows,
                               int granule_shift) const {
  MC_CHECK(granule_shift >= 0 && granule_shift <= 2);
  MC_CHECK(shadows.size() == saved_.size());
  const uint64_t parts = 4U >> granule_shift;  // Lines of the shadow for a line here.
  for (const auto& saved : saved_) {
    for (const Saved& one : saved) {
      for (uint64_t line = one.line * parts; line < (one.line + 1) * parts; ++line) {
        uint32_t written = 0, touched = 0, conflicts = 0;
        for (const auto& shadow : shadows) {
          const uint32_t writes = shadow->written_in(line), reads = shadow->read_in(line);
          conflicts |= (written & (writes | reads)) | (touched & writes);
          written |= writes;
          touched |= writes | reads;
        }
        if (conflicts != 0) return true;
      }
    }
  }
  return false;
}

uint8_t* UndoLog::data_of(uint64_t line) const {
  return origin_ + kGlobalBase + (line << kLineShift);
}

std::vector<UndoLog::Saved> UndoLog::before() const {
  std::vector<Saved> lines;
  for (const auto& saved : saved_) lines.insert(lines.end(), saved.begin(), saved.end());
  return lines;
}

std::vector<UndoLog::Saved> UndoLog::written() const {
  std::vector<Saved> lines = before();
  for (Saved& one : lines) std::memcpy(one.bytes.data(), data_of(one.line), one.bytes.size());
  return lines;
}

bool UndoLog::is_as(const std::vector<Saved>& written) const {
  const auto is_there = [this](const Saved& line) {
    return std::memcmp(data_of(line.line), line.bytes.data(), line.bytes.size()) == 0;
  };
  std::set<uint64_t> lines;
  for (const Saved& line : written) lines.insert(line.line);
  return std::ranges::all_of(written, is_there) &&
         std::ranges::all_of(saved_, [&](const std::vector<Saved>& saved) {
           return std::ranges::all_of(saved, [&](const Saved& line) {
             return lines.contains(line.line) || is_there(line);
           });
         });
}

void UndoLog::restore() {
  for (const auto& saved : saved_) {
    for (const Saved& one : saved) {
      std::memcpy(data_of(one.line), one.bytes.data(), one.bytes.size());
    }
  }
}

}  // namespace mc::ptx
