// What a server says in the body of an error.
#pragma once
#include <string>
#include <string_view>

namespace hexad::http::client {

// The message in JSON of a usual form ({"error": {"message"}}, {"error"}, {"message"}, {"detail"}); the body itself, if
// it is of none. In one line, cut.
std::string error_text(std::string_view body);

// A stranger's text for a message: in one line, cut.
std::string shown(std::string_view text);

}  // namespace hexad::http::client
