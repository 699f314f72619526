// SPDX-License-Identifier: Apache-2.0
#include "compile/canonical.h"

#include <gtest/gtest.h>

#include <random>
#include <string>
#include <utility>
#include <vector>

namespace mc::compile {
namespace {

std::string form(std::string_view source, Lines lines = Lines::kDoNotMatter) {
  return canonical_form(source, lines).value_or("itself: " + std::string(source));
}

TEST(Canonical, LeavesOutWhatMakesNoDifference) {
  const std::string source = "#define N 3\n__global__ void k(float* x) { x[0] = N + 1; }\n";
  for (const std::string other :
       {"#define N 3\n__global__ void k(float* x) {\n  x[0] = N + 1;\n}\n",
        "// Adds.\n#define  N\t3 // three\n__global__ void k(float *x){x[0]=N+1;}",
        "/* a\n b */ # define N 3\n\n\n__global__ void\r\nk(float* x) { x /**/ [0] = N+ 1; }",
        "#define N \\\n 3\n__global__ void k(float* x) { x[0] = N + \\\n 1; }\n"}) {
    EXPECT_EQ(form(other), form(source)) << other;
  }
}

using Pair = std::pair<std::string, std::string>;

TEST(Canonical, TellsApartWhatACompilerMay) {
  for (const auto& [one, other] :
       {Pair{"#define F (x)\nint a;", "#define F(x)\nint a;"},
        Pair{"#define A\nint a;", "#define A int a;"},
        Pair{"#define A\n#define B", "#define A # define B"},
        Pair{"#undef A\n int a;", "#undef A int\n a;"},
        Pair{"#define F (x)", "#define F\\\n(x)"},
        Pair{"a + +b", "a ++b"},
        Pair{"a + +b", "a +\\\n+b"},
        Pair{"int ab;", "int a b;"},
        Pair{"a > > b", "a >> b"},
        Pair{"f(\"a b\")", "f(\"a  b\")"},
        Pair{"f(R\"(a\nb)\")", "f(R\"(a b)\")"},
        Pair{"f(R\"(// a\n)\")", "f(R\"(\n)\")"},
        Pair{"f(\"/*\"); a; f(\"*/\")", "f(\"/*\"); b; f(\"*/\")"},
        Pair{"int a; /* ", "int a;"},
        Pair{"int a; // \\", "int a;"},
        Pair{"int a; // \\ \nint b;", "int a; //\nint b;"},
        Pair{"#if 0\n don't /*\n#endif\nint a; /* */", "#if 0\n don't /*\n#endif\nint a;"},
        Pair{"#if 0\n \"abc\\\" /*\n#endif\nint a; /* */", "#if 0\n \"abc\\\" /*\n#endif\nint a;"},
        Pair{"int a; // ?"
             "?/\nint b;",
             "int a; //\nint b;"},
        Pair{"#if __has_include(<a//b>)\n#endif", "#if __has_include(<a//c>)\n#endif"},
        Pair{"#define S(x) #x\nS(a b)", "#define S(x) #x\nS(a  b)"},
        Pair{"int a = \n__LINE__;", "int a = __LINE__;"},
        Pair{"#line 7\nint a;", "#line 7\n\nint a;"},
        Pair{"# 7 \"x\"\nint a;", "# 7 \"x\"\n\nint a;"},
        Pair{"assert(a==b);", "assert(a == b);"},
        Pair{"__STRING(a+b);", "__STRING(a + b);"},
        Pair{"C10_STRINGIZE(a+b);", "C10_STRINGIZE(a + b);"},
        Pair{"MC_EMU_TEXT_OF(a+b);", "MC_EMU_TEXT_OF(a + b);"},
        Pair{"#define J(a, b) a##b\nJ(__STR, ING)(a+b);",
             "#define J(a, b) a##b\nJ(__STR, ING)(a + b);"},
        Pair{"// One. \\\f\nint a;", "// One. \nint a;"},
        Pair{"// One. \\\v\nint a;", "// One. \nint a;"},
        Pair{"\nCUDA_KERNEL_ASSERT(a);", "CUDA_KERNEL_ASSERT(a);"},
        Pair{"\nint a = __builtin_LINE();", "int a = __builtin_LINE();"},
        Pair{"\nTORCH_WARN(\"a\");", "TORCH_WARN(\"a\");"},
        Pair{"\"a\"_s", "\"a\" _s"},
        Pair{"a <=> b", "a <= > b"},
        Pair{"a<:0:>", "a < : 0 : >"},
        Pair{"int a; // x\rint b;", "int a; // x int b;"}}) {
    EXPECT_NE(form(one), form(other)) << one << "\n---\n" << other;
  }
}

TEST(Canonical, CountsLinesWhereTheyMatter) {
  const auto lined = [](std::string_view source) { return form(source, Lines::kMatter); };
  EXPECT_EQ(lined("int a;\nint b; // here"), lined("int  a; /* there */\nint b;"));
  EXPECT_EQ(lined("/* 1 */\nint a;"), lined("// 2 \nint a;"));
  EXPECT_NE(lined("int a;\nint b;"), lined("int a;\n\nint b;"));
  EXPECT_NE(lined("int a;\nint b;"), lined("int a; int b;"));
}

TEST(Canonical, HasAFormForOrdinarySources) {
  for (const char* source :
       {"TORCH_CHECK(x.is_cuda(), \"x must be on the device\");",
        "static_assert(sizeof(int) == 4);", "#pragma unroll\nfor (;;) {}",
        "#define MAX(a, b) ((a) > (b) ? (a) : (b))", "k<<<1, 2>>>(x);",
        "auto f = [=] __device__ (float x) { return x; };",
        "constexpr char c = '\\'', d = '\"'; auto s = \"\\\\\";", "#include <torch/extension.h>\n",
        "asm(\"mov.u32 %0, %%laneid;\" : \"=r\"(i));"}) {
    EXPECT_TRUE(canonical_form(source, Lines::kDoNotMatter)) << source;
  }
}

// The slow and obvious twin: a source that is made of known lines, each a directive or code, each a
// list of words.  Its form says these lines' words and nothing of how they are laid out.
struct Line {
  bool is_directive;
  std::vector<std::string> words;
  bool operator==(const Line&) const = default;
};

class Sources {
 public:
  explicit Sources(unsigned seed) : random_(seed) {}

