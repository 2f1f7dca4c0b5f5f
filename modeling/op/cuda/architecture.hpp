// For which cards this build has kernels, and which of its kernels a card runs. A binary holds code for several
// architectures (cmake/HexadCuda.cmake), of which the driver takes the one that fits.
#pragma once

namespace hexad::modeling::cuda {

// The architecture that the kernels which `device` runs were compiled for, as 10 x major + minor: 90 on an H100 in a
// build with code for it, 80 there in a build for compute_80 alone. Never above the device's own. What depends on
// instructions of our kernels asks this and not the device. Kept after the first call of a device; any thread. Throws
// std::runtime_error, with the device's name and the least that is wanted, where the build has no code for it.
int kernel_architecture(int device);
int probe_architecture(int device);  // the same, asked anew

// Whether the kernels of the folders hopper/ (wgmma, TMA; sm_90a) were compiled, and `device` runs them.
bool runs_hopper_kernels(int device);
bool has_hopper_kernels();  // whether they were compiled

}  // namespace hexad::modeling::cuda
