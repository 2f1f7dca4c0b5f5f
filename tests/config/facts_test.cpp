// What manifests say of their plugins (sdk/CONFIG.md, "Facts"), and what the engine checks by it.
#include "tests/config/support.hpp"
#include "tests/plugin/plugin_folder.hpp"

using namespace config_test;
using plugin_test::Json;

namespace {

// A backend `theirs` with these facts, of which there is only a manifest, and what is said of a configuration that
// chooses it.
class Theirs {
 public:
  explicit Theirs(const Json& facts) {
    folder_.write_manifest(folder_.path() / "libtheirs.so", "theirs",
                           {{"kind", "backend"}, {"config", {{"facts", facts}, {"keys", Json::object()}}}});
  }
  Overrides choosing(const Overrides& more = {}) const {
    Overrides all = {"++plugins.paths=[" + folder_.path().string() + "]", "++policy.backend=theirs"};
    all.insert(all.end(), more.begin(), more.end());
    return all;
  }
  std::string error(const Overrides& more = {}) const { return resolve_error(choosing(more)); }
  std::string notices(const Overrides& more = {}) const {
    std::string texts;
    for (const auto& notice : resolve_text(choosing(more)).notices) texts += notice.text() + "\n";
    return texts;
  }

 private:
  plugin_test::PluginFolder folder_;
};

const std::string kUnchecked =
    "policy.backend: what has to divide over data-parallel ranks is not checked: the manifest of 'theirs' has no fact "
    "copy_ranks";

}  // namespace

TEST_CASE("a loss whose manifest lists an input that no run has is refused before anything starts") {
  const plugin_test::PluginFolder folder;
  const auto error = [&](const Json& inputs) {
    folder.write_manifest(
        folder.path() / "libdrip.so", "drip",
        {{"inputs", {{"drip", inputs}, {"other", {"whatever"}}}}, {"config", {{"keys", Json::object()}}}});
    return resolve_error({"++plugins.paths=[" + folder.path().string() + "]", "++loss_fn.plugin=drip"});
  };
  CHECK(error({"logprobs", "prev_logprobs", "x_teacher"}) == "");
  check_says(error({"logprobs", "prev_logprob"}),
             "loss_fn.plugin: 'drip' needs 'prev_logprob', which no run has, did you mean 'prev_logprobs'? "
             "(sdk/NAMES.md lists them; a name of your own begins with x_)");
  check_says(error({"temperature"}), "loss_fn.plugin: 'drip' needs 'temperature', which no run has (sdk/NAMES.md");
}

TEST_CASE("a loss that differentiates what the backend does not make is refused before anything starts") {
  const Theirs theirs(
      Json{{"outputs", "['values', 'sequence_scores'] if precision == 'float32' else ['logprobs', 'values']"}});
  CHECK(theirs.error() == "");
  CHECK(theirs.error({"++loss_fn.plugin=value"})
            .find("token_values, which the backend 'theirs' does not make (it makes "
                  "logprobs, values): choose another loss_fn.plugin or "
                  "policy.backend") != std::string::npos);
  check_says(theirs.error({"++policy.precision=float32"}),
             "loss_fn.plugin: the loss 'clipped_pg' differentiates logprobs, which the backend 'theirs' does not make");
  CHECK(Theirs(Json::object()).error({"++loss_fn.plugin=value"}) == "");  // what it makes is not known
}

TEST_CASE("a sequence is padded to the backend's multiple before it is compared with the room of a row") {
  const Overrides packing = {"++policy.max_total_sequence_length=100", "++policy.sequence_packing.enabled=true",
                             "++policy.sequence_packing.train_mb_tokens=108"};
  const std::string said = "(padded, 112 tokens) would not fit";
  CHECK(Theirs(Json{{"copy_ranks", 1}, {"sequence_multiple", 16}}).notices(packing).find(said) != std::string::npos);
  CHECK(Theirs(Json{{"copy_ranks", 1}, {"sequence_multiple", 4}}).notices(packing).find("would not fit") ==
        std::string::npos);
}

TEST_CASE("rules that need a fact which the manifest does not have are left out, with a notice") {
  const Overrides ranks = {"++cluster.gpus_per_node=3"};
  const Theirs silent(Json::object()), plain(Json{{"copy_ranks", 1}});
  CHECK(silent.notices(ranks).find(kUnchecked) != std::string::npos);
  CHECK(silent.notices().find(kUnchecked) == std::string::npos);  // one rank
  check_says(plain.error(ranks), "wanted a multiple of the 3 data-parallel ranks");
}

TEST_CASE("a fact that comes to another kind of value is refused by its name") {
  check_says(Theirs(Json{{"outputs", "['logprobs', 2]"}}).error(),
             "facts.outputs comes to [logprobs, 2], wanted a list of texts");
  check_says(Theirs(Json{{"sequence_multiple", "'two'"}}).error(),
             "facts.sequence_multiple comes to two, wanted an integer");
  check_says(Theirs(Json{{"outputs", "'logprobs'"}}).error(),
             "facts.outputs comes to logprobs, wanted a list of texts");
}
