// SPDX-License-Identifier: Apache-2.0
//
// The child writes lines to a pipe: "cuda 13 0", one
// "device <major> <minor> <multiprocessors> <shared memory> <L2> <kHz> <bits> <bytes> <uuid>
// <name>" for each device, and "end"; or "error <code> <message>".  An output without "end" or
// "error" means that the child died.
#include "execute/cuda_driver.h"

#include <cstdio>
#include <cstdlib>
#include <sstream>
#include <thread>

#include <dlfcn.h>
#include <fcntl.h>
#include <poll.h>
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>
#include <unistd.h>

#include "core/fd.h"

namespace mc::execute {
namespace {

constexpr size_t kTextBytesMax = 64 << 10;
constexpr int kDevicesMax = 64;
constexpr int kErrorNoDevice = 100;
constexpr int kNoLibrary = -1;
constexpr int kNoFunction = -2;

// ---- The child ----------------------------------------------------------------------------------

[[noreturn]] void give_up(int code, const char* words) {
  std::printf("error %d %s\n", code, words);
  std::fflush(stdout);
  ::_exit(0);
}

class Library {
 public:
  Library(const char* name, const char* prefix)
      : prefix_(prefix), handle_(::dlopen(name, RTLD_NOW | RTLD_LOCAL)) {
    if (handle_ == nullptr) give_up(kNoLibrary, ::dlerror());
  }

  // Calls a function of the driver; the name has no prefix, and the types are those of its C
  // header.  Exits the child at an error.
  template <typename... Parameters>
  void call(const char* name, Parameters... parameters) const {
    if (const int code = code_of(name, parameters...); code != 0) give_up(code, words_for(code));
  }

  // The same, but returns false at an error.
  template <typename... Parameters>
  bool succeeds(const char* name, Parameters... parameters) const {
    return code_of(name, parameters...) == 0;
  }

 private:
  template <typename... Parameters>
  int code_of(const char* name, Parameters... parameters) const {
    const auto function = reinterpret_cast<int (*)(Parameters...)>(symbol(name));
    if (function == nullptr) give_up(kNoFunction, ::dlerror());
    return function(parameters...);
  }

  const char* words_for(int code) const {
    const char* words = nullptr;
    const auto function = reinterpret_cast<int (*)(int, const char**)>(symbol("GetErrorString"));
    if (function != nullptr) function(code, &words);
    return words != nullptr ? words : "unknown error";
  }

  void* symbol(const char* name) const { return ::dlsym(handle_, (prefix_ + name).c_str()); }

