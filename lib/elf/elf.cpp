#include "lib/elf/elf.hpp"

#include <elf.h>

#include <algorithm>
#include <cstdint>
#include <cstring>
#include <optional>

#include "lib/base/error.hpp"

namespace hexad::elf {
namespace {

#if defined(__x86_64__)
constexpr uint16_t kMachine = EM_X86_64;
constexpr const char* kMachineName = "x86-64";
#elif defined(__aarch64__)
constexpr uint16_t kMachine = EM_AARCH64;
constexpr const char* kMachineName = "aarch64";
#else
#error "shared objects of x86-64 and aarch64 are read"
#endif

// Bounded reads of an ELF file; every failure names the file.
class Reader {
 public:
  Reader(std::span<const std::byte> file, const std::string& path) : file_(file), path_(path) {}

  template <typename... Args>
  [[noreturn]] void refuse(fmt::format_string<Args...> format, Args&&... args) const {
    fail(ErrorKind::plugin, "{}: {}", path_, fmt::format(format, std::forward<Args>(args)...));
  }
  bool inside(uint64_t offset, uint64_t size) const { return offset <= file_.size() && size <= file_.size() - offset; }

  // A copy, because nothing in a hostile file need be aligned.
  template <typename T>
  T at(uint64_t offset, const char* what) const {
    if (!inside(offset, sizeof(T))) {
      refuse("{} reaches past the end of the file ({} bytes); copy incomplete on this host?", what, file_.size());
    }
    T value;
    std::memcpy(&value, file_.data() + offset, sizeof(T));
    return value;
  }
  std::string text(uint64_t offset, uint64_t end) const {
    std::string result;
    for (uint64_t i = offset; i < end && inside(i, 1) && file_[i] != std::byte{0} && result.size() < 4096; ++i) {
      result += static_cast<char>(file_[i]);
    }
    return result;
  }

