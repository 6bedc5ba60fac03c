/* mixed.cuh - any protocol to any other, for blocks of any size: a thread takes lines of 120 bytes, word by word.
 *
 * Not for speed, but for where protocols meet (a tree whose parent is on another machine) and for lines where there
 * are no whole warps: there the flag is released after the data.
 */
#pragma once
#include "exec/cuda/ll.cuh"
#include "exec/cuda/ll128.cuh"
#include "exec/cuda/simple.cuh"

DEVICE uint64_t
line_start(uint64_t offset)
{
    return offset / TT_GPU_LINE_DATA * TT_GPU_LINE_BYTES;
}

DEVICE uint64_t
in_line(uint64_t offset)
{
    return line_start(offset) + offset % TT_GPU_LINE_DATA;
}

/* Waits for the flag of the line that begins with byte @offset. FALSE: leave. */
DEVICE bool
receive_line(Move *move, Watch *watch, uint64_t offset)
{
    const uint64_t *flag = (const uint64_t *)(move->in + line_start(offset) + TT_GPU_LINE_DATA);
    uint32_t looks = 0;

    while (load_acquire_system(flag) != move->in_number)
        if (!keep_waiting(watch, &looks, TT_GPU_WAITS_MESSAGE, move->in_peer))
            return leave(watch);
    note_arrival(move, offset);
    return true;
}

/* A word of what comes in; of a line, after its flag. */
template <class T>
DEVICE bool
receive_mixed(Move *move, Watch *watch, uint64_t offset, uint64_t *word)
{
    switch (move->in_protocol) {
    case TT_GPU_LL: return receive_word(move, watch, offset, word);
    case TT_GPU_LL128:
        if (offset % TT_GPU_LINE_DATA == 0 && !receive_line(move, watch, offset))
            return false;
        *word = load_relaxed((const uint64_t *)(move->in + in_line(offset)));
        return true;
    default:
        *word = load_elements<T>(move->in_payload + offset, word_bytes(move, offset));
        return true;
    }
}

template <class T>
DEVICE void
send_mixed(const Move *move, uint64_t offset, uint64_t word)
{
    switch (move->out_protocol) {
    case TT_GPU_LL: send_word(move, offset, word); break;
    case TT_GPU_LL128: store_relaxed((uint64_t *)(move->out + in_line(offset)), word); break;
    default: store_elements<T>(move->out_payload + offset, word, word_bytes(move, offset));
    }
}

template <class T>
OUT_OF_LINE void
carry_mixed(Move *move, Watch *watch)
{
    uint64_t stride = (uint64_t)TT_GPU_LINE_DATA * blockDim.x;
    Place place = first_place(move);

    for (uint64_t first = (uint64_t)TT_GPU_LINE_DATA * threadIdx.x; first < move->bytes;
         first += stride) {
        uint64_t end =
            first + TT_GPU_LINE_DATA < move->bytes ? first + TT_GPU_LINE_DATA : move->bytes;

        for (uint64_t offset = first; offset < end; offset += 8) {
            uint64_t word = 0;

            if (move->in && !receive_mixed<T>(move, watch, offset, &word))
                return;
            word = pass_word<T>(move, &place, offset, word);
            if (move->out)
                send_mixed<T>(move, offset, word);
        }
        if (move->out && move->out_protocol == TT_GPU_LL128)
            store_release_system((uint64_t *)(move->out + line_start(first) + TT_GPU_LINE_DATA),
                                 move->out_number);
    }
}
