#include "lib/yaml/location.hpp"

#include <fmt/format.h>

namespace hexad::yaml {

std::string Location::text() const { return line > 0 ? fmt::format("{}:{}:{}", file, line, column) : file; }

}  // namespace hexad::yaml
