// SPDX-License-Identifier: Apache-2.0
#ifndef MC_EMU_CUB_UTIL_SLOTS_CUH_
#define MC_EMU_CUB_UTIL_SLOTS_CUH_

// The parts of the block-wide algorithms here.  Each thread puts its values into slots of
// shared memory, one thread does the work in order, and all read the result: plain, and the same
// bits in every schedule.  As with CUB itself there is no barrier before the first write nor after
// the last read, so reusing the storage without one is a race here too.

#include <cstddef>
#include <new>

#include "cooperative_groups/lanes.h"

namespace cub {
namespace detail {

// Room for objects of any type in shared memory, which must be trivial.
template <class T, int kCount>
struct Slots {
  alignas(T) unsigned char bytes[sizeof(T) * kCount];

  T& operator[](int i) { return reinterpret_cast<T*>(bytes)[i]; }
  void put(int i, const T& value) { new (bytes + sizeof(T) * static_cast<size_t>(i)) T(value); }
};

template <int kDimX, int kDimY>
int linear_thread() {
  return static_cast<int>((threadIdx.z * kDimY + threadIdx.y) * kDimX + threadIdx.x);
}

// The storage that an algorithm has when it is given none.
template <class Storage>
Storage& private_storage() {
  __shared__ Storage storage;
  return storage;
}

}  // namespace detail

// The base of all block and warp algorithms: where their storage is.
#define MC_CUB_STORAGE(Class, Storage)                                 \
 public:                                                               \
  using TempStorage = Storage;                                         \
  Class() : storage_(::cub::detail::private_storage<TempStorage>()) {} \
  explicit Class(TempStorage& storage) : storage_(storage) {}          \
                                                                       \
 private:                                                              \
  TempStorage & storage_;

}  // namespace cub

#endif  // MC_EMU_CUB_UTIL_SLOTS_CUH_