  std::vector<Line> lines() {
    std::vector<Line> lines(1 + below(6));
    for (Line& line : lines) {
      line.is_directive = below(3) == 0;
      if (line.is_directive) line.words = {"#", "define", "A"};
      for (size_t n = 1 + below(5); n > 0; --n) line.words.push_back(word());
    }
    return lines;
  }

  std::vector<Line> changed(std::vector<Line> lines) {
    Line& line = lines[below(lines.size())];
    const size_t first = line.is_directive ? 3 : 0;
    line.words[first + below(line.words.size() - first)] = word();
    return lines;
  }

  std::string rendered(const std::vector<Line>& lines) {
    std::string text;
    for (const Line& line : lines) {
      if (line.is_directive && !text.empty() && text.back() != '\n') text += '\n';
      for (const std::string& word : line.words) text += word + gap(line.is_directive);
      if (line.is_directive) text += below(2) == 0 ? "// \n" : "\n";
    }
    return text;
  }

 private:
  size_t below(size_t n) { return random_() % n; }
  const std::string& word() {
    static const std::vector<std::string> words = {
        "a",        "b",   "ab", "1",  "1.f", "+", "++", "<",           "(",      ")",    "\"s\"",
        "\" // \"", "'c'", "::", "->", "{",   "}", "/",  "R\"(\n\")\"", "\"/*\"", "float"};
    return words[below(words.size())];
  }
  // White space that is some: words that touch are other words.
  std::string gap(bool in_directive) {
    static const std::vector<std::string> gaps = {
        " ", "\t", "/**/", " /* \" ' */ ", " \\\n ", "/*\n*/", "\n", " // it's\n", "\n\n", "\r\n"};
    std::string text = below(2) == 0 ? " " : "\t";  // A slash and a comment are another comment.
    for (size_t n = below(3); n > 0; --n) text += gaps[below(in_directive ? 6 : gaps.size())];
    return text;
  }
  std::mt19937 random_;
};

TEST(Canonical, IsThatOfTheWordsItIsMadeOf) {
  for (unsigned seed = 0; seed < 3000; ++seed) {
    Sources sources(seed);
    const std::vector<Line> lines = sources.lines();
    const std::vector<Line> others = sources.changed(lines);
    const std::string text = sources.rendered(lines);
    const std::string again = sources.rendered(lines);
    const std::string other = sources.rendered(others);
    ASSERT_EQ(form(text), form(again)) << seed << "\n" << text << "\n---\n" << again;
    ASSERT_EQ(form(text) == form(other), lines == others) << seed << "\n"
                                                          << text << "\n---\n"
                                                          << other;
  }
}

Extension extension_of(std::string name, std::string source) {
  Extension extension;
  extension.name = std::move(name);
  extension.cuda_sources = {std::move(source)};
  return extension;
}

TEST(Canonical, KnowsWhenANameMakesNoDifference) {
  const std::string binding = "PYBIND11_MODULE(TORCH_EXTENSION_NAME, m) {}";
  EXPECT_TRUE(is_name_free(extension_of("e", binding), {}));
  EXPECT_TRUE(is_name_free(extension_of("e", "void e(); " + binding), {}));
  EXPECT_FALSE(is_name_free(extension_of("e", "PYBIND11_MODULE(e, m) {}"), {}));
  EXPECT_FALSE(is_name_free(extension_of("e", "void f();"), {}));
  EXPECT_FALSE(is_name_free(extension_of("a-b", binding), {}));
  EXPECT_FALSE(
      is_name_free(extension_of("e", binding + " TORCH_LIBRARY(TORCH_EXTENSION_NAME, n)"), {}));
  EXPECT_FALSE(is_name_free(extension_of("e", "#define e f\n" + binding), {}));
  EXPECT_FALSE(is_name_free(extension_of("e", binding), {"-DN=TORCH_EXTENSION_NAME"}));
  Extension bound = extension_of("e", "void f();");
  bound.functions = {{"f", "f"}};
  EXPECT_TRUE(is_name_free(bound, {}));
}

}  // namespace
}  // namespace mc::compile
