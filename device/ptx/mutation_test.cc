// SPDX-License-Identifier: Apache-2.0
//
// Hostile text: modules of the tests with some characters, words and lines changed. Each must end,
// with an error, a finding or a result. The seed is in the test's output; more of them run with
// MC_PTX_MUTATIONS=count.
#include <gmock/gmock.h>

#include <cstdlib>

#include "ptx/testing/hostile.h"
#include "ptx/testing/test_device.h"

namespace mc::ptx {
namespace {

constexpr size_t kTextBytesMax = 1 << 20;

TEST(PtxMutations, EndInAnErrorAFindingOrAResult) {
  const char* wanted = std::getenv("MC_PTX_MUTATIONS");
  const int count = wanted == nullptr ? 300 : std::atoi(wanted);
  const std::string texts[] = {read_testdata("basic.ptx"), read_testdata("features.ptx"),
                               read_testdata("faults.ptx"), read_testdata("matrix.ptx")};
  int num_loaded = 0, num_launched = 0;
  for (int k = 0; k < count; ++k) {
    SCOPED_TRACE(k);
    const uint64_t seed = static_cast<uint64_t>(k);
    const HostileOutcome outcome = run_hostile(mutate(texts[k % 4], seed, kTextBytesMax), seed);
    num_loaded += outcome.is_loaded ? 1 : 0;
    num_launched += outcome.num_launched;
  }
  EXPECT_GT(num_loaded, count / 4);
  EXPECT_GT(num_launched, count / 4);
}

}  // namespace
}  // namespace mc::ptx
