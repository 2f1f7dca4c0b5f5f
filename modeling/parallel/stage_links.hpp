// What pipeline stages send each other: the exchanges of a schedule (layout/pipeline_event.hpp) as messages.
#pragma once
#include <functional>
#include <map>
#include <optional>
#include <utility>
#include <vector>

#include "modeling/layout/pipeline_event.hpp"
#include "modeling/parallel/group.hpp"

namespace hexad::modeling {

class StageLinks {
 public:
  enum class Kind { activation, gradient };
  using Unit = layout::PipelineUnit;

  struct Options {
    int64_t microbatches = 0;
    // overlap_p2p_comm. An exchange posts its messages. What arrives is waited for where it is taken; what leaves, when
    // the next one of its kind has been posted. Otherwise an exchange ends when all have arrived.
    bool overlap = false;
    bool batch = true;  // batch_p2p_comm: the messages of an exchange are one launch; excludes overlap
    // Memory for what arrives for a unit of this rank, its micro-batch's rows [R, H]; undefined: the micro-batch is
    // nothing, and no message travels for it on any rank.
    std::function<at::Tensor(const Unit& unit)> room;
  };

  // `group`: the ranks of the pipeline, in order.
  StageLinks(const Group& group, Options options);

  // What a unit of this rank has made, for an exchange to send.
  void give(Kind kind, const Unit& unit, const at::Tensor& tensor);
  // Sends and receives as the event says. Every rank runs the exchanges of its own schedule.
  void exchange(const layout::PipelineEvent& event);
  // What has arrived for a unit; undefined when nothing was to.
  at::Tensor take(Kind kind, const Unit& unit);
  // Waits for what is still leaving.
  void finish();

 private:
  using Key = std::pair<int32_t, int32_t>;  // chunk, micro-batch
  struct Transfer {
    at::Tensor tensor;
    Pending pending;
  };
  struct Planned {
    Group::Message message;
    Kind kind;
    Key unit;
  };
  std::optional<Planned> receive(Kind kind, const std::optional<Unit>& unit);
  std::optional<Planned> send(Kind kind, const std::optional<Unit>& unit);
  int32_t tag(int64_t receiving_stage, const Unit& unit, Kind kind) const;
  int64_t stage(const Unit& unit) const;
  int64_t neighbour(bool next) const;
  Transfer post(const Planned& planned);
  void exchange_at_once(const std::vector<Planned>& planned);

  Group group_;
  Options options_;
  std::map<Key, at::Tensor> made_[2];    // by kind
  std::map<Key, Transfer> arriving_[2];  // likewise
  Transfer leaving_[2];                  // the latest of each kind
};

}  // namespace hexad::modeling
