// The `model` of a tokenizer.json: a piece of text to ids.
#pragma once
#include <cstdint>
#include <memory>
#include <string_view>
#include <vector>

#include "lib/text/tokenizer/model/vocabulary.hpp"

namespace hexad::text {

// Memory that a model uses while it encodes, one for each call that runs at a time. A model makes its own kind.
class ModelScratch {
 public:
  virtual ~ModelScratch() = default;
};

class Model {
 public:
  virtual ~Model() = default;
  virtual std::unique_ptr<ModelScratch> make_scratch() const = 0;

  // Appends the ids of `piece`, valid UTF-8 and not empty. Any thread; `scratch` is from this model's make_scratch.
  virtual void encode(std::string_view piece, ModelScratch& scratch, std::vector<int32_t>& ids) const = 0;

  // Asks for pieces to be given as they are where the pre-tokenizer writes bytes as characters. True when the model
  // agrees; its ids are then the same. Called once, before the first encode.
  virtual bool take_bytes() { return false; }

  const Vocabulary& vocabulary() const { return vocabulary_; }

 protected:
  explicit Model(Vocabulary vocabulary) : vocabulary_(std::move(vocabulary)) {}
  Vocabulary vocabulary_;
};

// Throws Error(data) for a model type other than BPE and Unigram and for one that is malformed.
std::unique_ptr<Model> make_model(const Component& component);

}  // namespace hexad::text
