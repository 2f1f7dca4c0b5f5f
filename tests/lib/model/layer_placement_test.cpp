#include "lib/model/layer_placement.hpp"

#include <doctest/doctest.h>

#include <random>

#include "lib/model/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad::model;
using golden::Json;
using hexad::model::Error;

namespace {

std::optional<int64_t> maybe_number(const Json& config, const char* key) {
  if (!config.contains(key) || config.at(key).is_null()) return {};
  return config.at(key).get<int64_t>();
}

PlacementOptions options_of(const Json& config) {
  PlacementOptions options;
  options.layers = config.at("num_layers");
  options.pipeline = config.at("pipeline_model_parallel_size");
  options.virtual_pipeline = maybe_number(config, "virtual_pipeline_model_parallel_size");
  options.first_stage = maybe_number(config, "num_layers_in_first_pipeline_stage");
  options.last_stage = maybe_number(config, "num_layers_in_last_pipeline_stage");
  options.count_embedding = config.value("account_for_embedding_in_pipeline_split", false);
  options.count_loss = config.value("account_for_loss_in_pipeline_split", false);
  options.mtp_layers = maybe_number(config, "mtp_num_layers").value_or(0);
  if (config.contains("pipeline_model_parallel_layout") && !config.at("pipeline_model_parallel_layout").is_null()) {
    const Json& layout = config.at("pipeline_model_parallel_layout");
    options.layout = layout.is_string() ? parse_layer_layout(layout.get<std::string>())
                                        : parse_layer_layout(layout.get<std::vector<std::vector<std::string>>>());
  }
  return options;
}

void check_layout(const PlacementOptions& options, const LayerPlacement& placement, const Json& want) {
  CHECK(placement.virtual_pipeline() == want.at("virtual_pipeline_model_parallel_size"));
  CHECK(placement.mtp_standalone == want.at("mtp_standalone"));
  for (size_t rank = 0; rank < placement.stages.size(); ++rank) {
    for (size_t chunk = 0; chunk < placement.stages[rank].size(); ++chunk) {
      Json names = Json::array(), layers = Json::array();
      for (const LayerType type : (*options.layout)[chunk * placement.stages.size() + rank]) {
        names.push_back(layer_type_name(type));
      }
      const Stage& stage = placement.stages[rank][chunk];
      for (int64_t layer = stage.layers.begin; layer < stage.layers.end; ++layer) layers.push_back(layer);
      CHECK(names == want.at("layout")[rank][chunk]);
      CHECK(layers == want.at("decoder_layers")[rank][chunk]);
      const Json wanted = want.at("layout")[rank][chunk];
      const auto has = [&](const char* name) { return std::count(wanted.begin(), wanted.end(), Json(name)); };
      CHECK(stage.embedding == (has("embedding") > 0));
      CHECK(stage.loss == (has("loss") > 0));
      CHECK(stage.mtp_layers == has("mtp"));
    }
  }
}

void check_placement(const Json& test_case) {
  const Json& want = test_case.at("expected");
  if (want.contains("error")) {
    CHECK_THROWS_AS(place_layers(options_of(test_case.at("config"))), Error);
    return;
  }
  const PlacementOptions options = options_of(test_case.at("config"));
  const LayerPlacement placement = place_layers(options);
  if (options.layout) {
    check_layout(options, placement, want);
    return;
  }
  Json stages = Json::array();
  for (const auto& rank : placement.stages) {
    Json& row = stages.emplace_back(Json::array());
    for (const Stage& stage : rank) row.push_back({stage.layers.begin, stage.layers.size()});
  }
  CHECK(stages == want.at("stages"));
}

// Stages in the order in which a token passes them hold 0, 1, 2 ... layers - 1, and the ends are where they belong.
void check_every_layer_once(const PlacementOptions& options, const LayerPlacement& placement) {
  int64_t next = 0, embeddings = 0, losses = 0;
  for (int64_t chunk = 0; chunk < placement.virtual_pipeline(); ++chunk) {
    for (size_t rank = 0; rank < placement.stages.size(); ++rank) {
      const Stage& stage = placement.stages[rank][chunk];
      REQUIRE(stage.layers.begin == next);
      REQUIRE(stage.layers.size() >= 0);
      for (; next < stage.layers.end; ++next) {
        CHECK(placement.place_of(next).rank == static_cast<int64_t>(rank));
        CHECK(placement.place_of(next).chunk == chunk);
      }
      embeddings += stage.embedding;
      losses += stage.loss;
    }
  }
  CHECK(next == options.layers);
  CHECK(embeddings == 1);
  CHECK(losses == 1);
  CHECK(placement.stages.front().front().embedding);
  CHECK(placement.stages.back().back().loss);
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("layer_placement") { golden::for_each_case("layer_placement", check_placement); }
}

TEST_CASE("every layer is placed once, in order") {
  std::mt19937 random(6);
  const auto between = [&](int64_t low, int64_t high) {
    return std::uniform_int_distribution<int64_t>(low, high)(random);
  };
  for (int trial = 0; trial < 300; ++trial) {
    PlacementOptions options;
    options.pipeline = between(1, 6);
    const int64_t chunks = options.pipeline == 1 ? 1 : between(1, 3), each = between(1, 4) * chunks;
    if (chunks > 1) options.virtual_pipeline = chunks;
    options.layers = each * options.pipeline;
    if (options.pipeline > 1 && between(0, 1)) {
      options.first_stage = between(1, 3) * chunks;
      options.layers += *options.first_stage - each;
    } else {
      options.count_embedding = options.layers > 2 && between(0, 1);
      options.count_loss = options.layers > 2 && between(0, 1);
      options.layers -= options.count_embedding + options.count_loss;
    }
    check_every_layer_once(options, place_layers(options));
  }
}

TEST_CASE("every layer of a random layout is placed once") {
  std::mt19937 random(7);
  for (int trial = 0; trial < 200; ++trial) {
    PlacementOptions options;
    options.pipeline = 1 + random() % 4;
    const int64_t stages = options.pipeline * (1 + random() % 3);
    std::string text = "E";
    for (int64_t stage = 0; stage < stages; ++stage) {
      const int64_t count = random() % 4;
      options.layers += count;
      text += random() % 2 ? fmt::format("t*{}", count) : std::string(count, 't');
      text += stage + 1 < stages ? "|" : "L";
    }
    if (options.layers == 0) continue;
    options.layout = parse_layer_layout(text);
    INFO(text);
    check_every_layer_once(options, place_layers(options));
  }
}

TEST_CASE("layout strings unroll") {
  CHECK((parse_layer_layout("E(tt|)*2,mL") == parse_layer_layout("Ett|tt|mL")));
  CHECK((parse_layer_layout("E(t*2|)*2L") == parse_layer_layout("Ett|tt|L")));
  CHECK((parse_layer_layout("E|*3L") == parse_layer_layout("E|||L")));
  CHECK((parse_layer_layout("Et*0L") == parse_layer_layout("EL")));
  CHECK((parse_layer_layout("Et*2, (t|)*2 , tL") == parse_layer_layout("Ettt|t|tL")));
  CHECK((parse_layer_layout("") == std::vector<StageLayers>(1)));
}

TEST_CASE("a layout may hold no decoder layer, as Megatron's") {
  const LayerPlacement placement = place_layers({.layers = 0, .pipeline = 2, .layout = parse_layer_layout("E|L")});
  CHECK((placement.stages ==
         std::vector<std::vector<Stage>>{{{.layers = {0, 0}, .embedding = true}}, {{.layers = {0, 0}, .loss = true}}}));
  CHECK_THROWS_WITH_AS(place_layers({.layers = 0, .pipeline = 2, .layout = parse_layer_layout("Et|L")}),
                       "pipeline layout: 1 decoder layers (t), but the model has 0", Error);
  CHECK_THROWS_WITH_AS(place_layers({.layers = -1, .pipeline = 2, .layout = parse_layer_layout("E|L")}),
                       doctest::Contains("must all be at least 1"), Error);
}

TEST_CASE("a refused placement gets the rule, the numbers and what would fit") {
  const auto place = [](PlacementOptions options) { place_layers(options); };
  CHECK_THROWS_WITH_AS(place({.layers = 0}),
                       "layer placement: 0 layers, pipeline 1 and virtual pipeline 1 must all be at least 1", Error);
  CHECK_THROWS_WITH_AS(place({.layers = 1'000'000, .pipeline = 1'000'000}),
                       "layer placement: 1000000 layers and 1 virtual stages; at most 100000 are placed", Error);
  CHECK_THROWS_WITH_AS(place({.layers = 4, .virtual_pipeline = 2}),
                       doctest::Contains("2 virtual stages want at least 2 pipeline ranks, got 1"), Error);
  CHECK_THROWS_WITH_AS(place({.layers = 8, .pipeline = 3}),
                       "layer placement: 8 layers must be divisible by the 3 pipeline stages; the nearest are 6 and 9",
                       Error);
  CHECK_THROWS_WITH_AS(place({.layers = 8, .pipeline = 2, .virtual_pipeline = 3}),
                       doctest::Contains("4 layers of a pipeline stage must be divisible by the 3 virtual stages; the "
                                         "nearest are 3 and 6"),
                       Error);
  CHECK_THROWS_WITH_AS(
      place({.layers = 8, .pipeline = 4, .count_embedding = true}),
      doctest::Contains("9 layers (with the embedding and loss that count) must be divisible by the 4"), Error);
  CHECK_THROWS_WITH_AS(place({.layers = 11, .pipeline = 4, .first_stage = 2, .last_stage = 2}),
                       doctest::Contains("7 layers of the middle stages must be divisible by the 2 middle pipeline"),
                       Error);
  CHECK_THROWS_WITH_AS(place({.layers = 6, .pipeline = 2, .first_stage = 2, .last_stage = 2}),
                       doctest::Contains("2 of 6 layers are left for 0 middle stages"), Error);
  CHECK_THROWS_WITH_AS(place({.layers = 6, .pipeline = 3, .first_stage = 4, .last_stage = 4}),
                       doctest::Contains("-2 of 6 layers are left for 1 middle stages"), Error);
  CHECK_THROWS_WITH_AS(place({.layers = 6, .first_stage = 2, .last_stage = 2}),
                       doctest::Contains("a pipeline of 1 has no separate first and last stage"), Error);
  CHECK_THROWS_WITH_AS(place({.layers = 6, .pipeline = 2, .last_stage = 0}),
                       "layer placement: num_layers_in_last_pipeline_stage is 0, want 1 to 6", Error);
  CHECK_THROWS_WITH_AS(place({.layers = 6, .pipeline = 2, .first_stage = 2, .count_loss = true}),
                       doctest::Contains("cannot be combined with account_for_embedding_in_pipeline_split"), Error);
  CHECK_THROWS_WITH_AS(place({.layers = 6, .pipeline = 2, .count_loss = true, .layout = parse_layer_layout("EL")}),
                       doctest::Contains("pipeline_model_parallel_layout says it all"), Error);
  CHECK_THROWS_WITH_AS(place_layers({.layers = 2}).place_of(2), "layer placement: no stage holds layer 2", Error);
}

TEST_CASE("a refused layout says what breaks which rule") {
  const auto place = [](const char* text, int64_t pipeline, int64_t layers, int64_t mtp = 0,
                        std::optional<int64_t> chunks = {}) {
    place_layers({.layers = layers,
                  .pipeline = pipeline,
                  .virtual_pipeline = chunks,
                  .layout = parse_layer_layout(text),
                  .mtp_layers = mtp});
  };
  CHECK_THROWS_WITH_AS(place("Ett|tt|ttL", 2, 6),
                       doctest::Contains("3 stages of the pipeline layout must be divisible by the 2 pipeline ranks"),
                       Error);
  CHECK_THROWS_WITH_AS(place("Et|tL", 2, 2, 0, 2), doctest::Contains("are 1 virtual stages, but virtual_pipeline"),
                       Error);
  CHECK_THROWS_WITH_AS(place("tt|tL", 2, 3), "pipeline layout: the first layer must be the embedding (E), got decoder",
                       Error);
  CHECK_THROWS_WITH_AS(place("Et|tm", 2, 2, 1), "pipeline layout: the last layer must be the loss (L), got mtp", Error);
  CHECK_THROWS_WITH_AS(place("EE|tL", 2, 1), "pipeline layout: embedding must stand once, got 2", Error);
  CHECK_THROWS_WITH_AS(place("Et|LL", 2, 1), "pipeline layout: loss must stand once, got 2", Error);
  CHECK_THROWS_WITH_AS(place("Et|tL", 2, 5), "pipeline layout: 2 decoder layers (t), but the model has 5", Error);
  CHECK_THROWS_WITH_AS(place("|", 2, 1), "pipeline layout: it holds no layer", Error);
  CHECK_THROWS_WITH_AS(place("Em|tL", 2, 1, 1), doctest::Contains("a decoder layer stands after multi-token"), Error);
  CHECK_THROWS_WITH_AS(place("Et|mL", 2, 1, 2), doctest::Contains("1 multi-token prediction layers (m), but the model"),
                       Error);
  CHECK_THROWS_WITH_AS(place("Et|m|mL", 3, 1, 2), doctest::Contains("stands in 2 stages; put all its layers into one"),
                       Error);
  CHECK_THROWS_WITH_AS(place("Et|m||L", 2, 1, 1),
                       doctest::Contains("stands in an earlier virtual stage of rank 1; it must be in the last"),
                       Error);
  CHECK_THROWS_WITH_AS(place_layers({.layers = 1, .layout = std::vector<StageLayers>{}}),
                       "pipeline layout: it has no stage", Error);
}

TEST_CASE("a layout that cannot be read says where") {
  const auto parse = [](const char* text) { parse_layer_layout(std::string(text)); };
  CHECK_THROWS_WITH_AS(parse("Ex|L"),
                       doctest::Contains("pipeline layout 'Ex|L': 'x' is no layer; there are E (embedding)"), Error);
  CHECK_THROWS_WITH_AS(parse("E(tt"), "pipeline layout 'E(tt': a '(' without ')'", Error);
  CHECK_THROWS_WITH_AS(parse("E(tt)L"), "pipeline layout 'E(tt)L': a group needs a count: (tt)*2", Error);
  CHECK_THROWS_WITH_AS(parse("Et)L"), "pipeline layout 'Et)L': a ')' without '('", Error);
  CHECK_THROWS_WITH_AS(parse("E((t)*2|)*3L"), doctest::Contains("a group holds another group; write one of them out"),
                       Error);
  CHECK_THROWS_WITH_AS(parse("E()*3L"), "pipeline layout 'E()*3L': '()' groups nothing", Error);
  CHECK_THROWS_WITH_AS(parse("Et*L"), "pipeline layout 'Et*L': a '*' without a number behind it", Error);
  CHECK_THROWS_WITH_AS(parse("E(t*99999)*99999"), doctest::Contains("has more than 100000 layers and stages"), Error);
  CHECK_THROWS_WITH_AS(parse("t*99999999999999999999"), doctest::Contains("has more than 100000"), Error);
  CHECK_THROWS_WITH_AS(parse_layer_layout({{"embedding", "layer"}, {"loss"}}),
                       "pipeline layout: 'layer' is no layer type; known: embedding, decoder, mtp, loss", Error);
}
