// Command lines and environments of servers: what is the same for every engine. `prefix` begins the names of its keys
// ("vllm" of vllm_cfg and vllm_kwargs). Those that refuse throw sdk::Error.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <set>
#include <span>
#include <string>
#include <vector>

namespace hexad::bridge {

// A value as a word of a command line: a text as it is, anything else as JSON.
std::string word_of(const nlohmann::ordered_json& value);

// --foo-bar and the words of a value that is no boolean: one of a list each, a map as JSON.
void add_valued_option(std::vector<std::string>& to, const std::string& name, const nlohmann::ordered_json& value);
// --foo-bar for foo_bar, with `before` between the dashes and the name.
std::string option_of(std::string name, const std::string& before = "");

// What a server must not be given in `kwargs`: load_format dummy, and `reserved`, which the bridge itself decides.
void refuse_kwargs(const nlohmann::ordered_json& kwargs, const std::string& prefix,
                   const std::set<std::string>& reserved);

// A server on CUDA is given one device, unless `env_vars` names more: of `sizes`, in `cfg` or in `kwargs`, none may be
// above 1. `server`: "a vLLM server".
void refuse_several_devices(const nlohmann::ordered_json& cfg, const nlohmann::ordered_json& kwargs,
                            const nlohmann::ordered_json& env_vars, const std::string& prefix,
                            const std::string& server, std::span<const char* const> sizes);

// `environment` with `env_vars`, which win.
std::map<std::string, std::string> with_variables(std::map<std::string, std::string> environment,
                                                  const nlohmann::ordered_json& env_vars);

}  // namespace hexad::bridge
