// SPDX-License-Identifier: Apache-2.0
#include "task/provenance.h"

#include <cstdlib>

#include <nlohmann/json.hpp>

namespace mc::task {

std::string provenance_json() {
  const char* image = std::getenv("MUSACODER_IMAGE");
  const nlohmann::ordered_json json = {{"program", kProgram},
                                       {"image", image == nullptr ? "" : image}};
  return json.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace mc::task
