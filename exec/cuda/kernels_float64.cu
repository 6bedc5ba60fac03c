#include "exec/cuda/interpret.cuh"

TT_KERNELS(Float64)
