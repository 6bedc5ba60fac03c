/* nccl_abi.h - what of NCCL's and the CUDA runtime's interfaces we call, as their binaries have it.
 *
 * Both are found when the program runs (nccl_load.c), so neither nccl.h nor the CUDA toolkit is needed to
 * build. Values and prototypes have been the same since NCCL 2.4 and CUDA 10; tests/cli_backend_nccl.sh
 * compares them with nccl.h where there is one.
 */
#pragma once
#include <stddef.h>

typedef struct TtNcclCommunicator TtNcclCommunicator; /* theirs */
typedef struct {
    char internal[128];
} TtNcclId; /* ncclUniqueId, passed by value */

enum { TT_NCCL_SUCCESS = 0, TT_NCCL_IN_PROGRESS = 7 }; /* ncclResult_t */

enum { /* ncclDataType_t */
       TT_NCCL_INT8 = 0,
       TT_NCCL_INT32 = 2,
       TT_NCCL_INT64 = 4,
       TT_NCCL_FLOAT16 = 6,
       TT_NCCL_FLOAT32 = 7,
       TT_NCCL_FLOAT64 = 8,
       TT_NCCL_BFLOAT16 = 9,
       TT_NCCL_FLOAT8E4M3 = 10,
       TT_NCCL_FLOAT8E5M2 = 11
};

enum { /* ncclRedOp_t */
       TT_NCCL_SUM = 0,
       TT_NCCL_PROD = 1,
       TT_NCCL_MAX = 2,
       TT_NCCL_MIN = 3,
       TT_NCCL_AVG = 4
};

/* NCCL_VERSION_CODE: up to 2.8 major * 1000 + minor * 100 + patch, then major * 10000 + ... */
#define TT_NCCL_OLDEST      2400  /* asynchronous errors, ncclCommAbort() */
#define TT_NCCL_HAS_BF16    21000 /* and the average */
#define TT_NCCL_HAS_FLOAT8  22403
#define TT_NCCL_FLOAT8_ARCH 9 /* compute capability that reduces them */

typedef struct {
    int (*get_version)(int *version);
    int (*get_unique_id)(TtNcclId *id);
    int (*comm_init_all)(TtNcclCommunicator **comms, int n_devices, const int *devices);
    int (*comm_init_rank)(TtNcclCommunicator **comm, int n_ranks, TtNcclId id, int rank);
    int (*comm_destroy)(TtNcclCommunicator *comm);
    int (*comm_abort)(TtNcclCommunicator *comm);
    int (*comm_get_async_error)(TtNcclCommunicator *comm, int *error);
    const char *(*get_error_string)(int result);
    const char *(*get_last_error)(TtNcclCommunicator *comm); /* NULL before 2.13 */
    int (*group_start)(void);
    int (*group_end)(void);
    int (*all_reduce)(const void *in, void *out, size_t count, int type, int op,
                      TtNcclCommunicator *comm, void *stream);
    int (*reduce_scatter)(const void *in, void *out, size_t out_count, int type, int op,
                          TtNcclCommunicator *comm, void *stream);
    int (*all_gather)(const void *in, void *out, size_t in_count, int type,
                      TtNcclCommunicator *comm, void *stream);
    int (*broadcast)(const void *in, void *out, size_t count, int type, int root,
                     TtNcclCommunicator *comm, void *stream);
    int (*reduce)(const void *in, void *out, size_t count, int type, int op, int root,
                  TtNcclCommunicator *comm, void *stream);
} TtNcclApi;

enum { /* cudaError_t */
       TT_CUDA_SUCCESS = 0,
       TT_CUDA_MEMORY = 2,
       TT_CUDA_STUB = 34,
       TT_CUDA_DRIVER_TOO_OLD = 35, /* or none at all */
       TT_CUDA_NO_DEVICE = 100,
       TT_CUDA_NOT_READY = 600
};
enum { TT_CUDA_TO_DEVICE = 1, TT_CUDA_TO_HOST = 2 };         /* cudaMemcpyKind */
enum { TT_CUDA_ATTRIBUTE_MAJOR = 75 };                       /* cudaDevAttrComputeCapabilityMajor */
enum { TT_CUDA_STREAM_NON_BLOCKING = 1, TT_CUDA_EVENT = 2 }; /* flags; an event without a time */

/* cudaDeviceProp is of another size in every version, but begins with the name. */
#define TT_CUDA_PROPERTIES_BYTES 16384
#define TT_CUDA_NAME_BYTES       256

typedef struct {
    int (*get_device_count)(int *n);
    int (*set_device)(int device);
    int (*get_device_properties)(void *properties, int device);
    int (*device_get_attribute)(int *value, int attribute, int device);
    int (*device_get_pci_bus_id)(char *text, int bytes, int device);
    const char *(*get_error_string)(int error);
    int (*get_last_error)(void); /* and forgets it */
    int (*malloc)(void **memory, size_t bytes);
    int (*free)(void *memory);
    int (*memcpy)(void *to, const void *from, size_t bytes, int kind);
    int (*memset)(void *memory, int value, size_t bytes);
    int (*device_synchronize)(void);
    int (*stream_create)(void **stream, unsigned flags);
    int (*stream_destroy)(void *stream);
    int (*stream_query)(void *stream);
    int (*event_create)(void **event, unsigned flags);
    int (*event_destroy)(void *event);
    int (*event_record)(void *event, void *stream);
    int (*event_query)(void *event);
    int (*runtime_get_version)(int *version);
} TtCudaApi;
