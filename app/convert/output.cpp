#include "app/convert/output.hpp"

#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"

namespace hexad::convert {
namespace fs = std::filesystem;
namespace {

void require_free(const fs::path& destination, ConvertOutput::Makes makes) {
  const fs::file_status status = fs::symlink_status(destination);
  const bool empty = makes == ConvertOutput::Makes::directory && fs::is_directory(status) && fs::is_empty(destination);
  if (!fs::exists(status) || empty) return;
  fail(ErrorKind::data, "{}: exists already; nothing was written. Remove it or choose another name",
       destination.string());
}

}  // namespace

ConvertOutput::ConvertOutput(const fs::path& destination, Makes makes)
    : destination_(fs::absolute(destination).lexically_normal()), makes_(makes) {
  if (!destination_.has_filename()) destination_ = destination_.parent_path();
  require_free(destination_, makes_);
  std::error_code error;
  fs::create_directories(destination_.parent_path(), error);
  std::string pattern =
      (destination_.parent_path() / ("." + destination_.filename().string() + ".partial-XXXXXX")).string();
  if (!::mkdtemp(pattern.data())) {
    fail(ErrorKind::data, "{}: a directory cannot be made there: {}", destination_.parent_path().string(),
         std::strerror(errno));
  }
  directory_ = pattern;
  ::chmod(directory_.c_str(), 0755);
}

ConvertOutput::~ConvertOutput() {
  std::error_code ignored;
  if (!directory_.empty()) fs::remove_all(directory_, ignored);
}

void ConvertOutput::write_text(std::string_view file, std::string_view text) const {
  write_file(directory_ / file, text);
}

void ConvertOutput::give_name(const fs::path& from) const {
  require_free(destination_, makes_);
  if (::rename(from.c_str(), destination_.c_str()) != 0) {
    fail(ErrorKind::data, "{}: cannot be given its name: {}", destination_.string(), std::strerror(errno));
  }
  try {
    sync_path(destination_.parent_path());
  } catch (const Error&) {  // the result is there; only a loss of power in the next seconds may undo its name
  }
}

void ConvertOutput::commit() {
  sync_tree(directory_);
  give_name(directory_);
  directory_.clear();
}

void ConvertOutput::commit_file(std::string_view file) {
  sync_path(directory_ / file);
  give_name(directory_ / file);
}

}  // namespace hexad::convert
