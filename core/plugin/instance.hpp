// Plugin instances as C++ objects: RAII, typed methods, and errors that name the plugin, the function and the step.
#pragma once
#include "core/plugin/backend_plugin.hpp"
#include "core/plugin/environment_plugin.hpp"
#include "core/plugin/generator_plugin.hpp"
#include "core/plugin/loss_plugin.hpp"
