/* ll128.cuh - lines of 128 bytes with one flag each: nearly all of the bandwidth, no fence.
 *
 * Eight neighbouring threads of a warp take a line, a pair of words each; the last word of the last is the flag.
 * A warp takes four lines at a time.
 */
#pragma once
#include "exec/cuda/message.cuh"

#define LINE_PARTS (TT_GPU_LINE_BYTES / 16)
#define WARP_LINES (32 / LINE_PARTS)

DEVICE uint64_t
count_lines(const Move *move)
{
    return (move->bytes + TT_GPU_LINE_DATA - 1) / TT_GPU_LINE_DATA;
}

/* What a thread of a warp has to do with a line. */
typedef struct {
    uint64_t at;     /* of its part in a slot */
    uint64_t offset; /* of its part in the message */
    bool exists;     /* the line is there */
    bool last;       /* its second word is the flag */
} Part;

DEVICE Part
my_part(const Move *move, uint64_t first_line)
{
    uint32_t lane = threadIdx.x % 32, which = lane % LINE_PARTS;
    uint64_t line = first_line + lane / LINE_PARTS;
    Part part = { line * TT_GPU_LINE_BYTES + which * 16, line * TT_GPU_LINE_DATA + which * 16,
                  line < count_lines(move), which == LINE_PARTS - 1 };

    return part;
}

/* By a whole warp: the parts of its lines. FALSE: leave, all of it. */
DEVICE bool
receive_parts(Move *move, Watch *watch, Part part, Pair *p)
{
    uint32_t looks = 0;
    bool missing, leaves;

    for (;;) {
        if (part.exists)
            *p = load_pair(move->in + part.at);
        missing = part.exists && part.last && p->word[1] != move->in_number;
        if (!warp_any(missing))
            break;
        leaves = !keep_waiting(watch, &looks, TT_GPU_WAITS_MESSAGE, move->in_peer);
        if (warp_any(leaves))
            return leave(watch);
    }
    if (part.exists)
        *p = load_line_part(move->in + part.at, *p);
    note_arrival(move, part.offset);
    return true;
}

template <class T>
OUT_OF_LINE void
carry_ll128(Move *move, Watch *watch)
{
    uint64_t stride = blockDim.x / 32 * WARP_LINES;
    Place place = first_place(move);

    for (uint64_t line = threadIdx.x / 32 * WARP_LINES; line < count_lines(move); line += stride) {
        Part part = my_part(move, line);
        Pair p = { { 0, 0 } };

        if (move->in && !receive_parts(move, watch, part, &p))
            return;
        if (part.offset < move->bytes)
            p.word[0] = pass_word<T>(move, &place, part.offset, p.word[0]);
        if (!part.last && part.offset + 8 < move->bytes)
            p.word[1] = pass_word<T>(move, &place, part.offset + 8, p.word[1]);
        if (part.last)
            p.word[1] = move->out_number;
        if (move->out)
            store_line_part(move->out + part.at, p,
                            part.exists && (part.last || part.offset < move->bytes), part.last);
    }
}
