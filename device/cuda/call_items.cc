// SPDX-License-Identifier: Apache-2.0
#include "cuda/call_items.h"

#include <algorithm>
#include <functional>
#include <iterator>
#include <utility>

#include "check.h"

namespace mc::device {
namespace {

bool are_alike(const CallItem& one, const CallItem& other) {
  return one.name == other.name && one.owner == other.owner &&
         std::ranges::equal(one.grid, other.grid) && std::ranges::equal(one.block, other.block) &&
         one.shared_bytes == other.shared_bytes;
}

}  // namespace

CallItems::~CallItems() {
  for (const CUevent event : events_) cuEventDestroy(event);
}

void CallItems::start(bool is_on) {
  is_on_ = is_on;
  has_begun_ = false;
  items_.clear();
}

CUresult CallItems::event(size_t index, CUevent& event) {
  while (events_.size() <= index) {
    if (const CUresult status = cuEventCreate(&event, CU_EVENT_DEFAULT)) return status;
    events_.push_back(event);
  }
  event = events_[index];
  return CUDA_SUCCESS;
}

CUresult CallItems::begin(CUstream stream) {
  has_begun_ = false;
  CUstreamCaptureStatus capture = CU_STREAM_CAPTURE_STATUS_NONE;
  const bool is_plain = cuStreamIsCapturing(stream, &capture) == CUDA_SUCCESS &&
                        capture == CU_STREAM_CAPTURE_STATUS_NONE;
  if (!is_on_ || !is_plain || items_.size() >= kItemsMax) return CUDA_SUCCESS;
  CUevent start = nullptr;
  if (const CUresult status = event(2 * items_.size(), start)) return status;
  stream_ = stream;
  has_begun_ = true;
  return cuEventRecord(start, stream);
}

CUresult CallItems::end(CallItem item) {
  if (!std::exchange(has_begun_, false)) return CUDA_SUCCESS;
  MC_CHECK(is_on_ && items_.size() < kItemsMax);
  CUevent end = nullptr;
  if (const CUresult status = event(2 * items_.size() + 1, end)) return status;
  items_.push_back(std::move(item));
  return cuEventRecord(end, stream_);
}

CUresult CallItems::take(std::vector<CallItem>& items) {
  MC_CHECK(events_.size() >= 2 * items_.size());
  items.clear();
  for (size_t i = 0; i < items_.size(); ++i) {
    float ms = 0;
    if (const CUresult status = cuEventElapsedTime(&ms, events_[2 * i], events_[2 * i + 1])) {
      return status;
    }
    CallItem& item = items_[i];
    item.us = static_cast<double>(ms) * 1e3;
    const auto known =
        std::ranges::find_if(items, [&](const CallItem& other) { return are_alike(item, other); });
    if (known == items.end()) {
      items.push_back(std::move(item));
    } else {
      known->us += item.us;
      known->launches += 1;
    }
  }
  start(/*is_on=*/false);
  std::ranges::stable_sort(items, std::greater<>(), &CallItem::us);
  return CUDA_SUCCESS;
}

}  // namespace mc::device
