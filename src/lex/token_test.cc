// SPDX-License-Identifier: Apache-2.0
#include "lex/token.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <string>
#include <vector>

#include "lex/testing/properties.h"
#include "lex/testing/random_text.h"

namespace mc::lex {
namespace {

using ::testing::ElementsAre;

// The texts of the tokens except white space, each after a letter for its kind.
std::vector<std::string> cut(std::string_view source) {
  static constexpr std::string_view kLetters = "wcinsqhp<>?";
  std::vector<std::string> texts;
  for (const Token& token : tokenize(source)) {
    if (token.kind == Kind::kWhitespace) continue;
    texts.push_back(kLetters[static_cast<std::size_t>(token.kind)] + std::string(":") +
                    std::string(text_of(source, token)));
  }
  return texts;
}

struct Row {
  std::string source;
  std::vector<std::string> tokens;
};

class Cutting : public ::testing::TestWithParam<Row> {};

TEST_P(Cutting, GivesTheTokensOfTheTable) { EXPECT_EQ(cut(GetParam().source), GetParam().tokens); }

INSTANTIATE_TEST_SUITE_P(
    Literals, Cutting,
    ::testing::Values(
        Row{"1'000u 0x1p-3f .5e+1 1.2.3 1e-5f",
            {"n:1'000u", "n:0x1p-3f", "n:.5e+1", "n:1.2.3", "n:1e-5f"}},
        Row{"1-x 1.f+2", {"n:1", "p:-", "i:x", "n:1.f", "p:+", "n:2"}},
        Row{"u8\"a\" L'b' U\"c\" u\"d\"", {"s:u8\"a\"", "q:L'b'", "s:U\"c\"", "s:u\"d\""}},
        Row{"\"a\\\"b\"c", {"s:\"a\\\"b\"", "i:c"}},
        Row{"R\"(a\"b)\" LR\"x()\" )x\"", {"s:R\"(a\"b)\"", "s:LR\"x()\" )x\""}},
        Row{"R\"12345678901234567(a\"", {"i:R", "s:\"12345678901234567(a\""}},
        Row{"'\\'' 'ab", {"q:'\\''", "q:'ab"}}, Row{"\"open\nnext", {"s:\"open", "i:next"}},
        Row{"R\"(open\nnext", {"s:R\"(open\nnext"}}, Row{"\"a\\\nb\" c", {"s:\"a\\\nb\"", "i:c"}}));

INSTANTIATE_TEST_SUITE_P(CommentsAndLines, Cutting,
                         ::testing::Values(Row{"a//b\\\nc\nd", {"i:a", "c://b\\\nc", "i:d"}},
                                           Row{"a/*b\n*/c", {"i:a", "c:/*b\n*/", "i:c"}},
                                           Row{"/* open", {"c:/* open"}},
                                           Row{"ab\\\ncd e", {"i:ab\\\ncd", "i:e"}},
                                           Row{"ab \\\r\n cd", {"i:ab", "i:cd"}},
                                           Row{"\\ x", {"?:\\", "i:x"}}));

INSTANTIATE_TEST_SUITE_P(
    Directives, Cutting,
    ::testing::Values(Row{"#include <a//b.h> // c", {"p:#", "i:include", "h:<a//b.h>", "c:// c"}},
                      Row{"  # include \"x.h\"", {"p:#", "i:include", "h:\"x.h\""}},
                      Row{"#error it's\nint", {"p:#", "i:error", "i:it", "q:'s", "i:int"}},
                      Row{"a # include <b>", {"i:a", "p:#", "i:include", "p:<", "i:b", "p:>"}},
                      Row{"#define A(x) #x ## _b",
                          {"p:#", "i:define", "i:A", "p:(", "i:x", "p:)", "p:#", "i:x", "p:##",
                           "i:_b"}}));

INSTANTIATE_TEST_SUITE_P(
    Punctuators, Cutting,
    ::testing::Values(Row{"a->*b...c<<=d>>=e",
                          {"i:a", "p:->*", "i:b", "p:...", "i:c", "p:<<=", "i:d", "p:>>=", "i:e"}},
                      Row{"a>=b>>c>d", {"i:a", "p:>=", "i:b", "p:>>", "i:c", "p:>", "i:d"}},
                      Row{"V<V<V<int>>> v",
                          {"i:V", "p:<", "i:V", "p:<", "i:V", "p:<", "i:int", "p:>>", "p:>",
                           "i:v"}},
                      Row{"A<::B>x", {"i:A", "p:<", "p:::", "i:B", "p:>", "i:x"}}));

INSTANTIATE_TEST_SUITE_P(BytesThatAreNoCpp, Cutting,
                         ::testing::Values(Row{"a@b`", {"i:a", "?:@", "i:b", "?:`"}},
                                           Row{"\xC3\xA9t\xC3\xA9 \xFF\xC3",
                                               {"i:\xC3\xA9t\xC3\xA9", "?:\xFF", "?:\xC3"}},
                                           Row{std::string("a\0b", 3),
                                               {"i:a", std::string("?:\0", 3), "i:b"}}));

// The launch brackets of a source, in their order.
std::string brackets(std::string_view source) {
  std::string found;
  for (const Token& token : tokenize(source)) {
    if (token.kind == Kind::kLaunchOpen) found += '<';
    if (token.kind == Kind::kLaunchClose) found += '>';
  }
  return found;
}

struct LaunchRow {
  std::string source;
  std::string brackets;
};

class LaunchBrackets : public ::testing::TestWithParam<LaunchRow> {};

TEST_P(LaunchBrackets, AreDistinguishedFromOtherAngles) {
  EXPECT_EQ(brackets(GetParam().source), GetParam().brackets) << GetParam().source;
}

INSTANTIATE_TEST_SUITE_P(
    All, LaunchBrackets,
    ::testing::Values(LaunchRow{"k<<<1, 2>>>(x);", "<>"}, LaunchRow{"k<< <1, 2>> >(x);", "<>"},
                      LaunchRow{"k<<<1,\n2\n>>>\n(x);", "<>"}, LaunchRow{"V<V<V<int>>>(x);", ""},
                      LaunchRow{"k<<<1, V<V<V<int>>>(3)>>>(x);", "<>"},
                      LaunchRow{"k<<<1, V<V<V<int>>>(3)>>>(x); k<<<1, 2>>>(y);", "<><>"},
                      LaunchRow{"k<<<n < 5 ? 1 : 2, 3>>>(x);", "<>"},
                      LaunchRow{"k<<<a < b, c < d, e < f>>>(x);", "<>"},
                      LaunchRow{"k<<<(a >> 1), f(b >> 2)>>>(x);", "<>"},
                      LaunchRow{"k<<<n >> 2, 3>>>(x);", "<>"},
                      LaunchRow{"operator<<<T>(x); operator<< <T>(y);", ""},
                      LaunchRow{"k<V<int>><<<1, 2>>>(x);", "<>"},
                      LaunchRow{"k<<<1, [&] { j<<<1, 1>>>(y); return 2; }()>>>(x);", "<<>>"},
                      LaunchRow{"a <<= 1; b << 2; c >> 3; d >>= 4;", ""},
                      LaunchRow{"#define L k<<<1,\nk<<<1, 2>>>(x);", "<<>"},
                      LaunchRow{"#define L(x) k<<<1, \\\n 2>>>(x)\nint i;", "<>"},
                      LaunchRow{"\"k<<<1>>>(x)\" /* k<<<1>>>(x) */ // <<<1>>>(x)", ""},
                      LaunchRow{"k<<<1 /* >>>( */, 2>>> /* c */ (x);", "<>"}));

TEST(Tokenize, CountsLinesAndColumnsInBytes) {
  const std::vector<Token> tokens = tokenize("a\n  /*x\ny*/ b");
  const Token& last = tokens.back();
  EXPECT_EQ(last.line, 3U);
  EXPECT_EQ(last.column, 5U);
  EXPECT_EQ(last.offset, 12U);
}

TEST(Tokenize, FlagsADirectiveUpToItsLastContinuedLine) {
  std::vector<std::string> inside;
  const std::string source = "a\n#if b \\\n c /* d\n */ e\nf";
  for (const Token& token : tokenize(source)) {
    if (token.in_directive && !is_trivia(token)) inside.emplace_back(text_of(source, token));
  }
  EXPECT_THAT(inside, ElementsAre("#", "if", "b", "c", "e"));
}

TEST(Tokenize, KeepsEveryByteAndPositionInAnyText) {
  for (std::uint64_t seed = 0; seed < 3000; ++seed) {
    SCOPED_TRACE(seed);
    check_properties(random_text(seed, 40));
  }
}

TEST(Spelling, DropsLineSplicesButNotInRawStrings) {
  const std::string source = "ab\\\ncd R\"(a\\\nb)\"";
  const std::vector<Token> tokens = tokenize(source);
  EXPECT_EQ(spelling_of(source, tokens.front()), "abcd");
  EXPECT_EQ(spelling_of(source, tokens.back()), "R\"(a\\\nb)\"");
}

}  // namespace
}  // namespace mc::lex
