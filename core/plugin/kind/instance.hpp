// Plugin instances as C++ objects: RAII, typed methods, and errors that name the plugin, the function and the step.
#pragma once
#include "core/plugin/kind/backend_plugin.hpp"
#include "core/plugin/kind/environment_plugin.hpp"
#include "core/plugin/kind/generator_plugin.hpp"
#include "core/plugin/kind/loss_plugin.hpp"
