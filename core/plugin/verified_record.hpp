// Which plugins have passed the conformance kit, by the digest of their file.
#pragma once
#include <string>

namespace hexad::plugin {

// Under $XDG_CACHE_HOME (or ~/.cache)/hexad/verified, which only its owner may write; one empty file a digest and ABI minor.
void record_verified(const std::string& sha256);
bool is_verified(const std::string& sha256);

}  // namespace hexad::plugin
