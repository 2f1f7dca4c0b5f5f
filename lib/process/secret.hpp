// Which environment variables hold secrets, by what they are called and by what is in them.
#pragma once
#include <string>
#include <string_view>
#include <vector>

namespace hexad::process {

// HF_TOKEN, WANDB_API_KEY, AWS_*, PGPASSWORD, SSH_AUTH_SOCK ..., in upper and lower case; and a value that is an
// address with a password in it (postgres://me:secret@host). What it names needlessly can be passed on by name.
bool is_secret(std::string_view name, std::string_view value);

// The names of those in our environment that are secrets and not in `passed`, in alphabetical order.
std::vector<std::string> secrets_of_ours(const std::vector<std::string>& passed);

}  // namespace hexad::process
