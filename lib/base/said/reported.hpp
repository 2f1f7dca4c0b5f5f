// Numbers by name that others report beside one's own.
#pragma once
#include <map>
#include <string>

namespace hexad {

// Says, once a name, that what a plugin reports under it is left out, because the name is taken. Any thread.
void say_name_is_taken(const std::string& name);

// Adds what plugins report. A name that is taken keeps its value, and that is said.
void add_reported(std::map<std::string, double>& values, const std::map<std::string, double>& reported);

}  // namespace hexad
