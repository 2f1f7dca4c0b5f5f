#include "core/cluster/message/message.hpp"

#include <doctest/doctest.h>

#include <cmath>
#include <cstring>
#include <random>

#include "lib/base/error.hpp"

using namespace hexad;
using cluster::Frame;
using cluster::Message;

namespace {

Frame frame(const std::string& bytes) {
  auto owner = std::make_shared<std::string>(bytes);
  return {owner, owner->data(), owner->size()};
}

std::vector<Frame> frames_of(const Message& message) {
  std::vector<Frame> frames = {frame(cluster::encode_header(message))};
  for (const data::Tensor& tensor : message.tensors) {
    frames.push_back(frame(std::string(static_cast<const char*>(tensor.data()), tensor.nbytes())));
  }
  return frames;
}

data::Batch sample_batch() {
  data::Batch batch = data::Batch::of_lengths(std::vector<int64_t>{3, 0, 2});
  batch.set("input_ids", data::Tensor::of<int64_t>({5, 6, 7, 8, 9}), data::Axis::token);
  batch.set("rewards", data::Tensor::of<float>({1, 0, 0.5f}), data::Axis::sample);
  batch.set_groups({0, 0, 1}, 2);
  return batch;
}

}  // namespace

TEST_CASE("numbers that JSON has none for survive the way through a message") {
  Message message;
  message.command = "start";
  message.header = {{"loss", {{"ratio_clip_c", INFINITY}, {"list", {-INFINITY, 1.5, nullptr}}}}, {"lr", NAN}};
  const Message got = cluster::decode(frames_of(message));
  CHECK(got.header.at("loss").at("ratio_clip_c").get<double>() == INFINITY);
  CHECK(got.header.at("loss").at("list") == message.header.at("loss").at("list"));
  CHECK(std::isnan(got.header.at("lr").get<double>()));
}

TEST_CASE("a batch survives the way through a message") {
  Message message;
  message.command = "train", message.step = 3;
  message.put("batch", sample_batch());
  const Message received = cluster::decode(frames_of(message));
  CHECK(received.command == "train");
  CHECK(received.step == 3);
  const data::Batch batch = received.batch("batch");
  CHECK(batch.lengths() == std::vector<int64_t>{3, 0, 2});
  CHECK(batch.at("input_ids") == sample_batch().at("input_ids"));
  CHECK(batch.at("rewards") == sample_batch().at("rewards"));
  CHECK(batch.group_of()[2] == 1);
}

TEST_CASE("a message that is malformed is an error, never worse") {
  Message message;
  message.put("batch", sample_batch());
  std::vector<Frame> frames = frames_of(message);
  SUBCASE("no frames") { CHECK_THROWS_WITH_AS(cluster::decode({}), "message: no frames", Error); }
  SUBCASE("no JSON") {
    CHECK_THROWS_WITH_AS(cluster::decode({frame("{")}), "message: the header of 1 bytes is no JSON object", Error);
  }
  SUBCASE("a frame is missing") {
    frames.pop_back();
    CHECK_THROWS_AS(cluster::decode(frames), Error);
  }
  SUBCASE("a frame is short") {
    frames[1] = frame("abc");
    CHECK_THROWS_AS(cluster::decode(frames), Error);
  }
  SUBCASE("a shape overflows") {
    frames = {frame(R"({"tensors": [["f32", [4294967296, 4294967296, 4294967296]]]})"), frame("")};
    CHECK_THROWS_AS(cluster::decode(frames), Error);
  }
  SUBCASE("a field of the envelope is of another type") {
    CHECK_THROWS_WITH_AS(cluster::decode({frame(R"({"event": 5})")}), "message: 'event' must be a text, got number",
                         Error);
    CHECK_THROWS_WITH_AS(cluster::decode({frame(R"({"step": "a"})")}),
                         "message: 'step' must be a whole number, got string", Error);
  }
  SUBCASE("the batch is not there") { CHECK_THROWS_AS(cluster::decode(frames).batch("other"), Error); }
}

TEST_CASE("random bytes as a header do no harm") {
  std::mt19937 random(1);
  for (int i = 0; i < 2000; ++i) {
    std::string header =
        R"({"command":"train","tensors":[["f32",[2]]],"batch":{"cu_seqlens":0,"columns":[["a","token",0]]}})";
    header[random() % header.size()] = static_cast<char>(random());
    try {
      cluster::decode({frame(header), frame("12345678")}).batch("batch");
    } catch (const Error&) {
    }
  }
}
