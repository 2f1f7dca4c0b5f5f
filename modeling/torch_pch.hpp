// The one precompiled header of every target that uses LibTorch (23 s once, 3 s a file after).
#pragma once
#include <torch/autograd.h>
#include <torch/types.h>

#include <torch/csrc/autograd/custom_function.h>
#include <torch/csrc/distributed/c10d/ProcessGroup.hpp>

#include <algorithm>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include <nlohmann/json.hpp>
