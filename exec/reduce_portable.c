/* The kernels for any processor: vectors of 16 bytes, which every compiler lowers to what there is.
 */
#include "exec/reduce.h"

#define UNIT   portable
#define VECTOR 16
#include "exec/reduce_loops.inc"

const TtReduceUnit *
tt_reduce_portable(void)
{
    return &unit;
}
