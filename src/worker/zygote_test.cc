// SPDX-License-Identifier: Apache-2.0
#include "worker/zygote.h"

#include <gtest/gtest.h>
#include <sys/wait.h>

#include <chrono>
#include <csignal>
#include <filesystem>
#include <memory>
#include <string>
#include <utility>
#include <variant>

#include "core/file.h"

namespace mc::worker {
namespace {

constexpr std::chrono::seconds kTestTimeMax{20};

// A zygote without torch and sandbox.  Its children report the number of the zygote that forked
// them.  On demand the first zygote responds late, but forks its child nevertheless.
constexpr const char* kFake = R"(
import array, json, os, socket, struct, sys, time
folder = os.path.dirname(os.path.abspath(__file__))
number = len([n for n in os.listdir(folder) if n.startswith("started")]) + 1
open(f"{folder}/started{number}", "w").close()
is_late = number == 1 and os.path.exists(f"{folder}/late")

def receive(channel):
    data, rights, _, _ = channel.recvmsg(4, 200)
    if not data:
        os._exit(0)
    descriptors = [d for _, _, part in rights for d in array.array("i", part)]
    return json.loads(channel.recv(struct.unpack("<I", data)[0], socket.MSG_WAITALL)), descriptors

def send(channel, body):
    data = json.dumps({"ok": True, **body}).encode()
    channel.sendall(struct.pack("<I", len(data)) + data)

if "--twin" in sys.argv:
    at = sys.argv.index("--twin")
    theirs, output, arguments = json.loads(sys.argv[at + 1])
    del sys.argv[at:at + 2]
    if os.fork() == 0:
        if os.fork():
            os._exit(0)
        os.close(int(sys.argv[sys.argv.index("--channel") + 1]))
        os.dup2(output, 1)
        os.dup2(output, 2)
        os.close(output)
        sys.argv[1:] = arguments
    else:
        os.wait()
        os.close(theirs)
        os.close(output)
channel = socket.socket(fileno=int(sys.argv[sys.argv.index("--channel") + 1]))
roles = sys.argv[sys.argv.index("--roles") + 1]
while True:
    request, descriptors = receive(channel)
    if request["op"] == "hello":
        send(channel, {"pytorch": "fake " + roles, "files": [], "pid": os.getpid()})
        continue
    read_end, write_end = os.pipe()
    if os.fork() == 0:
        child = os.fork()
        if child == 0:
            os.close(channel.detach())
            os.dup2(descriptors[1], 1)
            os.dup2(descriptors[1], 2)
            mine = socket.socket(fileno=descriptors[0])
            while True:
                receive(mine)
                send(mine, {"missing": [], "number": number})
        os.write(write_end, struct.pack("<i", child))
        os._exit(0)
    os.wait()
    pid = struct.unpack("<i", os.read(read_end, 4))[0]
    for descriptor in [read_end, write_end, *descriptors]:
        os.close(descriptor)
    if is_late:
        time.sleep(3)
    send(channel, {"pid": pid})
)";

class ZygoteTest : public testing::Test {
 protected:
  void SetUp() override {
    std::filesystem::create_directory(folder_.path() / "worker");
    ASSERT_TRUE(write_file_atomically(folder_.path() / "worker/zygote.py", kFake));
  }

  void start() {
    ZygoteOptions options;
    options.python = "python3";
    options.harness = folder_.path();
    options.spawn_limit = std::chrono::seconds(1);
    auto zygote = Zygote::start(options);
    ASSERT_TRUE(zygote) << zygote.error().message;
    zygote_ = std::move(*zygote);
    const Status started = zygote_->await_start();
    ASSERT_TRUE(started) << started.error().message;
  }

  // The number of the zygote that forked a new child; the error where there is none.
  std::string maker() {
    auto session = zygote_->spawn(Role::kJudge, {});
    if (!session) return session.error().message;
    const CallResult response = session->call("{}", nullptr, kTestTimeMax);
    const auto* reply = std::get_if<Reply>(&response);
    return reply == nullptr ? "no reply" : reply->json;
  }

