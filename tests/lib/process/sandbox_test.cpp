// Sandboxes by programs that try what they may not, on this kernel and by the rules for older ones.
#include "tests/lib/process/sandbox.hpp"

#include <linux/filter.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/syscall.h>

#include <cerrno>
#include <cstddef>

using namespace process_test;

namespace {

// A folder that the sandbox may write, and one beside it with a file.
struct Folders {
  Folders() {
    std::filesystem::create_directory(mine);
    std::filesystem::create_directory(other);
    write_text(kept, "kept\n");
  }
  Sandbox ordinary() const { return {.writes = {mine}}; }
  Sandbox strict() const { return {.strict = true, .writes = {mine}}; }

  TempDir dir;
  std::string mine = dir / "mine", other = dir / "other", kept = dir / "other/kept";
};

// A call that gives -1 and this errno; 0: -1 by its own subtraction, where it went well.
struct Attempt {
  const char* name;
  int error;
  long (*call)();
};

// Says the name of each that gives something else.
int try_all(const std::vector<Attempt>& attempts) {
  for (const Attempt& each : attempts) {
    errno = 0;
    if (each.call() == -1 && errno == each.error) continue;
    ::dprintf(STDOUT_FILENO, "%s: %d\n", each.name, errno);
  }
  return 0;
}

}  // namespace

TEST_SUITE_BEGIN("timing");  // processes that must answer in time

TEST_CASE("a sandboxed program gains no rights, leaves no core file, and has limits; ours stay as they are") {
  const std::string script = "grep NoNewPrivs /proc/self/status; ulimit -c; ulimit -f";
  for (const bool strict : {false, true}) {
    const std::string blocks = std::to_string((int64_t{strict ? 1 : 64} << 30) / 512);
    rlimit ours{};
    ::getrlimit(RLIMIT_FSIZE, &ours);
    if (ours.rlim_cur == RLIM_INFINITY)
      CHECK(inside({.strict = strict}, script) == "NoNewPrivs:\t1\n0\n" + blocks + "\n");
  }
  const int of_ours = ::prctl(PR_GET_NO_NEW_PRIVS, 0, 0, 0, 0);
  CHECK(output_of("grep NoNewPrivs /proc/self/status") == "NoNewPrivs:\t" + std::to_string(of_ours) + "\n");
}

TEST_CASE("no right of root's leads out of a sandbox, and a strict one has but that to read files of others") {
  const std::string script = "read -r _ rights <<E\n$(grep CapEff /proc/self/status)\nE\necho $((0x$rights & MASK))";
  const auto has = [&](bool strict, const std::string& mask) {
    return inside({.strict = strict}, std::string(script).replace(script.find("MASK"), 4, mask));
  };
  CHECK(has(false, "((1 << 2) | (1 << 16) | (1 << 17) | (1 << 19) | (1 << 21) | (1 << 22) | (1 << 27) | (3 << 38))") ==
        "0\n");
  CHECK(has(true, "~2") == "0\n");
}

TEST_CASE("a sandboxed program writes in its folders and nowhere else, and reads everything") {
  if (!has_landlock()) return;
  const Folders folders;
  CHECK(inside(folders.ordinary(), "cd " + folders.mine +
                                       " && echo x > a && mkdir b && ln -s a c && mv a d && rm c && mkfifo e && "
                                       "echo gone > /dev/null && cat ../other/kept d") == "kept\nx\n");
  for (const char* attempt : {"echo x > ../other/new", "echo x >> ../other/kept", ": > ../other/kept",
                              "mkdir ../other/new", "rm ../other/kept", "ln ../other/kept .", "mv ../other/kept .",
                              "mv d ../other", "ln -s d ../other/new", "mkfifo ../other/new", "mknod null c 1 3"}) {
    const std::string said =
        inside(folders.ordinary(), "cd " + folders.mine + "; (" + attempt + ") 2> /dev/null || echo refused");
    CHECK_MESSAGE(said == "refused\n", attempt);
  }
  CHECK(read_text(folders.kept) == "kept\n");
}

