// Tokens of a model by string and by id.
#pragma once
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "lib/text/tokenizer/step/component.hpp"

namespace hexad::text {

class Vocabulary {
 public:
  static constexpr int32_t kHighestId = (1 << 24) - 1;  // ids index tables

  // From {"token": id, ...} (BPE). Throws for ids that are no whole numbers from 0 to kHighestId.
  static Vocabulary from_object(const Component& model, const char* key);

  // Adds a token; an id or a string that is there already is taken over by the new one.
  void add(std::string token, int32_t id);

  std::optional<int32_t> find(std::string_view token) const;
  // The token of an id, or null.
  const std::string* token(int32_t id) const;
  size_t count() const { return ids_.size(); }
  int32_t size() const { return static_cast<int32_t>(tokens_.size()); }  // highest id + 1

 private:
  struct Hash : std::hash<std::string_view> {
    using is_transparent = void;
  };
  std::unordered_map<std::string, int32_t, Hash, std::equal_to<>> ids_;
  std::vector<const std::string*> tokens_;  // keys of ids_, which stay where they are
};

}  // namespace hexad::text
