// SPDX-License-Identifier: Apache-2.0
#include "core/demangle.h"

#include <cxxabi.h>
#include <gtest/gtest.h>

#include <cstdlib>
#include <memory>
#include <random>
#include <string>

namespace mc {
namespace {

struct Row {
  std::string symbol;
  std::string name;
};

class Demangle : public ::testing::TestWithParam<Row> {};

TEST_P(Demangle, ReadsTheQualifiedName) {
  EXPECT_EQ(demangle(GetParam().symbol), GetParam().name) << GetParam().symbol;
}

INSTANTIATE_TEST_SUITE_P(
    Functions, Demangle,
    ::testing::Values(
        Row{"_Z1kPf", "k"}, Row{"_Z4axpyIdEvPT_PKS0_S0_i", "axpy<double>"},
        Row{"_ZN2ns4axpyIfLi256EEEvPT_PKS1_", "ns::axpy<float, 256>"},
        Row{"_ZL7row_sumPKfPfi", "row_sum"},
        Row{"_ZN12_GLOBAL__N_11fEv", "(anonymous namespace)::f"},
        Row{"_ZN41_GLOBAL__N__5d1c9e2e_4_k_cu_1a2b3c4d_56781fEv", "(anonymous namespace)::f"},
        Row{"_ZN2at4_ops10add_Tensor4callERKNS_6TensorES4_RKN3c106ScalarE",
            "at::_ops::add_Tensor::call"},
        Row{"_ZNK2at10TensorBase8data_ptrIfEEPT_v", "at::TensorBase::data_ptr<float>"},
        Row{"_ZN2at6TensorD1Ev", "at::Tensor::~Tensor"},
        Row{"_ZN3c105ErrorC2ENS_14SourceLocationENSt7__cxx1112basic_stringIcSt11char_traitsIcE"
            "SaIcEEE",
            "c10::Error::Error"},
        Row{"_ZNSt6thread15_M_start_threadESt10unique_ptrINS_6_StateESt14default_deleteIS1_EEPFvvE",
            "std::thread::_M_start_thread"},
        Row{"_ZNSt14basic_ofstreamIcSt11char_traitsIcEEC1Ev",
            "std::basic_ofstream<char, std::char_traits<char> >::basic_ofstream"},
        Row{"_ZNSs6appendEPKc", "std::string::append"}, Row{"_ZSt4cout", "std::cout"},
        Row{"_ZN1AB5cxx111fB3tagEv", "A::f"}));

INSTANTIATE_TEST_SUITE_P(
    Arguments, Demangle,
    ::testing::Values(Row{"_Z1fIPKfRjOaEvv", "f<float const*, unsigned int&, signed char&&>"},
                      Row{"_Z1fILb1ELb0ELin5ELj5ELm6ELx7EEvv", "f<true, false, -5, 5u, 6ul, 7ll>"},
                      Row{"_Z1fILN3c1010ScalarTypeE6ELc65EEvv", "f<(c10::ScalarType)6, (char)65>"},
                      Row{"_Z1fI6__halfN2at4HalfE13__nv_bfloat16Evv",
                          "f<__half, at::Half, __nv_bfloat16>"},
                      Row{"_Z1fI1AI1BIiEEEvv", "f<A<B<int> > >"},
                      Row{"_Z1fIJifEJdEJEEvv", "f<int, float, double>"}, Row{"_Z1fIJEEvv", "f<>"},
                      Row{"_ZN1AIiE1BIfE1fEv", "A<int>::B<float>::f"}));

INSTANTIATE_TEST_SUITE_P(
    Unread, Demangle,
    ::testing::Values(Row{"_Z6reduceILi256E7functorIfZ4mainEUlvE_EEvPT0_", "reduce<256, ...>"},
                      Row{"_Z1fI1AS_EvT_", "f<A, ...>"}, Row{"_Z1fIA4_iEvv", "f<...>"},
                      Row{"_Z1fILf40490fdbEEvv", "f<...>"}, Row{"_Z1fIXadL_Z1gvEEEvv", "f<...>"},
                      Row{"_ZN1A1BIT_E1fEv", "A::B<...>"}, Row{"_ZNSolsEi", "std::ostream::..."},
                      Row{"_ZN2at6ScalarplERKS0_", "at::Scalar::..."},
                      Row{"_ZStplIcEv", "std::..."}, Row{"_ZN3fooUlvE_clEv", "foo::..."},
                      Row{"_ZZN2at6native1fEvE1x", "at::native::f::..."},
                      Row{"_ZZZ1fvENKUlvE_clEvENKUlvE_clEv", "f::..."}, Row{"_ZN1A", "A::..."},
                      Row{"_ZN1AIi", "A<int, ...>"}, Row{"_ZN1AIJ", "A<...>"}));

INSTANTIATE_TEST_SUITE_P(
    NoNames, Demangle,
    ::testing::Values(Row{"", ""}, Row{"plain", "plain"}, Row{"_Z", "_Z"}, Row{"_ZN", "_ZN"},
                      Row{"_ZNE", "_ZNE"}, Row{"_Znwm", "_Znwm"}, Row{"_ZTV1A", "_ZTV1A"},
                      Row{"_ZplRK1AS1_", "_ZplRK1AS1_"}, Row{"_Znonsense", "_Znonsense"},
                      Row{"_Z9f", "_Z9f"}, Row{"_Z0f", "_Z0f"}, Row{"_Z-1f", "_Z-1f"},
                      Row{"_Z99999999999999999999999f", "_Z99999999999999999999999f"},
                      Row{"_ZC1Ev", "_ZC1Ev"}));

// Each level doubles the length of the demangled name: 9 MB, and soon more than the memory.
std::string doubling(int levels) {
  constexpr std::string_view kDigits = "0123456789ABCDEFGHIJKLMNOPQRSTUVWXYZ";
  std::string symbol = "P1PIiiE";
  for (int i = 0; i < levels; ++i) {
    std::string last = "S";
    if (i >= 36) last += kDigits[static_cast<size_t>(i / 36)];
    last += kDigits[static_cast<size_t>(i % 36)];
    symbol += "S_I" + last + "_" + last + "_E";
  }
  return symbol;
}

// Each level doubles the time that the library's demangler takes to refuse the symbol.
std::string backtracking(int levels) {
  std::string symbol;
  for (int i = 0; i < levels; ++i) symbol += "cvT_I";
  return symbol + "i" + std::string(static_cast<size_t>(levels), 'E');
}

TEST(DemangleHostile, ExpandsNoBackReference) {
  EXPECT_EQ(demangle("_Z1f" + doubling(18)), "f");
  EXPECT_EQ(demangle("_Z1f" + doubling(500)), "f");
  EXPECT_EQ(demangle("_Z1fI" + doubling(500) + "Evv"), "f<P<int, int>*, ...>");
  EXPECT_EQ(demangle("_ZN1A" + backtracking(500) + "Ev"), "A::...");
}

TEST(DemangleHostile, BoundsDepthAndLength) {
  for (const char* part :
       {"P", "K", "I", "J", "N", "Z", "L", "St", "1A", "1AI", "N1A", "JI", "C1", "1AC1", "B1x"}) {
    for (const char* start : {"_Z", "_Z1f", "_Z1fI", "_ZN1A", "_ZN1fI", "_Z1fIL"}) {
      std::string symbol = start;
      while (symbol.size() < 100'000) symbol += part;
      EXPECT_LE(demangle(symbol).size(), kDemangledBytesMax) << start << part;
    }
  }
  const std::string long_name(1000, 'a');
  EXPECT_EQ(demangle("_Z1000" + long_name + "v"), long_name.substr(0, kDemangledBytesMax));
  EXPECT_EQ(demangle(long_name), long_name.substr(0, kDemangledBytesMax));
}

// ---- Against the library ------------------------------------------------------------------------

std::string by_library(const std::string& symbol) {
  int status = 0;
  const std::unique_ptr<char, decltype(&std::free)> text(
      abi::__cxa_demangle(symbol.c_str(), nullptr, nullptr, &status), &std::free);
  return status == 0 ? text.get() : "(nothing)";
}

// Makes random mangled names without back references.
class Names {
 public:
  explicit Names(uint32_t seed) : random_(seed) {}

  std::string nested(int depth) {
    std::string name = "N";
    for (int i = up_to(3); i >= 0; --i) name += component(depth);
    // Not a template: its mangled name would have the return type first.
    return name + identifier() + "E";
  }

 private:
  int up_to(int n) { return std::uniform_int_distribution<int>(0, n)(random_); }

  std::string identifier() {
    const std::string name = std::string("SITEKN_9x").substr(static_cast<size_t>(up_to(6)));
    return std::to_string(name.size()) + name;
  }

  std::string component(int depth) {
    std::string name = identifier();
    if (depth > 3 || up_to(1) == 0) return name;
    name += "I";
    for (int i = up_to(3); i >= 0; --i) name += argument(depth + 1);
    return name + "E";
  }

  std::string argument(int depth) {
    switch (up_to(5)) {
      case 0:
        return "Li" + std::string(up_to(1) == 0 ? "n" : "") + std::to_string(up_to(1000)) + "E";
      case 1:
        return std::string("Lb") + (up_to(1) == 0 ? "0" : "1") + "E";
      case 2:
        return "Ly" + std::to_string(up_to(1000)) + "E";
      default:
        return type(depth);
    }
  }

  std::string type(int depth) {
    switch (up_to(6)) {
      case 0:
        return "P" + type(depth);
      case 1:
        return "PK" + nested(depth + 1);
      case 2:
        return nested(depth + 1);
      case 3:
        return component(depth + 1);
      default:
        return std::string(1, std::string("vwbcahstijlmxyfdeg")[static_cast<size_t>(up_to(17))]);
    }
  }

  std::mt19937 random_;
};

TEST(Demangle, AgreesWithTheLibraryOnNamesWithoutBackReferences) {
  const uint32_t seed = std::random_device()();
  Names names(seed);
  for (int i = 0; i < 3000; ++i) {
    const std::string symbol = "_Z" + names.nested(0) + "v";
    std::string expected = by_library(symbol);
    ASSERT_TRUE(expected.ends_with("()")) << symbol << " of seed " << seed;
    expected.resize(expected.size() - 2);
    if (expected.size() > kDemangledBytesMax) continue;
    ASSERT_EQ(demangle(symbol), expected) << symbol << " of seed " << seed;
  }
}

TEST(Demangle, TerminatesOnRandomText) {
  const uint32_t seed = std::random_device()();
  std::mt19937 random(seed);
  constexpr std::string_view kLetters = "NIJLEPKROZSTCDBvifb_0123tad";
  for (int i = 0; i < 20000; ++i) {
    std::string symbol = "_Z";
    for (size_t size = random() % 60; symbol.size() < size;) {
      symbol += kLetters[random() % kLetters.size()];
    }
    const std::string name = demangle(symbol);
    ASSERT_LE(name.size(), kDemangledBytesMax) << symbol << " of seed " << seed;
    ASSERT_FALSE(name.empty()) << symbol << " of seed " << seed;
  }
}

}  // namespace
}  // namespace mc
