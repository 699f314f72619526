// SPDX-License-Identifier: Apache-2.0
//
// DeviceLock: shares one device with other processes of this machine, whoever's they are, by locks
// on two files that all may open.  A process that ends, in whatever way, lets go of both.
//
//   MC_TRY(DeviceLock lock, DeviceLock::open("/tmp", uuid), "device");
//   const auto hold = lock.take(DeviceLock::Use::kExclusive);   // Until `hold` goes out of scope.
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

  // Makes the files where they are not there.
  static Result<DeviceLock> open(const std::filesystem::path& directory, const std::string& device);

  // Waits for other processes.  One that wants to be alone is not passed by those that come later.
  // Holds nothing where the files can be neither opened nor made any more.
  Hold take(Use use) const;

 private:
  explicit DeviceLock(const std::filesystem::path& stem);

  std::filesystem::path entry_;  // Held on the way in.
  std::filesystem::path use_;    // Held inside.
};

}  // namespace mc::eval

#endif  // MC_EVAL_DEVICE_LOCK_H_
