// SPDX-License-Identifier: Apache-2.0
//
// Turns: lets one of several threads that want the same thing make it, while the others wait.
//
//   const auto turn = turns.take(home);
//   if (auto artifact = store.find(home, extension)) return *artifact;
//   ... make it; those who wait go on when `turn` ends ...
#ifndef MC_COMPILE_TURNS_H_
#define MC_COMPILE_TURNS_H_

#include <condition_variable>
#include <memory>
#include <mutex>
#include <set>
#include <string>

namespace mc::compile {

class Turns {
 public:
  using Turn = std::shared_ptr<const void>;

  // The turn, which ends with the last copy of it and before this object does; null for who waited
  // for another's.  These all go on at once: where the first one failed, they need not fail one
  // after the other.
  Turn take(const std::string& name);

 private:
  void end(const std::string& name);

  std::mutex mutex_;
  std::condition_variable ended_;
  std::set<std::string> taken_;  // Guarded by mutex_.
};

}  // namespace mc::compile

#endif  // MC_COMPILE_TURNS_H_
