// The key/value section of a GGUF file.
#pragma once
#include <map>
#include <string>

#include "lib/tensorfile/gguf.hpp"
#include "lib/tensorfile/gguf_cursor.hpp"

namespace hexad::tensorfile {

// Reads `count` pairs; fails on a key that appears twice, an unknown value type, an array of arrays, text that is not
// UTF-8.
std::map<std::string, GgufValue> read_gguf_metadata(GgufCursor& cursor, uint64_t count);

}  // namespace hexad::tensorfile
