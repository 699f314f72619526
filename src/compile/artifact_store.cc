// SPDX-License-Identifier: Apache-2.0
#include "compile/artifact_store.h"

#include <fcntl.h>
#include <sys/file.h>
#include <sys/stat.h>

#include <algorithm>
#include <charconv>
#include <cstdlib>
#include <system_error>
#include <thread>

#include <nlohmann/json.hpp>

#include "core/cancel.h"
#include "core/check.h"
#include "core/file.h"
#include "core/hash.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

constexpr size_t kManifestBytesMax = 16 << 20;
constexpr const char* kManifest = "manifest.json";
constexpr uint64_t kBytesMaxLeast = 1 << 20;
constexpr size_t kSweepsPerLimit = 32;
constexpr uint64_t kBlockBytes = 4096;  // The minimal disk space of a file.
constexpr auto kPollEvery = std::chrono::milliseconds(10);
// The bound from making a directory to locking it.
constexpr auto kStartsWithin = std::chrono::minutes(1);
constexpr size_t kModuleHashDigits = 24;
// Artifacts of another schema are compiled again.
constexpr const char* kSchema = "musacoder-artifact/5";

std::string dump(const Json& json, int indent) {
  return json.dump(indent, ' ', false, Json::error_handler_t::replace);
}

Json manifest_of(const Artifact& artifact, const std::string& fingerprint, uint64_t library_bytes) {
  return {{"schema", kSchema},
          {"module", artifact.module},
          {"library_bytes", library_bytes},
          {"toolchain", fingerprint},
          {"undefined_symbols",
           artifact.undefined_symbols ? Json(*artifact.undefined_symbols) : Json()},
          {"kernels", Json::parse(to_json(artifact.kernels))},
          {"full_headers", artifact.full_headers}};
}

Fd open_file(const fs::path& path, int flags) {
  return Fd(::open(path.c_str(), flags | O_CLOEXEC, 0644));
}

// The lock of an artifact: shared by its users, exclusive for its removal.  Null where the artifact
// does not exist, or was removed before the lock was granted.
std::shared_ptr<const Fd> lease_on(const fs::path& home) {
  Fd fd = open_file(home / kManifest, O_RDONLY);
  struct stat status{};
  if (!fd.is_open() || !lock_file(fd, LOCK_SH) || ::fstat(fd.get(), &status) != 0 ||
      status.st_nlink == 0) {
    return nullptr;
  }
  return std::make_shared<const Fd>(std::move(fd));
}

// The turn of the building process; the destructor removes the lock file.
class Building {
 public:
  Building(Fd fd, fs::path path) : fd_(std::move(fd)), path_(std::move(path)) {}
  Building(const Building&) = delete;
  Building& operator=(const Building&) = delete;
  ~Building() { ::unlink(path_.c_str()); }

 private:
  Fd fd_;
  fs::path path_;
};

uint64_t bytes_in(const fs::path& directory) {
  uint64_t bytes = 0;
  std::error_code failure;
  for (fs::recursive_directory_iterator it(directory, failure), end; !failure && it != end;
       it.increment(failure)) {
    std::error_code gone;
    const bool is_file = it->is_regular_file(gone);
    const uint64_t size = is_file ? it->file_size(gone) : 0;
    if (!gone) bytes += (size / kBlockBytes + 1) * kBlockBytes;
  }
  return bytes;
}

bool is_younger(const fs::path& path, std::chrono::minutes age) {
  std::error_code failure;
  const auto time = fs::last_write_time(path, failure);
  return failure || fs::file_time_type::clock::now() - time < age;
}

void remove_tree(const fs::path& path) {
  std::error_code ignored;
  fs::remove_all(path, ignored);
}

// Removes an artifact unless it is in use.  It is renamed first, so that no reader finds a part of
// it.
bool evict(const fs::path& home) {
  const Fd fd = open_file(home / kManifest, O_RDONLY);
  if (fd.is_open() ? !lock_file(fd, LOCK_EX | LOCK_NB) : is_younger(home, kStartsWithin)) {
    return false;
  }
  const fs::path old = home.parent_path() / ("old-" + home.filename().string());
  remove_tree(old);
  std::error_code failure;
  fs::rename(home, old, failure);
  if (failure) return false;
  remove_tree(old);
  return true;
}

