// The format reward: 1 when a response has the wanted form, else 0.
#pragma once
#include <memory>

#include "core/environment/environment.hpp"

namespace hexad::environment {

// Of `arguments`: either `tags` (names: <a>..</a> <b>..</b> in this order, each once, white space alone around them) or
// `regex` (PCRE2; has to match the whole response, `.` stands for line ends too). `prefix`: put before the response,
// for chat templates that open the first tag themselves. A regex that reaches PCRE2's limit of steps makes a sample
// invalid.
std::unique_ptr<Environment> make_format(const nlohmann::ordered_json& arguments);

}  // namespace hexad::environment
