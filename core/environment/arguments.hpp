// The keys of env.<name>, read one by one.
#pragma once
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

namespace hexad::environment {

// Every reader gives `otherwise` where the key is absent or null, and throws Error(config) for a value of another type
// or out of bounds. Borrows `values`.
class Arguments {
 public:
  using Json = nlohmann::ordered_json;

  // `name`: of the environment, for messages. Throws Error(config) for a key that is not in `known`.
  Arguments(const std::string& name, const Json& values, std::vector<std::string> known);

  bool flag(const std::string& key, bool otherwise) const;
  std::string choice(const std::string& key, const std::string& otherwise,
                     const std::vector<std::string>& allowed) const;
  std::string text(const std::string& key, const std::string& otherwise) const;
  std::vector<std::string> texts(const std::string& key) const;  // none: empty
  int64_t integer(const std::string& key, int64_t otherwise, int64_t at_least) const;
  double number(const std::string& key, double otherwise) const;
  double seconds(const std::string& key, double otherwise) const;  // above 0
  bool has(const std::string& key) const { return find(key) != nullptr; }

  std::string path(const std::string& key) const { return path_ + "." + key; }

 private:
  const Json* find(const std::string& key) const;
  [[noreturn]] void refuse(const std::string& key, const std::string& wanted) const;

  std::string path_;
  const Json& values_;
};

// What a message about env.`name` says where that stands at `place`: "env.math.a: ..." becomes "PLACE.a: ...". One
// about an unknown environment is about PLACE.`named_by`.
std::string said_of(const std::string& place, const std::string& named_by, const std::string& message,
                    const std::string& name);

}  // namespace hexad::environment
