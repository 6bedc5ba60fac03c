/* fake_cuda.h - what the two stand-ins for NVIDIA's libraries share: a stream that counts. */
#pragma once
#include <stdatomic.h>

typedef struct {
    atomic_ulong given, done; /* works given to the stream, and done */
    int device;
} FakeStream;
