// SPDX-License-Identifier: Apache-2.0
// CUDA's built-in vector types, dim3 and their make_ functions.
#ifndef MC_EMU_VECTOR_TYPES_H_
#define MC_EMU_VECTOR_TYPES_H_

#define MC_EMU_VECTORS(name, type, align2, align4)                            \
  struct name##1 { type x; };                                                 \
  struct __attribute__((aligned(align2))) name##2 { type x, y; };             \
  struct name##3 { type x, y, z; };                                           \
  struct __attribute__((aligned(align4))) name##4 { type x, y, z, w; };       \
  inline name##1 make_##name##1(type x) { return {x}; }                       \
  inline name##2 make_##name##2(type x, type y) { return {x, y}; }            \
  inline name##3 make_##name##3(type x, type y, type z) { return {x, y, z}; } \
  inline name##4 make_##name##4(type x, type y, type z, type w) { return {x, y, z, w}; }

MC_EMU_VECTORS(char, signed char, 2, 4)
MC_EMU_VECTORS(uchar, unsigned char, 2, 4)
MC_EMU_VECTORS(short, short, 4, 8)
MC_EMU_VECTORS(ushort, unsigned short, 4, 8)
MC_EMU_VECTORS(int, int, 8, 16)
MC_EMU_VECTORS(uint, unsigned int, 8, 16)
MC_EMU_VECTORS(long, long, 16, 16)
MC_EMU_VECTORS(ulong, unsigned long, 16, 16)
MC_EMU_VECTORS(longlong, long long, 16, 16)
MC_EMU_VECTORS(ulonglong, unsigned long long, 16, 16)
MC_EMU_VECTORS(float, float, 8, 16)
MC_EMU_VECTORS(double, double, 16, 16)

#undef MC_EMU_VECTORS

struct dim3 {
  unsigned int x, y, z;
  constexpr dim3(unsigned int vx = 1, unsigned int vy = 1, unsigned int vz = 1)
      : x(vx), y(vy), z(vz) {}
  constexpr dim3(uint3 v) : x(v.x), y(v.y), z(v.z) {}
  constexpr operator uint3() const { return uint3{x, y, z}; }
};

#endif  // MC_EMU_VECTOR_TYPES_H_
