// SPDX-License-Identifier: Apache-2.0
#include "compile/artifact_store.h"

#include <gtest/gtest.h>
#include <sys/mman.h>
#include <sys/wait.h>
#include <unistd.h>

#include <array>
#include <atomic>
#include <csignal>
#include <cstdlib>
#include <fstream>
#include <iterator>
#include <random>
#include <thread>

#include "core/file.h"

namespace mc::compile {
namespace {

namespace fs = std::filesystem;
using std::chrono::seconds;
using Slot = ArtifactStore::Slot;

constexpr size_t kLibraryBytes = 100'000;

Extension extension_of(std::string source) {
  Extension extension;
  extension.key = "key";
  extension.name = "ext";
  extension.cuda_sources = {std::move(source)};
  extension.functions = {{"f", "f"}};
  return extension;
}

// A library that repeats one byte, so that a mix of two libraries is detected.
std::string library_of(char byte) { return std::string(kLibraryBytes, byte); }

// Publishes a build with one kernel of the given name.
Artifact build(ArtifactStore& store, const Extension& extension, const std::string& kernel,
               const Symbols& symbols = {{"_s"}}) {
  const Slot slot = store.slot_of(extension, {});
  const auto work = store.begin().value();
  EXPECT_TRUE(write_file_atomically(library_in(work.path(), slot.module), library_of(kernel[0])));
  Artifact artifact{.key = extension.key,
                    .name = extension.name,
                    .module = slot.module,
                    .library = library_in(slot.home, slot.module),
                    .undefined_symbols = symbols,
                    .kernels = {{.kernel = kernel, .name = "k"}}};
  return store.publish(work, slot, extension, artifact).value();
}

class Store : public testing::Test {
 protected:
  Store()
      : root_(TemporaryDirectory::create("mc-store").value()), store_(root_.path(), "toolchain") {}

  Slot slot(const Extension& extension) const { return store_.slot_of(extension, {}); }
  std::optional<Artifact> find() const { return store_.find(slot(extension_), extension_); }
  Artifact publish(const std::string& kernel, const Symbols& symbols = {{"_s"}}) {
    return build(store_, extension_, kernel, symbols);
  }
  size_t num_entries() const {
    return static_cast<size_t>(std::distance(fs::directory_iterator(root_.path()), {}));
  }

