// Where rows are kept that are made once, by unpacking or parsing a whole file: HEXAD_CACHE, else XDG_CACHE_HOME/hexad,
// else ~/.cache/hexad, there tables/.
#pragma once
#include <filesystem>
#include <string>

#include "lib/table/container.hpp"

namespace hexad::table {

// Of one file, by its path, size and time of change, and what it is read as.
struct Place {
  std::filesystem::path file;  // empty: there is none
  std::string why_none;        // in words
};

// Where its rows are kept, or will be; nothing is made. A folder that others can write into is none. `suffix`:
// ".arrow".
Place place_for(const std::filesystem::path& file, const Container& container, const std::string& suffix);

// Makes the folder, this user's alone, and removes from it what is of no use: rows of this file as it was before, and
// what a process has left that ended while it wrote. Throws Error(data) with the reason.
void prepare(const Place& place);

}  // namespace hexad::table
