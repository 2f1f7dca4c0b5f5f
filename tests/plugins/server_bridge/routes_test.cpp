// Where servers say that routers sent tokens: of which layers it is kept, and what is wrong with a report.
#include "plugins/server_bridge/routes.hpp"

#include "plugins/server_bridge/fleet/journal.hpp"
#include "tests/plugins/server_bridge/support/moe_model.hpp"

using namespace bridge_test;
using namespace hexad::bridge;

namespace {

// Two of three layers have experts: 4, of which a token goes to 2.
const RouteShape kShape{.layers = {0, 2}, .num_layers = 3, .num_experts = 4, .topk = 2};

template <typename Call>
std::string said(const Call& call) {
  try {
    call();
  } catch (const std::exception& error) {
    return error.what();
  }
  return "";
}

Entry entry_of(int64_t most) {
  Request request;
  request.prompt = {5};
  request.max_new_tokens = most;
  return Entry(std::move(request), {}, &kShape);
}

Chunk chunk_of(std::vector<int32_t> tokens, const std::string& finish, std::vector<int32_t> routes) {
  Chunk chunk;
  chunk.logprobs.assign(tokens.size(), -1);
  chunk.tokens = std::move(tokens), chunk.finish = finish, chunk.routes = std::move(routes);
  return chunk;
}

}  // namespace

TEST_CASE("of a model's layers those with experts are known by its config.json") {
  const MoeModelDir model;
  const RouteShape shape = read_route_shape(model.path().string());
  CHECK(shape.layers == std::vector<int64_t>{1, 2});
  CHECK(shape.num_layers == 3);
  CHECK(shape.num_experts == 8);
  CHECK(shape.topk == 2);
  const ModelDir dense;
  CHECK(said([&] { read_route_shape(dense.path().string()); }).starts_with("router replay: "));
  CHECK(said([&] { read_route_shape("/nowhere"); }).find("/nowhere/config.json") != std::string::npos);
}

TEST_CASE("a report has numbers for all layers, and the column for those with experts") {
  const std::vector<int32_t> report = {0, 1, 0, 0, 2, 3, /* token 1 */ 3, 2, 0, 0, 1, 0};
  CHECK(column_of(kShape, report, 2) == std::vector<int16_t>{0, 1, 2, 3, 3, 2, 1, 0});
  CHECK(said([&] { column_of(kShape, report, 3); }) ==
        "routed_experts has 12 numbers, wanted 18: 3 tokens, 3 layers, 2 experts a token");
  for (const int32_t expert : {-1, 4}) {
    std::vector<int32_t> wrong = report;
    wrong[11] = expert;
    CHECK(said([&] { column_of(kShape, wrong, 2); }) ==
          "routed_experts sends token 1 to expert " + std::to_string(expert) + " of layer 2, which has 4");
  }
}

TEST_CASE("the routes of a request are those that came with its end") {
  Entry entry = entry_of(3);
  entry.add(chunk_of({7}, "abort", {1}), 1);  // let go of: what the next server says counts
  const std::vector<int32_t> report = {0, 1, 0, 0, 2, 3, 1, 2, 0, 0, 3, 0};
  CHECK(said([&] {
          Entry(entry).add(chunk_of({8, 9}, "length", report), 1);
        }).starts_with("routed_experts has 12 numbers, wanted 18: 3 tokens"));
  CHECK(said([&] { Entry(entry).add(chunk_of({8}, "stop", {}), 1); }) ==
        "an end without routed_experts, which were asked for");
  entry.add(chunk_of({8}, "stop", report), 1);
  const std::unique_ptr<Event> event = entry.event(HEXAD_FINISH_STOP);
  // Prompt, the first token, and the last one, which was never run.
  CHECK(event->routes == std::vector<int16_t>{0, 1, 2, 3, 1, 2, 3, 0, -1, -1, -1, -1});
  CHECK(entry.event(HEXAD_FINISH_ERROR, "lost")->completion->error == std::string("lost"));
}

TEST_CASE("an end that only the tokens tell of leaves the choice to the router") {
  Entry entry = entry_of(1);
  entry.add(chunk_of({7}, "", {}), 1);
  REQUIRE(entry.ended_by_tokens() == HEXAD_FINISH_LENGTH);
  CHECK(entry.event(HEXAD_FINISH_LENGTH)->routes == std::vector<int16_t>(8, -1));
}
