// SPDX-License-Identifier: Apache-2.0
#include "check/device.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <cmath>
#include <cstdio>
#include <optional>
#include <sstream>
#include <thread>
#include <utility>

#include <dlfcn.h>
#include <poll.h>
#include <unistd.h>
#include <nlohmann/json.hpp>

#include "core/check.h"

namespace mc::check {
namespace {

using Json = nlohmann::json;

constexpr uint64_t kThreadsMax = 64;
constexpr int kWorkersMax = 4;  // Each worker has a shadow memory of its own: kReservedBytes.
constexpr size_t kTextBytesMax = 512;
constexpr std::chrono::seconds kReportTimeMax{2};
constexpr double kBudgetSeconds = 10;  // The time within which a launch of a candidate should end.

// The library's functions (device/cuda/capi.cc, device/ptx_driver/capi.cc).
class Library {
 public:
  static Result<Library> load(const std::filesystem::path& path) {
    void* const handle = ::dlopen(path.c_str(), RTLD_NOW | RTLD_LOCAL);
    if (handle == nullptr) return Error{ErrorCode::kUnavailable, ::dlerror()};
    return Library(handle);
  }
  template <class Value = int, class... Arguments>
  Value call(const char* name, Arguments... arguments) const {
    void* const function = ::dlsym(handle_, name);
    MC_CHECK(function != nullptr);  // The library was built together with this program.
    return reinterpret_cast<Value (*)(Arguments...)>(function)(arguments...);
  }

