#include "lib/elf/links.hpp"

#include <elf.h>

#include <algorithm>
#include <cstring>
#include <set>

#include "lib/base/error.hpp"
#include "lib/base/file/permissions.hpp"

namespace hexad::elf {
namespace {

namespace fs = std::filesystem;

constexpr size_t kLongestName = 4096;

[[noreturn]] void refuse_library(const std::string& file, const char* what, int reason) {
  fail(ErrorKind::plugin, "{}: {}: {}", file, what, std::strerror(reason));
}

// Bounded reads of an open file.
class OpenElf {
 public:
  explicit OpenElf(const ResolvedFile& file) : file_(file) {
    const auto header = at<Elf64_Ehdr>(0, "the ELF header");
    if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0 || header.e_ident[EI_CLASS] != ELFCLASS64 ||
        header.e_ident[EI_DATA] != ELFDATA2LSB || header.e_phentsize != sizeof(Elf64_Phdr))
      fail(ErrorKind::plugin, "{}: no 64-bit ELF file", file_.path().string());
    for (uint64_t i = 0; i < header.e_phnum; ++i)
      segments_.push_back(at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr), "the segment table"));
  }

  template <typename T>
  T at(uint64_t offset, const char* what) const {
    T value;
    if (offset > file_.size() || !file_.read(std::as_writable_bytes(std::span(&value, 1)), offset))
      fail(ErrorKind::plugin, "{}: {} reaches past the end of the file ({} bytes); copy incomplete on this host?",
           file_.path().string(), what, file_.size());
    return value;
  }

  // A text that ends with a zero byte, or where it has become too long for a name.
  std::string text(uint64_t offset) const {
    if (offset >= file_.size()) return "";
    std::string text(std::min<uint64_t>(kLongestName, file_.size() - offset), '\0');
    if (!file_.read(std::as_writable_bytes(std::span(text)), offset)) return "";
    return text.substr(0, text.find('\0'));
  }

  const Elf64_Phdr* dynamic_segment() const {
    for (const Elf64_Phdr& segment : segments_)
      if (segment.p_type == PT_DYNAMIC) return &segment;
    return nullptr;
  }

  uint64_t offset_of(uint64_t address) const {
    for (const Elf64_Phdr& s : segments_)
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz)
        return address - s.p_vaddr + s.p_offset;
    fail(ErrorKind::plugin, "{}: malformed dynamic section (address {:#x} is in no segment)", file_.path().string(),
         address);
  }

 private:
  const ResolvedFile& file_;
  std::vector<Elf64_Phdr> segments_;
};

void add_folders(std::vector<std::string>& folders, const std::string& list) {
  if (list.empty()) return;  // as the loader has it
  for (size_t begin = 0, end = 0; end != list.npos; begin = end + 1) {
    end = list.find(':', begin);
    folders.push_back(list.substr(begin, end - begin));
  }
}

// $ORIGIN as the folder of the library that has it.
std::string with_origin(std::string text, const fs::path& origin) {
  for (const std::string& form : {std::string("${ORIGIN}"), std::string("$ORIGIN")})
    for (size_t at = 0; (at = text.find(form, at)) != text.npos; at += origin.string().size())
      text.replace(at, form.size(), origin.string());
  return text;
}

// Follows what is needed from library to library, as far as run paths lead.
class Follower {
 public:
  std::optional<std::string> follow(const ResolvedFile& library, const std::vector<fs::path>& inherited) {
    const Links links = read_links(library);
    const fs::path origin = library.path().parent_path();
    std::vector<fs::path> passed_on, folders;
    const bool has_run_path = !links.run_paths.empty();
    for (const std::string& each : has_run_path ? links.run_paths : links.rpaths) {
      const std::string folder = with_origin(each, origin);
      if (folder.find('$') != folder.npos)
        return fmt::format("{} has the run path {}, of which only $ORIGIN is known here", library.path().string(),
                           each);
      if (!folder.starts_with('/'))
        return fmt::format("{} has the run path '{}', so that libraries are taken from wherever it is started",
                           library.path().string(), each);
      (has_run_path ? folders : passed_on).push_back(folder);
    }
    passed_on.insert(passed_on.end(), inherited.begin(), inherited.end());
    for (const std::string& name : links.needed) {
      const std::string file = with_origin(name, origin);
      const bool is_path = file.find('/') != file.npos;
      if (is_path && !file.starts_with('/'))
        return fmt::format("{} needs {}, which is looked for wherever it is started", library.path().string(), file);
      const auto problem = is_path ? use(file, passed_on) : search(file, has_run_path ? folders : passed_on, passed_on);
      if (problem) return fmt::format("{} needs {}: {}", library.path().filename().string(), file, *problem);
    }
    return std::nullopt;
  }

