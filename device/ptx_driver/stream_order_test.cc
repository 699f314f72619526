// SPDX-License-Identifier: Apache-2.0
#include "ptx_driver/stream_order.h"

#include <gtest/gtest.h>

namespace mc::ptx_driver {
namespace {

const CUstream kFirst = reinterpret_cast<CUstream>(0x100);
const CUstream kSecond = reinterpret_cast<CUstream>(0x200);
const CUstream kBlocking = reinterpret_cast<CUstream>(0x300);
const ptx::Extent kBytes{1000, 2000};

class StreamOrderTest : public ::testing::Test {
 protected:
  StreamOrderTest() {
    order_.add_stream(kFirst, CU_STREAM_NON_BLOCKING);
    order_.add_stream(kSecond, CU_STREAM_NON_BLOCKING);
    order_.add_stream(kBlocking, CU_STREAM_DEFAULT);
  }
  bool writes(CUstream stream, ptx::Extent bytes = kBytes) {
    order_.begin(stream);
    return order_.access({"writer", {{}, {bytes}, {}}}).has_value();
  }
  bool reads(CUstream stream, ptx::Extent bytes = kBytes) {
    order_.begin(stream);
    return order_.access({"reader", {{bytes}, {}, {}}}).has_value();
  }
  bool updates(CUstream stream) {
    order_.begin(stream);
    return order_.access({"adder", {{}, {}, {kBytes}}}).has_value();
  }

  StreamOrder order_;
};

TEST_F(StreamOrderTest, RecordsOnceThereIsAnotherStream) {
  EXPECT_TRUE(order_.is_recording());
  EXPECT_FALSE(StreamOrder().is_recording());
}

TEST_F(StreamOrderTest, TheHostMustWaitBeforeItTouchesMemoryInUse) {
  const device::HostAccess read{1500, 1, 0}, write{1500, 1, 1}, other{2500, 1, 1};
  writes(kFirst);
  EXPECT_EQ(order_.host_touches(read), "writer");
  EXPECT_FALSE(order_.host_touches(other));
  order_.host_waits_for(kFirst);
  EXPECT_FALSE(order_.host_touches(write));
  reads(kFirst);
  EXPECT_FALSE(order_.host_touches(read));
  EXPECT_EQ(order_.host_touches(write), "reader");
}

TEST_F(StreamOrderTest, AnAtomicallyUpdatedWordOrdersTheHostThatReadsIt) {
  writes(kFirst, {3000, 4000});
  updates(kFirst);
  EXPECT_TRUE(order_.host_touches({3000, 1, 0}));
  EXPECT_FALSE(order_.host_touches({1500, 1, 0}));
  EXPECT_FALSE(order_.host_touches({3000, 1, 0}));
}

TEST_F(StreamOrderTest, WorkOfOneStreamIsInOrder) {
  EXPECT_FALSE(writes(kFirst));
  EXPECT_FALSE(reads(kFirst));
  EXPECT_FALSE(writes(kFirst));
}

TEST_F(StreamOrderTest, TwoStreamsConflictWhereOneWritesTheSameBytes) {
  EXPECT_FALSE(writes(kFirst));
  EXPECT_FALSE(writes(kSecond, {2000, 3000}));
  EXPECT_TRUE(reads(kSecond, {1999, 2500}));
  EXPECT_FALSE(reads(kFirst, {0, 10}));
  EXPECT_FALSE(reads(kSecond, {0, 10}));
  EXPECT_TRUE(writes(kFirst, {5, 6}));
}

TEST_F(StreamOrderTest, UpdatesOfTwoStreamsDoNotConflict) {
  EXPECT_FALSE(updates(kFirst));
  EXPECT_FALSE(updates(kSecond));
  EXPECT_TRUE(writes(kSecond) || reads(kSecond));
}

TEST_F(StreamOrderTest, AnEventOrdersWhatIsBeforeIt) {
  EXPECT_FALSE(writes(kFirst));
  const Clock event = order_.clock_of(kFirst);
  EXPECT_FALSE(writes(kFirst, {5000, 6000}));
  order_.wait(kSecond, event);
  EXPECT_FALSE(reads(kSecond));
  EXPECT_TRUE(reads(kSecond, {5000, 5001}));
}

TEST_F(StreamOrderTest, TheOrderGoesOnFromStreamToStream) {
  EXPECT_FALSE(writes(kFirst));
  order_.wait(kSecond, order_.clock_of(kFirst));
  order_.wait(kBlocking, order_.clock_of(kSecond));
  EXPECT_FALSE(reads(kBlocking));
  EXPECT_FALSE(reads(CU_STREAM_LEGACY));  // The legacy stream waits for blocking streams.
}

TEST_F(StreamOrderTest, TheDefaultStreamAndBlockingOnesWaitForEachOther) {
  EXPECT_FALSE(writes(kBlocking));
  EXPECT_FALSE(writes(nullptr));
  EXPECT_FALSE(writes(kBlocking));
  EXPECT_TRUE(writes(kFirst));
  EXPECT_TRUE(writes(nullptr));
}

TEST_F(StreamOrderTest, AHostWaitOrdersEarlierWorkBeforeLaterWork) {
  EXPECT_FALSE(writes(kFirst));
  order_.host_waits_for(kFirst);
  EXPECT_FALSE(reads(kSecond));
  EXPECT_FALSE(writes(kSecond));
  order_.host_waits_for_all();
  EXPECT_FALSE(reads(kFirst));
  EXPECT_FALSE(writes(kFirst));
  order_.host_waits(order_.clock_of(kFirst));
  EXPECT_FALSE(writes(kSecond));
}

TEST_F(StreamOrderTest, TheHostMayReadOutputsAfterItsWaitForTheStream) {
  EXPECT_FALSE(writes(kFirst));
  order_.host_waits_for(nullptr);
  order_.host_waits_for_all();  // The caller waits and then reads outputs.
  EXPECT_EQ(order_.host_reads(kBytes), "writer");
  EXPECT_EQ(order_.host_reads({0, 1000}), std::nullopt);
  order_.host_waits_for(nullptr);
  EXPECT_EQ(order_.host_reads(kBytes), std::nullopt);
}

TEST_F(StreamOrderTest, TheHistoryIsBoundedAndKeepsTheNewest) {
  constexpr size_t kMany = 1 << 20;
  std::vector<ptx::Extent> every_other;
  for (uint64_t i = 0; i < kMany; ++i) every_other.push_back({16 * i, 16 * i + 4});
  for (int k = 0; k < 8; ++k) {
    order_.begin(kFirst);
    order_.access({"writer", {{}, every_other, {}}});
    EXPECT_LE(order_.num_extents(), 4 * kMany);
  }
  EXPECT_TRUE(reads(kSecond, {0, 4}));
  EXPECT_FALSE(reads(kSecond, {4, 8}));
  order_.forget();
  EXPECT_EQ(order_.num_extents(), 0U);
}

TEST_F(StreamOrderTest, ACallForgetsTheOneBefore) {
  EXPECT_FALSE(writes(kFirst));
  order_.forget();
  EXPECT_FALSE(reads(kSecond));
}

}  // namespace
}  // namespace mc::ptx_driver
