// What a plugin receives of its keys that are absent: their declared defaults, in the section that chooses it.
#pragma once
#include <optional>
#include <string_view>

#include <nlohmann/json.hpp>

#include "core/config/declaration/declaration.hpp"

namespace hexad::config {

// The value at a dotted path (perhaps a JSON null), or a null pointer; a number selects a list element. `node` may be
// null.
const nlohmann::ordered_json* json_at(const nlohmann::ordered_json* node, std::string_view path);

// The same as a plugin looks it up: below the section's plugin_config first, where null counts as absent.
const nlohmann::ordered_json* section_value(const nlohmann::ordered_json& section, std::string_view path);

// Sets the value at a dotted path, making maps on the way, of nulls too. False if something else stands there.
bool set_json_at(nlohmann::ordered_json& section, std::string_view path, nlohmann::ordered_json value);

// What `create` receives at a key that is absent: a literal, or what another key of the section has (`${x}`, `${.x}`,
// first_of). Nothing: no default, one that is chosen automatically, or one from beyond the section (`${run.x}`, model).
std::optional<nlohmann::ordered_json> declared_default(const Key& key, const nlohmann::ordered_json& section);

// The section with the default of every declared key that is absent and has its effect. As the configuration of a run
// is filled: a section that is null stays so, one that is optional is completed only where it is written, and a key
// that chooses the plugin is left alone. A filled section is what it was.
nlohmann::ordered_json filled_section(const Declaration& declaration, nlohmann::ordered_json section);

}  // namespace hexad::config
