/* simple.cuh - data first, then a counter: all threads move the payload as fast as memory goes.
 *
 * Also what needs no messages: copies and reductions within a rank. A thread waits for none here; thread 0 did so
 * before, and hands over afterwards (interpret.cuh).
 */
#pragma once
#include "exec/cuda/message.cuh"

/* Units a thread loads before it stores any. */
#define BATCH 4

/* dst = out = a op b, or a; one contiguous piece. */
typedef struct {
    const uint8_t *a, *b; /* b: not with COPIED */
    uint8_t *dst, *out;   /* out: NULL if there is but one */
    uint64_t bytes;
} Pass;

template <class T, class OP>
DEVICE typename T::Element
combine_unit(typename T::Element a, typename T::Element b)
{
    return combine_element<T, OP>(a, b);
}

template <class T, class OP>
DEVICE Pair
combine_unit(Pair a, Pair b)
{
    a.word[0] = combine_word<T, OP>(a.word[0], b.word[0]);
    a.word[1] = combine_word<T, OP>(a.word[1], b.word[1]);
    return a;
}

/* The next N units of this thread, from number @i on. */
template <class T, class OP, class UNIT, int N>
DEVICE void
pass_units(const Pass *pass, uint64_t i)
{
    const UNIT *a = (const UNIT *)pass->a, *b = (const UNIT *)pass->b;
    UNIT *dst = (UNIT *)pass->dst, *out = (UNIT *)pass->out;
    uint64_t stride = blockDim.x;
    UNIT x[N], y[N];

    UNROLL
    for (int k = 0; k < N; k++) {
        x[k] = a[i + k * stride];
        if constexpr (OP::COMBINES)
            y[k] = b[i + k * stride];
    }
    UNROLL
    for (int k = 0; k < N; k++) {
        if constexpr (OP::COMBINES)
            x[k] = combine_unit<T, OP>(x[k], y[k]);
        dst[i + k * stride] = x[k];
        if (out)
            out[i + k * stride] = x[k];
    }
}

/* @n units, all threads side by side. */
template <class T, class OP, class UNIT>
DEVICE void
sweep(const Pass *pass, uint64_t n)
{
    uint64_t stride = blockDim.x, i = threadIdx.x;

    for (; i + (BATCH - 1) * stride < n; i += BATCH * stride)
        pass_units<T, OP, UNIT, BATCH>(pass, i);
    for (; i < n; i += stride)
        pass_units<T, OP, UNIT, 1>(pass, i);
}

DEVICE void
advance(Pass *pass, uint64_t bytes)
{
    pass->a += bytes;
    pass->b += bytes;
    pass->dst += bytes;
    if (pass->out)
        pass->out += bytes;
    pass->bytes -= bytes;
}

/* By 16 bytes where all that is read and written is aligned alike, the rest by elements. */
template <class T, class OP>
OUT_OF_LINE void
pass_piece(Pass pass)
{
    typedef typename T::Element Element;
    uintptr_t a = (uintptr_t)pass.a, apart = a ^ (uintptr_t)pass.dst;
    uint64_t head = -a % sizeof(Pair), body;

    if constexpr (OP::COMBINES)
        apart |= a ^ (uintptr_t)pass.b;
    if (pass.out)
        apart |= a ^ (uintptr_t)pass.out;
    if (apart % sizeof(Pair) != 0 || head > pass.bytes)
        head = pass.bytes;
    if (head > 0) {
        sweep<T, OP, Element>(&pass, head / sizeof(Element));
        advance(&pass, head);
    }
    body = pass.bytes / sizeof(Pair);
    sweep<T, OP, Pair>(&pass, body);
    advance(&pass, body * sizeof(Pair));
    if (pass.bytes > 0)
        sweep<T, OP, Element>(&pass, pass.bytes / sizeof(Element));
}

template <class T>
DEVICE void
pass_piece_by(bool reduces, uint32_t redop, Pass pass)
{
    if (!reduces)
        pass_piece<T, Copied>(pass);
    else if (redop == TT_GPU_SUM)
        pass_piece<T, Sum>(pass);
    else if (redop == TT_GPU_PROD)
        pass_piece<T, Product>(pass);
    else if (redop == TT_GPU_MIN)
        pass_piece<T, Least>(pass);
    else
        pass_piece<T, Most>(pass);
}

/* A piece at @place of the vectors and @at of the messages. */
DEVICE Pass
pass_of(const Move *move, uint64_t place, uint64_t at, uint64_t bytes)
{
    const uint8_t *in = move->in ? move->in_payload + at : NULL;
    uint8_t *out = move->out ? move->out_payload + at : NULL;
    Pass pass = { in, in, out, NULL, bytes };

    if (move->a)
        pass.a = move->a + place;
    if (move->b)
        pass.b = move->b + place;
    if (!pass.b)
        pass.b = pass.a;
    if (move->dst) {
        pass.dst = move->dst + place;
        pass.out = out;
    }
    return pass;
}

template <class T>
OUT_OF_LINE void
carry_simple(const Move *move)
{
    Place place = first_place(move);

    for (uint64_t at = 0; at < move->bytes; at = place.at + place.bytes) {
        seek(&place, at);
        pass_piece_by<T>(move->reduces, move->redop, pass_of(move, place.place, at, place.bytes));
    }
}
