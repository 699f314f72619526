// SPDX-License-Identifier: Apache-2.0
//
// Tests of the command `musify` on folders of small files; src/musify tests the ports themselves.
#include <filesystem>
#include <string>
#include <utility>

#include <gmock/gmock.h>

#include "cli/testing/run_line.h"
#include "core/file.h"

namespace mc::cli {
namespace {

namespace fs = std::filesystem;
using testing::HasSubstr;
using testing::Not;

class Musify : public testing::Test {
 protected:
  Musify() : room_(std::move(TemporaryDirectory::create("musify").value())) {}

  std::string write(const std::string& name, const std::string& text) const {
    const fs::path path = room_.path() / name;
    fs::create_directories(path.parent_path());
    EXPECT_TRUE(write_file_atomically(path, text));
    return path;
  }
  std::string read(const std::string& name) const {
    const auto text = read_file(room_.path() / name, 1 << 20);
    return text ? *text : "(none)";
  }
  std::string path(const std::string& name) const { return room_.path() / name; }

  TemporaryDirectory room_;
};

TEST_F(Musify, ASingleFileGoesToStandardOutput) {
  const std::string file = write("a.cu", "void f() {\n  cudaFree(p);\n  cudaFree(q);\n}\n");
  const Ended ended = run_line({"musify", file, "--report"});
  EXPECT_EQ(ended.code, kExitDone);
  EXPECT_EQ(ended.out, "void f() {\n  musaFree(p);\n  musaFree(q);\n}\n");
  EXPECT_EQ(ended.err, file + ":2:3: cudaFree -> musaFree (runtime)\n" + file +
                           ":3:3: cudaFree -> musaFree (runtime)\n"
                           "1 file: 1 ported, 0 unchanged, 0 partial, 0 refused; 0 not "
                           "reversible\n");
  const Ended back = run_line({"musify", write("b.mu", "musaFree(p);\n"), "--to", "cuda"});
  EXPECT_EQ(back.out, "cudaFree(p);\n");
}

TEST_F(Musify, AFolderNeedsAFolderForItsPorts) {
  write("in/a.cu", "cudaFree(p);\n");
  write("in/sub/b.py", "import torch\nx.to('cuda')\n");
  write("in/c.cpp", "int x;\n");
  const Ended missing = run_line({"musify", path("in")});
  EXPECT_EQ(missing.code, kExitInput);
  EXPECT_THAT(missing.err, HasSubstr("--out is missing: only a single file"));
  const Ended ended = run_line({"musify", path("in"), "--out", path("out")});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  EXPECT_EQ(ended.out, "3 files: 2 ported, 1 unchanged, 0 partial, 0 refused; 0 not reversible\n");
  EXPECT_EQ(ended.err, "");
  EXPECT_EQ(read("out/a.mu"), "musaFree(p);\n");
  EXPECT_EQ(read("out/sub/b.py"), "import torch\nimport torch_musa\nx.to('musa')\n");
  EXPECT_EQ(read("out/c.cpp"), "int x;\n");
  const Ended both = run_line({"musify", path("in/a.cu"), path("in/c.cpp")});
  EXPECT_THAT(both.err, HasSubstr("--out is missing"));
}

TEST_F(Musify, ACheckWritesNothing) {
  const std::string changed = write("a.cu", "cudaFree(p);\n");
  const std::string same = write("b.cu", "int x;\n");
  const Ended check = run_line({"musify", changed, same, "--check", "--report"});
  EXPECT_EQ(check.code, kExitFound);
  EXPECT_EQ(check.out, changed + ":1:1: cudaFree -> musaFree (runtime)\n" + changed +
                           ": ported\n2 files: 1 ported, 1 unchanged, 0 partial, 0 refused; 0 not "
                           "reversible\n");
  const Ended unchanged = run_line({"musify", same, "--check"});
  EXPECT_EQ(unchanged.code, kExitDone);
  EXPECT_EQ(unchanged.out,
            "1 file: 0 ported, 1 unchanged, 0 partial, 0 refused; 0 not reversible\n");
  const Ended diff = run_line({"musify", changed, same, "--diff"});
  EXPECT_EQ(diff.code, kExitFound);
  EXPECT_EQ(diff.out, changed + ": ported: 1 runtime\n" + same +
                          ": unchanged: nothing of the other side\n"
                          "2 files: 1 ported, 1 unchanged, 0 partial, 0 refused\n");
  const Ended excluded = run_line({"musify", changed, "--check", "--out", path("out")});
  EXPECT_EQ(excluded.code, kExitInput);
}

TEST_F(Musify, WhatIsLeftOverIsListedOnceWithItsCount) {
  const std::string file = write("a.cu", "cudaFoo(1); cudaFoo(2);\ncudaFoo(3);\n");
  const Ended ended = run_line({"musify", file});
  if (ended.err.find("left over") == std::string::npos) GTEST_SKIP() << ended.err;
  EXPECT_EQ(ended.code, kExitFound);
  EXPECT_THAT(ended.err, HasSubstr(file + ":1:1: left over: "));
  EXPECT_THAT(ended.err, HasSubstr(", 3 times\n"));
  EXPECT_THAT(ended.err, HasSubstr("1 file: 0 ported, 0 unchanged, 1 partial, 0 refused"));
  const Ended diff = run_line({"musify", file, "--diff"});
  EXPECT_THAT(diff.out, HasSubstr(file + ": partial: line 1: "));
  EXPECT_THAT(diff.out, Not(HasSubstr("line 2: ")));
}

TEST_F(Musify, AFileThatIsNoTextIsNotRead) {
  const std::string binary = write("a.cu", std::string("int x;\t\n\f\r\v") + '\x01' + "\x02");
  const Ended ended = run_line({"musify", binary});
  EXPECT_EQ(ended.code, kExitInput);
  EXPECT_THAT(ended.err,
              HasSubstr("a.cu: it is no source: its byte 12 is 0x01, which no text has"));
  EXPECT_THAT(ended.err, HasSubstr("1 file: 0 ported, 0 unchanged"));
  // A good file beside it is ported all the same.
  const Ended both =
      run_line({"musify", binary, write("b.cu", "cudaFree(p);\n"), "--out", path("out")});
  EXPECT_EQ(both.code, kExitInput);
  EXPECT_EQ(read("out/b.mu"), "musaFree(p);\n");
}

TEST_F(Musify, APortThatCannotComeBackIsCounted) {
  const std::string file =
      write("a.py", "import torch\nf(cuda_sources=a, extra_cuda_cflags=['-lineinfo', '-O3'])\n");
  const Ended ended = run_line({"musify", file, "--report"});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  EXPECT_THAT(ended.err, HasSubstr("1 not reversible"));
  EXPECT_THAT(ended.err, HasSubstr(": not reversible from here on\n"));
  EXPECT_THAT(ended.err, HasSubstr(": removed "));
  EXPECT_THAT(ended.err, HasSubstr(": added "));
  const Ended silent = run_line({"musify", file});
  EXPECT_THAT(silent.err, HasSubstr("1 not reversible"));
  EXPECT_THAT(silent.err, Not(HasSubstr("from here on")));
}

TEST_F(Musify, APortBesideItsSourceIsLeftOut) {
  write("in/a.cu", "cudaFree(p);\n");
  write("in/a.mu", "musaFree(p);\n");
  const Ended ended = run_line({"musify", path("in"), "--check"});
  EXPECT_THAT(ended.err, HasSubstr(": left out: its port a.mu is beside it\n"));
}

TEST_F(Musify, NamesOfOtherFilesAreKnown) {
  write("in/a.h", "struct cudaThing { int a; };\n");
  write("in/b.cu", "#include \"a.h\"\ncudaThing t;\ncudaFree(p);\n");
  const Ended ended = run_line({"musify", path("in"), "--out", path("out")});
  EXPECT_EQ(ended.code, kExitDone) << ended.err;
  EXPECT_EQ(read("out/b.mu"), "#include \"a.h\"\ncudaThing t;\nmusaFree(p);\n");
}

TEST_F(Musify, AnOutputThatCannotBeWrittenIsAnError) {
  const std::string file = write("in/a.cu", "cudaFree(p);\n");
  write("out/x", "");
  const Ended ended = run_line({"musify", path("in"), "--out", path("out/x")});
  EXPECT_NE(ended.code, kExitDone);
  EXPECT_THAT(ended.err, HasSubstr("--out"));
}

}  // namespace
}  // namespace mc::cli
