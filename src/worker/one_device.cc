// SPDX-License-Identifier: Apache-2.0
#include "worker/one_device.h"

#include <cstdlib>

namespace mc::worker {

std::vector<std::string> environment_of_one_device(const std::string& platform) {
  const std::string visible_name = platform + "_VISIBLE_DEVICES";
  const std::string order_name = platform + "_DEVICE_ORDER";
  const char* visible = std::getenv(visible_name.c_str());
  const char* order = std::getenv(order_name.c_str());
  const std::string devices = visible != nullptr ? visible : "0";
  std::vector<std::string> variables = {visible_name + "=" + devices.substr(0, devices.find(','))};
  if (order != nullptr) variables.push_back(order_name + "=" + order);
  return variables;
}

std::vector<std::string> nodes_of_one_device(const std::vector<std::string>& nodes,
                                             int minor_number) {
  std::vector<std::string> kept;
  for (const std::string& node : nodes) {
    const size_t end_of_name = node.find_last_not_of("0123456789") + 1;
    const std::string number = node.substr(end_of_name);
    if (number.empty() || number == std::to_string(minor_number)) kept.push_back(node);
  }
  return kept;
}

}  // namespace mc::worker
