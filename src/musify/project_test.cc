// SPDX-License-Identifier: Apache-2.0
#include "musify/project.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <filesystem>

namespace mc::musify {
namespace {

using ::testing::Contains;
using ::testing::Not;

SourceFacts facts(std::string_view text) {
  static const Rules kRules =
      load_rules(std::filesystem::path(MC_SOURCE_DIR) / "data/musify", Target::kMusa).value();
  return facts_of(text, Language::kCpp, kRules);
}

TEST(ProjectIndex, SharesNamesThroughIncludes) {
  ProjectIndex index;
  index.add("a.h", facts("#include \"dir/b.h\"\n"));
  index.add("b.h", facts("#define CUDA_MINE 1\n#include \"a.h\"\n"));
  EXPECT_THAT(index.project_of(facts("#include \"a.h\"\n")).names, Contains("CUDA_MINE"));
}

TEST(ProjectIndex, DoesNotShareNamesOfFilesThatAreNotIncluded) {
  ProjectIndex index;
  index.add("a.h", facts("typedef int CUdevice;\n"));
  EXPECT_THAT(index.project_of(facts("CUdevice d;\n")).names, Not(Contains("CUdevice")));
}

TEST(ProjectIndex, KnowsAllFiles) {
  ProjectIndex index;
  index.add("a.cuh", facts(""));
  EXPECT_THAT(index.project_of(facts("")).files, Contains("a.cuh"));
}

}  // namespace
}  // namespace mc::musify
