// SPDX-License-Identifier: Apache-2.0
#include <gtest/gtest.h>

#include <fcntl.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <string>

#include "core/fd.h"
#include "core/file.h"
#include "core/hash.h"
#include "core/result.h"

namespace mc {
namespace {

Result<int> half_of(int number) {
  if (number % 2 != 0) return Error{ErrorCode::kInvalidInput, "it is odd"};
  return number / 2;
}

Result<int> quarter_of(int number) {
  MC_TRY(const int half, half_of(number), "halve " + std::to_string(number));
  MC_TRY(const int quarter, half_of(half), "halve the half");
  return quarter;
}

TEST(Result, PassesAValueOn) { EXPECT_EQ(quarter_of(12).value(), 3); }

TEST(Result, PassesAnErrorOnWithItsContext) {
  const auto failed = quarter_of(7);
  ASSERT_FALSE(failed);
  EXPECT_EQ(failed.error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(failed.error().message, "halve 7: it is odd");
}

TEST(Result, AddsTheSameContextOnlyOnce) {
  const Error inner{ErrorCode::kInvalidInput, "eval: no such task"};
  EXPECT_EQ(with_context(inner, "eval").message, "eval: no such task");
  EXPECT_EQ(with_context(inner, "pipeline").message, "pipeline: eval: no such task");
}

TEST(ContentHash, DependsOnWhereThePartsAreSplit) {
  EXPECT_NE(content_hash({"ab", "c"}), content_hash({"a", "bc"}));
  EXPECT_NE(content_hash({"a"}), content_hash({"a", ""}));
  EXPECT_EQ(content_hash({"a", "b"}), content_hash({"a", "b"}));
  EXPECT_EQ(content_hash({}).size(), 64u);
}

TEST(DeriveSeed, DependsOnSeedAndLabel) {
  EXPECT_EQ(derive_seed(1, "a"), derive_seed(1, "a"));
  EXPECT_NE(derive_seed(1, "a"), derive_seed(2, "a"));
  EXPECT_NE(derive_seed(1, "a"), derive_seed(1, "b"));
}

TEST(SeedKey, DerivesADifferentSeedForEachUseAndKey) {
  const SeedKey key = SeedKey::from(1);
  EXPECT_EQ(key.derive({"a", "b"}), SeedKey::from(1).derive({"a", "b"}));
  EXPECT_NE(key.derive({"a", "b"}), key.derive({"ab"}));
  EXPECT_NE(key.derive({"a"}), SeedKey::from(2).derive({"a"}));
  EXPECT_NE(key.derive({"a"}), SeedKey::random().derive({"a"}));
  EXPECT_NE(SeedKey::random().derive({"a"}), SeedKey::random().derive({"a"}));
}

TEST(ReadFile, RefusesWhatIsLargerThanTheLimit) {
  auto directory = TemporaryDirectory::create("mc-core-test");
  ASSERT_TRUE(directory);
  const auto path = directory->path() / "text";
  ASSERT_TRUE(write_file_atomically(path, "12345"));
  EXPECT_EQ(read_file(path, 5).value(), "12345");
  EXPECT_EQ(read_file(path, 4).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(read_file(directory->path(), 5).error().code, ErrorCode::kInvalidInput);
  EXPECT_EQ(read_file(directory->path() / "none", 5).error().code, ErrorCode::kNotFound);
}

TEST(WriteFile, LeavesNothingWhereItCannotWrite) {
  EXPECT_FALSE(write_file_atomically("/nonexistent-directory/file", "text"));
  EXPECT_FALSE(std::filesystem::exists("/nonexistent-directory"));
}

TEST(TemporaryDirectory, IsRemovedWithItsOwner) {
  std::filesystem::path path;
  {
    auto directory = TemporaryDirectory::create("mc-core-test");
    ASSERT_TRUE(directory);
    path = directory->path();
    ASSERT_TRUE(write_file_atomically(path / "file", "text"));
  }
  EXPECT_FALSE(std::filesystem::exists(path));
}

class Outputs : public ::testing::Test {
 protected:
  std::filesystem::path at(const std::string& name) const { return folder_->path() / name; }
  std::string text_of(const std::string& name) const { return read_file(at(name), 100).value(); }
  Result<TemporaryDirectory> folder_ = TemporaryDirectory::create("outputs");
};

TEST_F(Outputs, FollowALinkAndLeaveItALink) {
  std::filesystem::create_directory(at("inner"));
  std::filesystem::create_symlink("inner/file", at("link"));
  for (const char* text : {"first", "second"}) {
    ASSERT_TRUE(write_output(at("link"), text));
    EXPECT_TRUE(std::filesystem::is_symlink(at("link")));
    EXPECT_EQ(text_of("inner/file"), text);
  }
}

TEST_F(Outputs, AreWrittenIntoADeviceOrAPipe) {
  ASSERT_EQ(::mkfifo(at("pipe").c_str(), 0600), 0);
  const Fd reader(::open(at("pipe").c_str(), O_RDONLY | O_NONBLOCK | O_CLOEXEC));
  ASSERT_TRUE(write_output(at("pipe"), "text"));
  char text[8] = {};
  EXPECT_EQ(::read(reader.get(), text, sizeof text), 4);
  EXPECT_STREQ(text, "text");
  EXPECT_TRUE(std::filesystem::is_fifo(at("pipe")));
  const Status lost = write_output("/dev/full", "text");
  ASSERT_FALSE(lost);
  EXPECT_EQ(lost.error().message, "cannot write /dev/full: No space left on device");
  EXPECT_TRUE(std::filesystem::is_character_file("/dev/full"));
}

TEST_F(Outputs, AreRefusedBeforeAnythingIsWritten) {
  std::filesystem::create_directory(at("folder"));
  ASSERT_TRUE(write_output(at("file"), "text"));
  for (const std::string name : {"folder", "none/file", "file/file"}) {
    EXPECT_FALSE(check_output(at(name))) << name;
  }
  EXPECT_FALSE(check_output(""));
  EXPECT_FALSE(check_output_folder(""));
  EXPECT_FALSE(check_output_folder(at("file/folder")));
  EXPECT_TRUE(check_output_folder(at("none/folder")));
  EXPECT_TRUE(check_output(at("file")));
  EXPECT_TRUE(check_output("/dev/null"));
}

TEST(Mapping, ShowsWhatAnotherWrites) {
  const auto fd = make_memfd("test", 4096);
  ASSERT_TRUE(fd);
  const auto mapping = Mapping::create(*fd, 4096);
  ASSERT_TRUE(mapping);
  EXPECT_EQ(mapping->text(), "");
  ASSERT_EQ(::pwrite(fd->get(), "hello", 5, 0), 5);
  EXPECT_EQ(mapping->text(), "hello");
}

TEST(Memfd, CannotBeResized) {
  const auto fd = make_memfd("test", 4096);
  ASSERT_TRUE(fd);
  EXPECT_NE(::ftruncate(fd->get(), 0), 0);
  EXPECT_NE(::ftruncate(fd->get(), 8192), 0);
  EXPECT_NE(::fcntl(fd->get(), F_ADD_SEALS, F_SEAL_WRITE), 0);
  EXPECT_EQ(::pwrite(fd->get(), "hello", 5, 4096), -1);
}

TEST(Memfd, GrowsWithEachWriteIfMadeGrowing) {
  const auto fd = make_growing_memfd("test");
  ASSERT_TRUE(fd);
  EXPECT_EQ(::pwrite(fd->get(), "hello", 5, 4094), 5);
}

}  // namespace
}  // namespace mc
