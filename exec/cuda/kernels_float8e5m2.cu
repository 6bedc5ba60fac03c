#include "exec/cuda/interpret.cuh"

TT_KERNELS(Float8e5m2)
