// SPDX-License-Identifier: Apache-2.0
#include "compile/extension.h"

#include <gmock/gmock.h>

#include "compile/diagnostics.h"

namespace mc::compile {
namespace {

using ::testing::ElementsAre;
using ::testing::HasSubstr;

const std::string kKey(64, 'a');

std::string recording(const std::string& members) {
  return R"({"ok": true, "extensions": [{"name": "ext", "key": ")" + kKey + "\"" + members + "}]}";
}

TEST(ParseExtensions, ReadsWhatTheRecorderSaw) {
  const auto parsed = parse_extensions(
      recording(R"(, "cpp_sources": ["int f();"], "cuda_sources": ["int f() { return 1; }"],
                "functions": {"f": "the doc"}, "files": [{"name": "a.h", "text": "//"}],
                "extra_cuda_cflags": ["-O3"])"));
  ASSERT_TRUE(parsed);
  ASSERT_EQ(parsed->size(), 1u);
  const Extension& extension = parsed->front();
  EXPECT_EQ(extension.cpp_sources.front(), "int f();");
  EXPECT_EQ(extension.functions.front().second, "the doc");
  EXPECT_EQ(extension.files.front().name, "a.h");
  EXPECT_EQ(extension.extra_cuda_cflags.front(), "-O3");
}

TEST(ParseExtensions, EndsLinesWhereCompilersDo) {
  const auto parsed = parse_extensions(recording(R"(, "cuda_sources": ["// a\rint b;\r\nint c;\r"],
                "files": [{"name": "a.h", "text": "//\rint d;"}])"));
  ASSERT_TRUE(parsed);
  EXPECT_EQ(parsed->front().cuda_sources.front(), "// a\nint b;\nint c;\n");
  EXPECT_EQ(parsed->front().files.front().text, "//\nint d;");
}

class Refused : public ::testing::TestWithParam<std::string> {};

TEST_P(Refused, IsAProtocolError) {
  const auto parsed = parse_extensions(GetParam());
  ASSERT_FALSE(parsed);
  EXPECT_EQ(parsed.error().code, ErrorCode::kProtocol);
}

TEST(Recording, IsRejectedWithTheNameOfTheFault) {
  const auto why = [](const std::string& more) {
    return parse_extensions(recording(more)).error().message;
  };
  EXPECT_THAT(why(R"(, "files": [{"name": "../x", "text": ""}])"), HasSubstr("\"../x\" cannot be"));
  EXPECT_THAT(why(R"(, "cuda_sources": [")" + std::string(2 << 20, 'x') + "\"]"),
              HasSubstr("its sources have 2097152 bytes, more than "));
}

INSTANTIATE_TEST_SUITE_P(
    Recordings, Refused,
    ::testing::Values("", "[]", "{}", R"({"extensions": 3})", R"({"extensions": [{"name": "a"}]})",
                      R"({"extensions": [{"name": "a", "key": "short"}]})",
                      recording(R"(, "cpp_sources": 5)"), recording(R"(, "functions": {"f": 1})"),
                      recording(R"(, "files": [{"name": "../../etc/passwd", "text": ""}])"),
                      recording(R"(, "files": [{"name": "/etc/passwd", "text": ""}])"),
                      recording(R"(, "cuda_sources": [")" + std::string(2 << 20, 'x') + "\"]")));

TEST(MakeUnits, BindsFunctionsBehindTheDeclarations) {
  Extension extension{
      "ext", kKey, {"int f();"}, {"int f() { return 1; }"}, {{"f", "a \"doc\"\n"}}, {}, {}, {},
      {},    {}};
  const std::vector<Unit> units = make_units(extension);
  ASSERT_EQ(units.size(), 2u);
  EXPECT_THAT(units[0].pieces.back().text, HasSubstr("m.def(\"f\", &f, \"a \\\"doc\\\"\\n\");"));
  EXPECT_EQ(units[1].pieces.front().name, "cuda_sources[0]");
}

TEST(MakeUnits, PutsThePreludeBeforeTheCudaSourcesAlone) {
  Extension extension;
  extension.cpp_sources = extension.cuda_sources = {"int f();"};
  extension.prelude = "#define A 1\n";
  const std::vector<Unit> units = make_units(extension);
  ASSERT_EQ(units.size(), 2u);
  EXPECT_EQ(units[0].pieces.size(), 1u);
  ASSERT_EQ(units[1].pieces.size(), 2u);
  EXPECT_EQ(units[1].pieces[0].text, "#define A 1\n");
  EXPECT_EQ(units[1].pieces[1].name, "cuda_sources[0]");
}

const char* const kModule =
    "import torch\n"
    "source = r'''\n"
    "__global__ void k() {}\n"
    "int f() { return undefined_name; }\n"
    "'''\n"
    "class ModelNew: pass\n";

Extension with_source(const std::string& source) {
  Extension extension;
  extension.name = "ext";
  extension.key = kKey;
  extension.cuda_sources = {source};
  return extension;
}

TEST(SecondModule, IsAnErrorWhereLoadInlineGeneratesOneToo) {
  const std::string source = "int x;\n// PYBIND11_MODULE\nPYBIND11_MODULE(ext, m) {}\n";
  Extension extension;
  extension.cuda_sources = {source};
  const LocationMapper mapper("import torch\n" + source, {extension});
  EXPECT_FALSE(second_module(extension, mapper));
  extension.functions = {{"f", "f"}};
  const auto found = second_module(extension, mapper);
  ASSERT_TRUE(found);
  EXPECT_EQ(found->location.source, "candidate");
  EXPECT_EQ(found->location.line, 4);
  extension.cuda_sources = {"#define NAME PYBIND11_MODULE\nauto text = \"PYBIND11_MODULE\";"};
  EXPECT_FALSE(second_module(extension, mapper));
}

TEST(LocationMapper, FindsTheLineInTheCandidate) {
  const LocationMapper mapper(kModule, {with_source("\n__global__ void k() {}\n"
                                                    "int f() { return undefined_name; }\n")});
  const task::SourceLocation location = mapper.map("cuda_sources[0]", 3, 18);
  EXPECT_EQ(location.source, "candidate");
  EXPECT_EQ(location.line, 4);
  EXPECT_EQ(location.excerpt, "int f() { return undefined_name; }");
}

TEST(LocationMapper, ALineOfTheModuleIsOneOfTheCandidate) {
  const auto found = LocationMapper("import torch\nx = 1\n", {}).map("candidate.py", 2, 3);
  EXPECT_EQ(found.source, "candidate");
  EXPECT_EQ(found.line, 2);
  EXPECT_EQ(found.excerpt, "x = 1");
}

TEST(LocationMapper, KeepsThePieceWhereTheModuleGeneratedTheText) {
  const LocationMapper mapper(kModule, {with_source("int g() {\n  return 1;\n}\n")});
  const task::SourceLocation location = mapper.map("cuda_sources[0]", 2, 1);
  EXPECT_EQ(location.source, "cuda_sources[0]");
  EXPECT_EQ(location.line, 2);
  EXPECT_EQ(location.excerpt, "  return 1;");
}

TEST(LocationMapper, FindsTheLinesOfPiecesThatAModuleJoined) {
  Extension extension;
  extension.cuda_sources = {"int first();\nint second();\nint third();\nint twice();\n"};
  const LocationMapper mapper(
      "B = 'x'\nint twice();\nC = r'''\nint second();\nint third();\n'''\nA = r'''\nint first();\n"
      "int twice();\n'''\n",
      {extension});
  EXPECT_EQ(mapper.map("cuda_sources[0]", 3, 1).line, 5);
  EXPECT_EQ(mapper.map("cuda_sources[0]", 1, 1).line, 8);
  EXPECT_EQ(mapper.map("cuda_sources[0]", 4, 1).source, "cuda_sources[0]");
}

TEST(LocationMapper, DistinguishesPiecesOfOneNameByExtensionAndKernel) {
  Extension one;
  Extension other;
  one.cuda_sources = {"__global__ void relu() {\n  relu_body();\n}\n"};
  other.cuda_sources = {"__global__ void add() {\n  add_body();\n}\n"};
  const LocationMapper mapper(
      "A = r'''" + one.cuda_sources[0] + "'''\nB = r'''" + other.cuda_sources[0] + "'''\n",
      {one, other});
  const auto line_of = [](const LocationMapper& from, std::string_view kernel) {
    return from.map("cuda_sources[0]", 2, 1, kernel).line;
  };
  EXPECT_EQ(line_of(mapper, "void some::add<float>(float*)"), 6);
  EXPECT_EQ(line_of(mapper, "(anonymous namespace)::add(float*)"), 6);
  EXPECT_EQ(line_of(mapper, "relu"), 2);
  EXPECT_EQ(line_of(mapper, "ad"), 2);
  EXPECT_EQ(line_of(mapper.of(1), ""), 6);
}

TEST(LocationMapper, MapsASourceWithManyEqualLines) {
  std::string text;
  for (int i = 0; i < 200'000; ++i) text += "//aa\n";
  Extension extension;
  extension.cuda_sources = {text + "int x = here;\n"};
  const LocationMapper mapper("head\n" + extension.cuda_sources[0], {extension});
  EXPECT_EQ(mapper.map("cuda_sources[0]", 200'001, 1).line, 200'002);
}

TEST(LocationMapper, AcceptsAnyLineNumber) {
  const LocationMapper mapper(kModule, {with_source("int g();\n")});
  for (const int line : {-1, 0, 1, 2, 1 << 30}) mapper.map("cuda_sources[0]", line, 0);
  EXPECT_EQ(mapper.map("nowhere", 1, 0).excerpt, "");
}

TEST(Headers, AreListedWithoutTheExtensionsOwnAndCanBeRemoved) {
  Extension extension = with_source(
      "#define float int\n#include <cublas_v2.h>\nint x\n#include \"part.cuh\"\n// #include "
      "<no.h>\n");
  extension.files = {{"part.cuh", "#pragma once\n#include <mma.h>\nint y;\n"}};
  EXPECT_THAT(headers_of(extension), ElementsAre("<cublas_v2.h>", "<mma.h>"));
  EXPECT_EQ(without_includes("int a;\n # include <mma.h> // x\n#include <vector>\n", {"<mma.h>"}),
            "int a;\n                   // x\n#include <vector>\n");
}

Extension named(std::string name, std::string source) {
  Extension extension;
  extension.name = std::move(name);
  extension.cuda_sources = {std::move(source)};
  return extension;
}

TEST(Extension, HasAFreeNameWhereOnlyTheModuleUsesIt) {
  const std::string binding = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}";
  EXPECT_TRUE(is_name_free(named("e", binding), {}));
  EXPECT_TRUE(is_name_free(named("e", "void e(); " + binding), {}));
  EXPECT_FALSE(is_name_free(named("e", "PYBIND11_MODULE(e, m) {}"), {}));
  EXPECT_FALSE(is_name_free(named("e", "void f();"), {}));
  EXPECT_FALSE(is_name_free(named("a-b", binding), {}));
  EXPECT_FALSE(is_name_free(named("e", binding + " TORCH_LIBRARY(TORCH_EXTENSION_NAME, n)"), {}));
  EXPECT_FALSE(is_name_free(named("e", "#define e f\n" + binding), {}));
  EXPECT_FALSE(is_name_free(named("e", binding), {"-DN=TORCH_EXTENSION_NAME"}));
  Extension bound = named("e", "void f();");
  bound.functions = {{"f", "f"}};
  EXPECT_TRUE(is_name_free(bound, {}));
}

}  // namespace
}  // namespace mc::compile
