/* fake_cudart.c - the CUDA runtime as far as --backend nccl calls it, with GPUs of host memory.
 *
 *     FAKE_CUDA_DEVICES=N     GPUs there are (2)
 *     FAKE_CUDA_FIRST=N       number of the first on the machine (0): processes can have some of their own
 *     FAKE_CUDA_MEMORY=BYTES  what one allocation may have (1 GiB)
 *     FAKE_CUDA_MAJOR=N       compute capability (9)
 *     FAKE_CUDA_ERROR=CODE    of cudaGetDeviceCount
 */
#include "tests/fakes/fake_cuda.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

enum { NOT_READY = 600, OUT_OF_MEMORY = 2, INVALID_DEVICE = 101, NO_DEVICE = 100 };

typedef struct {
    FakeStream *stream;
    unsigned long given;
} Event;

static long
setting(const char *name, long value)
{
    const char *text = getenv(name);

    return text && *text ? atol(text) : value;
}

int cudaGetDeviceCount(int *n);
int cudaSetDevice(int device);
int cudaGetDeviceProperties(void *properties, int device);
int cudaDeviceGetAttribute(int *value, int attribute, int device);
int cudaDeviceGetPCIBusId(char *text, int bytes, int device);
const char *cudaGetErrorString(int error);
int cudaGetLastError(void);
int cudaMalloc(void **memory, size_t bytes);
int cudaFree(void *memory);
int cudaMemcpy(void *to, const void *from, size_t bytes, int kind);
int cudaMemset(void *memory, int value, size_t bytes);
int cudaDeviceSynchronize(void);
int cudaStreamCreateWithFlags(void **stream, unsigned flags);
int cudaStreamDestroy(void *stream);
int cudaStreamQuery(void *stream);
int cudaEventCreateWithFlags(void **event, unsigned flags);
int cudaEventDestroy(void *event);
int cudaEventRecord(void *event, void *stream);
int cudaEventQuery(void *event);
int cudaRuntimeGetVersion(int *version);

static _Thread_local int current;

int
cudaGetDeviceCount(int *n)
{
    *n = (int)setting("FAKE_CUDA_DEVICES", 2);
    if (*n == 0)
        return NO_DEVICE;
    return (int)setting("FAKE_CUDA_ERROR", 0);
}

int
cudaSetDevice(int device)
{
    current = device;
    return device >= 0 && device < setting("FAKE_CUDA_DEVICES", 2) ? 0 : INVALID_DEVICE;
}

int
cudaGetDeviceProperties(void *properties, int device)
{
    (void)device;
    strcpy(properties, "Fake GPU");
    return 0;
}

int
cudaDeviceGetAttribute(int *value, int attribute, int device)
{
    (void)device;
    *value = attribute == 75 ? (int)setting("FAKE_CUDA_MAJOR", 9) : 0;
    return 0;
}

int
cudaDeviceGetPCIBusId(char *text, int bytes, int device)
{
    snprintf(text, (size_t)bytes, "0000:%02lx:00.0", 0x10 + setting("FAKE_CUDA_FIRST", 0) + device);
    return 0;
}

const char *
cudaGetErrorString(int error)
{
    return error == INVALID_DEVICE ? "invalid device ordinal" : "a fake error";
}

int
cudaGetLastError(void)
{
    return 0;
}

int
cudaMalloc(void **memory, size_t bytes)
{
    if (bytes > (size_t)setting("FAKE_CUDA_MEMORY", 1 << 30))
        return OUT_OF_MEMORY;
    *memory = malloc(bytes);
    return *memory ? 0 : OUT_OF_MEMORY;
}

int
cudaFree(void *memory)
{
    free(memory);
    return 0;
}

int
cudaMemcpy(void *to, const void *from, size_t bytes, int kind)
{
    (void)kind;
    memcpy(to, from, bytes);
    return 0;
}

int
cudaMemset(void *memory, int value, size_t bytes)
{
    memset(memory, value, bytes);
    return 0;
}

int
cudaDeviceSynchronize(void)
{
    return 0;
}

int
cudaStreamCreateWithFlags(void **stream, unsigned flags)
{
    FakeStream *s = calloc(1, sizeof *s);

    (void)flags;
    s->device = current;
    *stream = s;
    return 0;
}

int
cudaStreamDestroy(void *stream)
{
    free(stream);
    return 0;
}

int
cudaStreamQuery(void *stream)
{
    FakeStream *s = stream;

    return atomic_load(&s->done) == atomic_load(&s->given) ? 0 : NOT_READY;
}

int
cudaEventCreateWithFlags(void **event, unsigned flags)
{
    (void)flags;
    *event = calloc(1, sizeof(Event));
    return 0;
}

int
cudaEventDestroy(void *event)
{
    free(event);
    return 0;
}

int
cudaEventRecord(void *event, void *stream)
{
    Event *e = event;

    e->stream = stream;
    e->given = atomic_load(&e->stream->given);
    return 0;
}

int
cudaEventQuery(void *event)
{
    const Event *e = event;

    return atomic_load(&e->stream->done) >= e->given ? 0 : NOT_READY;
}

int
cudaRuntimeGetVersion(int *version)
{
    *version = 13000;
    return 0;
}
