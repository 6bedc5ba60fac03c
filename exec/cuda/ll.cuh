/* ll.cuh - words that bring their own flags: 4 bytes of data, 4 of flag, and no fence anywhere.
 *
 * A thread takes two words at a time (8 bytes of the message), waits for their flags itself and passes them on
 * at once, so a small message goes through a rank in the time of a load and a store.
 */
#pragma once
#include "exec/cuda/message.cuh"

DEVICE bool
has_arrived(Pair p, uint32_t number, uint32_t bytes)
{
    return (uint32_t)(p.word[0] >> 32) == number &&
           (bytes <= 4 || (uint32_t)(p.word[1] >> 32) == number);
}

/* The word at @offset of the message that comes in. FALSE: leave. */
DEVICE bool
receive_word(Move *move, Watch *watch, uint64_t offset, uint64_t *word)
{
    const uint8_t *at = move->in + 2 * offset;
    uint32_t bytes = word_bytes(move, offset), looks = 0;
    Pair p = load_pair(at);

    while (!has_arrived(p, (uint32_t)move->in_number, bytes)) {
        if (!keep_waiting(watch, &looks, TT_GPU_WAITS_MESSAGE, move->in_peer))
            return leave(watch);
        p = load_pair(at);
    }
    note_arrival(move, offset);
    *word = (p.word[0] & UINT32_MAX) | (bytes > 4 ? p.word[1] << 32 : 0);
    return true;
}

DEVICE void
send_word(const Move *move, uint64_t offset, uint64_t word)
{
    uint64_t flag = move->out_number << 32;
    Pair p = { { (word & UINT32_MAX) | flag, word >> 32 | flag } };

    store_pair(move->out + 2 * offset, p);
}

template <class T>
OUT_OF_LINE void
carry_ll(Move *move, Watch *watch)
{
    Place place = first_place(move);

    for (uint64_t offset = 8 * threadIdx.x; offset < move->bytes; offset += 8 * blockDim.x) {
        uint64_t word = 0;

        if (move->in && !receive_word(move, watch, offset, &word))
            return;
        word = pass_word<T>(move, &place, offset, word);
        if (move->out)
            send_word(move, offset, word);
    }
}
