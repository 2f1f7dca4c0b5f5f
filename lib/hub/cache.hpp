// The cache on this machine that `hf download` fills. Nothing here uses the network.
//   models--owner--name/refs/main           the commit that the branch was at, as text
//   models--owner--name/snapshots/<commit>  the files of a commit, links into blobs/
//   models--owner--name/blobs               their bytes; those of a download that has not ended are *.incomplete
#pragma once
#include <filesystem>

#include "lib/hub/repository.hpp"

namespace hexad::hub {

// Its folder as huggingface_hub chooses it: HF_HUB_CACHE (or its old name HUGGINGFACE_HUB_CACHE), else HF_HOME/hub,
// else XDG_CACHE_HOME/huggingface/hub, else ~/.cache/huggingface/hub. Whether it is there is not looked at. Empty where
// HOME would have to say it and is not set.
std::filesystem::path cache_folder();

// The snapshot of the repository's revision, without links on the way to it. `folder`: the repository's own, which is
// there. A revision is a name in refs/, a commit, or the beginning of one that is unique. Throws Error(config) with
// what there is and the line that fetches it.
std::filesystem::path snapshot_of(const Repository& repository, const std::filesystem::path& folder);

}  // namespace hexad::hub
