// The programs by which the kernel (seccomp) decides about system calls of a sandboxed process.
#pragma once
#include <linux/filter.h>

#include <vector>

namespace hexad::process {

using Filter = std::vector<sock_filter>;

// Whether there is one for this machine's instruction set.
bool filter_known();

// Refuses truncate(2) alone, by whose path files are cut short that Landlock before version 3 (Linux 6.2) does not
// keep.
Filter truncate_filter();

// Refuses, with EACCES: sockets of other families than AF_UNIX, connections, memory and queues that processes share by
// a number or a name. With EPERM: what looks into other processes or changes their limits, mounts, namespaces, keys,
// eBPF, perf, userfaultfd, io_uring, kexec, kernel modules, and input that is put into a terminal. clone3, whose
// arguments no filter sees, is not there (ENOSYS): C libraries go on with clone. A call by another instruction set's
// table kills. With `truncates` false it refuses truncate(2) too.
Filter strict_filter(bool truncates);

}  // namespace hexad::process
