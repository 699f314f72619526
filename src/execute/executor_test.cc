// SPDX-License-Identifier: Apache-2.0
#include "execute/executor.h"

#include <algorithm>
#include <csignal>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include <gtest/gtest.h>

#include "core/cancel.h"
#include "worker/fakes/fake_worker.h"

namespace mc::execute {
namespace {

using worker::FakeWorker;
using worker::Hangs;
using worker::ProcessEnd;
using worker::Reaction;
using Inspect = worker::InspectorInspectRequest;

// The reactions of consecutive inspectors; the last one repeats.
class Inspectors {
 public:
  explicit Inspectors(std::vector<Reaction> reactions) : reactions_(std::move(reactions)) {
    worker_.on<Inspect>([this](const auto&, const Fd&) {
      const size_t index = std::min(num_asked_++, reactions_.size() - 1);
      return reactions_[index];
    });
  }
  // "parsed", the reason why the text is not judged, or "error".
  std::string inspect() {
    const auto spawn = [this](Role, const ChildLimits&) -> Result<Session> {
      return worker_.session();
    };
    Executor executor(Zygotes{spawn}, nullptr, {});
    const auto found = executor.inspect("text", "{}");
    if (!found) return "error";
    const auto* outcome = std::get_if<task::Outcome>(&*found);
    return outcome == nullptr ? "parsed" : std::get<task::Unextractable>(*outcome).reason;
  }
  size_t num_asked() const { return num_asked_; }

 private:
  std::vector<Reaction> reactions_;
  size_t num_asked_ = 0;
  FakeWorker worker_;
};

const Reaction kParsed = worker::InspectorInspectResponse{.classes = {"Model"}}.to_json();
const Reaction kKilled = ProcessEnd{SIGKILL, 0};

TEST(Inspect, RetriesAfterAnEndThatTheMachineMayHaveCaused) {
  EXPECT_EQ(Inspectors({kKilled, kParsed}).inspect(), "parsed");
  EXPECT_EQ(Inspectors({Hangs{}, kParsed}).inspect(), "parsed");
}

TEST(Inspect, BlamesATextThatEndsItTwiceOrThatCrashesIt) {
  EXPECT_EQ(Inspectors({kKilled}).inspect(), "syntax_error");
  EXPECT_EQ(Inspectors({Hangs{}}).inspect(), "syntax_error");
  Inspectors crashes({ProcessEnd{SIGSEGV, 0}, kParsed});
  EXPECT_EQ(crashes.inspect(), "syntax_error");
  EXPECT_EQ(crashes.num_asked(), 1u);
}

TEST(Inspect, ReturnsAnErrorOnceItIsCancelled) {
  std::stop_source stop;
  stop.request_stop();
  const CancelScope scope(stop.get_token());
  EXPECT_EQ(Inspectors({kKilled}).inspect(), "error");
}

}  // namespace
}  // namespace mc::execute
