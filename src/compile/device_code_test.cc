// SPDX-License-Identifier: Apache-2.0
#include "compile/device_code.h"

#include <gmock/gmock.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>

namespace mc::compile {
namespace {

using ::testing::HasSubstr;

// The emulator's words that matter here, as g++ sees them.
constexpr const char* kWords = R"(
#define __global__ __attribute__((noinline, noclone))
#define __device__ __attribute__((noclone))
#define __host__ __attribute__((no_profile_instrument_function))
#define __shared__ thread_local
#define __forceinline__ __attribute__((always_inline))
#include <algorithm>
#include <cmath>
#include <cstdio>
#include <cstdlib>
#include <functional>
#include <iostream>
#include <numeric>
#include <vector>
#include <unistd.h>
)";

class DeviceCode : public ::testing::Test {
 protected:
  DeviceCode() {
    std::string name = (std::filesystem::temp_directory_path() / "device_code_XXXXXX").string();
    folder_ = mkdtemp(name.data());
  }
  ~DeviceCode() override { std::filesystem::remove_all(folder_); }

  // The errors in `source`, compiled by g++ behind the words.
  std::string errors(const std::string& source, bool has_constexpr_algorithms = false) {
    std::ofstream(folder_ / "words.h") << kWords;
    std::ofstream(folder_ / "unit.cpp") << "#line 1 \"kernel.cu\"\n" << source;
    const std::string command =
        "g++ -std=c++17 -O1 -w -c -include " + (folder_ / "words.h").string() +
        " -fdump-tree-gimple-lineno=" + (folder_ / "dump").string() + " -o " +
        (folder_ / "o").string() + " " + (folder_ / "unit.cpp").string();
    EXPECT_EQ(std::system(command.c_str()), 0);
    std::ostringstream dump;
    dump << std::ifstream(folder_ / "dump").rdbuf();
    const std::string_view sources[] = {source};
    const DeviceCodeContext context{{folder_.string()}, {}, has_constexpr_algorithms};
    return device_code_errors(dump.str(), sources, context);
  }