  TemporaryDirectory root_;
  ArtifactStore store_;
  Extension extension_ = extension_of("__global__ void k() {}");
};

TEST_F(Store, FindsWhatWasPublished) {
  EXPECT_FALSE(find().has_value());
  const Artifact published = publish("first");
  EXPECT_FALSE(published.cached);
  const auto found = find();
  ASSERT_TRUE(found.has_value());
  EXPECT_TRUE(found->cached);
  EXPECT_EQ(found->module, published.module);
  EXPECT_EQ(found->kernels, published.kernels);
  EXPECT_EQ(found->library, published.library);
  EXPECT_EQ(found->undefined_symbols, published.undefined_symbols);
}

TEST_F(Store, RecordsThatSymbolsCannotBeRead) {
  publish("first", std::nullopt);
  EXPECT_FALSE(find()->undefined_symbols.has_value());
}

TEST_F(Store, IgnoresAnArtifactOfAnotherSchema) {
  publish("first");
  const fs::path path = slot(extension_).home / "manifest.json";
  std::string manifest = read_file(path, 10'000).value();
  const size_t at = manifest.find("musacoder-artifact/");
  ASSERT_NE(at, std::string::npos);
  manifest.replace(at + 19, 1, "0");
  ASSERT_TRUE(write_file_atomically(path, manifest));
  EXPECT_FALSE(find().has_value());
}

// Two concurrent compilations of the same source get different kernel names.  The library that is
// kept is the first one's, and so must the names be.
TEST_F(Store, ReturnsTheFirstArtifactToASecondPublisher) {
  const Artifact first = publish("first");
  const Artifact second = publish("second");
  EXPECT_EQ(second.kernels, first.kernels);
  EXPECT_TRUE(second.cached);
  EXPECT_EQ(read_file(second.library, 1 << 20).value(), library_of('f'));
}

TEST_F(Store, ReplacesADamagedArtifact) {
  for (const std::string& file : {std::string("manifest.json"), slot(extension_).module + ".so"}) {
    publish("first");
    ASSERT_TRUE(write_file_atomically(slot(extension_).home / file, "{"));
    EXPECT_FALSE(find().has_value());
    EXPECT_EQ(publish("second").kernels[0].kernel, "second");
    EXPECT_EQ(read_file(find()->library, 1 << 20).value(), library_of('s'));
    fs::remove_all(slot(extension_).home);
  }
}

TEST_F(Store, IgnoresTheExtensionsName) {
  Extension other = extension_;
  other.name = "other";
  EXPECT_EQ(slot(other).home, slot(extension_).home);
  publish("first");
  const auto found = store_.find(slot(other), other);
  ASSERT_TRUE(found.has_value());
  EXPECT_EQ(found->name, "other");
  EXPECT_EQ(found->module, slot(extension_).module);
}

TEST_F(Store, DistinguishesEverythingThatDeterminesTheLibrary) {
  const auto home = [&](const Extension& extension, const std::vector<std::string>& flags,
                        const ArtifactStore& store) {
    return store.slot_of(extension, flags).home;
  };
  const fs::path plain = home(extension_, {}, store_);
  Extension moved = extension_;
  std::swap(moved.cpp_sources, moved.cuda_sources);
  Extension documented = extension_;
  documented.functions[0].second = "doc";
  Extension with_file = extension_;
  with_file.files = {{"a.h", ""}};
  for (const Extension& other :
       {extension_of("__global__ void k2() {}"), extension_of("__global__ void k()  {}"), moved,
        documented, with_file})
    EXPECT_NE(home(other, {}, store_), plain);
  EXPECT_NE(home(extension_, {"-DA"}, store_), plain);
  EXPECT_NE(home(extension_, {}, ArtifactStore(root_.path(), "another toolchain")), plain);
}

TEST_F(Store, KeepsANameThatTheSourcesDependOn) {
  extension_.functions = {};
  extension_.cuda_sources = {"PYBIND11_MODULE(ext, m) {}"};
  EXPECT_EQ(slot(extension_).module, "ext");
  Extension other = extension_;
  other.name = "other";
  EXPECT_NE(slot(other).home, slot(extension_).home);
}

TEST_F(Store, EvictsTheLeastRecentlyUsedArtifacts) {
  ArtifactStore small(root_.path(), "toolchain", 4 * (kLibraryBytes + 16'384));
  const auto is_there = [&](int i) {
    return fs::exists(slot(extension_of("int a" + std::to_string(i))).home);
  };
  const auto age = [&](int i, int by) {
    const fs::path path = slot(extension_of("int a" + std::to_string(i))).home / "manifest.json";
    fs::last_write_time(path, fs::file_time_type::clock::now() - std::chrono::hours(by));
  };
  for (int i = 0; i < 4; ++i) {
    build(small, extension_of("int a" + std::to_string(i)), "k");
    age(i, 10 - i);
  }
  const Extension first = extension_of("int a0");
  {
    EXPECT_TRUE(small.find(slot(first), first));
  }  // The artifact was used just now.
  build(small, extension_of("int a4"), "k");
  small.sweep();
  EXPECT_TRUE(is_there(0));
  EXPECT_FALSE(is_there(1));
  EXPECT_TRUE(is_there(4));
}

TEST_F(Store, KeepsAnArtifactThatIsInUse) {
  ArtifactStore none(root_.path(), "toolchain", 1);
  {
    const Artifact used = build(none, extension_, "k");
    const auto again = none.find(slot(extension_), extension_);
    none.sweep();
    EXPECT_TRUE(fs::exists(used.library));
  }
  none.sweep();
  EXPECT_FALSE(fs::exists(slot(extension_).home));
}

TEST_F(Store, RemovesTheRemainsOfKilledProcesses) {
  const auto old = fs::file_time_type::clock::now() - std::chrono::hours(1);
  for (const char* name : {"work-abc", "old-abc", "abc.lock"}) {
    fs::create_directory(root_.path() / name);
    fs::last_write_time(root_.path() / name, old);
  }
  const auto work = store_.begin().value();  // The work of a long build.
  fs::last_write_time(work.path(), old);
  store_.sweep();
  EXPECT_TRUE(fs::exists(work.path()));
  EXPECT_EQ(num_entries(), 2u);  // The work directory and the lock of sweep().
}

// True if the thread is blocked: threads that request the same artifact wait until the first one
// has built it.
bool is_asleep(pid_t thread) {
  std::ifstream file("/proc/self/task/" + std::to_string(thread) + "/stat");
  const std::string stat{std::istreambuf_iterator<char>(file), {}};
  const size_t name_end = stat.rfind(')');
  return name_end != std::string::npos && stat.compare(name_end, 3, ") S") == 0;
}

TEST_F(Store, BlocksOtherThreadsUntilTheFirstHasBuilt) {
  std::atomic<bool> is_made = false;
  std::atomic<int> early = 0;
  std::array<std::atomic<pid_t>, 8> asked{};
  auto turn = store_.take_turn(slot(extension_), seconds(10));
  EXPECT_NE(turn, nullptr);
  EXPECT_NE(store_.take_turn(slot(extension_of("int a;")), seconds(0)), nullptr);
  std::vector<std::jthread> threads;
  for (std::atomic<pid_t>& thread : asked) {
    threads.emplace_back([&] {
      thread = ::gettid();
      EXPECT_EQ(store_.take_turn(slot(extension_), seconds(10)), nullptr);
      if (!is_made) ++early;
    });
  }
  // Each thread sleeps between two polls of the lock.
  for (const std::atomic<pid_t>& thread : asked) {
    while (thread == 0 || !is_asleep(thread)) std::this_thread::yield();
  }
  is_made = true;
  turn.reset();
  threads.clear();
  EXPECT_EQ(early, 0);
  EXPECT_NE(store_.take_turn(slot(extension_), seconds(0)), nullptr);
}

TEST_F(Store, StopsWaitingAtTheLimit) {
  const auto turn = store_.take_turn(slot(extension_), seconds(0));
  EXPECT_EQ(store_.take_turn(slot(extension_), std::chrono::milliseconds(20)), nullptr);
}

TEST(ArtifactBytesMax, IsANumberOrAnError) {
  ASSERT_EQ(::unsetenv("MC_CACHE_BYTES"), 0);
  EXPECT_EQ(artifact_bytes_max().value(), kArtifactBytesMax);
  ::setenv("MC_CACHE_BYTES", "2097152", 1);
  EXPECT_EQ(artifact_bytes_max().value(), 2097152u);
  for (const char* bad : {"", "4G", "-1", "1048575", "99999999999999999999"}) {
    ::setenv("MC_CACHE_BYTES", bad, 1);
    EXPECT_FALSE(artifact_bytes_max().has_value()) << bad;
  }
  ::unsetenv("MC_CACHE_BYTES");
}

// Uses the store as one of many processes until it is killed; exits early where an artifact is not
// whole.
[[noreturn]] void use_until_killed(const fs::path& root, unsigned seed,
                                   std::atomic<unsigned>& uses) {
  ArtifactStore store(root, "toolchain", 8 * kLibraryBytes);
  std::mt19937 random(seed);
  for (;;) {
    const unsigned number = random() % 20;
    const Extension extension = extension_of("int a" + std::to_string(number) + ";");
    const Slot slot = store.slot_of(extension, {});
    const auto turn = store.take_turn(slot, seconds(1));
    auto artifact = store.find(slot, extension);
    const std::string kernel(1, static_cast<char>('a' + number));
    if (!artifact) artifact = build(store, extension, kernel);
    if (random() % 4 == 0) store.sweep();
    ++uses;
    const auto text = read_file(artifact->library, 1 << 20);
    if (!text || *text != library_of(kernel[0]) || artifact->kernels.at(0).kernel != kernel)
      ::_exit(1);
  }
}

TEST(StoreOfMany, HasOnlyWholeArtifactsWhenProcessesAreKilled) {
  const auto root = TemporaryDirectory::create("mc-store").value();
  std::vector<pid_t> writers(6);
  auto& uses = *static_cast<std::atomic<unsigned>*>(
      ::mmap(nullptr, sizeof(std::atomic<unsigned>), PROT_READ | PROT_WRITE,
             MAP_SHARED | MAP_ANONYMOUS, -1, 0));  // The number of uses by all processes.
  const auto start = [&](size_t i, unsigned seed) {
    writers[i] = ::fork();
    if (writers[i] == 0) use_until_killed(root.path(), seed, uses);
  };
  for (size_t i = 0; i < writers.size(); ++i) start(i, static_cast<unsigned>(i));
  std::mt19937 random(7);
  const auto end_of = [](pid_t pid) {
    int status = 0;
    ::kill(pid, SIGKILL);
    EXPECT_EQ(::waitpid(pid, &status, 0), pid);
    return status;
  };
  for (unsigned round = 0; round < 60; ++round) {
    const unsigned enough = uses + random() % 20;
    while (uses < enough) std::this_thread::yield();
    const size_t i = random() % writers.size();
    EXPECT_TRUE(WIFSIGNALED(end_of(writers[i]))) << "an artifact was not whole";
    start(i, 100 + round);
  }
  for (const pid_t writer : writers) EXPECT_TRUE(WIFSIGNALED(end_of(writer)));

  // The remains of killed processes are removed once they are old enough, and the artifacts are
  // within the limit.
  for (const auto& entry : fs::directory_iterator(root.path())) {
    if (entry.path().filename().string().size() != 64) {
      fs::last_write_time(entry.path(), fs::file_time_type::clock::now() - std::chrono::hours(1));
    }
  }
  ArtifactStore(root.path(), "toolchain", 8 * kLibraryBytes).sweep();
  uint64_t bytes = 0;
  for (const auto& entry : fs::recursive_directory_iterator(root.path())) {
    const std::string name = entry.path().filename().string();
    EXPECT_FALSE(name.starts_with("work-") || name.starts_with("old-") || name.ends_with(".lock"));
    if (entry.is_regular_file()) bytes += entry.file_size();
  }
  EXPECT_LE(bytes, 8 * kLibraryBytes);
}

}  // namespace
}  // namespace mc::compile