// Removes a work directory or a lock file whose process has ended.
void remove_if_left(const fs::path& path) {
  if (is_younger(path, kStartsWithin)) return;
  const Fd fd = open_file(path, O_RDONLY);
  if (fd.is_open() && lock_file(fd, LOCK_EX | LOCK_NB)) remove_tree(path);
}

struct Kept {
  fs::path home;
  uint64_t bytes;
  fs::file_time_type used;
};

// Evicts the least recently used artifacts first.
void evict_beyond(std::vector<Kept> all, uint64_t bytes_max) {
  uint64_t bytes = 0;
  for (const Kept& one : all) bytes += one.bytes;
  if (bytes <= bytes_max) return;
  std::ranges::sort(all, {}, &Kept::used);
  for (const Kept& one : all) {
    if (bytes <= bytes_max - bytes_max / 8) return;
    MC_CHECK(bytes >= one.bytes);
    if (evict(one.home)) bytes -= one.bytes;
  }
}

// True also where the parent's name ends with a slash.
bool is_child(const fs::path& path, const fs::path& parent) {
  return path == parent / path.filename();
}

std::vector<std::string> texts_of(const Extension& extension) {
  std::vector<std::string> texts = extension.cpp_sources;
  texts.insert(texts.end(), extension.cuda_sources.begin(), extension.cuda_sources.end());
  for (const SourceFile& file : extension.files) texts.push_back(file.text);
  texts.push_back(extension.prelude);
  return texts;
}

}  // namespace

Result<uint64_t> artifact_bytes_max() {
  const char* given = std::getenv("MC_CACHE_BYTES");
  if (given == nullptr) return kArtifactBytesMax;
  const std::string_view text = given;
  uint64_t bytes = 0;
  const auto [end, failure] = std::from_chars(text.data(), text.data() + text.size(), bytes);
  if (failure != std::errc() || end != text.data() + text.size() || bytes < kBytesMaxLeast) {
    return Error{ErrorCode::kInvalidInput,
                 "MC_CACHE_BYTES is \"" + std::string(text) +
                     "\": give a number of bytes, 1048576 or more, or leave it out (4 GiB)"};
  }
  return bytes;
}

fs::path library_in(const fs::path& directory, const std::string& module) {
  return directory / (module + ".so");
}

ArtifactStore::Slot ArtifactStore::slot_of(const Extension& extension,
                                           const std::vector<std::string>& flags) const {
  const bool is_free = is_name_free(extension, flags);
  std::vector<std::string> files;
  for (const SourceFile& file : extension.files) files.push_back(file.name);
  const Json json{{"name", is_free ? Json() : Json(extension.name)},
                  {"num_cpp", extension.cpp_sources.size()},
                  {"num_cuda", extension.cuda_sources.size()},
                  {"files", files},
                  {"texts", texts_of(extension)},
                  {"functions", extension.functions},
                  {"flags", flags}};
  const std::string hash = content_hash({fingerprint_, dump(json, -1)});
  return {root_ / hash, is_free ? "mc_" + hash.substr(0, kModuleHashDigits) : extension.name};
}

std::optional<Artifact> ArtifactStore::find(const Slot& slot, const Extension& extension) const {
  MC_CHECK(is_child(slot.home, root_) && !slot.module.empty());
  auto lease = lease_on(slot.home);
  if (lease == nullptr) return std::nullopt;
  const auto text = read_file(slot.home / kManifest, kManifestBytesMax);
  if (!text) return std::nullopt;
  try {
    const Json manifest = Json::parse(*text);
    if (manifest.at("schema") != kSchema) return std::nullopt;
    Artifact artifact{.key = extension.key,
                      .name = extension.name,
                      .module = slot.module,
                      .library = library_in(slot.home, slot.module),
                      .cached = true};
    std::error_code failure;
    if (fs::file_size(artifact.library, failure) != manifest.at("library_bytes") || failure) {
      return std::nullopt;
    }
    const Json& symbols = manifest.at("undefined_symbols");
    if (!symbols.is_null()) artifact.undefined_symbols = symbols.get<std::vector<std::string>>();
    auto kernels = kernels_from_json(manifest.at("kernels").dump());
    if (!kernels) return std::nullopt;
    artifact.kernels = std::move(*kernels);
    artifact.full_headers = manifest.at("full_headers");
    ::futimens(lease->get(), nullptr);  // Marks the artifact as used.
    artifact.lease = std::move(lease);
    return artifact;
  } catch (const Json::exception&) {
    return std::nullopt;
  }
}

