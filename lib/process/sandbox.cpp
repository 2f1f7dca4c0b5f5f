#include "lib/process/sandbox.hpp"

#include <fcntl.h>
#include <linux/capability.h>
#include <linux/landlock.h>
#include <linux/seccomp.h>
#include <sys/prctl.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <filesystem>
#include <system_error>

#include "lib/process/limit.hpp"

namespace hexad::process {
namespace {

constexpr uint64_t kRead = LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_READ_DIR;
// Newer than the headers of some machines that this is built on.
constexpr uint64_t kRefer = 1 << 13, kTruncate = 1 << 14;
constexpr uint64_t kScopes = 3;  // sockets without a file, and signals
constexpr int kReferSince = 2, kTruncateSince = 3, kNetworkSince = 4, kScopesSince = 6;
constexpr uint64_t kOfFiles =
    LANDLOCK_ACCESS_FS_EXECUTE | LANDLOCK_ACCESS_FS_READ_FILE | LANDLOCK_ACCESS_FS_WRITE_FILE | kTruncate;
constexpr uint64_t kDevices = LANDLOCK_ACCESS_FS_MAKE_CHAR | LANDLOCK_ACCESS_FS_MAKE_BLOCK;  // nobody makes these

// The kernel's struct landlock_ruleset_attr of version 6; older ones know its beginning.
struct Handled {
  uint64_t files, network, scopes;
};
size_t size_for(int version) {
  return sizeof(uint64_t) * (version >= kScopesSince ? 3 : version >= kNetworkSince ? 2 : 1);
}

uint64_t writing(int version) {
  uint64_t rights = LANDLOCK_ACCESS_FS_WRITE_FILE | LANDLOCK_ACCESS_FS_REMOVE_DIR | LANDLOCK_ACCESS_FS_REMOVE_FILE |
                    LANDLOCK_ACCESS_FS_MAKE_DIR | LANDLOCK_ACCESS_FS_MAKE_REG | LANDLOCK_ACCESS_FS_MAKE_SOCK |
                    LANDLOCK_ACCESS_FS_MAKE_FIFO | LANDLOCK_ACCESS_FS_MAKE_SYM;
  if (version >= kReferSince) rights |= kRefer;
  if (version >= kTruncateSince) rights |= kTruncate;
  return rights;
}

constexpr rlim_t kGiB = rlim_t{1} << 30;
constexpr Limit kLimits[] = {
    {RLIMIT_CORE, 0}, {RLIMIT_FSIZE, 64 * kGiB}, {RLIMIT_NOFILE, 65536}, {RLIMIT_NPROC, 32768}};
constexpr Limit kStrictLimits[] = {{RLIMIT_FSIZE, kGiB}, {RLIMIT_NOFILE, 4096}, {RLIMIT_DATA, 32 * kGiB}};

// Names in `folder` that begin with one of these.
std::vector<std::string> beginning(const std::string& folder, const std::vector<std::string>& names) {
  std::vector<std::string> found;
  std::error_code none;
  for (std::filesystem::directory_iterator each(folder, none), end; !none && each != end; each.increment(none)) {
    const std::string name = each->path().filename();
    for (const std::string& wanted : names) {
      if (name.starts_with(wanted)) found.push_back(each->path());
    }
  }
  return found;
}

// A path that is not there, or out of our own reach, is out of the program's.
void allow(const Descriptor& rules, const std::string& path, uint64_t rights) {
  const Descriptor there(::open(path.c_str(), O_PATH | O_CLOEXEC));
  struct stat status {};
  if (!there || ::fstat(there.get(), &status) != 0) return;
  if (!S_ISDIR(status.st_mode)) rights &= kOfFiles;
  const landlock_path_beneath_attr rule = {.allowed_access = rights, .parent_fd = there.get()};
  if (rights != 0 && ::syscall(SYS_landlock_add_rule, rules.get(), LANDLOCK_RULE_PATH_BENEATH, &rule, 0) != 0)
    throw std::system_error(errno, std::generic_category(), "no Landlock rule for " + path);
}

Descriptor landlock_rules(const Sandbox& sandbox, int version) {
  const uint64_t write = writing(version), read = sandbox.strict ? kRead : 0;
  const Handled handled = {write | kDevices | read, 0, sandbox.strict ? kScopes : 0};
  Descriptor rules(static_cast<int>(::syscall(SYS_landlock_create_ruleset, &handled, size_for(version), 0)));
  if (!rules) throw std::system_error(errno, std::generic_category(), "no Landlock rules");
  for (const std::string& path : sandbox.writes) allow(rules, path, write | read);
  for (const char* device : {"/dev/null", "/dev/zero", "/dev/full"}) allow(rules, device, write | (read & kOfFiles));
  if (sandbox.strict) {
    for (const std::string& path : system_folders()) allow(rules, path, read);
    for (const std::string& path : sandbox.reads) allow(rules, path, read);
    return rules;
  }
  for (const char* path : {"/dev/shm", "/dev/pts", "/dev/ptmx", "/dev/tty"}) allow(rules, path, write);
  for (const std::string& path : beginning("/dev", {"nvidia", "dri", "kfd", "infiniband"})) allow(rules, path, write);
  return rules;
}

// Rights of root's by which an ordinary sandbox would be left, and the only one that a strict one has: to go on reading
// files of others, as in a folder that a container was given.
constexpr int kDropped[] = {CAP_SYS_ADMIN, CAP_SYS_PTRACE, CAP_SYS_MODULE, CAP_SYS_RAWIO,      CAP_SYS_BOOT,
                            CAP_MKNOD,     CAP_PERFMON,    CAP_BPF,        CAP_DAC_READ_SEARCH};
constexpr int kKept = CAP_DAC_OVERRIDE;

constexpr uint64_t kept_rights(bool strict) {
  if (strict) return uint64_t{1} << kKept;
  uint64_t rights = ~uint64_t{0};
  for (const int right : kDropped) rights &= ~(uint64_t{1} << right);
  return rights;
}

bool drop_rights(uint64_t kept) {
  __user_cap_header_struct header = {_LINUX_CAPABILITY_VERSION_3, 0};
  __user_cap_data_struct rights[_LINUX_CAPABILITY_U32S_3] = {};
  if (::syscall(SYS_capget, &header, rights) != 0) return false;
  for (int half = 0; half < 2; ++half) {
    const auto mask = static_cast<uint32_t>(kept >> (32 * half));
    rights[half] = {rights[half].effective & mask, rights[half].permitted & mask, rights[half].inheritable & mask};
  }
  return ::syscall(SYS_capset, &header, rights) == 0;
}

}  // namespace

Kernel this_kernel() {
  const long version = ::syscall(SYS_landlock_create_ruleset, nullptr, 0, LANDLOCK_CREATE_RULESET_VERSION);
  const uint32_t action = SECCOMP_RET_ERRNO;
  const bool filters = filter_known() && ::syscall(SYS_seccomp, SECCOMP_GET_ACTION_AVAIL, 0, &action) == 0;
  return {.landlock = version > 0 ? static_cast<int>(version) : 0, .seccomp = filters};
}

std::string lacking(bool strict, const Kernel& kernel) {
  std::string text;
  if (kernel.landlock == 0) {
    text = strict
               ? "it has no Landlock: a program may read and write all that you may, and signal your processes"
               : "it has no Landlock: a program may write wherever you may, and read the environment of your processes";
  } else if (strict && kernel.landlock < kScopesSince) {
    text = "its Landlock is of version " + std::to_string(kernel.landlock) + " (want " + std::to_string(kScopesSince) +
           ", Linux 6.12): a program may send signals to your other processes";
  }
  if (kernel.seccomp) return text;
  const bool truncates = kernel.landlock > 0 && kernel.landlock < kTruncateSince;
  if (!strict && !truncates) return text;
  if (!text.empty()) text += "; ";
  return text + (strict ? "it has no filters of system calls (seccomp): a program has the network"
                        : "it has no filters of system calls (seccomp): a program may empty your files");
}

std::vector<std::string> system_folders() {
  std::vector<std::string> folders = {"/usr",
                                      "/bin",
                                      "/sbin",
                                      "/lib",
                                      "/lib32",
                                      "/lib64",
                                      "/libx32",
                                      "/nix/store",
                                      "/gnu/store",
                                      "/proc",
                                      "/sys/devices/system",
                                      "/sys/fs/cgroup",
                                      "/dev/random",
                                      "/dev/urandom"};
  // Without passwords, and keys of servers.
  for (const std::string& path : beginning(
           "/etc", {"alternatives", "ld.so", "localtime", "timezone", "passwd", "group", "nsswitch.conf", "os-release",
                    "debian_version", "locale", "mime.types", "magic", "python", "perl", "java", "fonts", "R"}))
    if (!path.ends_with('-')) folders.push_back(path);
  for (const char* path :
       {"/etc/ssl/openssl.cnf", "/etc/ssl/certs", "/etc/pki/tls/openssl.cnf", "/etc/crypto-policies"})
    folders.emplace_back(path);
  return folders;
}

SandboxRules::SandboxRules(const Sandbox& sandbox, const Kernel& kernel) : is_there_(true), strict_(sandbox.strict) {
  const bool truncates = kernel.landlock == 0 || kernel.landlock >= kTruncateSince;
  if (kernel.landlock > 0) landlock_ = landlock_rules(sandbox, kernel.landlock);
  if (!kernel.seccomp) return;
  if (strict_)
    filter_ = strict_filter(truncates);
  else if (!truncates)
    filter_ = truncate_filter();
}

bool SandboxRules::enter() const {
  if (!is_there_) return true;
  for (const Limit& limit : kLimits) lower(limit);
  if (strict_)
    for (const Limit& limit : kStrictLimits) lower(limit);
  if (::prctl(PR_SET_NO_NEW_PRIVS, 1, 0, 0, 0) != 0) return false;
  if (landlock_) {
    if (::syscall(SYS_landlock_restrict_self, landlock_.get(), 0) != 0) return false;
    ::close(landlock_.get());  // this process's
  }
  if (!drop_rights(kept_rights(strict_))) return false;
  if (filter_.empty()) return true;
  const sock_fprog program = {static_cast<unsigned short>(filter_.size()), const_cast<sock_filter*>(filter_.data())};
  return ::syscall(SYS_seccomp, SECCOMP_SET_MODE_FILTER, 0, &program) == 0;
}

}  // namespace hexad::process
