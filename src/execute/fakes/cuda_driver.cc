// SPDX-License-Identifier: Apache-2.0
// A substitute for libcuda.so.1 in tests. $MC_FAKE_CUDA selects its behaviour.
#include <cstdio>
#include <cstdlib>
#include <cstring>

#include <unistd.h>

namespace {

bool is(const char* behaviour) {
  const char* wanted = std::getenv("MC_FAKE_CUDA");
  return wanted != nullptr && std::strcmp(wanted, behaviour) == 0;
}

}  // namespace

extern "C" {

int cuInit(unsigned) {
  if (is("hangs")) ::pause();
  if (is("crashes")) std::abort();
  return is("does not fit") ? 803 : 0;
}

int cuGetErrorString(int, const char** words) {
  *words = "system has unsupported display driver / cuda driver combination";
  return 0;
}

int cuDriverGetVersion(int* version) {
  *version = 13000;
  return 0;
}

int cuDeviceGetCount(int* count) {
  *count = is("shows none") ? 0 : 2;
  return 0;
}

int cuDeviceGet(int* device, int index) {
  *device = index;
  return 0;
}

int cuDeviceGetName(char* name, int size, int device) {
  std::snprintf(name, static_cast<size_t>(size), "Fake GPU %d", device);
  return 0;
}

int cuDeviceGetAttribute(int* value, int attribute, int device) {
  switch (attribute) {
    case 75:  // Major compute capability.
      *value = 9 + device;
      break;
    case 16:  // Multiprocessors.
      *value = 132;
      break;
    case 97:  // Shared memory of a block, opt-in.
      *value = 227 << 10;
      break;
    case 38:  // L2.
      *value = 50 << 20;
      break;
    case 36:  // Memory clock, kHz.
      *value = 2619000;
      break;
    case 37:  // Memory width, bits.
      *value = 5120;
      break;
    default:
      *value = 0;
  }
  return 0;
}

int cuDeviceGetUuid(unsigned char* uuid, int device) {
  for (int i = 0; i < 16; ++i) uuid[i] = static_cast<unsigned char>(i);
  uuid[15] = static_cast<unsigned char>(0xf0 + device);
  return 0;
}

int cuDeviceTotalMem_v2(size_t* bytes, int) {
  *bytes = size_t{80} << 30;
  return 0;
}

}  // extern "C"
