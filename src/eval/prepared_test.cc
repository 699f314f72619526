// SPDX-License-Identifier: Apache-2.0
#include "eval/prepared.h"

#include <gtest/gtest.h>

#include <filesystem>
#include <memory>
#include <string>

#include <nlohmann/json.hpp>

#include "core/file.h"
#include "eval/machine.h"

namespace mc::eval {
namespace {

namespace fs = std::filesystem;
using Json = nlohmann::json;

class PreparedTest : public testing::Test {
 protected:
  PreparedTest() {
    prepared_.task = {"t", "row sum", "class Model: pass\n"};
    prepared_.candidate = {"c", "```python\nx\n```"};
    prepared_.target = {"cuda", "90", "2.11.0+cu130", "", "musacoder/2"};
    prepared_.source = "x\n";
    prepared_.recorded = R"({"extensions": []})";
    prepared_.verdict.task = "t";
    prepared_.verdict.telemetry.compile_cpu_s = 1.5;
    add("first", std::string("\x7f"
                             "ELF\0\n\xff",
                             7));
    add("second", "");
    prepared_.artifacts[0].kernels = {{"_Z1kPf", "k(float*)", 32, 0, 0, 0, 128, 8}};
  }

  void add(const std::string& name, const std::string& library) {
    compile::Artifact artifact{.key = "key of " + name, .name = name, .module = "mc_" + name};
    artifact.library = folder_.path() / (name + ".so");
    ASSERT_TRUE(write_file_atomically(artifact.library, library));
    prepared_.artifacts.push_back(artifact);
  }

  Result<PreparedCandidate> read(const std::string& bytes) const {
    return prepared_from_bytes(bytes, folder_.path() / "read");
  }

  // The reason of the rejection; "" where the bytes are accepted.
  std::string refusal(const std::string& bytes) const {
    const auto read = this->read(bytes);
    if (read) return "";
    EXPECT_EQ(read.error().code, ErrorCode::kInvalidInput);
    return read.error().message;
  }

  // The file with its second line changed.
  template <typename Change>
  std::string changed(const Change& change) const {
    const std::string bytes = to_bytes(prepared_).value();
    const size_t begin = bytes.find('\n') + 1;
    const size_t end = bytes.find('\n', begin);
    Json json = Json::parse(bytes.substr(begin, end - begin));
    change(json);
    return bytes.substr(0, begin) + json.dump() + bytes.substr(end);
  }

  TemporaryDirectory folder_ = TemporaryDirectory::create("mc-prepared").value();
  PreparedCandidate prepared_;
};

TEST_F(PreparedTest, ReadsWhatItWrote) {
  const std::string bytes = to_bytes(prepared_).value();
  const PreparedCandidate again = read(bytes).value();
  EXPECT_EQ(to_bytes(again).value(), bytes);
  EXPECT_EQ(again.task.code, prepared_.task.code);
  EXPECT_EQ(again.candidate.answer, prepared_.candidate.answer);
  EXPECT_EQ(again.target, prepared_.target);
  EXPECT_EQ(again.verdict, prepared_.verdict);
  ASSERT_EQ(again.artifacts.size(), 2u);
  EXPECT_EQ(again.artifacts[0].kernels, prepared_.artifacts[0].kernels);
  EXPECT_EQ(again.artifacts[0].library.filename(), "first.so");
  EXPECT_EQ(read_file(again.artifacts[0].library, 100).value(),
            read_file(prepared_.artifacts[0].library, 100).value());
}

TEST_F(PreparedTest, KeepsItsLibrariesWhileAnArtifactLives) {
  auto read = std::make_unique<PreparedCandidate>(this->read(to_bytes(prepared_).value()).value());
  compile::Artifact kept = read->artifacts[1];
  const fs::path other = read->artifacts[0].library;
  read.reset();
  EXPECT_TRUE(fs::exists(other));
  EXPECT_TRUE(fs::exists(kept.library));
  const fs::path library = kept.library;
  kept.lease.reset();
  EXPECT_FALSE(fs::exists(library));
}

TEST_F(PreparedTest, EveryShorterFileIsRefused) {
  const std::string bytes = to_bytes(prepared_).value();
  for (size_t size = 0; size < bytes.size(); ++size) {
    EXPECT_NE(refusal(bytes.substr(0, size)), "") << size;
  }
  EXPECT_NE(refusal(bytes + "x"), "");
}

TEST_F(PreparedTest, AChangedLibraryIsRefused) {
  std::string bytes = to_bytes(prepared_).value();
  bytes.back() ^= 1;
  EXPECT_NE(refusal(bytes).find("was changed"), std::string::npos);
}

TEST_F(PreparedTest, ALibraryIsWrittenOnlyBelowItsFolder) {
  for (const char* name : {"../x.so", "/tmp/x.so", "..", ".", "", "a/b.so"}) {
    const auto outside = [&](Json& json) { json["artifacts"][0]["file"] = name; };
    EXPECT_NE(refusal(changed(outside)).find("is a path"), std::string::npos) << name;
  }
}

TEST_F(PreparedTest, AMissingOrWrongMemberIsRefused) {
  for (const char* name :
       {"task", "candidate", "target", "source", "recorded", "artifacts", "verdict"}) {
    EXPECT_NE(refusal(changed([&](Json& json) { json.erase(name); })), "") << name;
    EXPECT_NE(refusal(changed([&](Json& json) { json[name] = 1; })), "") << name;
  }
  EXPECT_NE(refusal(changed([](Json& json) { json["recorded"] = "{"; })), "");
  EXPECT_NE(refusal(std::string(kPreparedSchema) + "\n" + std::string(5000, '[')), "");
}

TEST(TargetOf, NamesPythonWhereItsHeadersWereCompiledIn) {
  Machine machine;
  machine.pytorch.version = "2.11.0";
  machine.pytorch.python_version = "3.11.7";
  std::vector<compile::Artifact> artifacts(2);
  EXPECT_EQ(target_of(machine, "p/1", artifacts), (Target{"cpu", "", "2.11.0", "", "p/1"}));
  artifacts[1].full_headers = "at::einsum";
  EXPECT_EQ(target_of(machine, "p/1", artifacts).python, "3.11");
  EXPECT_EQ(to_string(target_of(machine, "p/1", artifacts)),
            "backend cpu, PyTorch 2.11.0, policy p/1, Python 3.11");
}

}  // namespace
}  // namespace mc::eval