  TemporaryDirectory folder_ = TemporaryDirectory::create("mc-zygote").value();
  std::unique_ptr<Zygote> zygote_;
};

constexpr const char* kOfTheFirst = R"({"ok": true, "missing": [], "number": 1})";
constexpr const char* kOfTheSecond = R"({"ok": true, "missing": [], "number": 2})";

TEST_F(ZygoteTest, ServesAsLongAsItLives) {
  start();
  EXPECT_EQ(maker(), kOfTheFirst);
  EXPECT_EQ(maker(), kOfTheFirst);
  EXPECT_EQ(zygote_->pytorch_version(), "fake judge");
}

TEST_F(ZygoteTest, StartsItsTwinAndEachIsReplacedIndividually) {
  ZygoteOptions trusted;
  trusted.python = "python3";
  trusted.harness = folder_.path();
  ZygoteOptions candidates = trusted;
  candidates.roles = Roles::kCandidates;
  auto pair = Zygote::start_pair(trusted, candidates);
  ASSERT_TRUE(pair) << pair.error().message;
  for (Zygote* zygote : {pair->trusted.get(), pair->candidates.get()}) {
    const Status started = zygote->await_start();
    ASSERT_TRUE(started) << started.error().message;
    EXPECT_GT(zygote->pid(), 0);
  }
  EXPECT_EQ(pair->trusted->pytorch_version(), "fake judge");
  EXPECT_EQ(pair->candidates->pytorch_version(), "fake candidate");
  const pid_t first = pair->trusted->pid();
  const pid_t twin = pair->candidates->pid();
  EXPECT_NE(first, twin);
  EXPECT_TRUE(std::filesystem::exists(folder_.path() / "worker/started1"));
  EXPECT_FALSE(std::filesystem::exists(folder_.path() / "worker/started2"))
      << "one start makes both";
  kill(twin, SIGKILL);
  EXPECT_TRUE(pair->candidates->spawn(Role::kRecorder, {}));
  EXPECT_NE(pair->candidates->pid(), twin);
  EXPECT_TRUE(pair->trusted->spawn(Role::kJudge, {}));
  EXPECT_EQ(pair->trusted->pid(), first);
  const pid_t second = pair->candidates->pid();
  pair->candidates.reset();
  EXPECT_EQ(kill(second, 0), -1) << "it is ended and reaped";
}

TEST_F(ZygoteTest, IsReplacedWhereItDied) {
  start();
  auto before = zygote_->spawn(Role::kJudge, {});
  ASSERT_TRUE(before) << before.error().message;
  kill(zygote_->pid(), SIGKILL);
  EXPECT_EQ(maker(), kOfTheSecond);
  EXPECT_EQ(maker(), kOfTheSecond);
  // An earlier child is still alive.
  const CallResult response = before->call("{}", nullptr, kTestTimeMax);
  ASSERT_TRUE(std::holds_alternative<Reply>(response));
  EXPECT_EQ(std::get<Reply>(response).json, kOfTheFirst);
}

TEST_F(ZygoteTest, IsReplacedAfterALateResponse) {
  ASSERT_TRUE(write_file_atomically(folder_.path() / "worker/late", ""));
  start();
  EXPECT_EQ(maker(), kOfTheSecond);
  EXPECT_EQ(maker(), kOfTheSecond);
}

TEST_F(ZygoteTest, ReportsThatItCannotStart) {
  ASSERT_TRUE(write_file_atomically(folder_.path() / "worker/zygote.py", "raise SystemExit(1)"));
  ZygoteOptions options;
  options.python = "python3";
  options.harness = folder_.path();
  auto zygote = Zygote::start(options);
  ASSERT_TRUE(zygote);
  EXPECT_FALSE((*zygote)->await_start());
  EXPECT_FALSE((*zygote)->spawn(Role::kJudge, {}));
}

}  // namespace
}  // namespace mc::worker
