// SPDX-License-Identifier: Apache-2.0
//
// The origin of a verdict: the program that judged, and the container image in which it runs.
#ifndef MC_TASK_PROVENANCE_H_
#define MC_TASK_PROVENANCE_H_

#include <string>

namespace mc::task {

inline constexpr const char* kProgram = "musacoder 0.1.0";

// {"program":"musacoder 0.1.0","image":"…"}; the image is $MUSACODER_IMAGE, "" where it is not set.
std::string provenance_json();

}  // namespace mc::task

#endif  // MC_TASK_PROVENANCE_H_
