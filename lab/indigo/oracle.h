// SPDX-License-Identifier: Apache-2.0
//
// Oracle: the faults of a kernel of IndigoSuite that can show with a graph, by other means than
// the executor's: a thread of the kernel is a fiber, and each pair of accesses of a word is held
// against the two counts below. oracle.py writes the program around a kernel: its pointers become
// Array<T>, its shared arrays shared<T>(line, count).
//
// Two accesses by different threads conflict if one writes, not both are atomic, and neither a
// barrier (for one block) nor an operation of a warp (for one warp) is between. A conflict shows
// if one of the two is a plain write that changes the word. It is weak otherwise: writes that
// change nothing, and plain reads of what atomics wrote.
//
// A kernel runs with several random inputs, its threads and blocks in ascending or descending
// order.
#ifndef MC_INDIGO_ORACLE_H_
#define MC_INDIGO_ORACLE_H_

#include <ucontext.h>

#include <algorithm>
#include <cstdio>
#include <functional>
#include <iostream>
#include <map>
#include <memory>
#include <random>
#include <set>
#include <string>
#include <type_traits>
#include <vector>

#define __global__
#define __device__

struct Index {
  int x = 0;
};
static Index threadIdx, blockIdx, blockDim, gridDim;

namespace oracle {

constexpr int kLanes = 32, kInputs = 6;
constexpr size_t kStackBytes = 1 << 16;

struct Access {
  int block, thread, barriers, meetings;
  bool writes, is_atomic, changes;
  bool operator==(const Access&) const = default;
  bool is_plain_change() const { return writes && !is_atomic && changes; }
};

enum class State { kRuns, kAtBarrier, kAtMeeting, kDone };

struct Fiber {
  ucontext_t context;
  std::vector<char> stack = std::vector<char>(kStackBytes);
  State state = State::kRuns;
  int value = 0;  // The thread's operand of a barrier or of an operation of its warp.
};

struct Machine {
  std::set<std::string> shows, weak;
  ucontext_t main;
  std::vector<Fiber> fibers;
  int barriers = 0;
  std::vector<int> meetings;
  std::map<int, std::shared_ptr<void>> shared_arrays;  // The key is a line.
  std::function<void()> kernel;

  Fiber& fiber() { return fibers[threadIdx.x]; }
};
static Machine machine;

template <class T>
struct Memory {
  std::vector<T> values;
  bool is_shared = false;
  std::vector<bool> written = std::vector<bool>(values.size());
  std::vector<std::vector<Access>> log = std::vector<std::vector<Access>>(values.size());

  bool has(long i) const {
    const bool is_inside = i >= 0 && i < static_cast<long>(values.size());
    if (!is_inside) machine.shows.insert("out_of_bounds");
    return is_inside;
  }

  void record(long i, bool writes, bool is_atomic, bool changes) {
    const Access now{
        blockIdx.x, threadIdx.x, machine.barriers, machine.meetings[threadIdx.x / kLanes],
        writes,     is_atomic,   changes};
    if (is_shared && !writes && !written[i]) machine.shows.insert("uninitialised_shared");
    if (writes) written[i] = true;
    if (std::ranges::count(log[i], now) != 0) return;
    for (const Access& before : log[i]) compare(before, now);
    log[i].push_back(now);
  }

 private:
  void compare(const Access& a, const Access& b) {
    if (a.block == b.block) {
      if (a.thread == b.thread || a.barriers != b.barriers) return;
      if (a.thread / kLanes == b.thread / kLanes && a.meetings != b.meetings) return;
    }
    if (!(a.writes || b.writes) || (a.is_atomic && b.is_atomic)) return;
    const bool is_shown = a.is_plain_change() || b.is_plain_change();
    (is_shown ? machine.shows : machine.weak).insert(is_shared ? "shared_race" : "global_race");
  }
};

template <class T>
struct Array;

template <class T>
struct Word {
  Memory<T>* memory;
  long index;

  T read() const {
    if (!memory->has(index)) return T(0);
    memory->record(index, false, false, false);
    return memory->values[index];
  }
  void write(T value) const {
    if (!memory->has(index)) return;
    T& word = memory->values[index];
    memory->record(index, true, false, word != value);
    word = value;
  }
  template <class F>
  T update(F function) const {
    if (!memory->has(index)) return T(0);
    T& word = memory->values[index];
    const T old = word;
    word = function(old);
    memory->record(index, true, true, word != old);
    return old;
  }

