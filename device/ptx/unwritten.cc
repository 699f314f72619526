// SPDX-License-Identifier: Apache-2.0
#include "ptx/unwritten.h"

#include <algorithm>
#include <cstring>

#include "core/check.h"
#include "ptx/program.h"

namespace mc::ptx {
namespace {

constexpr size_t kFollowersMax = 1 << 20;

// Appends bytes to a list of extents, or extends the last extent if they are adjacent.
void append(std::vector<Extent>& extents, Extent bytes) {
  if (!extents.empty() && extents.back().end == bytes.begin) {
    extents.back().end = bytes.end;
  } else {
    extents.push_back(bytes);
  }
}

}  // namespace

Result<std::unique_ptr<Unwritten>> Unwritten::create(size_t memory_bytes) {
  MC_TRY(Reserved bits, Reserved::create(memory_bytes / 8 + 1), "bits of unwritten memory");
  return std::unique_ptr<Unwritten>(new Unwritten(std::move(bits)));
}

void Unwritten::set(Extent bytes, bool value) {
  uint64_t at = bytes.begin - kGlobalBase;
  const uint64_t end = bytes.end - kGlobalBase;
  const auto set_one = [&] {
    const uint8_t bit = static_cast<uint8_t>(1U << at % 8);
    uint8_t& eight = bits_.data()[at / 8];
    eight = static_cast<uint8_t>(value ? eight | bit : eight & ~bit);
    ++at;
  };
  while (at < end && at % 8 != 0) set_one();
  const uint64_t whole = end > at ? (end - at) / 8 : 0;
  std::memset(bits_.data() + at / 8, value ? 0xFF : 0, whole);
  at += whole * 8;
  while (at < end) set_one();
}

void Unwritten::add(Extent bytes) {
  MC_CHECK(kGlobalBase <= bytes.begin && bytes.begin < bytes.end);
  set(bytes, true);
}
void Unwritten::remove(Extent bytes) { set(bytes, false); }

void Unwritten::remove_written(const ShadowMemory& shadow, Extent bytes, int granule_shift) {
  const int shift = granule_shift + kLineShift;
  const uint64_t last = (bytes.end - 1 - kGlobalBase) >> shift;
  // Most lines are written whole, one after the other.
  for (uint64_t line = (bytes.begin - kGlobalBase) >> shift; line <= last; ++line) {
    const uint64_t first = line;
    while (line <= last && shadow.written_in(line) == ~0U) ++line;
    if (line > first) remove({kGlobalBase + (first << shift), kGlobalBase + (line << shift)});
    if (line > last) return;
    uint64_t at = kGlobalBase + (line << shift);
    const uint64_t granule = uint64_t{1} << granule_shift;
    for (uint32_t left = shadow.written_in(line); left != 0; left >>= 1, at += granule) {
      if (left & 1) remove({at, at + granule});
    }
  }
}

void Unwritten::forget(Extent bytes) {
  remove(bytes);
  bits_.clear((bytes.begin - kGlobalBase) / 8 + 1, (bytes.end - kGlobalBase) / 8);
  followers_.erase(followers_.lower_bound(bytes.begin), followers_.lower_bound(bytes.end));
}

bool Unwritten::has(uint64_t address) const {
  const uint64_t at = address - kGlobalBase;
  return (bits_.data()[at / 8] >> at % 8 & 1) != 0;
}

bool Unwritten::has_any(Extent bytes) const {
  while (bytes.begin < bytes.end && bytes.begin % 8 != 0) {
    if (has(bytes.begin++)) return true;
  }
  const uint8_t* eights = bits_.data() + (bytes.begin - kGlobalBase) / 8;
  const uint64_t whole = bytes.end > bytes.begin ? (bytes.end - bytes.begin) / 8 : 0;
  // All are zero if the first one is, and each other one equals the one before.
  if (whole > 0 && (*eights != 0 || std::memcmp(eights, eights + 1, whole - 1) != 0)) return true;
  for (bytes.begin += whole * 8; bytes.begin < bytes.end; ++bytes.begin) {
    if (has(bytes.begin)) return true;
  }
  return false;
}

void Unwritten::copy(uint64_t to, Extent from) {
  MC_CHECK(from.begin < from.end);
  const uint64_t size = from.end - from.begin;
  const Extent target{to, to + size};
  const bool has_followers = read_before(from) != nullptr;
  if (!has_any(from)) return remove(target);
  for (uint64_t k = 0; k < size; ++k) set({to + k, to + k + 1}, has(from.begin + k));
  if (!has_followers) return;
  // Extents that begin before the source are cut off.
  std::vector<std::pair<uint64_t, Follower>> copies;
  auto one = followers_.upper_bound(from.begin);
  if (one != followers_.begin()) --one;
  for (; one != followers_.end() && one->first < from.end; ++one) {
    const uint64_t begin = std::max(one->first, from.begin);
    const uint64_t end = std::min(one->second.end, from.end);
    if (begin < end) {
      copies.emplace_back(to + (begin - from.begin),
                          Follower{to + (end - from.begin), one->second.read});
    }
  }
  for (auto& [begin, follower] : copies) followers_[begin] = std::move(follower);
}

void Unwritten::add_followers(Extent bytes, const std::shared_ptr<const Finding>& read) {
  MC_CHECK(read != nullptr);
  if (followers_.size() >= kFollowersMax) return;
  add(bytes);
  followers_[bytes.begin] = {bytes.end, read};
}

std::shared_ptr<const Finding> Unwritten::read_before(Extent bytes) const {
  auto one = followers_.upper_bound(bytes.begin);
  if (one != followers_.begin()) --one;
  for (; one != followers_.end() && one->first < bytes.end; ++one) {
    const Extent common{std::max(one->first, bytes.begin), std::min(one->second.end, bytes.end)};
    if (common.begin < common.end && has_any(common)) return one->second.read;
  }
  return nullptr;
}

// ---- Reads.

void UnwrittenReads::Site::add(Extent bytes) {
  const bool is_known =
      !extents.empty() && extents.back().begin <= bytes.begin && extents.back().end >= bytes.end;
  if (!is_known && extents.size() < kExtentsMax) append(extents, bytes);
}

UnwrittenReads::Site* UnwrittenReads::find(const Location& location) {
  const auto found = std::ranges::find_if(sites, [&](const Site& site) {
    return site.location.file == location.file && site.location.line == location.line;
  });
  return found == sites.end() ? nullptr : &*found;
}

// ---- What launches leave.

Aftermath::Aftermath(const UndoLog& undo, const ShadowMemory& shadow, int granule_shift,
                     const Unwritten& unwritten)
    : granule_shift_(granule_shift) {
  for (const UndoLog::Saved& one : undo.before()) {
    Line line{one.line, one.bytes, one.bytes, {}, {}};
    std::memcpy(line.after.data(), undo.data_of(one.line), kLine);
    const uint64_t first = one.line << UndoLog::kLineShift;
    for (size_t k = 0; k < kLine; ++k) {
      const uint64_t granule = (first + k) >> granule_shift;
      line.written[k] = shadow.written_in(granule >> kLineShift) >> granule % 32 & 1;
      line.unwritten[k] = unwritten.has(kGlobalBase + first + k);
    }
    lines_.push_back(line);
  }
  std::ranges::sort(lines_, {}, &Line::number);
  // The log has each line once, whichever workers wrote it.
  MC_CHECK(std::ranges::adjacent_find(lines_, {}, &Line::number) == lines_.end());
}

const Aftermath::Line* Aftermath::find(uint64_t number) const {
  const auto found = std::ranges::lower_bound(lines_, number, {}, &Line::number);
  return found == lines_.end() || found->number != number ? nullptr : &*found;
}

// The bytes of one line of memory that differ after two runs, added to `found`.  `mine` or `other`
// (not both) is null if that run wrote nothing in the line.
void Aftermath::add_differences(const Line* mine, const Line* other,
                                std::vector<Extent>& found) const {
  MC_CHECK(mine != nullptr || other != nullptr);
  const Line& any = mine != nullptr ? *mine : *other;
  const Bytes& after = mine != nullptr ? mine->after : any.before;
  const Bytes& after_other = other != nullptr ? other->after : any.before;
  const std::bitset<kLine> none;
  const auto& written = mine != nullptr ? mine->written : none;
  const auto& written_other = other != nullptr ? other->written : none;
  const size_t granule = size_t{1} << granule_shift_;
  for (size_t at = 0; at < kLine; at += granule) {
    if (!written[at] && !written_other[at]) continue;
    // Bytes that only one run wrote are unwritten after the other run, whatever their values.
    const bool is_of_one = written[at] != written_other[at] && any.unwritten[at];
    if (!is_of_one && std::memcmp(&after[at], &after_other[at], granule) == 0) continue;
    const uint64_t begin = kGlobalBase + (any.number << UndoLog::kLineShift) + at;
    append(found, {begin, begin + granule});
  }
}

std::vector<Extent> Aftermath::differences(const Aftermath& other) const {
  MC_CHECK(granule_shift_ == other.granule_shift_);
  std::vector<Extent> found;
  for (const Line& line : lines_) add_differences(&line, other.find(line.number), found);
  for (const Line& line : other.lines_) {
    if (find(line.number) == nullptr) add_differences(nullptr, &line, found);
  }
  return found;
}

void Aftermath::restore(const UndoLog& undo) const {
  for (const Line& line : lines_) {
    std::memcpy(undo.data_of(line.number), line.after.data(), kLine);
  }
}

}  // namespace mc::ptx
