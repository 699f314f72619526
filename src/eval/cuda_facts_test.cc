// SPDX-License-Identifier: Apache-2.0
#include "eval/cuda_facts.h"

#include <algorithm>

#include <gmock/gmock.h>
#include <gtest/gtest.h>

namespace mc::eval {
namespace {

using testing::HasSubstr;

compile::PyTorch pytorch_of(const std::string& version) {
  compile::PyTorch pytorch;
  pytorch.python = "/opt/python";
  pytorch.version = version;
  return pytorch;
}

GpuFindings all_there() {
  GpuFindings found;
  found.has_driver = true;
  found.driver_version = "580.159.04";
  found.cuda = execute::CudaDriver{13, 0, {{"NVIDIA H100", "GPU-0", 9, 0, int64_t{80} << 30}}};
  found.pytorch = pytorch_of("2.11.0+cu130");
  found.nvcc = Nvcc{"/usr/local/cuda/bin/nvcc", "13.0.88"};
  found.sanitizer = "/usr/local/cuda/bin/compute-sanitizer";
  found.cupti = "/opt/site-packages/nvidia/cu13/lib/libcupti.so.13";
  return found;
}

// A driver that fails on a machine that has everything else.
GpuFindings with_error(ErrorCode code, const std::string& message) {
  GpuFindings found = all_there();
  found.cuda = Error{code, message};
  return found;
}

Fact fact_named(const GpuFindings& found, const std::string& name) {
  for (const Fact& fact : gpu_facts(found)) {
    if (fact.name == name) return fact;
  }
  ADD_FAILURE() << "no fact " << name;
  return {};
}

TEST(Gpu, ListsAllThatIsThere) {
  std::string text;
  for (const Fact& fact : gpu_facts(all_there())) {
    EXPECT_EQ(fact.section, "GPU");
    EXPECT_EQ(fact.state, State::kPresent);
    text += fact.name + ": " + fact.detail + "\n";
  }
  EXPECT_EQ(text,
            "driver: 580.159.04, for CUDA 13.0 and older\n"
            "device 0: NVIDIA H100, compute capability 9.0, 80.0 GiB\n"
            "nvcc: 13.0.88, /usr/local/cuda/bin/nvcc\n"
            "PyTorch for CUDA: 2.11.0+cu130, built for CUDA 13.0\n"
            "compute-sanitizer: /usr/local/cuda/bin/compute-sanitizer\n"
            "libcupti: /opt/site-packages/nvidia/cu13/lib/libcupti.so.13\n");
}

TEST(Gpu, SaysWhatToDoAboutEachThingThatIsMissing) {
  for (const Fact& fact : gpu_facts({})) {
    const bool is_optional = fact.name == "compute-sanitizer";
    EXPECT_EQ(fact.state, is_optional ? State::kOptional : State::kMissing) << fact.name;
    EXPECT_NE(fact.detail, "") << fact.name;
    EXPECT_NE(fact.remedy, "") << fact.name;
  }
  EXPECT_EQ(fact_named({}, "driver").detail, "no NVIDIA driver: the CPU backend is used");
}

TEST(Gpu, ExplainsADriverThatShowsNoDevice) {
  const auto remedy = [](const GpuFindings& found) { return fact_named(found, "devices").remedy; };
  GpuFindings none = with_error(ErrorCode::kNotFound, "no CUDA-capable device is detected");
  EXPECT_EQ(fact_named(none, "devices").detail,
            "no CUDA-capable device is detected: the CPU backend is used");
  EXPECT_THAT(remedy(none), HasSubstr("--gpus all"));
  none.hides_devices = true;
  EXPECT_EQ(remedy(none), "unset CUDA_VISIBLE_DEVICES");
  EXPECT_THAT(remedy(with_error(ErrorCode::kTimeout, "does not answer")), HasSubstr("dmesg"));
  EXPECT_THAT(remedy(with_error(ErrorCode::kUnavailable, "error 803")), HasSubstr("restart"));
}

TEST(Gpu, AcceptsADriverWhoseVersionIsUnknown) {
  GpuFindings found = all_there();
  found.has_driver = false;
  found.driver_version = "";
  EXPECT_EQ(fact_named(found, "driver").detail, "present, for CUDA 13.0 and older");
  found.cuda = Error{ErrorCode::kTimeout, "does not answer"};
  EXPECT_EQ(fact_named(found, "driver").detail, "present");
  EXPECT_EQ(fact_named(found, "devices").state, State::kMissing);
}

TEST(Gpu, CanBeUsedWhereNothingButTheSanitizerIsMissing) {
  const auto can_use = [](const GpuFindings& found) {
    return std::ranges::none_of(gpu_facts(found),
                                [](const Fact& fact) { return fact.state == State::kMissing; });
  };
  GpuFindings found = all_there();
  EXPECT_TRUE(can_use(found));
  found.sanitizer = "";
  EXPECT_TRUE(can_use(found));
  found.nvcc.reset();
  EXPECT_FALSE(can_use(found));
  EXPECT_FALSE(can_use(with_error(ErrorCode::kNotFound, "no device")));
  EXPECT_FALSE(can_use(GpuFindings{}));
}

TEST(Gpu, RequiresTheCudaThatPyTorchIsBuiltFor) {
  GpuFindings found = all_there();
  found.cuda = execute::CudaDriver{12, 4, {{"NVIDIA H100", "GPU-0", 9, 0, 1}}};
  found.nvcc->version = "12.4.131";
  EXPECT_EQ(fact_named(found, "driver").state, State::kMissing);
  EXPECT_EQ(fact_named(found, "nvcc").state, State::kMissing);
  EXPECT_THAT(fact_named(found, "nvcc").detail, HasSubstr("but PyTorch is built for 13"));
  EXPECT_THAT(fact_named(found, "nvcc").remedy, HasSubstr("cuda-toolkit[nvcc,"));
  found.pytorch = pytorch_of("2.6.0+cu124");
  EXPECT_EQ(fact_named(found, "driver").state, State::kPresent);
  EXPECT_EQ(fact_named(found, "nvcc").state, State::kPresent);
  found.cupti.clear();
  EXPECT_EQ(fact_named(found, "libcupti").remedy,
            "/opt/python -m pip install 'nvidia-cuda-cupti-cu12==12.4.*'");
}

TEST(Gpu, SuggestsAPyTorchForCudaInPlaceOfOneWithout) {
  GpuFindings found = all_there();
  found.pytorch = pytorch_of("2.11.0+cpu");
  const Fact fact = fact_named(found, "PyTorch for CUDA");
  EXPECT_EQ(fact.state, State::kMissing);
  EXPECT_EQ(fact.remedy, "/opt/python -m pip install --force-reinstall torch==2.11.0");
}

TEST(CudaOf, ReadsTheSuffix) {
  const struct {
    const char* version;
    int major;  // 0: the PyTorch is not built for CUDA.
    int minor;
  } kTable[] = {{"2.11.0+cu130", 13, 0}, {"2.6.0+cu124", 12, 4}, {"2.11.0+cpu", 0, 0},
                {"2.11.0", 0, 0},        {"2.11.0+cu", 0, 0},    {"2.11.0+cu13x", 0, 0},
                {"2.11.0+cu99999", 0, 0}};
  for (const auto& row : kTable) {
    const CudaVersion version = cuda_of(row.version).value_or(CudaVersion{});
    EXPECT_EQ(version.major, row.major) << row.version;
    EXPECT_EQ(version.minor, row.minor) << row.version;
  }
}

}  // namespace
}  // namespace mc::eval
