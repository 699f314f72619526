// SPDX-License-Identifier: Apache-2.0
//
// Which of this machine's devices the children see: one.
#ifndef MC_WORKER_ONE_DEVICE_H_
#define MC_WORKER_ONE_DEVICE_H_

#include <string>
#include <vector>

namespace mc::worker {

// The variables that leave a child with the first of the devices that this process is shown, "3" of
// CUDA_VISIBLE_DEVICES=3,5: variables for its environment.
std::vector<std::string> environment_of_one_device(const std::string& platform = "CUDA");

// `nodes` without those of other devices: /dev/nvidia3 is one, and /dev/nvidia-uvm is of all.
std::vector<std::string> nodes_of_one_device(const std::vector<std::string>& nodes,
                                             int minor_number);

}  // namespace mc::worker

#endif  // MC_WORKER_ONE_DEVICE_H_
