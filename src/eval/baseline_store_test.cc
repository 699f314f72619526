// SPDX-License-Identifier: Apache-2.0
#include "eval/baseline_store.h"

#include <cmath>
#include <filesystem>
#include <fstream>
#include <string>

#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::eval {
namespace {

const CompiledBaseline kBaseline{{2, 1.9, 2.2}, {10, 9.5, 10.5}};

class BaselineStoreTest : public ::testing::Test {
 protected:
  BaselineStoreTest()
      : directory_(
            TemporaryDirectory::create_in(std::filesystem::temp_directory_path(), "mc").value()),
        store_(directory_.path() / "baselines") {}
  TemporaryDirectory directory_;
  BaselineStore store_;
};

TEST_F(BaselineStoreTest, FindsAStoredBaseline) {
  const BaselineKey key{"code", "default", "GPU-1; 580", "2.11.0", "train task"};
  EXPECT_FALSE(store_.find(key).has_value());
  ASSERT_TRUE(store_.keep(key, kBaseline));
  EXPECT_EQ(store_.find(key), kBaseline);
}

TEST_F(BaselineStoreTest, DistinguishesKeys) {
  const BaselineKey key{"code", "default", "GPU-1; 580", "2.11.0", "train task"};
  ASSERT_TRUE(store_.keep(key, kBaseline));
  for (const BaselineKey& other :
       {BaselineKey{"other", "default", "GPU-1; 580", "2.11.0", "train task"},
        BaselineKey{"code", "max-autotune", "GPU-1; 580", "2.11.0", "train task"},
        BaselineKey{"code", "default", "GPU-2; 580", "2.11.0", "train task"},
        BaselineKey{"code", "default", "GPU-1; 580", "2.12.0", "train task"},
        BaselineKey{"code", "default", "GPU-1; 580", "2.11.0", "eval bf16"}}) {
    EXPECT_FALSE(store_.find(other).has_value());
  }
}

TEST_F(BaselineStoreTest, IgnoresABrokenFile) {
  const BaselineKey key{"code", "default", "GPU-1; 580", "2.11.0", "train task"};
  ASSERT_TRUE(store_.keep(key, kBaseline));
  const auto file = *std::filesystem::directory_iterator(directory_.path() / "baselines");
  const std::string sound = R"({"median": 2, "low": 1, "high": 3})";
  for (const char* broken :
       {"1", R"({"median": 0, "low": 0, "high": 0})", R"({"median": 2, "low": 3, "high": 4})",
        R"({"median": 2, "low": -1, "high": 3})"}) {
    std::ofstream(file.path(), std::ios::trunc)
        << R"({"time_us": )" << sound << R"(, "speedup_eager": )" << broken << "}";
    EXPECT_FALSE(store_.find(key).has_value()) << broken;
  }
  std::ofstream(file.path(), std::ios::trunc)
      << R"({"time_us": )" << sound << R"(, "speedup_eager": )" << sound << "}";
  EXPECT_TRUE(store_.find(key).has_value());
}

TEST(SpeedupOver, DividesAndAddsErrorsInQuadrature) {
  const task::Estimate speedup = speedup_over(kBaseline, {3, 2.9, 3.1});
  EXPECT_DOUBLE_EQ(speedup.median, 1.5);
  EXPECT_NEAR(std::log(1.5 / speedup.low), std::hypot(std::log(3 / 2.9), std::log(1.1)), 1e-12);
  EXPECT_NEAR(std::log(speedup.high / 1.5), std::hypot(std::log(3.1 / 3), std::log(2 / 1.9)),
              1e-12);
}

}  // namespace
}  // namespace mc::eval
