#include "core/config/schema/blocks.hpp"

namespace hexad::config {

void add_cluster(Schema& s) {
  s.section("cluster", "the machines");
  s.add("cluster.gpus_per_node", kInt, "1", "ranks of a node; on CPUs, processes").at_least(1);
  s.add("cluster.num_nodes", kInt, "1", "nodes").at_least(1);
  s.add("cluster.device", kText, "auto", "what ranks run on; auto: GPUs, or CPUs where there is none")
      .one_of({"auto", "cpu", "cuda"});
  s.add(
       "cluster.worker_timeout_s", kFloat, "600",
       "a worker that is silent for so many seconds ends the run, and so does a plugin's call that does not return, or "
       "a generator that brings nothing; a collective that waits for a rank ends 10 s before, or after half of it, and "
       "names group and rank")
      .above(0);
  s.add("cluster.max_restarts", kInt, "0", "restarts from the latest checkpoint after a worker is lost").at_least(0);
  s.add("cluster.master_port_range_low", kInt, "1400", "first port for the rendezvous of ranks")
      .at_least(1)
      .at_most(65535);
  s.add("cluster.master_port_range_high", kInt, "1999", "end of those ports, itself left out")
      .at_least(1)
      .at_most(65536);
  s.add("cluster.segment_size", kInt | kNull, "null", "nodes of an NVLink domain")
      .at_least(1)
      .accepted("the launcher places nodes (srun --segment)");
  s.section("data_plane", "a side channel for tensors between Ray actors", kMap | kNull)
      .accepted(
          "there are no Ray actors: tensors go from the controller to the workers, large ones stay in the workers");
  s.add("data_plane.enabled", kBool, "false", "use it");
  s.add("data_plane.impl", kText, "transfer_queue", "which");
  s.add("data_plane.backend", kText, "simple", "storage of it");
  s.add("data_plane.storage_capacity", kInt, "1000000", "samples in a partition").at_least(1);
  s.add("data_plane.num_storage_units", kInt, "2", "shards").at_least(1);
  s.add("data_plane.claim_meta_poll_interval_s", kFloat, "0.5", "seconds between polls").above(0);
  s.add("data_plane.global_segment_size", kInt, "549755813888", "bytes").at_least(1);
  s.add("data_plane.local_buffer_size", kInt, "68719476736", "bytes").at_least(1);
  s.add("async_rl", kMap | kNull, "null", "NeMo-RL's single controller")
      .open()
      .accepted("this engine has one controller, without settings");
}

}  // namespace hexad::config
