#include <algorithm>
#include <cstring>
#include <memory>
#include <random>

#include "sdk/verify/case/generator_case.hpp"
#include "sdk/verify/guarded.hpp"

namespace hexad::verify {
namespace {

constexpr int64_t kDropped = 7, kCommitted = 9;

// Random values for every slice of a layout, one bucket a slice.
class RandomWeights {
 public:
  explicit RandomWeights(const hexad_weight_list& layout) {
    std::mt19937_64 random(31);
    std::normal_distribution<float> normal(0, 0.5f);
    for (int64_t i = 0; i < layout.count; ++i) {
      hexad_weight_slice slice = layout.slices[i];
      const bool halves = slice.dtype.bits == 16;  // the upper half of an f32 is a bf16; as an f16 it is a number too
      if (!halves && !(slice.dtype.code == kDLFloat && slice.dtype.bits == 32)) continue;
      auto& tensor = tensors_.emplace_back(
          std::make_unique<GuardedTensor>(slice.dtype, std::vector<int64_t>(slice.shape, slice.shape + slice.ndim)));
      const size_t width = halves ? 2 : 4, count = tensor->memory().size() / width;
      for (size_t k = 0; k < count; ++k) {
        const float value = normal(random);
        std::memcpy(tensor->data<char>() + k * width, reinterpret_cast<const char*>(&value) + 4 - width, width);
      }
      slice.tensor = tensor->tensor();
      slices_.push_back(slice);
    }
  }
  const std::vector<hexad_weight_slice>& slices() const { return slices_; }

 private:
  std::vector<std::unique_ptr<GuardedTensor>> tensors_;
  std::vector<hexad_weight_slice> slices_;
};

class Refit {
 public:
  Refit(const Subject& subject, void* self, Findings& findings)
      : subject_(subject), self_(static_cast<hexad_generator*>(self)), findings_(findings) {}

  // The weights that it wants to receive, if it says so.
  std::vector<hexad_weight_slice> layout() {
    hexad_weight_list list{};
    list.struct_size = HEXAD_STRUCT_SIZE(hexad_weight_list, count);
    if (!HEXAD_HAS(&vtable(), weight_layout) || !vtable().weight_layout) return {};
    if (!run("weight_layout", [&](hexad_call* call) { return vtable().weight_layout(self_, call, &list); })) return {};
    weights_ = std::make_unique<RandomWeights>(list);
    return weights_->slices();
  }

  // begin, a bucket for each slice, end. The first code that is not OK; `text` takes the error's.
  hexad_code update(int64_t version, const std::vector<hexad_weight_slice>& slices, int32_t commit, std::string& text) {
    const auto step = [&](auto&& function) {
      const auto call = subject_.engine->call();
      const hexad_code code = function(call->handle());
      if (code != HEXAD_OK && text.empty()) text = call->text().empty() ? "(no text)" : call->text();
      return code;
    };
    hexad_code first = step([&](hexad_call* call) { return vtable().update_begin(self_, call, version); });
    if (first != HEXAD_OK) return first;
    for (const hexad_weight_slice& slice : slices) {
      const hexad_weight_list bucket = {HEXAD_STRUCT_SIZE(hexad_weight_list, count), 0, &slice, 1};
      first = step([&](hexad_call* call) { return vtable().update_bucket(self_, call, &bucket); });
      if (first != HEXAD_OK) break;
    }
    const int32_t commits = first == HEXAD_OK ? commit : 0;
    const hexad_code last = step([&](hexad_call* call) { return vtable().update_end(self_, call, commits); });
    return first != HEXAD_OK ? first : last;
  }

  // Drawn and greedy tokens with their log-probs; versions apart.
  std::string bits() {
    answers_ = run_requests(subject_, self_, {make_request(1, 0, 1, kNewTokens), make_request(2, 1, 3, kNewTokens)});
    ok(answers_, "update", findings_);
    return answers_.bits();
  }
  bool names(int64_t version) const {
    return std::any_of(answers_.by_id.begin(), answers_.by_id.end(), [&](const auto& entry) {
      const auto& spans = entry.second.spans;
      return std::any_of(spans.begin(), spans.end(), [&](const auto& span) { return span.version == version; });
    });
  }

 private:
  const hexad_generator_vtable& vtable() const { return *subject_.desc->generator; }
  template <typename Function>
  bool run(const std::string& name, Function&& function) {
    const auto call = subject_.engine->call();
    return findings_.expect(function(call->handle()) == HEXAD_OK, name, "it failed: " + call->text());
  }

  const Subject& subject_;
  hexad_generator* self_;
  Findings& findings_;
  Answers answers_;
  std::unique_ptr<RandomWeights> weights_;
};

void check_dropped(Refit& refit, const std::vector<hexad_weight_slice>& slices, Findings& findings) {
  std::string text;
  const std::string before = refit.bits();
  const hexad_code code = refit.update(kDropped, slices, /*commit=*/0, text);
  findings.expect(code == HEXAD_OK, "update", "an update that is not committed fails: " + text);
  findings.expect(refit.bits() == before, "update", "an update that was not committed changed what is generated");
  findings.expect(!refit.names(kDropped), "update", "an update that was not committed gave its version to a sample");
}

void check_refused(Refit& refit, std::vector<hexad_weight_slice> slices, Findings& findings) {
  std::string text;
  const std::string before = refit.bits();
  slices.back().name = "hexad.verify.no_such_weight";
  const hexad_code code = refit.update(kDropped, slices, /*commit=*/1, text);
  findings.expect(code != HEXAD_OK, "update", "an update with a weight that the model does not have was committed");
  findings.expect(code == HEXAD_OK || text != "(no text)", "error text",
                  "an update with a weight that the model does not have failed without a text");
  findings.expect(refit.bits() == before, "update", "an update that failed changed what is generated");
}

void check_committed(Refit& refit, const std::vector<hexad_weight_slice>& slices, Findings& findings) {
  std::string text;
  const std::string before = refit.bits();
  const hexad_code code = refit.update(kCommitted, slices, /*commit=*/1, text);
  if (!findings.expect(code == HEXAD_OK, "update", "an update of all weights fails: " + text)) return;
  findings.expect(refit.bits() != before, "update", "other weights were committed, and the same is generated");
  findings.expect(refit.names(kCommitted), "version spans",
                  "after an update to version " + std::to_string(kCommitted) + " no sample names it");
}

}  // namespace

void check_refit(const Subject& subject, void* self, Findings& findings) {
  Refit refit(subject, self, findings);
  const std::vector<hexad_weight_slice> slices = refit.layout();
  check_dropped(refit, slices, findings);
  if (slices.empty()) return;  // it takes what the backend sends, which the kit does not know
  check_refused(refit, slices, findings);
  check_committed(refit, slices, findings);
}

}  // namespace hexad::verify
