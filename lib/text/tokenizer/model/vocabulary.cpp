#include "lib/text/tokenizer/model/vocabulary.hpp"

namespace hexad::text {

Vocabulary Vocabulary::from_object(const Component& model, const char* key) {
  const Component vocab = model.child(key);
  Vocabulary result;
  result.ids_.reserve(vocab.value().size());
  for (const auto& [token, id] : vocab.value().items()) {
    const bool whole = id.is_number_integer() && id.get<int64_t>() >= 0;
    if (!whole || id.get<uint64_t>() > static_cast<uint64_t>(kHighestId)) {
      vocab.refuse("the id of token \"{}\" wants a whole number from 0 to {}", token, kHighestId);
    }
    result.add(token, id.get<int32_t>());
  }
  return result;
}

void Vocabulary::add(std::string token, int32_t id) {
  const auto [entry, fresh] = ids_.insert_or_assign(std::move(token), id);
  if (static_cast<size_t>(id) >= tokens_.size()) tokens_.resize(static_cast<size_t>(id) + 1, nullptr);
  tokens_[static_cast<size_t>(id)] = &entry->first;
}

std::optional<int32_t> Vocabulary::find(std::string_view token) const {
  const auto found = ids_.find(token);
  if (found == ids_.end()) return std::nullopt;
  return found->second;
}

const std::string* Vocabulary::token(int32_t id) const {
  return id >= 0 && id < size() ? tokens_[static_cast<size_t>(id)] : nullptr;
}

}  // namespace hexad::text
