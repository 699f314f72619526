// SPDX-License-Identifier: Apache-2.0
//
// Restricts children to one of this machine's devices.
#ifndef MC_WORKER_ONE_DEVICE_H_
#define MC_WORKER_ONE_DEVICE_H_

#include <string>
#include <vector>

namespace mc::worker {

// Environment variables that make only the first of this process's visible devices visible to a
// child: "3" of CUDA_VISIBLE_DEVICES=3,5.
std::vector<std::string> environment_of_one_device(const std::string& platform = "CUDA");

// `nodes` without those of other devices: /dev/nvidia3 belongs to one device, /dev/nvidia-uvm to
// all.
std::vector<std::string> nodes_of_one_device(const std::vector<std::string>& nodes,
                                             int minor_number);

}  // namespace mc::worker

#endif  // MC_WORKER_ONE_DEVICE_H_
