// hexad-manifest KIND NAME keys.yaml OUT.json: checks a plugin's keys, facts and rules (sdk/CONFIG.md), and writes them
// as its manifest holds them. hexad-manifest --plugins FILE.so: prints "kind name" of every plugin of a library that
// has just been built, a line each; of a loss also the inputs that it cannot do without. hexad_add_plugin() runs both.
#include <dlfcn.h>

#include <algorithm>
#include <cctype>
#include <iostream>

#include <hexad/abi.h>

#include "core/config/declaration/declaration.hpp"
#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"

namespace {

int compile(const std::string& kind, const std::string& name, const std::string& keys, const std::string& out) {
  const std::optional<hexad::plugin::Kind> known = hexad::plugin::kind_from(kind);
  if (!known) {
    std::cerr << "hexad-manifest: kind '" << kind << "' is none of backend, generator, loss, environment\n";
    return 2;
  }
  hexad::write_file(out, hexad::json_text(hexad::config::compile_declaration(keys, *known, name)) + "\n");
  return 0;
}

// The names of tensors that every batch of a loss must have. One that is no word is the conformance kit's to tell.
void print_inputs(const hexad_loss_vtable& loss) {
  for (int64_t i = 0; loss.inputs && i < int64_t{loss.num_inputs}; ++i) {
    const hexad_tensor_spec& input = loss.inputs[i];
    if ((input.flags & HEXAD_SPEC_OPTIONAL) || !input.name || !*input.name) continue;
    const auto is_plain = [](unsigned char letter) { return std::isalnum(letter) || letter == '_'; };
    if (std::string_view name = input.name; std::ranges::all_of(name, is_plain)) std::cout << ' ' << name;
  }
}

// A query is static data (rule H1): it needs no more of a host than its version.
int list_plugins(const std::string& library) {
  void* const opened = ::dlopen(library.c_str(), RTLD_LAZY | RTLD_LOCAL);
  void* const symbol = opened ? ::dlsym(opened, "hexad_plugin_query_v1") : nullptr;
  if (!symbol) {
    const char* const error = ::dlerror();
    std::cerr << (error ? error : library + " has no hexad_plugin_query_v1") << '\n';
    return 2;
  }
  hexad_host host{};
  host.struct_size = HEXAD_STRUCT_SIZE(hexad_host, version);
  host.abi_minor = HEXAD_ABI_MINOR;
  constexpr int kMost = 64;  // which the loader follows
  const hexad_plugin_desc* desc = reinterpret_cast<decltype(&hexad_plugin_query_v1)>(symbol)(&host);
  std::vector<hexad::plugin::PluginName> known;
  for (int i = 0; desc && i < kMost; ++i, desc = desc->next) {
    const hexad::plugin::PluginName plugin{static_cast<hexad::plugin::Kind>(desc->kind), desc->name ? desc->name : ""};
    const bool named = std::ranges::find(hexad::plugin::kKinds, plugin.kind) != std::end(hexad::plugin::kKinds) &&
                       hexad::plugin::valid_plugin_name(plugin.name);
    if (!named || std::ranges::find(known, plugin) != known.end()) continue;  // the conformance kit tells
    known.push_back(plugin);
    std::cout << hexad::plugin::kind_name(plugin.kind) << ' ' << plugin.name;
    if (plugin.kind == hexad::plugin::Kind::loss && desc->loss) print_inputs(*desc->loss);
    std::cout << '\n';
  }
  return 0;
}

}  // namespace

int main(int argc, char** argv) {
  const bool lists = argc == 3 && std::string(argv[1]) == "--plugins";
  if (argc != 5 && !lists) {
    std::cerr << "usage: hexad-manifest KIND NAME keys.yaml OUT.json\n       hexad-manifest --plugins FILE.so\n";
    return 2;
  }
  try {
    if (lists) return list_plugins(argv[2]);
    return compile(argv[1], argv[2], argv[3], argv[4]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
