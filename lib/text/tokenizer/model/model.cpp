#include "lib/text/tokenizer/model/model.hpp"

#include "lib/text/tokenizer/model/bpe.hpp"
#include "lib/text/tokenizer/model/unigram.hpp"

namespace hexad::text {

std::unique_ptr<Model> make_model(const Component& component) {
  // Files from before the key existed: merges make a BPE, scores a Unigram.
  const auto vocab = component.value().find("vocab");
  const bool scored = vocab != component.value().end() && vocab->is_array();
  const std::string guess = component.has("merges") ? "BPE" : scored ? "Unigram" : "";
  const std::string type = component.text_or("type", guess);
  if (type == "BPE") return std::make_unique<Bpe>(component);
  if (type == "Unigram") return std::make_unique<Unigram>(component);
  component.refuse_type("BPE, Unigram");
}

}  // namespace hexad::text
