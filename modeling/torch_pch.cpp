// Anchor of the precompiled header: see torch_pch.hpp.
