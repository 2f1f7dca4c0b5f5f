// Names of the Hugging Face Hub ("Qwen/Qwen2.5-1.5B", "gpt2", "owner/name@revision") as folders of the cache on this
// machine (cache.hpp). Whoever asks looks for a local file or folder of the name first, which wins as in transformers.
#pragma once
#include <filesystem>
#include <optional>
#include <string>

namespace hexad::hub {

// What is read of the repository, and so has to be whole: config.json, and of weights all or none; the same with
// weights; the tokenizer; the files of a data set.
enum class Use { model, weights, tokenizer, data };

// The snapshot's folder, without links. Nothing where `name` is none of the Hub's, or the cache has no repository of
// this name. Throws Error(config) for a revision that is not there, and Error(data) for a snapshot that is there in
// part; both begin with `key`, and end with the line that fetches what is missing.
std::optional<std::filesystem::path> find(Use use, const std::string& key, const std::string& name);

// Whether `name` can be the Hub's alone, and the cache has no repository of this name: it may be fetched still. A name
// without owner is taken for that of a folder.
bool is_absent(Use use, const std::string& name);

// For who only looks: a folder of the name, else the snapshot, else the name. Throws nothing of its own.
std::filesystem::path model_folder(const std::string& name);

// The end of a sentence about a name that is not there, with where was looked: "; the Hub's cache, ..., has no such
// model either. Fetch it: hf download owner/name". Empty for what is more like a path than a name: for data sets also
// a name without owner, such as that of a reader.
std::string how_to_fetch(Use use, const std::string& name);

}  // namespace hexad::hub
