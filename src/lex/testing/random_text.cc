// SPDX-License-Identifier: Apache-2.0
#include "lex/testing/random_text.h"

#include <array>
#include <random>
#include <string_view>

namespace mc::lex {
namespace {

using std::string_view_literals::operator""sv;

constexpr std::array kPieces = {
    "kernel"sv,
    "<<<"sv,
    ">>>"sv,
    "<< <"sv,
    ">> >"sv,
    ">"sv,
    "<"sv,
    ">>"sv,
    ">>="sv,
    ">="sv,
    "("sv,
    ")"sv,
    "["sv,
    "]"sv,
    "{"sv,
    "}"sv,
    ";"sv,
    ","sv,
    "::"sv,
    "."sv,
    "->"sv,
    "##"sv,
    "#"sv,
    "#define M(x) "sv,
    "#include "sv,
    "<a.h>"sv,
    "\n"sv,
    "\r\n"sv,
    "\\\n"sv,
    "\\ \n"sv,
    " "sv,
    "\t"sv,
    "//c"sv,
    "/*"sv,
    "*/"sv,
    "\""sv,
    "'"sv,
    "R\"("sv,
    ")\""sv,
    "u8R\"x("sv,
    ")x\""sv,
    "\\"sv,
    "operator"sv,
    "__global__ void k(int n) {}\n"sv,
    "__device__ int f(int n) {"sv,
    "namespace {"sv,
    "template <class T> "sv,
    "struct S {"sv,
    "extern "sv,
    "__shared__ "sv,
    "float "sv,
    "name[]"sv,
    "__align__(16) "sv,
    "alignas"sv,
    "template"sv,
    "return "sv,
    "T"sv,
    "0x1p-3"sv,
    "1'000"sv,
    ".5e+"sv,
    "\0"sv,
    "@"sv,
    "\xFF"sv,
    "\xE2\x82\xAC"sv,
    "\xC3"sv,
    "is_cuda"sv,
    "kCUDA"sv,
    "CUDA"sv,
    "DeviceType"sv,
    "NULL"sv,
    "__VA_ARGS__"sv,
    "asm"sv,
    "volatile"sv,
    "\"\""sv,
    "nvcuda"sv,
    "__global__ "sv,
    "namespace n "sv,
    "Device"sv,
    "\"cuda:0\""sv,
    "at"sv,
    "torch"sv,
    "matmul"sv,
    "=="sv,
};

}  // namespace

std::string random_text(std::uint64_t seed, std::size_t num_pieces) {
  std::mt19937_64 random(seed);
  std::string text;
  for (std::size_t i = 0; i < num_pieces; ++i) text += kPieces[random() % kPieces.size()];
  return text;
}

}  // namespace mc::lex
