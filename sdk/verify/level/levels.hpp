// The levels of the conformance kit that run the plugin's code (level 0 reads its file and belongs to the loader).
// Each is called in a process of its own, which a broken plugin may bring down; it reports what it found until then.
#pragma once
#include "sdk/verify/engine.hpp"
#include "sdk/verify/findings.hpp"

namespace hexad::verify {

// L1: the query is pure, the descriptor complete.
void check_descriptor(const Subject& subject, Findings& findings);
// L2: the plugin runs under every older host table and under a newer one, and reads nothing behind their ends.
void check_hosts(const Subject& subject, Findings& findings);
// L3: create and destroy leak nothing, instances do not share state, bad configurations are refused with a text.
void check_lifecycle(const Subject& subject, Findings& findings);
// L4: every host service fails once in every place: code, text, untouched outputs, and the instance goes on; cancelling
// takes effect.
void check_errors(const Subject& subject, Findings& findings);
// L5: the numbers. Losses: gradient against central differences, splits, permutations, masks, empty and huge batches,
// non-finite input. Generators and backends: the promises of their vtables.
void check_loss(const Subject& subject, Findings& findings);
void check_generator(const Subject& subject, Findings& findings);
void check_backend(const Subject& subject, Findings& findings);
void check_environment(const Subject& subject, Findings& findings);
// L6: any thread may call, and instances run at the same time.
void check_threads(const Subject& subject, Findings& findings);
// L7, losses with `subject.cuda`: order of the stream, waiting, graph capture, current context, device memory, and for
// a loss that takes both memories the numbers of L5 on the device.
void check_cuda(const Subject& subject, Findings& findings);

}  // namespace hexad::verify