 private:
  std::span<const std::byte> file_;
  const std::string& path_;
};

// The dynamic section: tags of interest, addresses turned into file offsets.
struct Dynamic {
  uint64_t symbols = 0, names = 0, names_size = 0, hash = 0, gnu_hash = 0;
  bool text_relocations = false;
  bool bind_now = false;
  std::vector<uint64_t> needed, run_paths;  // offsets into names
};

std::vector<Elf64_Phdr> read_segments(const Reader& reader) {
  const auto header = reader.at<Elf64_Ehdr>(0, "the ELF header");
  if (std::memcmp(header.e_ident, ELFMAG, SELFMAG) != 0) reader.refuse("not an ELF file");
  if (header.e_ident[EI_CLASS] != ELFCLASS64 || header.e_ident[EI_DATA] != ELFDATA2LSB ||
      header.e_machine != kMachine) {
    reader.refuse("built for another machine (ELF class {}, machine {}), this one is 64-bit {}",
                  header.e_ident[EI_CLASS], header.e_machine, kMachineName);
  }
  if (header.e_type != ET_DYN) reader.refuse("not a shared object (ELF type {})", header.e_type);
  if (header.e_phentsize != sizeof(Elf64_Phdr))
    reader.refuse("malformed ELF header (segment size {})", header.e_phentsize);
  std::vector<Elf64_Phdr> segments;
  for (uint64_t i = 0; i < header.e_phnum; ++i) {
    segments.push_back(reader.at<Elf64_Phdr>(header.e_phoff + i * sizeof(Elf64_Phdr), "the segment table"));
    const Elf64_Phdr& segment = segments.back();
    if (segment.p_type == PT_LOAD && !reader.inside(segment.p_offset, segment.p_filesz)) {
      reader.refuse("segment {} reaches past the end of the file; copy incomplete on this host?", i);
    }
  }
  return segments;
}

void check_stack(const Reader& reader, const std::vector<Elf64_Phdr>& segments) {
  const auto stack =
      std::find_if(segments.begin(), segments.end(), [](const auto& s) { return s.p_type == PT_GNU_STACK; });
  if (stack == segments.end() || (stack->p_flags & PF_X)) {
    reader.refuse("asks for an executable stack. Link with -Wl,-z,noexecstack");
  }
}

Dynamic read_dynamic(const Reader& reader, const std::vector<Elf64_Phdr>& segments) {
  const auto offset_of = [&](uint64_t address) -> uint64_t {
    for (const Elf64_Phdr& s : segments) {
      if (s.p_type == PT_LOAD && address >= s.p_vaddr && address - s.p_vaddr < s.p_filesz) {
        return address - s.p_vaddr + s.p_offset;
      }
    }
    reader.refuse("malformed dynamic section (address {:#x} is in no segment)", address);
  };
  const auto found =
      std::find_if(segments.begin(), segments.end(), [](const auto& s) { return s.p_type == PT_DYNAMIC; });
  if (found == segments.end()) reader.refuse("no dynamic section, so it exports nothing");
  Dynamic dynamic;
  for (uint64_t i = 0; i < found->p_filesz / sizeof(Elf64_Dyn); ++i) {
    const auto entry = reader.at<Elf64_Dyn>(found->p_offset + i * sizeof(Elf64_Dyn), "the dynamic section");
    if (entry.d_tag == DT_NULL) break;
    switch (entry.d_tag) {
      case DT_SYMTAB: dynamic.symbols = offset_of(entry.d_un.d_ptr); break;
      case DT_STRTAB: dynamic.names = offset_of(entry.d_un.d_ptr); break;
      case DT_STRSZ: dynamic.names_size = entry.d_un.d_val; break;
      case DT_HASH: dynamic.hash = offset_of(entry.d_un.d_ptr); break;
      case DT_GNU_HASH: dynamic.gnu_hash = offset_of(entry.d_un.d_ptr); break;
      case DT_TEXTREL: dynamic.text_relocations = true; break;
      case DT_FLAGS:
        dynamic.text_relocations |= (entry.d_un.d_val & DF_TEXTREL) != 0;
        dynamic.bind_now |= (entry.d_un.d_val & DF_BIND_NOW) != 0;
        break;
      case DT_FLAGS_1: dynamic.bind_now |= (entry.d_un.d_val & DF_1_NOW) != 0; break;
      case DT_BIND_NOW: dynamic.bind_now = true; break;
      case DT_RPATH:
      case DT_RUNPATH: dynamic.run_paths.push_back(entry.d_un.d_val); break;
      case DT_NEEDED: dynamic.needed.push_back(entry.d_un.d_val); break;
      default: break;
    }
  }
  return dynamic;
}

// .dynsym has no length of its own: the classic hash table states it, the GNU one ends with its last chain.
uint64_t count_symbols(const Reader& reader, const Dynamic& dynamic) {
  constexpr const char* kWhat = "the symbol hash table";
  if (dynamic.hash) return reader.at<uint32_t>(dynamic.hash + 4, kWhat);
  if (!dynamic.gnu_hash) return 0;
  const auto buckets = reader.at<uint32_t>(dynamic.gnu_hash, kWhat);
  const auto first = reader.at<uint32_t>(dynamic.gnu_hash + 4, kWhat);
  const auto bloom_words = reader.at<uint32_t>(dynamic.gnu_hash + 8, kWhat);
  const uint64_t bucket_table = dynamic.gnu_hash + 16 + uint64_t{bloom_words} * 8;
  uint64_t last = 0;
  for (uint64_t i = 0; i < buckets; ++i)
    last = std::max<uint64_t>(last, reader.at<uint32_t>(bucket_table + 4 * i, kWhat));
  if (last < first) return first;
  const uint64_t chains = bucket_table + uint64_t{buckets} * 4;
  while (!(reader.at<uint32_t>(chains + (last - first) * 4, kWhat) & 1)) ++last;
  return last + 1;
}

// The same as the section table has it, if there is one: a hash table need not count a file that exports nothing.
uint64_t listed_symbols(const Reader& reader) {
  const auto header = reader.at<Elf64_Ehdr>(0, "the ELF header");
  if (header.e_shoff == 0 || header.e_shentsize != sizeof(Elf64_Shdr)) return 0;
  for (uint64_t i = 0; i < header.e_shnum; ++i) {
    const auto section = reader.at<Elf64_Shdr>(header.e_shoff + i * sizeof(Elf64_Shdr), "the section table");
    if (section.sh_type == SHT_DYNSYM) return section.sh_size / sizeof(Elf64_Sym);
  }
  return 0;
}

bool has_build_id(const Reader& reader, const std::vector<Elf64_Phdr>& segments) {
  for (const Elf64_Phdr& segment : segments) {
    if (segment.p_type != PT_NOTE) continue;
    for (uint64_t at = segment.p_offset; at + sizeof(Elf64_Nhdr) <= segment.p_offset + segment.p_filesz;) {
      const auto note = reader.at<Elf64_Nhdr>(at, "a note");
      if (note.n_type == NT_GNU_BUILD_ID) return true;
      at += sizeof note + (uint64_t{note.n_namesz} + 3) / 4 * 4 + (uint64_t{note.n_descsz} + 3) / 4 * 4;
    }
  }
  return false;
}

}  // namespace

Info read(std::span<const std::byte> file, const std::string& path) {
  const Reader reader(file, path);
  const std::vector<Elf64_Phdr> segments = read_segments(reader);
  check_stack(reader, segments);
  const Dynamic dynamic = read_dynamic(reader, segments);
  if (dynamic.text_relocations) reader.refuse("has text relocations (DT_TEXTREL). Compile all its objects with -fPIC");

  Info info;
  const uint64_t names_end = dynamic.names + dynamic.names_size;
  const uint64_t count = dynamic.symbols ? std::max(count_symbols(reader, dynamic), listed_symbols(reader)) : 0;
  for (uint64_t i = 1; i < count; ++i) {
    const auto symbol = reader.at<Elf64_Sym>(dynamic.symbols + i * sizeof(Elf64_Sym), "the symbol table");
    const auto binding = ELF64_ST_BIND(symbol.st_info);
    if (binding != STB_GLOBAL && binding != STB_WEAK) continue;
    std::vector<std::string>& names = symbol.st_shndx == SHN_UNDEF ? info.imports : info.exports;
    names.push_back(reader.text(dynamic.names + symbol.st_name, names_end));
  }
  for (const uint64_t name : dynamic.needed) info.needed.push_back(reader.text(dynamic.names + name, names_end));
  for (const uint64_t list : dynamic.run_paths) {
    const std::string paths = reader.text(dynamic.names + list, names_end);
    if (paths.empty()) continue;  // as the loader has it
    for (size_t begin = 0, end = 0; end != paths.npos; begin = end + 1) {
      end = paths.find(':', begin);
      info.run_paths.push_back(paths.substr(begin, end - begin));
    }
  }
  info.bind_now = dynamic.bind_now;
  info.relro = std::ranges::any_of(segments, [](const Elf64_Phdr& segment) { return segment.p_type == PT_GNU_RELRO; });
  info.has_build_id = has_build_id(reader, segments);
  return info;
}

}  // namespace hexad::elf
