// SPDX-License-Identifier: Apache-2.0
#include "worker/output_tail.h"

#include <mutex>
#include <thread>
#include <utility>

#include <unistd.h>

#include "core/check.h"

namespace mc::worker {

struct OutputTail::State {
  Fd reader;
  size_t bytes_max = 0;
  std::mutex mutex;
  std::string tail;  // Guarded by mutex.
  std::jthread thread;

  void drain() {
    char block[4096];
    for (ssize_t size = 0; (size = ::read(reader.get(), block, sizeof block)) > 0;) {
      const std::lock_guard lock(mutex);
      tail.append(block, static_cast<size_t>(size));
      if (tail.size() > bytes_max) tail.erase(0, tail.size() - bytes_max);
      MC_CHECK(tail.size() <= bytes_max);
    }
  }
};

Result<std::pair<OutputTail, Fd>> OutputTail::create(size_t bytes_max) {
  MC_CHECK(bytes_max > 0);
  MC_TRY(Pipe pipe, make_pipe(), "output of a child");
  auto state = std::make_unique<State>();
  state->reader = std::move(pipe.reader);
  state->bytes_max = bytes_max;
  state->thread = std::jthread([raw = state.get()] { raw->drain(); });
  return std::pair(OutputTail(std::move(state)), std::move(pipe.writer));
}

OutputTail::OutputTail(std::unique_ptr<State> state) : state_(std::move(state)) {}
OutputTail::OutputTail(OutputTail&&) noexcept = default;
OutputTail& OutputTail::operator=(OutputTail&&) noexcept = default;
OutputTail::~OutputTail() = default;

std::string OutputTail::text() const {
  const std::lock_guard lock(state_->mutex);
  return state_->tail;
}

}  // namespace mc::worker
