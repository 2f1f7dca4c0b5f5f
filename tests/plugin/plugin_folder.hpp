// A folder of plugins that a test builds with the C compiler: good ones, and ones that are broken in one way.
#pragma once
#include <doctest/doctest.h>
#include <sys/stat.h>

#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <sstream>
#include <string>

#include <fmt/format.h>
#include <nlohmann/json.hpp>

#include "lib/base/error.hpp"
#include "lib/base/sha256.hpp"

namespace plugin_test {

namespace fs = std::filesystem;
using Json = nlohmann::ordered_json;

// The text of the hexad::Error that `run` throws.
template <typename Run>
std::string error_of(Run&& run) {
  try {
    run();
  } catch (const hexad::Error& error) {
    return error.what();
  }
  return "(no error)";
}

inline bool contains(const std::string& text, const std::string& part) { return text.find(part) != std::string::npos; }

inline std::string read_text(const fs::path& path) {
  std::ostringstream text;
  text << std::ifstream(path, std::ios::binary).rdbuf();
  return text.str();
}

inline std::string digest_of(const fs::path& path) {
  const std::string bytes = read_text(path);
  return hexad::sha256_hex(std::as_bytes(std::span(bytes)));
}

// A loss whose descriptor and vtable are made from macros, so that a flag breaks it: NAME, KIND, VERSION, MIN_MINOR,
// STRUCT_SIZE, COMPUTE, CREATE_BODY, COMPUTE_BODY, EXTRA.
inline constexpr const char* kSource = R"(
#include <hexad/abi.h>
#include <stdlib.h>
#include <string.h>
#ifndef NAME
#define NAME "toy"
#endif
#ifndef KIND
#define KIND HEXAD_KIND_LOSS
#endif
#ifndef MIN_MINOR
#define MIN_MINOR 0
#endif
#ifndef STRUCT_SIZE
#define STRUCT_SIZE HEXAD_STRUCT_SIZE(hexad_plugin_desc, next)
#endif
#ifndef COMPUTE
#define COMPUTE compute
#endif
#ifndef CREATE_BODY
#define CREATE_BODY
#endif
#ifndef COMPUTE_BODY
#define COMPUTE_BODY
#endif
#ifndef QUERY
#define QUERY hexad_plugin_query_v1
#endif
#ifdef EXTRA
EXTRA
#endif
struct hexad_loss { const hexad_host* host; };
static hexad_code create(const hexad_host* host, hexad_call* call, const hexad_config* config, hexad_loss** out) {
  CREATE_BODY
  *out = malloc(sizeof **out);
  (*out)->host = host;
  return 0;
}
static void destroy(hexad_loss* self) { free(self); }
hexad_code compute(hexad_loss* self, hexad_call* call, const hexad_loss_batch* batch, hexad_loss_out* out);
__attribute__((visibility("hidden"))) hexad_code compute(hexad_loss* self, hexad_call* call,
                                                           const hexad_loss_batch* batch, hexad_loss_out* out) {
  COMPUTE_BODY
  return 0;
}
static const hexad_tensor_spec inputs[] = {
    {"logprobs", HEXAD_DTYPE_F32, HEXAD_AXIS_TOKEN, HEXAD_SPEC_DIFFERENTIABLE, 0}};
static const hexad_loss_vtable vtable = {HEXAD_STRUCT_SIZE(hexad_loss_vtable, state_load), 1, 0, 0, HEXAD_CAP_HOST_MEM,
                                         inputs, 0, create, destroy, COMPUTE, 0, 0, 0, 0, 0};
__attribute__((visibility("default"))) const hexad_plugin_desc* QUERY(const hexad_host* host) {
  static const hexad_plugin_desc desc = {STRUCT_SIZE, 0, MIN_MINOR, KIND, NAME, "1.2.0", "MIT", "", 0, 0, &vtable, 0};
  (void)host;
  return &desc;
}
)";

class PluginFolder {
 public:
  PluginFolder() {
    std::string name = (fs::temp_directory_path() / "hexad-plugin-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    path_ = fs::canonical(name);
  }
  ~PluginFolder() {
    std::error_code error;
    fs::remove_all(path_, error);
  }
  PluginFolder(const PluginFolder&) = delete;
  PluginFolder& operator=(const PluginFolder&) = delete;

  const fs::path& path() const { return path_; }

  // Compiles lib<name>.so with extra compiler flags; returns its path.
  fs::path compile(const std::string& name, const std::string& flags = "", const std::string& source = kSource) const {
    return build(name, ".c", "CC", "cc -std=gnu11", flags, source);
  }
  // The same of C++.
  fs::path compile_cpp(const std::string& name, const std::string& flags, const std::string& source) const {
    return build(name, ".cpp", "CXX", "c++ -std=c++20", flags, source);
  }

  // A manifest for a library as it is, with `changes` merged over it.
  fs::path write_manifest(const fs::path& library, const std::string& name,
                          const Json& changes = Json::object()) const {
    Json manifest = {{"format", 1},
                     {"kind", "loss"},
                     {"name", name},
                     {"version", "1.2.0"},
                     {"library", library.filename().string()},
                     {"abi", {{"major", 1}, {"min_host_minor", 0}}},
                     {"arch", "x86_64-linux-gnu"},
                     {"sha256", fs::exists(library) ? digest_of(library) : std::string(64, '0')},
                     {"size", fs::exists(library) ? fs::file_size(library) : 0},
                     {"memory", {"host"}},
                     {"requires", Json::object()}};
    manifest.merge_patch(changes);
    const fs::path path = library.parent_path() / (library.stem().string() + ".hexad.json");
    std::ofstream(path) << manifest.dump(2);
    return path;
  }

  // Compiles a plugin and writes its manifest.
  fs::path add(const std::string& name, const std::string& flags = "", const Json& changes = Json::object()) const {
    const fs::path library = compile(name, fmt::format("'-DNAME=\"{}\"' {}", name, flags));
    write_manifest(library, name, changes);
    return library;
  }

 private:
  fs::path build(const std::string& name, const char* suffix, const char* variable, std::string compiler,
                 const std::string& flags, const std::string& source) const {
    const fs::path file = path_ / (name + suffix), library = path_ / ("lib" + name + ".so");
    std::ofstream(file) << source;
    const char* root = std::getenv("HEXAD_SOURCE_DIR");
    if (const char* given = std::getenv(variable)) compiler.replace(0, compiler.find(' '), given);
    const std::string command =
        fmt::format("{} -shared -fPIC -fvisibility=hidden -w -I{}/sdk/include {} {} -o {} > {}/log 2>&1", compiler,
                    root ? root : ".", flags, file.string(), library.string(), path_.string());
    const int status = std::system(command.c_str());
    REQUIRE_MESSAGE(status == 0, command << "\n" << read_text(path_ / "log"));
    return library;
  }

  fs::path path_;
};

}  // namespace plugin_test