TEST_CASE("the rules of each version of Landlock keep writes and path names that are cut short") {
  if (!has_landlock()) return;
  const Folders folders;
  for (int version = 1; version <= this_kernel().landlock; ++version) {
    CAPTURE(version);
    const Kernel kernel = {.landlock = version, .seccomp = this_kernel().seccomp};
    CHECK(inside(folders.ordinary(), kernel, "echo x > " + folders.mine + "/a && echo wrote") == "wrote\n");
    CHECK(inside(folders.ordinary(), kernel, "echo x 2> /dev/null > " + folders.kept + " || echo refused")
              .ends_with("refused\n"));
    if (!kernel.seccomp && version < 3) continue;
    const SandboxRules rules(folders.ordinary(), kernel);
    const char* const file = folders.kept.c_str();
    CHECK(entered(rules, [&] {
            return ::truncate(file, 0) == -1 && errno == EACCES ? ::dprintf(STDOUT_FILENO, "refused") < 0 : 1;
          }) == "refused");
    CHECK(inside(folders.strict(), kernel, "cat 2> /dev/null " + folders.kept + " || echo refused") == "refused\n");
  }
  CHECK(read_text(folders.kept) == "kept\n");
}

TEST_CASE("a strict program reads what it was given and the system, and nothing else") {
  if (!has_landlock()) return;
  const Folders folders;
  Sandbox sandbox = folders.strict();
  sandbox.reads = {folders.kept, folders.dir / "not-there"};
  write_text(folders.dir / "other/secret", "secret\n");
  const std::string script = "cat " + folders.kept + "; cat " + folders.other + "/secret || ls " + folders.other +
                             " || cat /etc/shadow || echo refused; echo x > " + folders.kept + " || echo unwritten";
  CHECK(inside(sandbox, "(" + script + ") 2> /dev/null") == "kept\nrefused\nunwritten\n");
  CHECK(inside(sandbox, "cp /bin/true " + folders.mine + " && " + folders.mine + "/true && echo ran") == "ran\n");
  write_text(folders.dir / "other/script", "#!/bin/sh\necho ran\n");
  ::chmod((folders.dir / "other/script").c_str(), 0755);
  CHECK(inside(sandbox, folders.other + "/script 2> /dev/null || echo refused") == "refused\n");
}

TEST_CASE("a sandboxed program looks into no process outside, and a strict one signals none") {
  if (!has_landlock()) return;
  const std::string us = std::to_string(::getpid()), look = "head -c 1 /proc/" + us + "/environ 2> /dev/null";
  for (const bool strict : {false, true}) CHECK(inside({.strict = strict}, look + " || echo refused") == "refused\n");
  if (!has_landlock(6)) return;
  const std::string signal = "sleep 100 & kill -0 " + us + " 2> /dev/null || echo refused; kill $!";
  CHECK(inside({.strict = true}, signal) == "refused\n");
  CHECK(inside({.strict = false}, signal).empty());
}

