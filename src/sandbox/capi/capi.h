// SPDX-License-Identifier: Apache-2.0
//
// The way into the sandbox for a forking process that is not written in C++ (enter.h describes the
// processes).  Loaded with ctypes before the forks.  All functions are for processes with one
// thread.  Example:
//   lib.mc_sandbox_compact_memory()
//   launcher = os.fork()
//   if launcher == 0:
//       if lib.mc_sandbox_unshare(profile, error, len(error)) != 0: …report and os._exit(1)
//       init = os.fork()
//       if init > 0: …send `init` to the parent, then os._exit(0)
//       if lib.mc_sandbox_enter(profile, keep, len(keep), error, len(error)) != 0: …report, _exit
//       …the sandboxed role runs here, as process 2 of its pid namespace
//   os.waitpid(launcher, 0)   # Before `init` is sent to the supervisor, whose child it now is.
#ifndef MC_SANDBOX_CAPI_CAPI_H_
#define MC_SANDBOX_CAPI_CAPI_H_

#ifdef __cplusplus
extern "C" {
#endif
#pragma GCC visibility push(default)

// Makes forks take a third of the time where the kernel supports it (memory.h).  Called once, after
// imports and before the first fork.
void mc_sandbox_compact_memory(void);

// 0, or -1 with a NUL-terminated message in `error`.  `profile_json` is that of profile.h.
int mc_sandbox_unshare(const char* profile_json, char* error, int error_size);

// Forks once more inside: returns in the sandboxed process; the calling process becomes its init.
// 0, 1, 2 and the `num_keep` descriptors stay open.  0, or -1 with a message; then the caller must
// exit.
int mc_sandbox_enter(const char* profile_json, const int* keep_fds, int num_keep, char* error,
                     int error_size);

// The protections that are not in force in this process: [{"protection": name, "why": text}].
// Empty before mc_sandbox_enter().  The text is valid until the next call.
const char* mc_sandbox_missing(void);

#pragma GCC visibility pop

#ifdef __cplusplus
}
#endif

#endif  // MC_SANDBOX_CAPI_CAPI_H_
