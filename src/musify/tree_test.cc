// SPDX-License-Identifier: Apache-2.0
#include "musify/tree.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>
#include <fstream>
#include <string>

#include "core/file.h"

namespace mc::musify {
namespace {

namespace fs = std::filesystem;
using ::testing::HasSubstr;
using ::testing::SizeIs;

class Tree : public ::testing::Test {
 protected:
  void add(const std::string& name) {
    fs::create_directories((root() / name).parent_path());
    std::ofstream(root() / name) << "x\n";
  }
  fs::path root() const { return folder_.path(); }
  Result<std::vector<Source>> find(const fs::path& path) {
    return find_sources({path.string()}, rules_);
  }

 private:
  TemporaryDirectory folder_ = TemporaryDirectory::create("musify").value();

 protected:
  Rules rules_ = load_rules(fs::path(MC_SOURCE_DIR) / "data/musify", Target::kMusa).value();
};

TEST_F(Tree, HasTheSourcesOfAFolderWithTheirNewNames) {
  add("a/k.cu");
  add("a/k.cuh");
  add("b.py");
  add("notes.txt");
  add(".git/x.py");
  const auto sources = find(root());
  ASSERT_THAT(sources.value(), SizeIs(3));
  EXPECT_EQ(sources->at(0).relative, "a/k.mu");
  EXPECT_EQ(sources->at(1).relative, "a/k.muh");
  EXPECT_EQ(sources->at(2).relative, "b.py");
  EXPECT_EQ(sources->at(2).language, Language::kPython);
}

TEST_F(Tree, NamesAPathThatDoesNotExist) {
  EXPECT_THAT(find(root() / "none").error().message, HasSubstr("none: no such file or folder"));
}

TEST_F(Tree, NamesAFileThatIsNotASource) {
  add("notes.txt");
  EXPECT_THAT(find(root() / "notes.txt").error().message, HasSubstr("notes.txt: not a source"));
}

TEST_F(Tree, NamesAFolderWithoutSources) {
  EXPECT_THAT(find(root()).error().message, HasSubstr("no sources in this folder"));
}

TEST_F(Tree, RejectsAPortThatWouldOverwriteAnInput) {
  add("b.py");
  EXPECT_THAT(check_outputs(find(root()).value(), root()).error().message,
              HasSubstr("is an input"));
}

TEST_F(Tree, RejectsTwoPortsWithTheSamePath) {
  add("a/k.cu");
  add("b/k.mu");
  const auto sources = find_sources({(root() / "a").string(), (root() / "b").string()}, rules_);
  EXPECT_THAT(check_outputs(sources.value(), root() / "out").error().message,
              HasSubstr("would both become"));
}

TEST_F(Tree, LeavesOutSourcesWhosePortExists) {
  add("a/k.cu");
  add("a/k.mu");
  add("b/k.cu");
  std::vector<Source> sources = find(root()).value();
  const std::vector<Source> ported = take_ported(sources);
  ASSERT_THAT(ported, SizeIs(1));
  EXPECT_EQ(ported[0].path, root() / "a/k.cu");
  EXPECT_THAT(sources, SizeIs(2));
  EXPECT_TRUE(check_outputs(sources, root() / "out"));
}

}  // namespace
}  // namespace mc::musify