 private:
  std::filesystem::path folder_;
};

TEST_F(DeviceCode, MayCallWhatIsForTheDevice) {
  EXPECT_EQ(errors(R"(
struct Scale {
  __host__ __device__ Scale(float by) : by(by) {}
  __device__ float operator()(float x) const { return x * by; }
  float by;
};
struct Pair { float value = 0.0f; int index = -1; };
constexpr float twice(float x) { return 2.0f * x; }
template <class T> constexpr T ceil_div(T a, T b) { return (a + b - 1) / b; }
template <class T> __device__ __forceinline__ inline T largest(T a, T b) { return std::max(a, b); }
__host__ __device__ inline int both(int i) { return i + 1; }
__host__ __device__ __forceinline__ inline float root(float x) { return sqrtf(x); }
struct Plus { __device__ float operator()(float a, float b) const { return a + b; } };
template <class F> __device__ float fold(const float* x, F f) { return f(x[0], x[1]); }
__device__ float table[4];
float scale(float x) { return x; }
namespace ns { float count(float x) { return x; } }
float host_only(float x) { std::vector<float> v(3, x); std::sort(v.begin(), v.end()); return v[0]; }
template <int N, class T> __global__ void k(T* y, float time) {
  __shared__ float s[N];
  Pair best;
  Pair other = best;
  int count = 0;
  for (int scale = 0; scale < 3; ++scale) count += scale;
  best.index = count;
  const auto add = [&](float a, float b) { return a + b + y[0]; };
  float read = time;
  s[0] = Scale(2.0f)(y[0]) + twice(y[1]) + ceil_div(both(3), 2) + largest(y[2], y[3]);
  y[0] = s[0] + fold(y, Plus{}) + fold(y, add) + expf(y[1]) + std::exp(y[2]) + table[2] + read;
  y[1] = other.value + std::numeric_limits<float>::max() + std::min(y[0], y[1]) + root(y[2]);
  if (y[1] != y[1]) printf("%f %d\n", y[1], best.index);
}
void run(float* y) {
  k<32>(y, host_only(1.0f));
  std::cout << y[0];
}
)"),
            "");
}

struct Refused {
  const char* name;
  const char* before;  // The kernel.
  const char* body;    // The kernel's body, on line 3.
  const char* expected;
};

void PrintTo(const Refused& refused, std::ostream* out) { *out << refused.name; }

class DeviceCodeRefuses : public DeviceCode, public ::testing::WithParamInterface<Refused> {};

TEST_P(DeviceCodeRefuses, WhatIsTheHosts) {
  const Refused& refused = GetParam();
  const std::string source = std::string(refused.before) + "\n__global__ void k(float* y) {\n" +
                             refused.body + "\n}\nvoid run(float* y) { k(y); }\n";
  const std::string found = errors(source);
  EXPECT_THAT(found, HasSubstr("kernel.cu:3:"));
  EXPECT_THAT(found, HasSubstr(refused.expected));
}

INSTANTIATE_TEST_SUITE_P(
    , DeviceCodeRefuses,
    ::testing::Values(
        Refused{"Sort", "", "std::sort(y, y + 8);", "std::sort"},
        Refused{"SortByAnAlias", "namespace s = std;", "s::sort(y, y + 8);", "std::sort"},
        Refused{"SortByAMacro", "template <class F> __device__ void f(F g) { g(); }",
                "using namespace std; f([y] { stable_sort(y, y + 8); });", "std::stable_sort"},
        Refused{"SortByAPointer", "", "void (*f)(float*, float*) = std::sort<float*>; f(y, y + 8);",
                "std::sort"},
        Refused{"Accumulate", "", "y[0] = std::accumulate(y, y + 8, 0.0f);", "std::accumulate"},
        Refused{"Vector", "", "std::vector<float> v(8); y[0] = v[0];", "std::vector"},
        Refused{"Function", "", "std::function<float(float)> f = [](float x) { return x; };",
                "std::function"},
        Refused{"Stream", "", "std::cout << y[0];", "operator<<"},
        Refused{"HostFunction", "static float h(float x) { return x; }", "y[0] = h(y[1]);",
                "(\"h\")"},
        Refused{"HostTemplate", "template <class T> T h(T x) { return x; }", "y[0] = h(y[1]);",
                "(\"h\")"},
        Refused{"HostMember", "struct S { float run(float x) { return x; } };",
                "y[0] = S().run(y[1]);", "S::run"},
        Refused{"HostOperator", "struct S { float operator()(float x) const { return x; } };",
                "y[0] = S{}(y[1]);", "operator()"},
        Refused{"HostByAPointer", "float h(float x) { return x; }",
                "float (*f)(float) = h; y[0] = f(y[1]);", "(\"h\")"},
        Refused{"Write", "", "pwrite(1, y, 4, 0);", "pwrite"},
        Refused{"Random", "", "y[0] = rand();", "rand"},
        Refused{"Throw", "", "if (y[0] > 3.0f) throw 5;", "throw"},
        Refused{"Catch", "",
                "try { y[0] = sqrtf(y[1]); pwrite(1, y, 4, 0); } catch (...) { y[0] = 1; }",
                "catch"},
        Refused{"ThreadLocal", "static thread_local float cache;", "y[0] = cache + y[1];",
                "thread_local"},
        Refused{"LocalThreadLocal", "", "static thread_local float kept; kept += y[0];",
                "thread_local"}),
    [](const auto& info) { return std::string(info.param.name); });

TEST_F(DeviceCode, IsFollowedThroughFunctionsForBothSides) {
  EXPECT_THAT(errors(R"(
__host__ __device__ void both(float* y) {
  std::sort(y, y + 8);
}
__global__ void k(float* y) { both(y); }
void run(float* y) { k(y); }
)"),
              HasSubstr("kernel.cu:3:"));
}

TEST_F(DeviceCode, LeavesFunctionsForBothSidesThatOnlyTheHostCalls) {
  EXPECT_EQ(errors(R"(
__host__ __device__ void both(float* y) { std::sort(y, y + 8); }
__global__ void k(float* y) { y[0] = 1.0f; }
void run(float* y) { k(y); both(y); }
)"),
            "");
}

TEST_F(DeviceCode, MayUseAlgorithmsThatAreConstexpr) {
  const std::string source =
      "__global__ void k(float* y) { std::sort(y, y + 8); }\nvoid run(float* y) { k(y); }\n";
  EXPECT_NE(errors(source, false), "");
  EXPECT_EQ(errors(source, true), "");
}

}  // namespace
}  // namespace mc::compile
