// RFC 4648's standard alphabet, padded: how a channel's bytes stand in JSON.
#pragma once
#include <string>
#include <string_view>

namespace hexad::bridge {

std::string base64(std::string_view bytes);

}  // namespace hexad::bridge