  operator T() const { return read(); }
  const Word& operator=(T value) const { return write(value), *this; }
  const Word& operator=(const Word& other) const { return write(other.read()), *this; }
  const Word& operator+=(T value) const { return write(read() + value), *this; }
  T operator++(int) const {
    const T old = read();
    write(old + 1);
    return old;
  }
  Array<T> operator&() const { return {memory, index}; }
};

template <class T>
struct Array {
  Memory<T>* memory = nullptr;
  long first = 0;
  Word<T> operator[](long i) const { return {memory, first + i}; }
};

template <class T>
Array<T> shared(int line, size_t count) {
  std::shared_ptr<void>& memory = machine.shared_arrays[line];
  if (memory == nullptr)
    memory = std::make_shared<Memory<T>>(Memory<T>{std::vector<T>(count), true});
  return {static_cast<Memory<T>*>(memory.get()), 0};
}

inline void pause(State state) {
  Fiber& fiber = machine.fiber();
  fiber.state = state;
  swapcontext(&fiber.context, &machine.main);
}

// The result of a function of the values of all threads that wait in a state, `count` from `first`.
// It waits twice: the second time until all have read.
template <class F>
int together(State state, int value, int first, int count, F function) {
  machine.fiber().value = value;
  pause(state);
  std::vector<int> values;
  for (int k = first; k < first + count; ++k) values.push_back(machine.fibers[k].value);
  pause(state);
  return function(values);
}

template <class F>
int in_block(int value, F function) {
  return together(State::kAtBarrier, value, 0, blockDim.x, function);
}
template <class F>
int in_warp(int value, F function) {
  const int lane = threadIdx.x % kLanes;
  return together(State::kAtMeeting, value, threadIdx.x - lane, kLanes,
                  [&](const std::vector<int>& values) { return function(values, lane); });
}

inline void run_fiber() {
  machine.kernel();
  machine.fiber().state = State::kDone;
  setcontext(&machine.main);
}

// Lets the threads from `first` go on if all that live wait in a state.
inline bool open(State state, int first, int count) {
  const auto begin = machine.fibers.begin() + first, end = begin + count;
  const auto waits = [&](const Fiber& one) { return one.state == state; };
  const auto blocks = [&](const Fiber& one) { return !waits(one) && one.state != State::kDone; };
  if (std::none_of(begin, end, waits) || std::any_of(begin, end, blocks)) return false;
  std::for_each(begin, end, [](Fiber& one) {
    if (one.state != State::kDone) one.state = State::kRuns;
  });
  return true;
}

inline bool run_threads(bool is_descending) {
  bool has_run = false;
  for (int k = 0; k < blockDim.x; ++k) {
    threadIdx.x = is_descending ? blockDim.x - 1 - k : k;
    if (machine.fiber().state != State::kRuns) continue;
    swapcontext(&machine.main, &machine.fiber().context);
    has_run = true;
  }
  for (int warp = 0; warp < blockDim.x / kLanes; ++warp) {
    if (!open(State::kAtMeeting, warp * kLanes, kLanes)) continue;
    ++machine.meetings[warp];
    has_run = true;
  }
  return has_run;
}

inline void run_block(int block, bool is_descending) {
  blockIdx.x = block;
  machine.barriers = 0;
  machine.meetings.assign(blockDim.x / kLanes, 0);
  machine.shared_arrays.clear();
  machine.fibers = std::vector<Fiber>(blockDim.x);
  for (Fiber& fiber : machine.fibers) {
    getcontext(&fiber.context);
    fiber.context.uc_stack.ss_sp = fiber.stack.data();
    fiber.context.uc_stack.ss_size = fiber.stack.size();
    makecontext(&fiber.context, run_fiber, 0);
  }
  do {
    while (run_threads(is_descending)) {
    }
    ++machine.barriers;
  } while (open(State::kAtBarrier, 0, blockDim.x));
  const auto is_done = [](const Fiber& one) { return one.state == State::kDone; };
  if (!std::ranges::all_of(machine.fibers, is_done)) machine.shows.insert("divergent_barrier");
}

inline std::vector<int> read_values() {
  size_t count = 0;
  std::cin >> count;
  std::vector<int> values(count);
  for (int& value : values) std::cin >> value;
  return values;
}

// The first value is 0, as in the tasks.
inline Memory<int> random_values(std::mt19937& random, size_t count, size_t end) {
  std::vector<int> values(count);
  for (size_t k = 1; k < count; ++k) values[k] = static_cast<int>(random() % end);
  return {values};
}

inline void print(const char* name, const std::set<std::string>& kinds) {
  std::string text;
  for (const std::string& kind : kinds) text += (text.empty() ? "\"" : ", \"") + kind + "\"";
  std::printf("\"%s\": [%s]", name, text.c_str());
}

// Reads blocks, threads and the two arrays of a graph, each after its length.
template <class Kernel>
int run(Kernel kernel) {
  std::cin >> gridDim.x >> blockDim.x;
  const std::vector<int> indices = read_values(), neighbors = read_values();
  const size_t vertices = indices.size() - 1, edges = std::max<size_t>(1, neighbors.size());
  for (int seed = 0; seed < kInputs; ++seed) {
    std::mt19937 random(seed);
    const size_t size = std::max(vertices, edges);
    Memory<int> nindex{indices}, nlist{neighbors};
    Memory<int> data1 = random_values(random, size, vertices);
    Memory<int> data2 = random_values(random, size, edges);
    machine.kernel = [&] {
      kernel(Array<int>{&nindex}, Array<int>{&nlist}, Array<int>{&data1}, Array<int>{&data2},
             static_cast<int>(vertices));
    };
    const bool is_descending = seed % 2 != 0;
    for (int k = 0; k < gridDim.x; ++k) {
      run_block(is_descending ? gridDim.x - 1 - k : k, is_descending);
    }
  }
  std::printf("{");
  print("shows", machine.shows);
  std::printf(", ");
  print("weak", machine.weak);
  std::printf("}\n");
  return 0;
}

}  // namespace oracle

