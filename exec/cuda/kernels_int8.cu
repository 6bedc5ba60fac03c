#include "exec/cuda/interpret.cuh"

TT_KERNELS(Int8)
