// sglang_cfg and sglang_kwargs as the command line and the environment of a server.
#pragma once
#include <dlpack.h>

#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

namespace hexad::sglang {

// All but the model, address and port. `cfg` has flags of SGLang's under their names (settings.cpp), as has `kwargs`,
// which come last and win; and sglang_server_config: {enable_foo: true} is --enable-foo, false and null nothing, a map
// its JSON. Throws sdk::Error for what a server must not be given.
std::vector<std::string> server_arguments(const nlohmann::ordered_json& cfg, const nlohmann::ordered_json& kwargs,
                                          bool cuda);

// A server on CUDA is given one device, unless `env_vars` names more. Throws sdk::Error for a layout over several.
void refuse_several_devices(const nlohmann::ordered_json& cfg, const nlohmann::ordered_json& kwargs,
                            const nlohmann::ordered_json& env_vars);

// A server of the rank's own has its GPU, unless `env_vars` names others. Throws sdk::Error for NCCL between the two.
void refuse_nccl_on_one_gpu(const std::string& transport, const nlohmann::ordered_json& env_vars);

// What is set beside the environment of this process; `env_vars` wins.
std::map<std::string, std::string> server_environment(const nlohmann::ordered_json& env_vars, DLDevice device);

}  // namespace hexad::sglang
