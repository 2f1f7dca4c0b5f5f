#include "modeling/layout/buffer_layout.hpp"

#include <doctest/doctest.h>

#include <algorithm>
#include <map>
#include <numeric>
#include <random>

#include "modeling/error.hpp"
#include "tests/support/golden.hpp"

using namespace hexad::modeling::layout;
using golden::Json;
using hexad::model::Range;
using hexad::modeling::Error;

namespace {

struct Model {
  std::vector<BufferParam> params;
  std::vector<std::string> names;
  std::vector<size_t> everything() const {
    std::vector<size_t> all(params.size());
    std::iota(all.begin(), all.end(), size_t{0});
    return all;
  }
};

Model model_of(const Json& inputs) {
  Model model;
  for (const Json& param : inputs.at("params")) {
    BufferParam read;
    read.numel = 1;
    for (const Json& size : param.at("shape")) read.numel *= size.get<int64_t>();
    read.dtype = param.value("dtype", "bf16");
    read.expert = !param.value("allreduce", true);
    read.shared_embedding = param.value("shared_embedding", false);
    model.params.push_back(read);
    model.names.push_back(param.at("name"));
  }
  return model;
}

Json range(const Range& range) { return {range.begin, range.end}; }

std::string torch_name(const std::string& dtype) {
  const std::map<std::string, std::string> names = {{"bf16", "bfloat16"}, {"f16", "float16"}, {"f32", "float32"}};
  return names.at(dtype);
}

void check_slots(const Model& model, const BufferLayout& layout, const Json& want) {
  Json params = Json::object(), buckets = Json::array();
  for (const BufferSlot& slot : layout.slots) {
    params[model.names[slot.param]] = {{"start", slot.range.begin}, {"end", slot.range.end}, {"bucket", slot.bucket}};
  }
  for (const Bucket& bucket : layout.buckets) buckets.push_back(range(bucket.range));
  CHECK(params == want.at("params"));
  CHECK(buckets == want.at("bucket_ranges"));
}

void check_buffer(const Model& model, const BufferLayout& layout, const Json& want) {
  check_slots(model, layout, want);
  Json unpadded = Json::array();
  for (const Bucket& bucket : layout.buckets) unpadded.push_back(bucket.unpadded);
  CHECK(unpadded == want.at("bucket_numel_unpadded"));
  if (!want.contains("ranks")) return;
  CHECK(torch_name(layout.param_dtype) == want.at("param_dtype"));
  CHECK(torch_name(layout.grad_dtype) == want.at("grad_dtype"));
  CHECK(layout.expert == want.at("is_expert_parallel"));
  REQUIRE(layout.shards == static_cast<int64_t>(want.at("ranks").size()));
  for (int64_t rank = 0; rank < layout.shards; ++rank) {
    INFO("rank " << rank);
    Json got = Json::array();
    for (size_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
      Json owned = Json::object();
      for (const ParamShard& shard : param_shards(layout, bucket, rank)) {
        owned[model.names[shard.param]] = {{"gbuf_world", range(shard.in_buffer)},
                                           {"gbuf_world_in_bucket", range(shard.in_bucket)},
                                           {"gbuf_local", range(shard.in_shard)},
                                           {"param", range(shard.in_param)}};
      }
      got.push_back(owned);
    }
    CHECK(got == want.at("ranks")[rank].at("buckets"));
  }
}

void check_layouts(const Json& test_case) {
  const Json& config = test_case.at("config");
  const Json& want = test_case.at("expected");
  const Model model = model_of(test_case.at("inputs"));
  BufferOptions options;
  if (!config.at("bucket_size").is_null()) options.bucket_size = config.at("bucket_size").get<int64_t>();
  options.data_parallel = config.at("data_parallel_size");
  options.expert_data_parallel = config.value("expert_data_parallel_size", options.data_parallel);
  options.grad_reduce_in_fp32 = config.at("grad_reduce_in_fp32");
  options.pad_for_high_bandwidth = config.at("pad_buckets_for_high_nccl_busbw");
  const auto layouts = buffer_layouts(model.params, options);
  REQUIRE(layouts.size() == want.at("buffers").size());
  for (size_t i = 0; i < layouts.size(); ++i) {
    INFO("buffer " << i);
    check_buffer(model, layouts[i], want.at("buffers")[i]);
  }
  if (!want.contains("without_distributed_optimizer")) return;
  check_slots(model, plain_buffer(model.params, model.everything(), options.bucket_size),
              want.at("without_distributed_optimizer"));
}

Model random_model(std::mt19937& random) {
  Model model;
  for (size_t i = 1 + random() % 12; i > 0; --i) {
    BufferParam param;
    param.numel = random() % 300;
    param.dtype = random() % 4 ? "bf16" : "f32";
    param.expert = random() % 3 == 0;
    param.shared_embedding = random() % 6 == 0;
    model.params.push_back(param);
  }
  return model;
}

}  // namespace

TEST_SUITE("golden") {
  TEST_CASE("distributed_optimizer") { golden::for_each_case("distributed_optimizer", check_layouts); }
}

