// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_UTIL_RADIX_CUH_
#define MC_EMU_CUB_UTIL_RADIX_CUH_

// The order of radix sorts: keys as unsigned integers that sort as the keys do (numbers with a sign
// in their natural order, -0 before +0), of which some bits are compared.

#include <cstdint>
#include <cstring>
#include <type_traits>

namespace cub {
namespace detail {

template <std::size_t kSize>
struct RadixWord;
template <>
struct RadixWord<1> {
  using Type = std::uint8_t;
};
template <>
struct RadixWord<2> {
  using Type = std::uint16_t;
};
template <>
struct RadixWord<4> {
  using Type = std::uint32_t;
};
template <>
struct RadixWord<8> {
  using Type = std::uint64_t;
};

template <class Key>
std::uint64_t radix_bits(const Key& key, int begin_bit, int end_bit, bool descending) {
  using Word = typename RadixWord<sizeof(Key)>::Type;
  constexpr int kBits = 8 * static_cast<int>(sizeof(Key));
  constexpr Word kTop = static_cast<Word>(Word{1} << (kBits - 1));
  Word word;
  std::memcpy(&word, static_cast<const void*>(&key), sizeof(Key));
  if (!std::is_integral<Key>::value) {
    word = static_cast<Word>(word & kTop ? ~word : word | kTop);
  } else if (std::is_signed<Key>::value) {
    word = static_cast<Word>(word ^ kTop);
  }
  if (descending) word = static_cast<Word>(~word);
  const int count = (end_bit < kBits ? end_bit : kBits) - begin_bit;
  const std::uint64_t shifted = static_cast<std::uint64_t>(word) >> begin_bit;
  return count >= 64 ? shifted : shifted & ((std::uint64_t{1} << count) - 1u);
}

}  // namespace detail
}  // namespace cub

#endif  // MC_EMU_CUB_UTIL_RADIX_CUH_
