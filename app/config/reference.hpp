// docs/config.md, what its tables share with the pages of plugins (config/reference_plugin.hpp), and the table of
// `hexad plugin info`.
#pragma once
#include <string>
#include <vector>

#include "core/config/declaration/catalog.hpp"
#include "core/config/schema/schema.hpp"

namespace hexad::config {

// Markdown with a table for each block, from the schema alone: the same on every machine. Its index names `plugins`.
std::string reference_markdown(const std::vector<const Installed*>& plugins);

enum class Form { markdown, plain };

// "int or null", "list of str".
std::string type_text(const Key& key);
// "`5e-06`"; "`optimizer.kwargs.lr`, else `5e-06`"; "`num_hidden_layers` of the model"; "auto"; "" if it has none.
std::string default_text(const Key& key, Form form);
// What becomes of the key, with a blank before it: " *Accepted:* there are no Ray actors."; "" if it has its effect.
std::string status_text(const Key& key, Form form);
// "seed of sampling; at least 0.": with range, other texts and names, how an absent value is chosen, and status.
std::string meaning_text(const Key& key, Form form);

inline constexpr const char* kTableHead = "\n| key | type | default | meaning |\n|---|---|---|---|\n";
// The key's line of a table, under its last name.
std::string table_row(const Key& key);

// A line for each key: path, type, default, meaning, in columns that are as wide as they must be. No line is longer
// than 120 characters: what a column has no room for goes on below, and what is after it too.
std::string key_table(const std::vector<Key>& keys);

}  // namespace hexad::config
