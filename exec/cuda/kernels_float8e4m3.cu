#include "exec/cuda/interpret.cuh"

TT_KERNELS(Float8e4m3)
