#include "core/config/schema/blocks.hpp"

namespace hexad::config {

void add_plugins(Schema& s) {
  s.section("plugins", "where plugins are looked for, and which may load");
  s.add("plugins.enabled", kBool, "true", "load plugins; false: none at all");
  s.add("plugins.paths", kList, "[]", "folders searched first, in order").elements(kText);
  s.add("plugins.pin", kMap, "{}", "plugin name: sha256:<hex>; if not empty, nothing else loads").open();
  s.add("plugins.allow_insecure_dirs", kBool, "false", "load from folders that others may write to");
  s.add("plugins.own_process", kList, "[]", "plugins, but for the backend, that run in a process of their own")
      .elements(kText);
  s.add("plugins.record_dir", kText | kNull, "null",
        "write the calls of the loss here, one file a call, for `hexad plugin replay`");
  s.add("plugins.record_steps", kInt, "1", "how many of a run's first steps record_dir keeps").at_least(1);
  s.add("plugins.require_verified", kBool, "false", "load only what `hexad plugin verify` has passed on this machine");
}

}  // namespace hexad::config
