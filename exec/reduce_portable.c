/* The kernels for any processor: vectors of 16 bytes, which every compiler lowers to what there is.
 */
#include "exec/reduce.h"

#define UNIT             portable
#define VECTOR           16
#define STREAM(to, bits) memcpy(to, &(bits), VECTOR)
#define STREAM_END()     (void)0
#include "exec/reduce_loops.inc"

const TtReduceUnit *
tt_reduce_portable(void)
{
    return &unit;
}