  std::string prefix_;
  void* handle_;
};

// The form of NVML and CUDA_VISIBLE_DEVICES: "GPU-8c7aa319-….", in groups of 8, 4, 4, 4 and 12.
std::string text_of(const unsigned char (&uuid)[16]) {
  std::string text = "GPU-";
  for (size_t i = 0; i < sizeof uuid; ++i) {
    if (i == 4 || i == 6 || i == 8 || i == 10) text += '-';
    char digits[3];
    std::snprintf(digits, sizeof digits, "%02x", uuid[i]);
    text += digits;
  }
  return text;
}

void tell_device(const Library& driver, int index) {
  // Compute capability, multiprocessors, shared memory of a block (opt-in), L2, memory clock and
  // bus width.  Another platform's driver may know only the first two; an attribute that it lacks
  // is printed as 0.
  constexpr int kAttributes[] = {75, 76, 16, 97, 38, 36, 37};
  constexpr int kCapabilityMajor = 75;
  constexpr int kCapabilityMinor = 76;
  int device = 0;
  size_t bytes = 0;
  unsigned char uuid[16] = {};
  char name[256] = "";
  driver.call("DeviceGet", &device, index);
  driver.call("DeviceGetName", &name[0], static_cast<int>(sizeof name), device);
  driver.call("DeviceTotalMem_v2", &bytes, device);
  driver.call("DeviceGetUuid", &uuid, device);
  std::printf("device");
  for (const int attribute : kAttributes) {
    int value = 0;
    if (attribute <= kCapabilityMinor && attribute >= kCapabilityMajor) {
      driver.call("DeviceGetAttribute", &value, attribute, device);
    } else if (!driver.succeeds("DeviceGetAttribute", &value, attribute, device)) {
      value = 0;
    }
    std::printf(" %d", value);
  }
  std::printf(" %zu %s %s\n", bytes, text_of(uuid).c_str(), name);
}

[[noreturn]] void tell_all(const char* library, const char* prefix, int output) {
  ::prctl(PR_SET_PDEATHSIG, SIGKILL);
  const int nowhere = ::open("/dev/null", O_RDWR);
  ::dup2(nowhere, STDERR_FILENO);
  ::dup2(output, STDOUT_FILENO);
  const Library driver(library, prefix);
  driver.call("Init", 0U);
  int version = 0;
  int num_devices = 0;
  driver.call("DriverGetVersion", &version);
  driver.call("DeviceGetCount", &num_devices);
  if (num_devices == 0) give_up(kErrorNoDevice, "it shows no device");
  std::printf("cuda %d %d\n", version / 1000, version % 1000 / 10);
  for (int i = 0; i < num_devices && i < kDevicesMax; ++i) tell_device(driver, i);
  std::printf("end\n");
  std::fflush(stdout);
  ::_exit(0);
}

// ---- The parent ---------------------------------------------------------------------------------

using Clock = std::chrono::steady_clock;

// Reads text until the other end closes.
Result<std::string> read_until(const Fd& input, Clock::time_point deadline) {
  std::string text;
  while (text.size() < kTextBytesMax) {
    const auto left =
        std::chrono::duration_cast<std::chrono::milliseconds>(deadline - Clock::now()).count();
    pollfd poller{input.get(), POLLIN, 0};
    if (left <= 0 || ::poll(&poller, 1, static_cast<int>(left)) == 0) {
      return Error{ErrorCode::kTimeout, "the driver does not answer"};
    }
    char block[4096];
    const ssize_t size = ::read(input.get(), block, sizeof block);
    if (size <= 0) break;
    text.append(block, static_cast<size_t>(size));
  }
  return text;
}

// Waits for at most a second: a process that hangs in the kernel cannot be killed.
void end(pid_t child) {
  ::kill(child, SIGKILL);
  for (int look = 0; look < 1000 && ::waitpid(child, nullptr, WNOHANG) == 0; ++look) {
    std::this_thread::sleep_for(std::chrono::milliseconds(1));
  }
}

std::string rest_of(std::istringstream& line) {
  std::string text;
  std::getline(line >> std::ws, text);
  return text;
}

Error error_of(int code, const std::string& words) {
  if (code == kNoLibrary || code == kErrorNoDevice) return {ErrorCode::kNotFound, words};
  if (code == kNoFunction) return {ErrorCode::kUnavailable, words};
  return {ErrorCode::kUnavailable, "CUDA error " + std::to_string(code) + ": " + words};
}

Result<CudaDriver> parse(const std::string& text) {
  CudaDriver driver;
  std::istringstream lines(text);
  for (std::string content; std::getline(lines, content);) {
    std::istringstream line(content);
    std::string kind;
    line >> kind;
    if (kind == "end") return driver;
    if (kind == "error") {
      int code = 0;
      line >> code;
      return error_of(code, rest_of(line));
    }
    if (kind == "cuda") line >> driver.cuda_major >> driver.cuda_minor;
    if (kind == "device") {
      CudaDevice device;
      double clock_khz = 0;
      double bits = 0;
      line >> device.major >> device.minor >> device.multiprocessors >> device.shared_bytes_max >>
          device.l2_bytes >> clock_khz >> bits >> device.bytes >> device.uuid;
      device.bandwidth_gbs = 2 * clock_khz * 1e3 * bits / 8 / 1e9;  // Two transfers in each cycle.
      device.name = rest_of(line);
      driver.devices.push_back(device);
    }
  }
  return Error{ErrorCode::kUnavailable, "the driver's library crashes"};
}

}  // namespace

Result<CudaDriver> query_cuda_driver(const std::string& library, std::chrono::milliseconds time_max,
                                     const std::string& prefix) {
  MC_TRY(Pipe pipe, make_pipe(), "query the driver");
  std::fflush(nullptr);  // Otherwise the child would inherit buffered text.
  const pid_t child = ::fork();
  if (child < 0) return system_error(ErrorCode::kUnavailable, "fork");
  if (child == 0) tell_all(library.c_str(), prefix.c_str(), pipe.writer.get());
  pipe.writer.reset();
  const auto text = read_until(pipe.reader, Clock::now() + time_max);
  end(child);
  return text ? parse(*text) : text.error();
}

}  // namespace mc::execute
