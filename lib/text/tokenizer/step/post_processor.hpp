// The `post_processor` of a tokenizer.json: special tokens around one text or two.
#pragma once
#include <cstdint>
#include <vector>

#include "lib/text/tokenizer/step/component.hpp"

namespace hexad::text {

class PostProcessor {
 public:
  // Adds nothing; two texts are joined.
  PostProcessor();
  explicit PostProcessor(const Component& component);

  std::vector<int32_t> single(std::vector<int32_t> text, bool add_special_tokens) const;
  std::vector<int32_t> pair(const std::vector<int32_t>& first, const std::vector<int32_t>& second,
                            bool add_special_tokens) const;

 private:
  struct Part {
    int sequence;              // 0: first text, 1: second text, -1: special tokens
    std::vector<int32_t> ids;  // the special tokens
  };
  using Template = std::vector<Part>;

  bool read(const Component& component);  // false when it adds nothing
  void read_template(const Component& component);
  void read_classifier(const Component& component, bool roberta);
  static Template parts(const Component& component, const char* key);
  std::vector<int32_t> fill(const Template& parts, const std::vector<int32_t>* texts[2], bool special) const;

  Template single_, pair_;
};

}  // namespace hexad::text