// ---- Names of CUDA that the kernels use, of which all have elements of type int.

using oracle::Array;
using oracle::shared;

inline int max(int a, int b) { return a > b ? a : b; }
inline int min(int a, int b) { return a < b ? a : b; }
inline void __syncthreads() { oracle::pause(oracle::State::kAtBarrier); }
inline int __syncthreads_count(bool value) {
  return oracle::in_block(value, [](const auto& all) { return std::ranges::count(all, 1); });
}
inline int __syncthreads_or(bool value) { return __syncthreads_count(value) != 0; }
inline int __shfl_xor_sync(unsigned, int value, int mask) {
  return oracle::in_warp(value, [&](const auto& all, int lane) { return all[lane ^ mask]; });
}
inline int __shfl_up_sync(unsigned, int value, int delta) {
  return oracle::in_warp(
      value, [&](const auto& all, int lane) { return all[lane >= delta ? lane - delta : lane]; });
}
inline unsigned __ballot_sync(unsigned, bool value) {
  return oracle::in_warp(value, [](const auto& all, int) {
    unsigned bits = 0;
    for (int k = 0; k < oracle::kLanes; ++k) bits |= static_cast<unsigned>(all[k]) << k;
    return static_cast<int>(bits);
  });
}
inline int __any_sync(unsigned mask, bool value) { return __ballot_sync(mask, value) != 0; }
inline int __popc(unsigned value) { return __builtin_popcount(value); }

template <class T>
T atomicMax(Array<T> at, std::type_identity_t<T> value) {
  return at[0].update([&](T old) { return std::max(old, value); });
}
template <class T>
T atomicMin(Array<T> at, std::type_identity_t<T> value) {
  return at[0].update([&](T old) { return std::min(old, value); });
}
template <class T>
T atomicAdd(Array<T> at, std::type_identity_t<T> value) {
  return at[0].update([&](T old) { return old + value; });
}
template <class T>
T atomicOr(Array<T> at, std::type_identity_t<T> value) {
  return at[0].update([&](T old) { return old | value; });
}
template <class T>
T atomicExch(Array<T> at, std::type_identity_t<T> value) {
  return at[0].update([&](T) { return value; });
}

#endif  // MC_INDIGO_ORACLE_H_