TEST_CASE("a strict program is refused sockets and the calls by which processes get out") {
  if (!has_seccomp()) return;
  const std::vector<Attempt> attempts = {
      {"socket of IPv4", EACCES, [] { return long{::socket(AF_INET, SOCK_STREAM, 0)}; }},
      {"socket of IPv6", EACCES, [] { return long{::socket(AF_INET6, SOCK_DGRAM, 0)}; }},
      {"netlink", EACCES, [] { return long{::socket(AF_NETLINK, SOCK_RAW, 0)}; }},
      {"vsock", EACCES, [] { return long{::socket(AF_VSOCK, SOCK_STREAM, 0)}; }},
      {"datagrams", EACCES, [] { return long{::socket(AF_UNIX, SOCK_DGRAM | SOCK_CLOEXEC, 0)}; }},
      {"raw datagrams", EACCES, [] { return long{::socket(AF_UNIX, SOCK_RAW, 0)}; }},
      {"connect", EACCES, [] { return ::syscall(SYS_connect, -1, nullptr, 0); }},
      {"shared memory", EACCES, [] { return ::syscall(SYS_shmget, 1, 4096, 0600 | 01000); }},
      {"ptrace", EPERM, [] { return ::syscall(SYS_ptrace, 16, -1, 0, 0); }},
      {"process_vm_readv", EPERM, [] { return ::syscall(SYS_process_vm_readv, ::getpid(), 0, 0, 0, 0, 0); }},
      {"process_vm_writev", EPERM, [] { return ::syscall(SYS_process_vm_writev, ::getpid(), 0, 0, 0, 0, 0); }},
      {"pidfd_getfd", EPERM, [] { return ::syscall(SYS_pidfd_getfd, -1, 0, 0); }},
      {"mount", EPERM, [] { return ::syscall(SYS_mount, 0, 0, 0, 0, 0); }},
      {"fsopen", EPERM, [] { return ::syscall(SYS_fsopen, 0, 0); }},
      {"unshare", EPERM, [] { return ::syscall(SYS_unshare, 0); }},
      {"setns", EPERM, [] { return ::syscall(SYS_setns, -1, 0); }},
      {"clone", EPERM, [] { return ::syscall(SYS_clone, CLONE_NEWUSER | CLONE_FS | SIGCHLD, 0, 0, 0, 0); }},
      {"clone3", ENOSYS, [] { return ::syscall(SYS_clone3, 0, 0); }},
      {"keyctl", EPERM, [] { return ::syscall(SYS_keyctl, -1, 0, 0, 0, 0); }},
      {"bpf", EPERM, [] { return ::syscall(SYS_bpf, -1, 0, 0); }},
      {"perf_event_open", EPERM, [] { return ::syscall(SYS_perf_event_open, 0, 0, 0, 0, 0); }},
      {"userfaultfd", EPERM, [] { return ::syscall(SYS_userfaultfd, -1); }},
      {"io_uring", EPERM, [] { return ::syscall(SYS_io_uring_setup, 1, 0); }},
      {"kexec_load", EPERM, [] { return ::syscall(SYS_kexec_load, 0, 0, 0, 0); }},
      {"init_module", EPERM, [] { return ::syscall(SYS_init_module, 0, 0, 0); }},
      {"TIOCSTI", EPERM, [] { return ::syscall(SYS_ioctl, -1, TIOCSTI, 0); }},
      {"limits of others", EPERM, [] { return ::syscall(SYS_prlimit64, ::getppid(), RLIMIT_CORE, 0, 0); }},
  };
  CHECK(entered(SandboxRules({.strict = true}, this_kernel()), [&] { return try_all(attempts); }) == "");
  const std::vector<Attempt> allowed = {
      {"pairs", 0,
       [] {
         int ends[2];
         return ::socketpair(AF_UNIX, SOCK_STREAM | SOCK_CLOEXEC, 0, ends) - 1L;
       }},
      {"own limits", 0,
       [] {
         rlimit now;
         return ::syscall(SYS_prlimit64, 0, RLIMIT_CORE, 0, &now) - 1;
       }},
      {"other ioctls", EBADF, [] { return ::syscall(SYS_ioctl, -1, FIONREAD, 0); }},
  };
  CHECK(entered(SandboxRules({.strict = true}, this_kernel()), [&] { return try_all(allowed); }) == "");
  const std::vector<Attempt> network = {
      {"network", 0, [] { return ::socket(AF_INET, SOCK_STREAM, 0) >= 0 ? -1L : 0L; }}};
  CHECK(entered(SandboxRules({.strict = false}, this_kernel()), [&] { return try_all(network); }) == "");
}

TEST_CASE("a kernel without Landlock runs the program, and what that lacks is said in a sentence") {
  CHECK(lacking(false, {.landlock = 3, .seccomp = false}) == "");
  CHECK(lacking(true, {.landlock = 6, .seccomp = true}) == "");
  CHECK(lacking(false, {}) ==
        "it has no Landlock: a program may write wherever you may, and read the environment of your processes");
  CHECK(lacking(false, {.landlock = 2, .seccomp = false}) ==
        "it has no filters of system calls (seccomp): a program may empty your files");
  CHECK(lacking(true, {.landlock = 2, .seccomp = true}) ==
        "its Landlock is of version 2 (want 6, Linux 6.12): a program may send signals to your other processes");
  CHECK(lacking(true, {}) ==
        "it has no Landlock: a program may read and write all that you may, and signal your processes; it has no "
        "filters of system calls (seccomp): a program has the network");
  if (!has_seccomp()) return;
  Child child(fork_here({}, [] {  // as on a kernel without it
    sock_filter code[] = {BPF_STMT(BPF_LD | BPF_W | BPF_ABS, offsetof(seccomp_data, nr)),
                          BPF_JUMP(BPF_JMP | BPF_JEQ | BPF_K, SYS_landlock_create_ruleset, 0, 1),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ERRNO | ENOSYS),
                          BPF_STMT(BPF_RET | BPF_K, SECCOMP_RET_ALLOW)};
    const sock_fprog program = {4, code};
    if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return 1;
    if (::prctl(PR_SET_SECCOMP, SECCOMP_MODE_FILTER, &program) != 0) return 2;
    if (this_kernel().landlock != 0) return 3;
    for (const bool strict : {false, true})
      if (inside({.strict = strict}, "echo ran") != "ran\n") return 4;
    return 0;
  }));
  CHECK(child.wait() == Exit{});
}

TEST_SUITE_END();
