#include "app/inference/open_files.hpp"

#include "lib/base/error.hpp"
#include "lib/process/open_files.hpp"

namespace hexad::inference {

rlim_t open_files_of_run(int ranks) {
  // Rank 0 has most: measured, 26 and 3 a rank with a plugin in C; backends add a connection a rank and group.
  constexpr rlim_t kAlways = 48, kEachRank = 8;
  return kAlways + kEachRank * static_cast<rlim_t>(ranks);
}

void require_open_files(int ranks) {
  const rlim_t got = process::raise_open_files(), wanted = open_files_of_run(ranks);
  if (got >= wanted) return;
  fail(
      ErrorKind::config,
      "a run of {} rank{} wants {} open files in each process, and this one may have {} (RLIMIT_NOFILE, its soft limit "
      "raised to the hard one): raise the hard limit (ulimit -Hn, limits.conf, LimitNOFILE of systemd)",
      ranks, ranks == 1 ? "" : "s", wanted, got);
}

}  // namespace hexad::inference
