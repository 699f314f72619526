// SPDX-License-Identifier: Apache-2.0
//
// DeviceLock: shares one device between processes of this machine, of any user, by locks on two
// files that every user may open.  A process that ends in any way releases both.
#ifndef MC_EVAL_DEVICE_LOCK_H_
#define MC_EVAL_DEVICE_LOCK_H_

#include <filesystem>
#include <string>

#include "core/fd.h"
#include "core/result.h"

namespace mc::eval {

class DeviceLock {
 public:
  enum class Use { kShared, kExclusive };

  class Hold {
   public:
    Hold() = default;
    explicit Hold(Fd locked) : locked_(std::move(locked)) {}
    Hold(Hold&&) noexcept = default;
    Hold& operator=(Hold&&) = delete;
    ~Hold();

   private:
    Fd locked_;
  };

  // Makes the files where they do not exist.
  static Result<DeviceLock> open(const std::filesystem::path& directory, const std::string& device);

  // Waits for other processes.  A request for exclusive use is not overtaken by later requests.
  // The result holds nothing where the files can no longer be opened or made.
  Hold take(Use use) const;

 private:
  explicit DeviceLock(const std::filesystem::path& stem);

  std::filesystem::path entry_;  // Locked while waiting for `use_`.
  std::filesystem::path use_;    // Locked while the device is in use.
};

}  // namespace mc::eval

#endif  // MC_EVAL_DEVICE_LOCK_H_