 private:
  explicit Library(void* handle) : handle_(handle) {}
  void* handle_;
};

bool write_line(int descriptor, const Json& json) {
  const std::string text = json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
  for (size_t at = 0; at < text.size();) {
    const ssize_t written = ::write(descriptor, text.data() + at, text.size() - at);
    if (written <= 0) return false;
    at += static_cast<size_t>(written);
  }
  return true;
}

// The main function of the device process: serves the channel until `finish` is closed, and then
// writes the report.
int serve(const Library& library, const DeviceOptions& options, int channel, int finish,
          int report) {
  std::array<char, kTextBytesMax> why{};
  if (options.counts) library.call<void>("mc_executor_count");
  const auto cores = static_cast<int>(std::thread::hardware_concurrency());
  library.call<void>("mc_executor_use_workers", std::clamp(cores, 1, kWorkersMax));
  library.call<void>("mc_executor_check_copies", options.fresh_byte);
  auto* const executor =
      library.call<void*>("mc_executor_create", uint64_t{0}, why.data(), why.size());
  if (executor == nullptr || library.call("mc_executor_attach", executor, channel) != 0) {
    std::fprintf(stderr, "%s\n", why.data());
    return 1;
  }
  const std::string path = options.executable.string();
  library.call<void>("mc_executor_begin_candidate", options.seed);
  library.call<void>("mc_executor_show_printed");
  // A launch that takes longer than the program may take counts as endless.
  const auto factor = static_cast<int64_t>(std::ceil(options.timeout_s / kBudgetSeconds));
  library.call<void>("mc_executor_allow_steps", factor);
  library.call<void>("mc_executor_allow_file", executor, path.c_str(), path.c_str(), 1);
  library.call<void>("mc_executor_allow_foreign_kernels", executor, "*");  // Those of libraries.
  library.call<void>("mc_executor_serve", executor);
  char unused = 0;
  while (::read(finish, &unused, 1) > 0) {
    library.call<void>("mc_executor_cancel", options.timeout_s / 2);
  }
  // Findings are written first: a kernel may still run, and the counts wait for its end.
  if (!write_line(report, {{"findings", library.call<const char*>("mc_executor_take_report")}})) {
    return 1;
  }
  std::array<uint64_t, 3> counts{};
  std::array<char, kTextBytesMax> unsupported{}, forbidden{};
  library.call<void>("mc_executor_use", executor, counts.data(), unsupported.data(),
                     forbidden.data(), unsupported.size());
  write_line(report, {{"findings", library.call<const char*>("mc_executor_take_report")},
                      {"launches", counts[0]},
                      {"profile", library.call<const char*>("mc_executor_take_profile")},
                      {"unsupported", unsupported.data()}});
  std::fflush(stdout);
  ::_exit(0);  // The serving thread ends with the process.
}

sandbox::Profile profile_of(const DeviceOptions& options) {
  sandbox::Profile profile;
  const auto seconds = static_cast<int64_t>(std::ceil(options.timeout_s));
  profile.limits.cpu = std::chrono::seconds(seconds * std::thread::hardware_concurrency() + 1);
  profile.limits.memory_bytes = static_cast<uint64_t>(options.memory_bytes);
  profile.limits.reserved_bytes = kReservedBytes;
  profile.limits.threads_max = kThreadsMax;
  profile.visible = {options.executable.parent_path().string()};
  return sandbox::lenient(profile);
}

Result<DeviceReport> decoded(const std::string& text) {
  DeviceReport report;
  std::istringstream lines(text);
  for (std::string line; std::getline(lines, line);) {
    const Json json = Json::parse(line, nullptr, false);
    if (!json.is_object()) break;  // The line is incomplete.
    report.findings += json.value("findings", "");
    report.profile = json.value("profile", "");
    report.unsupported = json.value("unsupported", "");
    report.launches = json.value("launches", int64_t{0});
  }
  return report;
}

}  // namespace

Result<Device> Device::start(const DeviceOptions& options) {
  MC_TRY(const Library library, Library::load(options.library), "the device");
  const auto bytes = library.call<uint64_t>("mc_executor_channel_bytes");
  MC_TRY(Fd channel, make_memfd("device", bytes), "the device");
  Fd memory;
  uint64_t memory_address = 0;
  if (options.shares_memory) {
    const auto memory_bytes = library.call<uint64_t>("mc_executor_memory_bytes");
    MC_TRY(memory, make_memfd("memory", memory_bytes), "the device");
    memory_address = library.call<uint64_t>("mc_executor_share_memory", memory.get());
  }
  MC_TRY(Pipe finish, make_pipe(), "the device");
  MC_TRY(Pipe report, make_pipe(), "the device");
  const int given = channel.get(), end = finish.reader.get(), told = report.writer.get();
  std::vector<int> kept = {given, end, told};
  if (memory.get() >= 0) kept.push_back(memory.get());
  MC_TRY(
      sandbox::Child child,
      sandbox::Child::start(profile_of(options), kept,
                            [&](const auto&) { return serve(library, options, given, end, told); }),
      "the device");
  return Device(std::move(child), std::move(channel), std::move(memory), memory_address,
                std::move(finish.writer), std::move(report.reader));
}

void Device::cancel() {
  const char sign = 0;
  static_cast<void>(::write(finish_.get(), &sign, 1));
}

bool Device::is_alive() {
  return !child_.look(sandbox::Child::Clock::time_point::max()).has_value();
}

Result<DeviceReport> Device::finish() {
  using Clock = sandbox::Child::Clock;
  finish_.reset();
  const auto deadline = Clock::now() + kReportTimeMax;
  std::string text;
  std::array<char, 1 << 16> block;
  std::optional<sandbox::Ending> ending;
  while (!ending) {
    pollfd ready{report_.get(), POLLIN, 0};
    ::poll(&ready, 1, static_cast<int>(sandbox::kLookInterval.count()));
    if (ready.revents != 0) {
      const ssize_t got = ::read(report_.get(), block.data(), block.size());
      if (got > 0) text.append(block.data(), static_cast<size_t>(got));
      if (got <= 0) ending = child_.wait(deadline);
    } else {
      ending = child_.look(deadline);
    }
  }
  if (text.empty()) {
    return Error{ErrorCode::kUnavailable, "the device ended: " + sandbox::describe(*ending)};
  }
  return decoded(text);
}

}  // namespace mc::check
