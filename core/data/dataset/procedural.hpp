// Datasets that are generated: the same records for the same specification on every machine. Questions held out for
// validation never occur in training: a question belongs to one side by a hash of it and the seed.
#pragma once
#include <map>
#include <nlohmann/json.hpp>
#include <string>

#include "core/data/dataset/dataset.hpp"

namespace hexad::data {

// dataset_name: arithmetic. Keys: operators (list of "+", "-", "*"; default all of + and -), min_operand (0),
// max_operand (99), question ("What is {0} {1} {2}? Answer with only the number."), size (training records, default
// 4096 or all there are), validation_size (256 or all there are), held_out (share of the unordered operand pairs kept
// for validation, 0.1). A pair is held out for every operator and order.
DatasetSplit make_arithmetic(const nlohmann::ordered_json& spec, uint64_t seed);

// dataset_name: puzzle. Keys: kind, length (symbols of an instance; a number or [min, max]), alphabet (string of
// distinct ASCII characters; default by kind), question (template with {0} for the instance), size, validation_size,
// held_out. Kinds: see puzzle_kinds(). `successor` (after the last letter of "bdca" comes "b") suits a fresh tiny
// model: its answer is one symbol, and the best constant answer earns one in as many as the alphabet has letters (an
// eighth by default).
DatasetSplit make_puzzle(const nlohmann::ordered_json& spec, uint64_t seed);

// dataset_name: sliding_puzzle. Keys: length (tiles a side of the board, a number or [least, most], default [2, 3]),
// shuffle_moves (the most, 10: boards are solved ones after 1 to so many random moves, an odd number), question
// (template with {0} for the side and {1} for the board), size, validation_size, held_out. A record has no answer; its
// `grid` (rows of numbers, 0 the gap) is for the environment plugin sliding_puzzle.
DatasetSplit make_sliding_puzzle(const nlohmann::ordered_json& spec, uint64_t seed);

// Name and what the answer is, for messages and documentation.
std::map<std::string, std::string> puzzle_kinds();

}  // namespace hexad::data
