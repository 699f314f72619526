// SPDX-License-Identifier: Apache-2.0
#include "worker/one_device.h"

#include <cstdlib>

#include <gmock/gmock.h>

namespace mc::worker {
namespace {

using testing::ElementsAre;

TEST(OneDevice, IsTheFirstVisibleOne) {
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::unsetenv("CUDA_DEVICE_ORDER");
  EXPECT_THAT(environment_of_one_device(), ElementsAre("CUDA_VISIBLE_DEVICES=0"));
  ::setenv("CUDA_VISIBLE_DEVICES", "3", 1);
  EXPECT_THAT(environment_of_one_device(), ElementsAre("CUDA_VISIBLE_DEVICES=3"));
  ::setenv("CUDA_VISIBLE_DEVICES", "GPU-8c7aa319,0", 1);
  ::setenv("CUDA_DEVICE_ORDER", "PCI_BUS_ID", 1);
  EXPECT_THAT(environment_of_one_device(),
              ElementsAre("CUDA_VISIBLE_DEVICES=GPU-8c7aa319", "CUDA_DEVICE_ORDER=PCI_BUS_ID"));
  ::unsetenv("CUDA_VISIBLE_DEVICES");
  ::unsetenv("CUDA_DEVICE_ORDER");
}

TEST(OneDevice, HasThePlatformsVariable) {
  ::setenv("MUSA_VISIBLE_DEVICES", "2,3", 1);
  EXPECT_THAT(environment_of_one_device("MUSA"), ElementsAre("MUSA_VISIBLE_DEVICES=2"));
  ::unsetenv("MUSA_VISIBLE_DEVICES");
}

TEST(OneDevice, HasItsOwnNodeAndTheCommonOnes) {
  const std::vector<std::string> nodes = {"/dev/nvidia-uvm", "/dev/nvidia0", "/dev/nvidia1",
                                          "/dev/nvidia10", "/dev/nvidiactl"};
  EXPECT_THAT(nodes_of_one_device(nodes, 1),
              ElementsAre("/dev/nvidia-uvm", "/dev/nvidia1", "/dev/nvidiactl"));
  EXPECT_THAT(nodes_of_one_device(nodes, 10),
              ElementsAre("/dev/nvidia-uvm", "/dev/nvidia10", "/dev/nvidiactl"));
}

}  // namespace
}  // namespace mc::worker
