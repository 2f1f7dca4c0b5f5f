// What a process may use of a resource at most.
#pragma once
#include <sys/resource.h>

#include <algorithm>

namespace hexad::process {

// The most of a resource (RLIMIT_...) that the child may use. A lower limit of ours stays.
struct Limit {
  decltype(RLIMIT_CORE) resource;
  rlim_t most;
};

// For this process, by system calls alone.
inline void lower(const Limit& limit) {
  rlimit both = {};
  ::getrlimit(limit.resource, &both);
  both = {std::min(both.rlim_cur, limit.most), std::min(both.rlim_max, limit.most)};
  ::setrlimit(limit.resource, &both);
}

}  // namespace hexad::process
