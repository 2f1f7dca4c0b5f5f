// Structs of the protocol as messages: what is sent arrives; what is no such message is an error that names the field.
#include "core/cluster/protocol/protocol.hpp"

#include <doctest/doctest.h>

#include <cmath>

#include "tests/plugin/plugin_folder.hpp"

using namespace hexad;
using namespace hexad::cluster::protocol;
using cluster::Message;
using plugin_test::error_of;

namespace {

data::Batch two_rows() {
  data::Batch batch = data::Batch::of_lengths(std::vector<int64_t>{2, 1});
  batch.set("tokens", data::Tensor::of<int32_t>({5, 6, 7}), data::Axis::token);
  return batch;
}

// The error of a message with this field changed.
template <typename T>
std::string error_with(Message message, const std::string& key, const cluster::Json& value) {
  message.header[key] = value;
  return error_of([&] { from_message<T>(message, "train"); });
}

}  // namespace

TEST_CASE("a command keeps its name, its keys and its fields") {
  const Train sent{{.batch = two_rows(),
                    .micro_batches = {{.rows = {1, 0}, .padded_length = 8}, {.rows = {}, .dummy = true}},
                    .global_valid_tokens = 2.5,
                    .global_valid_sequences = 2}};
  const Message message = to_message(sent);
  CHECK(message.command == "train");
  CHECK(message.header.at("micro_batches").at(0).at("rows") == cluster::Json{1, 0});
  CHECK(message.tensors.size() == 2);
  const Train got = from_message<Train>(message);
  CHECK(got.batch.at("tokens") == two_rows().at("tokens"));
  CHECK(got.micro_batches.at(0).rows == std::vector<int64_t>{1, 0});
  CHECK(got.micro_batches.at(1).dummy);
  CHECK(got.global_valid_tokens == 2.5);
}

TEST_CASE("every kind of field arrives: rows, maps, optional ones, inherited ones, lists of batches") {
  Start start;
  start.block = {2, 4};
  start.roles = {"b", "l", ""};
  start.policy["a"] = {{"b", 1.5}};
  start.locations = {{"policy.a", "x.yaml:1:2"}};
  const Start back = from_message<Start>(to_message(start));
  CHECK(back.block.first == 2);
  CHECK(back.block.count == 4);
  CHECK(back.roles.loss == "l");
  CHECK(back.policy == start.policy);
  CHECK(back.locations == start.locations);

  Start::Reply reply;
  reply.backend.emplace().name = "theirs";
  reply.backend->outputs = {"logprobs"};
  const auto started = from_message<Start::Reply>(to_message(reply), "start");
  CHECK(started.backend->name == "theirs");
  CHECK(started.backend->outputs == std::vector<std::string>{"logprobs"});
  CHECK_FALSE(started.generator);

  Completions ended;
  ended.ids = {UINT64_MAX, 1};
  ended.errors = {"", "broken"};
  ended.columns = {two_rows(), data::Batch::of_lengths(std::vector<int64_t>{4})};
  ended.metrics.add("m", std::nan(""), 1, plugin::ReduceAs::sum);
  const Message event = to_message(ended);
  CHECK(event.event == "completions");
  const Completions got = from_message<Completions>(event);
  CHECK(got.ids == ended.ids);
  CHECK(got.errors == ended.errors);
  CHECK(got.columns.at(1).tokens() == 4);
  CHECK(std::isnan(got.metrics.values().at("m")));

  const Step step{.lr = 0.1, .weight_decay = {}, .max_grad_norm = 1};
  CHECK_FALSE(from_message<Step>(to_message(step)).weight_decay);
  const Failure failure{"out of memory", ErrorKind::plugin, true};
  CHECK(is_failure(to_message(failure)));
  CHECK(from_message<Failure>(to_message(failure), "train").error_kind == ErrorKind::plugin);
  CHECK_FALSE(is_failure(to_message(Nothing{})));
  CHECK_FALSE(from_message<Generate::Reply>(to_message(Generate::Reply{}), "generate").completions);
}

TEST_CASE("a field that is missing or of another type is an error with command, field, and what it is") {
  const Message train = to_message(Train{{.batch = two_rows(), .micro_batches = {}}});
  CHECK(error_with<Train>(train, "global_valid_tokens", "many") ==
        "command 'train': field global_valid_tokens: got \"many\", wanted a number");
  CHECK(error_with<Train>(train, "micro_batches", {{{"rows", {0, 1}}, {"padded_length", 4.5}, {"dummy", false}}}) ==
        "command 'train': field micro_batches[0].padded_length: got 4.5, wanted a whole number of 64 bits");
  CHECK(error_with<Train>(train, "micro_batches", {{{"rows", {0, nullptr}}}}) ==
        "command 'train': field micro_batches[0].rows[1]: got nothing, wanted a whole number of 64 bits");
  CHECK(error_with<Train>(train, "micro_batches", 1) == "command 'train': field micro_batches: got 1, wanted a list");
  CHECK(error_with<Train>(train, "batch", 1).starts_with("message 'train': no valid batch 'batch': "));
  Message empty;
  CHECK(error_of([&] { from_message<Step::Reply>(empty, "step"); }) ==
        "reply to 'step': field metrics: got nothing, wanted a map of metrics");
  CHECK(error_with<LossReply>(empty, "metrics", {{"loss", {1, "2"}}}) ==
        "reply to 'train': field metrics: got {\"loss\":[1,\"2\"]}, wanted [value, weight, reduction] of each metric");
  const Message connect = to_message(RefitConnect{.ranks = {0}, .name = "refit", .part = {}});
  const cluster::Json part = {{"steps", {{{"sends", {{"a", 1, {0}}}}, {"receives", cluster::Json::array()}}}},
                              {"needed", cluster::Json::array()}};
  CHECK(error_with<RefitConnect>(connect, "part", part) ==
        "command 'refit_connect': field part.steps[0].sends[0][3]: got nothing, wanted a list");
  CHECK(error_with<RefitConnect>(connect, "ranks", {int64_t{1} << 40}) ==
        "command 'refit_connect': field ranks[0]: got 1099511627776, wanted a whole number of 32 bits");
  Message failed = to_message(Failed{{"lost", ErrorKind::worker, false}});
  CHECK(error_with<Failed>(failed, "error_kind", 9) ==
        "event 'failed': field error_kind: got 9, wanted a kind of error");
  CHECK(error_with<Failed>(failed, "lost_peer", 1) == "event 'failed': field lost_peer: got 1, wanted true or false");
}
