// SPDX-License-Identifier: Apache-2.0
#include "compile/once.h"

#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <string>
#include <thread>
#include <vector>

#include <sys/wait.h>
#include <unistd.h>

#include "core/file.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

class OnceTest : public testing::Test {
 protected:
  OnceTest() { ::setenv("MC_CACHE_DIR", cache_.path().c_str(), 1); }
  ~OnceTest() override { ::unsetenv("MC_CACHE_DIR"); }

  Once once(const std::string& name) const { return {"kind", content_hash({name}), "making"}; }
  Result<fs::path> make(const Once& wanted) {
    return make_once(
        wanted, [&](std::string_view) { ++told_; },
        [&](const fs::path& folder) -> Status {
          ++made_;
          return write_file_atomically(folder / "made", "text");
        });
  }

  TemporaryDirectory cache_ = std::move(TemporaryDirectory::create("once-test")).value();
  std::atomic<int> told_ = 0;
  std::atomic<int> made_ = 0;
};

TEST_F(OnceTest, BuildsAMissingFolderAndFindsItAgain) {
  for (int i = 0; i < 2; ++i) {
    const auto folder = make(once("a"));
    ASSERT_TRUE(folder) << folder.error().message;
    EXPECT_EQ(*folder, once("a").folder());
    EXPECT_EQ(*read_file(*folder / "made", 100), "text");
  }
  EXPECT_EQ(made_, 1);
  EXPECT_EQ(told_, 1);
  ASSERT_TRUE(make(once("b")));
  EXPECT_EQ(made_, 2);
}

TEST_F(OnceTest, LeavesNothingOfAProcessThatIsKilled) {
  const pid_t child = ::fork();
  if (child == 0) {
    const auto never = make_once(
        once("a"), [](std::string_view) {},
        [](const fs::path& folder) -> Status {
          MC_TRY_VOID(write_file_atomically(folder / "half", "text"), "test");
          ::raise(SIGKILL);
          return ok();
        });
    ::_exit(never ? 0 : 1);
  }
  ::waitpid(child, nullptr, 0);
  // The process that removes the killed one's folder holds the lock until the folder is gone, so
  // this call waits for the removal.
  ASSERT_TRUE(make(once("b")));
  const auto entries = fs::directory_iterator(once("b").folder().parent_path());
  for (const auto& entry : entries) {
    EXPECT_FALSE(entry.path().filename().string().starts_with("work")) << entry.path();
  }
}

TEST_F(OnceTest, KeepsNothingOfAFailedBuild) {
  const auto failed = make_once(
      once("a"), [](std::string_view) {},
      [](const fs::path& folder) -> Status {
        MC_TRY_VOID(write_file_atomically(folder / "half", "text"), "test");
        return Error{ErrorCode::kUnavailable, "the compiler fails"};
      });
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kUnavailable);
  EXPECT_FALSE(fs::exists(once("a").folder()));
  ASSERT_TRUE(make(once("a")));
  EXPECT_FALSE(fs::exists(once("a").folder() / "half"));
}

TEST_F(OnceTest, BuildsOneFolderForConcurrentProcesses) {
  std::vector<std::thread> threads;
  std::atomic<int> found = 0;
  for (int i = 0; i < 8; ++i) {
    threads.emplace_back([&] {
      const auto folder = make(once("a"));
      if (folder && fs::exists(*folder / "made")) ++found;
    });
  }
  for (std::thread& thread : threads) thread.join();
  EXPECT_EQ(found, 8);
  EXPECT_EQ(made_, 1);
}

TEST_F(OnceTest, RemovesTheOldestFoldersOfAKind) {
  using std::chrono::hours;
  for (int i = 0; i <= static_cast<int>(kOnceKept); ++i) {
    const Once wanted = once(std::to_string(i));
    ASSERT_TRUE(make(wanted));
    fs::last_write_time(wanted.folder(), fs::file_time_type::clock::now() - hours(100 - i));
    EXPECT_EQ(fs::exists(once("0").folder()), i < static_cast<int>(kOnceKept));
  }
  EXPECT_TRUE(fs::exists(once("1").folder()));
}

TEST_F(OnceTest, TheHashDependsOnNamesAndContents) {
  const fs::path root = cache_.path() / "files";
  fs::create_directories(root / "sub");
  const auto hash = [&] { return hash_of_files(root, {"a", "sub"}).value(); };
  std::ofstream(root / "a") << "text";
  std::ofstream(root / "beside") << "1";
  std::ofstream(root / "sub/b") << "text";
  const std::string before = hash();
  std::ofstream(root / "beside") << "2";
  EXPECT_EQ(hash(), before);
  std::ofstream(root / "sub/b") << "other";
  const std::string changed = hash();
  EXPECT_NE(changed, before);
  fs::rename(root / "sub/b", root / "sub/c");
  EXPECT_NE(hash(), changed);
  EXPECT_FALSE(hash_of_files(root, {"missing"}));
}

}  // namespace
}  // namespace mc::compile
