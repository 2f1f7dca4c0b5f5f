// hexad-manifest KIND NAME keys.yaml OUT.json: checks a plugin's keys, facts and rules (sdk/CONFIG.md), and writes them
// as its manifest holds them. hexad_add_plugin(CONFIG keys.yaml) runs it.
#include <iostream>

#include "lib/base/error.hpp"
#include "lib/base/file.hpp"
#include "lib/base/json.hpp"
#include "core/config/declaration/declaration.hpp"

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

}  // namespace

int main(int argc, char** argv) {
  if (argc != 5) {
    std::cerr << "usage: hexad-manifest KIND NAME keys.yaml OUT.json\n";
    return 2;
  }
  try {
    return compile(argv[1], argv[2], argv[3], argv[4]);
  } catch (const std::exception& error) {
    std::cerr << error.what() << '\n';
    return 2;
  }
}
