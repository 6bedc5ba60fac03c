/* message.cuh - one step of one round as all threads of a block see it, and its local operands word by word.
 *
 * A message is the pieces of a step's span, one after another. To those who carry it in words of 8 bytes, a word
 * may lie across pieces, elements never do.
 */
#pragma once
#include "exec/cuda/range.cuh"
#include "exec/cuda/types.cuh"

/* In shared memory; written by thread 0. */
typedef struct {
    Span span; /* of the step, from its first chunk */
    uint64_t bytes,
        first;         /* of the message; where its first piece that is not empty lies in vectors */
    uint32_t n_pieces; /* that are not empty */
    uint32_t redop;
    bool reduces;
    const uint8_t *a,
        *b; /* local operands: where element 0 of their vectors is; NULL: none. b: of a REDUCE */
    uint8_t *dst;                      /* likewise, where the result is stored; NULL: nowhere */
    uint8_t *in, *out;                 /* slots; NULL: none */
    uint8_t *in_payload, *out_payload; /* of a SIMPLE message */
    uint64_t in_number, out_number;    /* of the message, from 1: what flags hold */
    uint32_t in_protocol, out_protocol, in_peer;
    uint64_t arrived_ns; /* when the first word of a message with flags came; 0: nobody asks */
} Move;

/* Where a thread stands in a message: in which piece. */
typedef struct {
    Span span;
    uint64_t at, bytes; /* the piece's begin in the message, its size */
    uint64_t place;     /* and its begin in vectors */
} Place;

DEVICE Place
first_place(const Move *move)
{
    Place place = { move->span, 0, move->bytes, move->first };

    if (move->n_pieces > 1)
        place.bytes = place.place = 0; /* before the first piece */
    return place;
}

OUT_OF_LINE void
seek_on(Place *place, uint64_t offset)
{
    while (offset >= place->at + place->bytes) {
        Range piece = next_piece(&place->span);

        place->at += place->bytes;
        place->place = piece.first * place->span.element_bytes;
        place->bytes = piece.count * place->span.element_bytes;
    }
}

/* To the piece that holds byte @offset of the message, which is not before the present one. */
DEVICE void
seek(Place *place, uint64_t offset)
{
    if (offset >= place->at + place->bytes)
        seek_on(place, offset);
}

/* Byte @offset, counted in the vector; seek() was there. */
DEVICE uint64_t
in_vector(const Place *place, uint64_t offset)
{
    return place->place + (offset - place->at);
}

/* Bytes of the word at @offset of a message: 8 but at its end. */
DEVICE uint32_t
word_bytes(const Move *move, uint64_t offset)
{
    uint64_t left = move->bytes - offset;

    return left < 8 ? (uint32_t)left : 8;
}

DEVICE bool
is_in_one_piece(const Place *place, uint64_t offset, uint32_t bytes)
{
    return offset + bytes <= place->at + place->bytes;
}

/* A word of a local vector. */
template <class T>
DEVICE uint64_t
load_local(const uint8_t *vector, Place *place, uint64_t offset, uint32_t bytes)
{
    const uint32_t one = sizeof(typename T::Element);
    uint64_t word = 0;

    seek(place, offset);
    if (is_in_one_piece(place, offset, bytes))
        return load_elements<T>(vector + in_vector(place, offset), bytes);

    Place ahead = *place;

    for (uint32_t i = 0; i < bytes; i += one) {
        seek(&ahead, offset + i);
        word |= load_elements<T>(vector + in_vector(&ahead, offset + i), one) << 8 * i;
    }
    return word;
}

template <class T>
DEVICE void
store_local(uint8_t *vector, Place *place, uint64_t offset, uint64_t word, uint32_t bytes)
{
    const uint32_t one = sizeof(typename T::Element);

    seek(place, offset);
    if (is_in_one_piece(place, offset, bytes)) {
        store_elements<T>(vector + in_vector(place, offset), word, bytes);
        return;
    }

    Place ahead = *place;

    for (uint32_t i = 0; i < bytes; i += one) {
        seek(&ahead, offset + i);
        store_elements<T>(vector + in_vector(&ahead, offset + i), word >> 8 * i, one);
    }
}

/* What a step makes of the word at @offset: of @in, which came, and the local operand; stored here if it is to be.
 * Returns what goes out. */
template <class T>
OUT_OF_LINE uint64_t
pass_word(const Move *move, Place *place, uint64_t offset, uint64_t in)
{
    uint32_t bytes = word_bytes(move, offset);
    uint64_t word = in;

    if (move->a)
        word = load_local<T>(move->a, place, offset, bytes);
    if (move->a && move->reduces)
        word = combine_word_by<T>(move->redop, word, in);
    if (move->dst)
        store_local<T>(move->dst, place, offset, word, bytes);
    return word;
}

DEVICE void
note_arrival(Move *move, uint64_t offset)
{
    if (offset == 0 && move->arrived_ns != 0)
        move->arrived_ns = clock_ns();
}
