#include "lib/process/sandbox_filter.hpp"

#include <linux/audit.h>
#include <linux/seccomp.h>
#include <sched.h>
#include <sys/ioctl.h>
#include <sys/socket.h>
#include <sys/syscall.h>

#include <array>
#include <cerrno>
#include <cstddef>
#include <cstdint>

namespace hexad::process {
namespace {

#if defined(__x86_64__)
constexpr uint32_t kMachine = AUDIT_ARCH_X86_64;
constexpr uint32_t kOtherTable = 0x40000000;  // of x32, whose calls have this bit
#elif defined(__aarch64__)
constexpr uint32_t kMachine = AUDIT_ARCH_AARCH64;
constexpr uint32_t kOtherTable = 0;
#else
constexpr uint32_t kMachine = 0, kOtherTable = 0;
#endif

constexpr uint32_t kNamespaces =
    CLONE_NEWNS | CLONE_NEWCGROUP | CLONE_NEWUTS | CLONE_NEWIPC | CLONE_NEWUSER | CLONE_NEWPID | CLONE_NEWNET;

// Refused whatever their arguments.
constexpr std::array kRefused = {
    // other processes
    SYS_ptrace,
    SYS_process_vm_readv,
    SYS_process_vm_writev,
    SYS_process_madvise,
    SYS_pidfd_getfd,
    SYS_kcmp,
    // mounts and namespaces
    SYS_mount,
    SYS_umount2,
    SYS_pivot_root,
    SYS_chroot,
    SYS_move_mount,
    SYS_open_tree,
    SYS_fsopen,
    SYS_fsconfig,
    SYS_fsmount,
    SYS_fspick,
    SYS_mount_setattr,
    SYS_unshare,
    SYS_setns,
    SYS_open_by_handle_at,
    // keys, and ways into the kernel
    SYS_add_key,
    SYS_request_key,
    SYS_keyctl,
    SYS_bpf,
    SYS_perf_event_open,
    SYS_userfaultfd,
    SYS_io_uring_setup,
    SYS_io_uring_enter,
    SYS_io_uring_register,
    SYS_kexec_load,
    SYS_init_module,
    SYS_finit_module,
    SYS_delete_module,
    SYS_reboot,
    SYS_swapon,
    SYS_swapoff,
    SYS_acct,
#ifdef SYS_kexec_file_load
    SYS_kexec_file_load,
#endif
#ifdef SYS_ioperm
    SYS_ioperm,
    SYS_iopl,
#endif
};

// What processes of one user share by a number or a name, which is no file.
constexpr std::array kShared = {SYS_shmget, SYS_shmat, SYS_semget, SYS_msgget, SYS_mq_open, SYS_connect};

// Each block of a call ends with an answer, so that the number of the call is loaded before and after each.
class Program {
 public:
  Program() {
    load(offsetof(seccomp_data, arch));
    jump(BPF_JEQ, kMachine, 1, 0);
    answer(SECCOMP_RET_KILL_PROCESS);
    load(offsetof(seccomp_data, nr));
    if (kOtherTable == 0) return;
    jump(BPF_JGE, kOtherTable, 0, 1);
    answer(SECCOMP_RET_ERRNO | ENOSYS);
  }

  void refuse(long call, uint32_t error) {
    const size_t from = begin(call);
    answer(SECCOMP_RET_ERRNO | error);
    end(from);
  }
  // Sockets of AF_UNIX that reach nobody but those they are connected with: no datagrams.
  void keep_sockets(long call) {
    const size_t from = begin(call);
    argument(0);
    jump(BPF_JEQ, AF_UNIX, 1, 0);
    answer(SECCOMP_RET_ERRNO | EACCES);
    argument(1);
    code_.push_back(BPF_STMT(BPF_ALU | BPF_AND | BPF_K, 0xf));  // without SOCK_CLOEXEC, SOCK_NONBLOCK
    jump(BPF_JEQ, SOCK_STREAM, 2, 0);
    jump(BPF_JEQ, SOCK_SEQPACKET, 1, 0);
    answer(SECCOMP_RET_ERRNO | EACCES);
    answer(SECCOMP_RET_ALLOW);
    end(from);
  }
  // Where a bit of `bits` is set in the argument.
  void refuse_bits(long call, unsigned which, uint32_t bits) {
    const size_t from = begin(call);
    argument(which);
    jump(BPF_JSET, bits, 0, 1);
    answer(SECCOMP_RET_ERRNO | EPERM);
    answer(SECCOMP_RET_ALLOW);
    end(from);
  }
  // Where the argument is one of two values.
  void refuse_values(long call, unsigned which, uint32_t one, uint32_t other) {
    const size_t from = begin(call);
    argument(which);
    jump(BPF_JEQ, one, 1, 0);
    jump(BPF_JEQ, other, 0, 1);
    answer(SECCOMP_RET_ERRNO | EPERM);
    answer(SECCOMP_RET_ALLOW);
    end(from);
  }

  Filter finish() {
    answer(SECCOMP_RET_ALLOW);
    return code_;
  }

 private:
  void load(size_t offset) { code_.push_back(BPF_STMT(BPF_LD | BPF_W | BPF_ABS, static_cast<uint32_t>(offset))); }
  // Its lower half: those above are of 32 bits, and the kernel looks at no more. Both machines begin with that half.
  void argument(unsigned which) { load(offsetof(seccomp_data, args) + size_t{8} * which); }
  void answer(uint32_t action) { code_.push_back(BPF_STMT(BPF_RET | BPF_K, action)); }
  void jump(uint16_t test, uint32_t value, uint8_t if_so, uint8_t if_not) {
    code_.push_back(BPF_JUMP(static_cast<uint16_t>(BPF_JMP | test | BPF_K), value, if_so, if_not));
  }
  size_t begin(long call) {
    jump(BPF_JEQ, static_cast<uint32_t>(call), 0, 0);
    return code_.size() - 1;
  }
  void end(size_t from) { code_[from].jf = static_cast<uint8_t>(code_.size() - from - 1); }

  Filter code_;
};

void refuse_truncate(Program& program) { program.refuse(SYS_truncate, EACCES); }

}  // namespace

bool filter_known() { return kMachine != 0; }

Filter truncate_filter() {
  Program program;
  refuse_truncate(program);
  return program.finish();
}

Filter strict_filter(bool truncates) {
  Program program;
  for (const long call : kRefused) program.refuse(call, EPERM);
  for (const long call : kShared) program.refuse(call, EACCES);
  for (const long call : {SYS_socket, SYS_socketpair}) program.keep_sockets(call);
  program.refuse(SYS_clone3, ENOSYS);
  program.refuse_bits(SYS_clone, 0, kNamespaces);
  program.refuse_values(SYS_ioctl, 1, TIOCSTI, TIOCLINUX);
  program.refuse_bits(SYS_prlimit64, 0, UINT32_MAX);  // of another process; 0 is itself
  if (!truncates) refuse_truncate(program);
  return program.finish();
}

}  // namespace hexad::process
