// SPDX-License-Identifier: Apache-2.0
#include "compile/artifact_store.h"

#include <gtest/gtest.h>

#include "core/file.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;

class Store : public testing::Test {
 protected:
  Store()
      : root_(TemporaryDirectory::create("mc-store").value()), store_{root_.path(), "toolchain"} {
    extension_.key = "key";
    extension_.name = "ext";
    extension_.cuda_sources = {"__global__ void k() {}"};
    home_ = store_.home_of(extension_, {});
  }

  // As a toolchain does that holds one kernel of such a name.
  Artifact publish(const std::string& kernel, const Symbols& symbols = {{"_s"}}) const {
    const fs::path work = root_.path() / ("work-" + kernel);
    fs::create_directory(work);
    EXPECT_TRUE(write_file_atomically(library_in(work, extension_), "library with " + kernel));
    Artifact artifact{extension_.key, extension_.name, library_in(home_, extension_), {}, {}};
    artifact.undefined_symbols = symbols;
    artifact.kernels = {{.kernel = kernel, .name = "k"}};
    return store_.publish(work, home_, extension_, artifact).value();
  }

  std::string library() const { return read_file(library_in(home_, extension_), 1000).value(); }

  TemporaryDirectory root_;
  ArtifactStore store_;
  Extension extension_;
  fs::path home_;
};

TEST_F(Store, FindsWhatWasPublished) {
  EXPECT_FALSE(store_.find(home_, extension_).has_value());
  const Artifact published = publish("_first");
  EXPECT_FALSE(published.cached);
  const auto found = store_.find(home_, extension_);
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->cached);
  EXPECT_EQ(found->kernels, published.kernels);
  EXPECT_EQ(found->library, published.library);
  EXPECT_EQ(found->undefined_symbols, published.undefined_symbols);
}

TEST_F(Store, RemembersThatSymbolsCannotBeRead) {
  publish("_first", std::nullopt);
  EXPECT_FALSE(store_.find(home_, extension_)->undefined_symbols.has_value());
}

TEST_F(Store, FindsNothingThatAnotherVersionWrote) {
  publish("_first");
  std::string manifest = read_file(home_ / "manifest.json", 10'000).value();
  const size_t version = manifest.find("musacoder-artifact/");
  ASSERT_NE(version, std::string::npos);
  manifest.replace(version, 20, "musacoder-artifact/0");
  ASSERT_TRUE(write_file_atomically(home_ / "manifest.json", manifest));
  EXPECT_FALSE(store_.find(home_, extension_).has_value());
}

// Two that compile the same at once get different names of kernels; the library that stands there
// is the first one's, and so must the names be.
TEST_F(Store, GivesTheSecondWhatTheFirstPublished) {
  const Artifact first = publish("_first");
  const Artifact second = publish("_second");
  EXPECT_EQ(second.kernels, first.kernels);
  EXPECT_TRUE(second.cached);
  EXPECT_EQ(library(), "library with _first");
}

TEST_F(Store, ReplacesWhatIsDamaged) {
  publish("_first");
  ASSERT_TRUE(write_file_atomically(home_ / "manifest.json", "{"));
  EXPECT_FALSE(store_.find(home_, extension_).has_value());
  EXPECT_EQ(publish("_second").kernels[0].kernel, "_second");
  EXPECT_EQ(library(), "library with _second");
}

}  // namespace
}  // namespace mc::compile
