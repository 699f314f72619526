// SPDX-License-Identifier: Apache-2.0
#include "worker/child_handle.h"

#include <iterator>
#include <utility>

#include <poll.h>

namespace mc::worker {
namespace {

class Sandboxed final : public ChildHandle {
 public:
  explicit Sandboxed(sandbox::Child child) : child_(std::move(child)) {}

  std::optional<Ending> await(const Awaited& awaited) override { return child_.await(awaited); }
  bool has_news(int channel, std::chrono::milliseconds wait) override {
    pollfd pollers[] = {{channel, POLLIN, 0}, {child_.end_fd(), POLLIN, 0}};
    return ::poll(pollers, std::size(pollers), static_cast<int>(wait.count())) > 0;
  }
  void stop() override { child_.stop(); }
  void go_on() override { child_.go_on(); }
  void kill_tree() override { child_.kill_tree(); }
  int64_t memory_peak_bytes() const override {
    return static_cast<int64_t>(child_.usage().memory_bytes_peak);
  }

 private:
  sandbox::Child child_;
};

}  // namespace

std::unique_ptr<ChildHandle> handle_of(sandbox::Child child) {
  return std::make_unique<Sandboxed>(std::move(child));
}

}  // namespace mc::worker
