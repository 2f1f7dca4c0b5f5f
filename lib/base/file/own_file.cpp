#include "lib/base/file/own_file.hpp"

#include <fcntl.h>
#include <sys/stat.h>

#include "lib/base/error.hpp"
#include "lib/base/file/append_file.hpp"
#include "lib/base/file/input_file.hpp"
#include "lib/base/file/resolved_file.hpp"

namespace hexad {

namespace fs = std::filesystem;

std::string leads_out_text(const fs::path& folder, const std::string& name, const fs::path& real) {
  return fmt::format(
      "{} is a link to {}, outside of {}, and a link out of a model's folder is not copied. Put the "
      "file in the place of the link",
      (folder / name).string(), real.string(), folder.string());
}

void require_own_file(const fs::path& folder, const std::string& name) {
  if (const fs::path real = leads_out(folder, name); !real.empty())
    throw Error(ErrorKind::data, leads_out_text(folder, name, real));
}

void require_own_file(const fs::path& folder, const std::string& name, const fs::path& real) {
  if (!is_own_file(real, folder)) throw Error(ErrorKind::data, leads_out_text(folder, name, real));
}

std::string read_own_file(const fs::path& folder, const std::string& name) {
  const ResolvedFile file(folder / name, refuse_file, /*trusted=*/true);
  require_own_file(folder, name, file.path());
  return file.text();
}

void copy_own_file(const fs::path& folder, const std::string& name, const fs::path& to) {
  const fs::path file = folder / name;
  const int descriptor = ::open(file.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);  // of a pipe, too, without waiting
  InputFile in(file, descriptor);
  struct stat status {};
  if (::fstat(descriptor, &status) != 0 || !S_ISREG(status.st_mode))
    fail(ErrorKind::data, "{}: not a regular file", file.string());
  // Of the descriptor: the name may be another file's by now.
  const fs::path real = fs::read_symlink(fmt::format("/proc/self/fd/{}", descriptor));
  require_own_file(folder, name, real);
  AppendFile out(to);
  std::string part(1 << 20, '\0');
  while (in.read(part.data(), static_cast<std::streamsize>(part.size())), in.gcount() > 0)
    out.append(std::string_view(part).substr(0, static_cast<size_t>(in.gcount())));
  fs::permissions(to, static_cast<fs::perms>(status.st_mode & 0777) | fs::perms::owner_read | fs::perms::owner_write);
}

}  // namespace hexad