 private:
  std::optional<std::string> search(const std::string& name, const std::vector<fs::path>& folders,
                                    const std::vector<fs::path>& passed_on) {
    for (const fs::path& folder : folders) {
      bool found = false;
      for (const fs::path& place : places(folder)) {
        if (const auto problem = place_problem(place))
          return fmt::format("it is looked for in {}, and {}", place.string(), *problem);
        std::error_code error;
        found = fs::exists(place / name, error);
        if (!found) continue;
        if (const auto problem = use(place / name, passed_on)) return problem;
      }
      if (found) return std::nullopt;
    }
    return std::nullopt;
  }

  // Where the loader looks before it looks into the folder itself, builds for some processors: which of them depends on
  // its version and on the processor. The folder is the last.
  static std::vector<fs::path> places(const fs::path& folder) {
    std::vector<fs::path> all;
    std::error_code error;
    if (fs::exists(folder / "glibc-hwcaps", error))
      for (const char* level : {"v4", "v3", "v2"})
        all.push_back(folder / "glibc-hwcaps" / (std::string("x86-64-") + level));
    add_older_places(folder, 4, all);
    all.push_back(folder);
    return all;
  }

  // Those of glibc before 2.37, nested in any order.
  static void add_older_places(const fs::path& folder, int depth, std::vector<fs::path>& all) {
    std::error_code error;
    for (const char* name : {"tls", "haswell", "xeon_phi", "avx512_1", "x86_64"}) {
      const fs::path place = folder / name;
      if (depth == 0 || !fs::is_directory(place, error)) continue;
      add_older_places(place, depth - 1, all);
      all.push_back(place);
    }
  }

  std::optional<std::string> use(const fs::path& file, const std::vector<fs::path>& passed_on) {
    std::error_code error;
    if (!fs::exists(file, error)) return std::nullopt;  // the loader says so
    const ResolvedFile library(file, refuse_library);
    if (library.insecure()) return library.insecure();
    if (!seen_.insert(library.path()).second) return std::nullopt;
    return follow(library, passed_on);
  }

  std::optional<std::string> place_problem(const fs::path& place) {
    if (!seen_.insert(place).second) return std::nullopt;
    return insecure_folder(place);
  }

  std::set<fs::path> seen_;  // what was in order
};

}  // namespace

Links read_links(const ResolvedFile& file) {
  const OpenElf elf(file);
  Links links;
  const Elf64_Phdr* const segment = elf.dynamic_segment();
  if (!segment) return links;
  uint64_t names = 0;
  std::vector<std::pair<int64_t, uint64_t>> entries;  // tag, offset into names
  constexpr uint64_t kMost = 1 << 16;                 // of a file that says nonsense
  for (uint64_t i = 0; i < std::min(kMost, segment->p_filesz / sizeof(Elf64_Dyn)); ++i) {
    const auto entry = elf.at<Elf64_Dyn>(segment->p_offset + i * sizeof(Elf64_Dyn), "the dynamic section");
    if (entry.d_tag == DT_NULL) break;
    if (entry.d_tag == DT_STRTAB) names = elf.offset_of(entry.d_un.d_ptr);
    for (const int64_t tag :
         {int64_t{DT_NEEDED}, int64_t{DT_RUNPATH}, int64_t{DT_RPATH}, int64_t{DT_AUXILIARY}, int64_t{DT_FILTER}})
      if (entry.d_tag == tag) entries.emplace_back(tag, entry.d_un.d_val);
  }
  for (const auto& [tag, offset] : entries) {
    const std::string text = elf.text(names + offset);
    if (tag == DT_RUNPATH)
      add_folders(links.run_paths, text);
    else if (tag == DT_RPATH)
      add_folders(links.rpaths, text);
    else
      links.needed.push_back(text);
  }
  return links;
}

std::optional<std::string> insecure_needed(const ResolvedFile& library) { return Follower().follow(library, {}); }

}  // namespace hexad::elf
