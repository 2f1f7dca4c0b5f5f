// Which servers share this host.
#pragma once
#include <string>

namespace hexad::bridge {

// Whether a server at this URL has an address of this host. A name that is not known is none.
bool is_on_this_host(const std::string& url);

// Throws sdk::Error for a server elsewhere, of which no memory of this host can be mapped.
void check_own_host(const std::string& url);

}  // namespace hexad::bridge
