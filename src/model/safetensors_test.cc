// SPDX-License-Identifier: Apache-2.0
#include "model/safetensors.h"

#include <cstring>
#include <fstream>
#include <string>
#include <vector>

#include <gmock/gmock.h>

#include "core/file.h"

namespace mc::model {
namespace {

using testing::HasSubstr;

class Safetensors : public testing::Test {
 protected:
  Safetensors() : folder_(std::move(TemporaryDirectory::create("safetensors").value())) {}
  std::filesystem::path path(const char* name = "model.safetensors") const {
    return folder_.path() / name;
  }
  void write(const std::string& bytes, const char* name = "model.safetensors") const {
    std::ofstream(path(name), std::ios::binary) << bytes;
  }
  // Writes a file with this header and `data_size` bytes of data.
  void write_file(const std::string& header, size_t data_size) const {
    write(with_length(header.size(), header + std::string(data_size, 'x')));
  }
  static std::string with_length(uint64_t length, const std::string& rest) {
    std::string bytes(sizeof length, '\0');
    std::memcpy(bytes.data(), &length, sizeof length);
    return bytes + rest;
  }
  std::string error() const {
    const auto file = TensorFile::open(path());
    return file ? "" : file.error().message;
  }

 private:
  TemporaryDirectory folder_;
};

TEST_F(Safetensors, AWrittenFileIsReadBack) {
  const std::vector<float> a = {1, 2, 3, 4, 5, 6};
  const std::vector<char> b = {7};
  ASSERT_TRUE(write_tensors(path(),
                            {{"a", {"F32", {2, 3}, std::as_bytes(std::span(a))}},
                             {"b", {"I8", {}, std::as_bytes(std::span(b))}},
                             {"none", {"BF16", {0, 5}, {}}}},
                            {{"format", "pt"}}));
  const auto file = TensorFile::open(path());
  ASSERT_TRUE(file) << file.error().message;
  EXPECT_EQ(file->tensors().size(), 3U);
  EXPECT_EQ(file->tensors().at("a").shape, (std::vector<int64_t>{2, 3}));
  EXPECT_EQ(std::memcmp(file->tensors().at("a").bytes.data(), a.data(), 24), 0);
  EXPECT_EQ(file->tensors().at("none").bytes.size(), 0U);
  EXPECT_EQ(file->metadata().at("format"), "pt");
}

struct Hostile {
  const char* header;
  size_t data_size;
  const char* reason;
};

TEST_F(Safetensors, HostileHeadersAreRejected) {
  const Hostile cases[] = {
      {"[]", 0, "no JSON object"},
      {"{", 0, "no JSON object"},
      {R"({"a":3})", 0, "no object"},
      {R"({"a":{"dtype":"F33","shape":[1],"data_offsets":[0,4]}})", 4, "dtype"},
      {R"({"a":{"shape":[1],"data_offsets":[0,4]}})", 4, "dtype"},
      {R"({"a":{"dtype":"F32","data_offsets":[0,4]}})", 4, "shape"},
      {R"({"a":{"dtype":"F32","shape":[-1],"data_offsets":[0,4]}})", 4, "natural"},
      {R"({"a":{"dtype":"F32","shape":[1.0],"data_offsets":[0,4]}})", 4, "natural"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,4]}})", 4, "do not fit"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,0]}})", 4, "outside"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 4, "outside"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,18446744073709551615]}})", 4,
       "outside"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0]}})", 4, "data_offsets"},
      {R"({"a":{"dtype":"F32","shape":[4611686018427387904,4],"data_offsets":[0,0]}})", 0,
       "too large"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[4,8]}})", 8, "gap"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 8, "fill"},
      {R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]},)"
       R"("b":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})",
       4, "overlap"},
      {R"({"a":{"dtype":"F32","shape":[2],"data_offsets":[0,8]},)"
       R"("b":{"dtype":"F32","shape":[2],"data_offsets":[4,12]}})",
       12, "overlap"},
  };
  for (const Hostile& hostile : cases) {
    write_file(hostile.header, hostile.data_size);
    EXPECT_THAT(error(), HasSubstr(hostile.reason)) << hostile.header;
  }
}

TEST_F(Safetensors, LengthsBeyondTheFileAreRejected) {
  for (const uint64_t length :
       {uint64_t{3}, uint64_t{99'999'999}, uint64_t{100'000'001}, ~uint64_t{0}, ~uint64_t{0} - 7}) {
    write(with_length(length, "{}"));
    EXPECT_THAT(error(), HasSubstr("no safetensors file")) << length;
  }
  write("short");
  EXPECT_THAT(error(), HasSubstr("no safetensors file"));
}

TEST_F(Safetensors, AnIndexNamesOnlyFilesInItsFolder) {
  for (const char* name : {"../model.safetensors", "/etc/passwd", ".hidden", ""}) {
    write(R"({"weight_map":{"a":")" + std::string(name) + "\"}}", "model.safetensors.index.json");
    const auto files = open_model_files(path().parent_path());
    ASSERT_FALSE(files);
    EXPECT_THAT(files.error().message, HasSubstr("not the name of a file"));
  }
}

TEST_F(Safetensors, AnIndexMayNotNameATensorThatItsFileLacks) {
  write_file(R"({"a":{"dtype":"F32","shape":[1],"data_offsets":[0,4]}})", 4);
  write(R"({"weight_map":{"a":"model.safetensors","b":"model.safetensors"}})",
        "model.safetensors.index.json");
  const auto files = open_model_files(path().parent_path());
  ASSERT_FALSE(files);
  EXPECT_THAT(files.error().message, HasSubstr("has no tensor b"));
  write(R"({"weight_map":{"a":"model.safetensors"}})", "model.safetensors.index.json");
  EXPECT_TRUE(open_model_files(path().parent_path()));
}

}  // namespace
}  // namespace mc::model
