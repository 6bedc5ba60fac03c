/* The kernels for any processor: vectors of 16 bytes, which every compiler lowers to what there is.
 */
#include "exec/reduce.h"

#define UNIT   portable
#define VECTOR 16
#if defined(__x86_64__)
#include <emmintrin.h>
#define STREAM(to, bits) _mm_stream_si128((__m128i *)(gpointer)(to), (__m128i)(bits))
#define STREAM_END()     _mm_sfence()
#else
#define STREAM(to, bits) save(to, bits, VECTOR)
#define STREAM_END()     (void)0
#endif
#include "exec/reduce_loops.inc"

const TtReduceUnit *
tt_reduce_portable(void)
{
    return &unit;
}
