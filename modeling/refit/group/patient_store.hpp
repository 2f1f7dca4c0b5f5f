// A store of c10d's whose waits can be given up: c10d's own last until their timeout, whatever is known meanwhile.
#pragma once
#include <torch/csrc/distributed/c10d/Store.hpp>

#include <string>
#include <utility>
#include <vector>

#include "modeling/refit/sender.hpp"

namespace hexad::refit {

// Throws sdk::Error from whatever waits for a key, once it is given up.
class PatientStore final : public c10d::Store {
 public:
  using Bytes = std::vector<uint8_t>;
  using Names = std::vector<std::string>;

  PatientStore(c10::intrusive_ptr<c10d::Store> store, GiveUp give_up)
      : store_(std::move(store)), give_up_(std::move(give_up)) {}

  c10::intrusive_ptr<c10d::Store> clone() override {
    return c10::make_intrusive<PatientStore>(store_->clone(), give_up_);
  }
  void set(const std::string& key, const Bytes& value) override { store_->set(key, value); }
  Bytes compareSet(const std::string& key, const Bytes& expected, const Bytes& desired) override {
    return store_->compareSet(key, expected, desired);
  }
  Bytes get(const std::string& key) override {
    await({key});
    return store_->get(key);
  }
  int64_t add(const std::string& key, int64_t value) override { return store_->add(key, value); }
  bool deleteKey(const std::string& key) override { return store_->deleteKey(key); }
  bool check(const Names& keys) override { return store_->check(keys); }
  int64_t getNumKeys() override { return store_->getNumKeys(); }
  void wait(const Names& keys) override { await(keys); }
  void wait(const Names& keys, const std::chrono::milliseconds&) override { await(keys); }
  void append(const std::string& key, const Bytes& value) override { store_->append(key, value); }
  std::vector<Bytes> multiGet(const Names& keys) override {
    await(keys);
    return store_->multiGet(keys);
  }
  void multiSet(const Names& keys, const std::vector<Bytes>& values) override { store_->multiSet(keys, values); }
  bool hasExtendedApi() const override { return store_->hasExtendedApi(); }

 private:
  void await(const Names& keys);

  c10::intrusive_ptr<c10d::Store> store_;
  GiveUp give_up_;
};

}  // namespace hexad::refit
