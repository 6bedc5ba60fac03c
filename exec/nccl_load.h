/* nccl_load.h - finds libnccl and libcudart on this machine. Private to backend_nccl.c and its parts. */
#pragma once
#include "exec/nccl_abi.h"

#include <glib.h>

/* NCCL: TUTTI_NCCL_LIBRARY, else libnccl.so.2, where the dynamic linker looks. The runtime:
 * TUTTI_CUDART_LIBRARY, else libcudart.so.13, .12, .11.0, .so. Both also in the lib folders of CUDA_HOME and
 * /usr/local/cuda. Loaded for good. Errors of TT_EXEC_ERROR: HARDWARE (not there: where it looked, what to
 * install; too old), SYSTEM (does not load, a function is missing). */
const TtNcclApi *tt_nccl_load(int *version, GError **error);
const TtCudaApi *tt_cuda_load(GError **error);

/* "2.28.9" of 22809, "2.4.8" of 2408. Caller frees. */
char *tt_nccl_version_text(int version);
