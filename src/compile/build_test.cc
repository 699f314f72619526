// SPDX-License-Identifier: Apache-2.0
#include "compile/build.h"

#include <gtest/gtest.h>

#include <algorithm>
#include <filesystem>
#include <string>
#include <variant>

#include "core/file.h"

namespace mc::compile {
namespace {

TEST(Build, RunsCompilersAtItsNiceness) {
  const auto directory = TemporaryDirectory::create("mc-build-test");
  ASSERT_TRUE(directory);
  const CompileLimits limits;
  std::atomic<int64_t> cpu_us = 0;
  const Build build{directory->path(), {}, limits, cpu_us, true};
  const auto run = run_in_sandbox(build, {"/usr/bin/nice"});
  ASSERT_TRUE(run) << run.error().message;
  EXPECT_EQ(std::get<ToolRun>(*run).out, "19\n");
}

// A compiler reads a file that a source includes, or embeds as bytes.
TEST(Build, ShowsACompilerItsOwnDirectoryAndNoOtherFile) {
  const auto home = TemporaryDirectory::create_in(".", "mc-build-test");
  ASSERT_TRUE(home);
  const auto root = std::filesystem::absolute(home->path());
  for (const char* name : {"mine", "theirs"}) {
    std::filesystem::create_directory(root / name);
    ASSERT_TRUE(write_file_atomically(root / name / "cuda.cu", name));
  }
  const CompileLimits limits;
  std::atomic<int64_t> cpu_us = 0;
  const Build build{root / "mine", {}, limits, cpu_us};
  const auto read = [&](const std::filesystem::path& path) {
    const auto run = run_in_sandbox(build, {"/usr/bin/cat", path.string()});
    return run ? std::get<ToolRun>(*run).out : run.error().message;
  };
  EXPECT_EQ(read(root / "mine/cuda.cu"), "mine");
  EXPECT_EQ(read(root / "theirs/cuda.cu"), "");
  EXPECT_EQ(read("/etc/passwd"), "");
  EXPECT_EQ(read(std::filesystem::canonical("/proc/self/exe")), "");
}

// A candidate can give its headers any name.
TEST(WriteSources, KeepsHeadersApartAndLeavesOutImpossibleFileNames) {
  const auto home = TemporaryDirectory::create("mc-build-test");
  ASSERT_TRUE(home);
  const CompileLimits limits;
  std::atomic<int64_t> cpu_us = 0;
  const Build build{home->path(), {}, limits, cpu_us};
  const std::vector<SourceFile> files = {{"cuda.cu/own.h", "1"},
                                         {"manifest.json", "2"},
                                         {"manifest.json/own.h", "3"},
                                         {"a/b.h", "4"},
                                         {"a", "5"},
                                         {std::string(300, 'x'), "6"}};
  ASSERT_TRUE(write_sources(build, {{"cuda.cu", {{"cuda", "source"}}}}, files));
  EXPECT_TRUE(std::filesystem::is_regular_file(home->path() / "cuda.cu"));
  EXPECT_FALSE(std::filesystem::exists(home->path() / "manifest.json"));
  EXPECT_TRUE(std::filesystem::is_regular_file(headers_in(build) / "cuda.cu/own.h"));
  EXPECT_TRUE(std::filesystem::is_regular_file(headers_in(build) / "manifest.json"));
  EXPECT_TRUE(std::filesystem::is_regular_file(headers_in(build) / "a/b.h"));
}

TEST(Unexplained, IsACompileFailureUnlessTheDiskIsFull) {
  const auto broken = unexplained("g++", {false, "", "internal compiler error", "exit code 4"}, 0);
  ASSERT_TRUE(broken);
  EXPECT_EQ(broken->diagnostics.at(0).message, "g++ failed (exit code 4): internal compiler error");
  const ToolRun full{false, "", "cannot write: No space left on device", ""};
  EXPECT_FALSE(unexplained("g++", full, 0));
  EXPECT_TRUE(unexplained("g++", full, uintmax_t{1} << 30)) << "it filled its own memory";
}

class UndefinedSymbols : public testing::Test {
 protected:
  // The symbols that `nm` finds in `library`.
  Symbols read_with(const std::filesystem::path& nm, const std::string& library) {
    auto symbols = undefined_symbols(build_, nm, directory_.path() / library);
    EXPECT_TRUE(symbols);
    return symbols ? std::move(*symbols) : Symbols();
  }
  std::filesystem::path script(const std::string& text) {
    const auto path = directory_.path() / "nm";
    EXPECT_TRUE(write_file_atomically(path, "#!/bin/sh\n" + text));
    std::filesystem::permissions(path, std::filesystem::perms(0755));
    return path;
  }

  TemporaryDirectory directory_ = TemporaryDirectory::create("mc-build-test").value();
  CompileLimits limits_;
  std::atomic<int64_t> cpu_us_ = 0;
  Build build_{directory_.path(), {}, limits_, cpu_us_};
};

TEST_F(UndefinedSymbols, AreReadWithTheWholeOfTheirNames) {
  ASSERT_TRUE(write_file_atomically(directory_.path() / "a.c",
                                    "void write(void); void Unknown(void); void v_weak(void)"
                                    "__attribute__((weak));"
                                    "void f(void) { write(); Unknown(); v_weak(); }"));
  const auto run = run_in_sandbox(
      build_, {"/usr/bin/g++", "-x", "c", "-w", "-shared", "-fPIC",
               (directory_.path() / "a.c").string(), "-o", (directory_.path() / "a.so").string()});
  ASSERT_TRUE(run && std::get<ToolRun>(*run).succeeded);
  const Symbols symbols = read_with("/usr/bin/nm", "a.so");
  ASSERT_TRUE(symbols);
  for (const char* name : {"write", "Unknown", "v_weak"}) {
    EXPECT_EQ(std::ranges::count(*symbols, name), 1) << name;
  }
}

TEST_F(UndefinedSymbols, AreNotReadWhereNmFailsOrNamesTooMany) {
  ASSERT_TRUE(write_file_atomically(directory_.path() / "none.so", "no library"));
  EXPECT_FALSE(read_with("/usr/bin/nm", "none.so"));
  EXPECT_EQ(read_with(script("seq -f 's%g U' 20000"), "none.so")->size(), kSymbolsMax);
  EXPECT_FALSE(read_with(script("seq -f 's%g U' 20001"), "none.so"));
}

}  // namespace
}  // namespace mc::compile