TEST_CASE("every parameter lies once in one bucket of one buffer, and buckets cover their buffer") {
  std::mt19937 random(10);
  for (int trial = 0; trial < 300; ++trial) {
    const Model model = random_model(random);
    BufferOptions options;
    if (random() % 3) options.bucket_size = 1 + random() % 500;
    options.data_parallel = 1 + random() % 7;
    options.expert_data_parallel = 1 + random() % 3;
    options.distributed_optimizer = random() % 3;
    options.grad_reduce_in_fp32 = random() % 2;
    options.align_plain = random() % 2;
    const bool aligned = options.distributed_optimizer || options.align_plain;
    std::vector<int> seen(model.params.size());
    for (const BufferLayout& layout : buffer_layouts(model.params, options)) {
      int64_t end = 0;
      for (const BufferSlot& slot : layout.slots) {
        ++seen[slot.param];
        CHECK(slot.range.size() == model.params[slot.param].numel);
        CHECK(slot.range.begin >= end);
        CHECK(slot.range.begin >= layout.buckets[slot.bucket].range.begin);
        CHECK(slot.range.end <= layout.buckets[slot.bucket].range.end);
        CHECK((!aligned || slot.range.begin % 64 == 0));
        end = slot.range.end;
      }
      int64_t next = 0;
      for (const Bucket& bucket : layout.buckets) {
        CHECK(bucket.range.begin == next);
        CHECK(bucket.unpadded <= bucket.range.size());
        CHECK(bucket.range.size() % layout.shards == 0);
        CHECK((!aligned || bucket.range.end % 64 == 0));  // the next buffer begins there
        next = bucket.range.end;
      }
      CHECK(next == layout.numel());
    }
    CHECK(std::count(seen.begin(), seen.end(), 1) == static_cast<int64_t>(seen.size()));
  }
}

TEST_CASE("by unit, a bucket holds one unit whole") {
  std::mt19937 random(12);
  for (int trial = 0; trial < 200; ++trial) {
    Model model = random_model(random);
    for (size_t i = 0; i < model.params.size(); ++i) {
      model.params[i].unit = "layers." + std::to_string(i / 3);
      model.params[i].shared_embedding = false;
    }
    BufferOptions options;
    options.bucket_per_unit = true;
    options.bucket_size = 1;  // means nothing here
    options.data_parallel = 1 + random() % 4;
    for (const BufferLayout& layout : buffer_layouts(model.params, options)) {
      std::map<std::string, std::vector<size_t>> buckets;
      std::map<size_t, std::string> units;
      for (const BufferSlot& slot : layout.slots) {
        const std::string& unit = model.params[slot.param].unit;
        buckets[unit].push_back(slot.bucket);
        CHECK(units.emplace(slot.bucket, unit).first->second == unit);
      }
      for (const auto& [unit, used] : buckets) CHECK(std::count(used.begin(), used.end(), used[0]) == std::ssize(used));
    }
  }
}

TEST_CASE("the ranks' pieces of a parameter cover it once") {
  std::mt19937 random(11);
  for (int trial = 0; trial < 200; ++trial) {
    const Model model = random_model(random);
    BufferOptions options;
    if (random() % 2) options.bucket_size = 1 + random() % 500;
    options.data_parallel = 1 + random() % 7;
    std::vector<int64_t> covered(model.params.size());
    for (const BufferLayout& layout : buffer_layouts(model.params, options)) {
      for (size_t bucket = 0; bucket < layout.buckets.size(); ++bucket) {
        for (int64_t rank = 0; rank < layout.shards; ++rank) {
          const Range own = shard_range(layout, bucket, rank);
          for (const ParamShard& shard : param_shards(layout, bucket, rank)) {
            CHECK(shard.in_param.begin == covered[shard.param]);  // the next piece, in the order of ranks
            covered[shard.param] = shard.in_param.end;
            CHECK(shard.in_buffer.begin == own.begin + shard.in_shard.begin);
            CHECK(shard.in_buffer.begin == layout.buckets[bucket].range.begin + shard.in_bucket.begin);
            CHECK(shard.in_shard.end <= own.size());
            CHECK(shard.in_buffer.size() == shard.in_param.size());
            CHECK(shard.in_bucket.size() == shard.in_param.size());
          }
        }
      }
    }
    for (size_t i = 0; i < covered.size(); ++i) CHECK(covered[i] == model.params[i].numel);
  }
}

TEST_CASE("buckets are closed by size where their reduction overlaps") {
  CHECK(default_bucket_size(8, true, 0) == 40'000'000);
  CHECK(default_bucket_size(64, true, 0) == 64'000'000);
  CHECK(default_bucket_size(64, true, 1) == std::nullopt);
  CHECK(default_bucket_size(64, false, 0) == std::nullopt);
  CHECK(buffer_layouts({}, {}).empty());
}

TEST_CASE("a refused buffer says what is wrong") {
  CHECK_THROWS_WITH_AS(buffer_layouts({{.numel = 4}}, {.bucket_size = 0}),
                       "gradient buffer: bucket size is 0 elements, want at least 1; leave it out for one bucket",
                       Error);
  CHECK_THROWS_WITH_AS(buffer_layouts({{.numel = 4}, {.numel = -1}}, {}),
                       "gradient buffer: parameter 1 has -1 elements, want 0 or more", Error);
  CHECK_THROWS_WITH_AS(buffer_layouts({{.numel = 4}}, {.data_parallel = 0}),
                       "gradient buffer: 0 data-parallel ranks, want at least 1", Error);
  const BufferLayout layout = sharded_buffer({{.numel = 4}}, {0}, {}, 2);
  CHECK_THROWS_WITH_AS(shard_range(layout, 1, 0), "gradient buffer: bucket 1 of a buffer with 1", Error);
  CHECK_THROWS_WITH_AS(param_shards(layout, 0, 2), "gradient buffer: rank 2 is outside the 2 that share it", Error);
}