ArtifactStore::Turn ArtifactStore::take_turn(const Slot& slot,
                                             std::chrono::duration<double> wait_max) const {
  MC_CHECK(is_child(slot.home, root_) && wait_max.count() >= 0);
  std::error_code ignored;
  fs::create_directories(root_, ignored);
  const fs::path path = slot.home.string() + ".lock";
  Fd fd = open_file(path, O_RDONLY | O_CREAT);
  if (!fd.is_open()) return nullptr;
  if (lock_file(fd, LOCK_EX | LOCK_NB)) return std::make_shared<Building>(std::move(fd), path);
  // Polled, since a stopped process may hold the lock forever.
  const auto end = std::chrono::steady_clock::now() + wait_max;
  while (!lock_file(fd, LOCK_SH | LOCK_NB) && std::chrono::steady_clock::now() < end &&
         !is_cancelled()) {
    std::this_thread::sleep_for(kPollEvery);
  }
  return nullptr;
}

Result<ArtifactStore::Work> ArtifactStore::begin() const {
  MC_TRY(TemporaryDirectory directory, TemporaryDirectory::create_in(root_, "work"), "artifacts");
  Fd fd = open_file(directory.path(), O_RDONLY | O_DIRECTORY);
  if (!fd.is_open() || !lock_file(fd, LOCK_EX | LOCK_NB)) {
    return system_error(ErrorCode::kIo, "lock " + directory.path().string());
  }
  return Work(std::move(directory), std::move(fd));
}

Result<Artifact> ArtifactStore::publish(const Work& work, const Slot& slot,
                                        const Extension& extension, const Artifact& artifact) {
  MC_CHECK(is_child(slot.home, root_) && is_child(work.path(), root_));
  MC_CHECK(artifact.key == extension.key && artifact.module == slot.module);
  std::error_code failure;
  const uint64_t library_bytes = fs::file_size(library_in(work.path(), slot.module), failure);
  MC_TRY_VOID(write_file_atomically(work.path() / kManifest,
                                    dump(manifest_of(artifact, fingerprint_, library_bytes), 1)),
              "manifest");
  Artifact published = artifact;
  published.lease = lease_on(work.path());  // Locked before another process can remove it.
  const uint64_t bytes = bytes_in(work.path());
  fs::rename(work.path(), slot.home, failure);
  if (failure) {
    if (auto theirs = find(slot, extension)) return std::move(*theirs);
    remove_tree(slot.home);  // The artifact is damaged.
    fs::rename(work.path(), slot.home, failure);
    if (failure) {
      return Error{ErrorCode::kIo,
                   "cannot publish " + slot.home.string() + ": " + failure.message()};
    }
  }
  const uint64_t published_bytes = bytes_published_ += bytes;
  uint64_t next = bytes_at_sweep_;
  if (published_bytes > next && bytes_at_sweep_.compare_exchange_strong(
                                    next, published_bytes + bytes_max_ / kSweepsPerLimit)) {
    sweep();
  }
  return published;
}

void ArtifactStore::sweep() const {
  const Fd fd = open_file(root_ / "sweep", O_RDONLY | O_CREAT);
  if (!fd.is_open() || !lock_file(fd, LOCK_EX | LOCK_NB)) return;  // Another process sweeps.
  std::vector<Kept> kept;
  std::error_code failure;
  for (fs::directory_iterator it(root_, failure), end; !failure && it != end;
       it.increment(failure)) {
    const fs::path path = it->path();
    const std::string name = path.filename().string();
    if (name.starts_with("old-")) {
      remove_tree(path);
    } else if (name.starts_with("work-") || name.ends_with(".lock")) {
      remove_if_left(path);
    } else if (std::error_code gone; it->is_directory(gone)) {
      const auto used = fs::last_write_time(path / kManifest, gone);
      kept.push_back({path, bytes_in(path), gone ? fs::file_time_type::min() : used});
    }
  }
  evict_beyond(std::move(kept), bytes_max_);
}

}  // namespace mc::compile
