#include "exec/cuda/interpret.cuh"

TT_KERNELS(Bfloat16)
