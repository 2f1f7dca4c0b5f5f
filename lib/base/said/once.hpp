// What is said once, however often it happens.
#pragma once
#include <string>

namespace hexad {

// Whether nobody in this process has asked for `text` before. Any thread.
bool first_time(const std::string& text);

}  // namespace hexad
