/* types.cuh - what elements are and how they combine, by words of 8 bytes and one by one.
 *
 * As exec/reduce.h has it: integers wrap, small floats are combined as floats, min and max are the second
 * operand unless the first is better.
 */
#pragma once
#include "exec/cuda/floats.cuh"

/* An integer; sums and products as unsigned. */
template <class ELEMENT, class UNSIGNED> struct Integer {
    typedef ELEMENT Element;
    typedef ELEMENT Wide;

    DEVICE Wide
    widen(Element x)
    {
        return x;
    }
    DEVICE Element
    narrow(Wide x)
    {
        return x;
    }
    DEVICE Wide
    sum(Wide a, Wide b)
    {
        return (Wide)(UNSIGNED)((UNSIGNED)a + (UNSIGNED)b);
    }
    DEVICE Wide
    product(Wide a, Wide b)
    {
        return (Wide)(UNSIGNED)((UNSIGNED)a * (UNSIGNED)b);
    }
    DEVICE Wide
    quotient(Wide a, uint64_t divisor)
    {
        return (Wide)((int64_t)a / (int64_t)divisor);
    }
};
typedef Integer<int8_t, uint32_t> Int8;
typedef Integer<int32_t, uint32_t> Int32;
typedef Integer<int64_t, uint64_t> Int64;

template <class FLOAT> struct Floating {
    typedef FLOAT Wide;

    DEVICE Wide
    sum(Wide a, Wide b)
    {
        return a + b;
    }
    DEVICE Wide
    product(Wide a, Wide b)
    {
        return a * b;
    }
    DEVICE Wide
    quotient(Wide a, uint64_t divisor)
    {
        return a / (Wide)divisor;
    }
};

template <class FLOAT> struct Whole : Floating<FLOAT> {
    typedef FLOAT Element;

    DEVICE FLOAT
    widen(FLOAT x)
    {
        return x;
    }
    DEVICE FLOAT
    narrow(FLOAT x)
    {
        return x;
    }
};
typedef Whole<float> Float32;
typedef Whole<double> Float64;

template <class BITS, class FORMAT> struct Widened : Floating<float>, FORMAT {
    typedef BITS Element;
};
typedef Widened<uint16_t, Half> Float16;
typedef Widened<uint16_t, Bfloat> Bfloat16;
typedef Widened<uint8_t, E4m3> Float8e4m3;
typedef Widened<uint8_t, E5m2> Float8e5m2;

/* Operations: types, so that loops are compiled for each. */
struct Copied {
    static constexpr bool COMBINES = false;
};
struct Sum {
    static constexpr bool COMBINES = true;

    template <class T>
    DEVICE typename T::Wide
    apply(typename T::Wide a, typename T::Wide b)
    {
        return T::sum(a, b);
    }
};
struct Product {
    static constexpr bool COMBINES = true;

    template <class T>
    DEVICE typename T::Wide
    apply(typename T::Wide a, typename T::Wide b)
    {
        return T::product(a, b);
    }
};
struct Least {
    static constexpr bool COMBINES = true;

    template <class T>
    DEVICE typename T::Wide
    apply(typename T::Wide a, typename T::Wide b)
    {
        return a < b ? a : b;
    }
};
struct Most {
    static constexpr bool COMBINES = true;

    template <class T>
    DEVICE typename T::Wide
    apply(typename T::Wide a, typename T::Wide b)
    {
        return a > b ? a : b;
    }
};

template <class T, class OP>
DEVICE typename T::Element
combine_element(typename T::Element a, typename T::Element b)
{
    return T::narrow(OP::template apply<T>(T::widen(a), T::widen(b)));
}

/* Elements of a word. */
template <class T> union Elements {
    uint64_t word;
    typename T::Element element[8 / sizeof(typename T::Element)];
};

template <class T, class OP>
DEVICE uint64_t
combine_word_here(uint64_t a, uint64_t b)
{
    Elements<T> x, y;

    x.word = a;
    y.word = b;
    UNROLL
    for (unsigned i = 0; i < sizeof x.element / sizeof x.element[0]; i++)
        x.element[i] = combine_element<T, OP>(x.element[i], y.element[i]);
    return x.word;
}

template <class T, class OP>
OUT_OF_LINE uint64_t
combine_word_there(uint64_t a, uint64_t b)
{
    return combine_word_here<T, OP>(a, b);
}

/* Eight conversions and back are long where they are no instructions: once is enough. */
template <class T, class OP>
DEVICE uint64_t
combine_word(uint64_t a, uint64_t b)
{
    if constexpr (sizeof(typename T::Element) == 1 && sizeof(typename T::Wide) > 1)
        return combine_word_there<T, OP>(a, b);
    else
        return combine_word_here<T, OP>(a, b);
}

/* The operation known only now: for loops that wait for each word anyway. */
template <class T>
DEVICE uint64_t
combine_word_by(uint32_t redop, uint64_t a, uint64_t b)
{
    switch (redop) {
    case TT_GPU_SUM: return combine_word<T, Sum>(a, b);
    case TT_GPU_PROD: return combine_word<T, Product>(a, b);
    case TT_GPU_MIN: return combine_word<T, Least>(a, b);
    default: return combine_word<T, Most>(a, b);
    }
}

/* @bytes (1 .. 8, whole elements) of a word at an address aligned to elements; the rest is 0. */
template <class T>
DEVICE uint64_t
load_elements(const uint8_t *from, uint32_t bytes)
{
    typedef typename T::Element Element;
    Elements<T> x;

    if (bytes == 8 && (uintptr_t)from % 8 == 0)
        return *(const uint64_t *)from;
    x.word = 0;
    UNROLL
    for (unsigned i = 0; i < 8 / sizeof(Element); i++)
        if (i * sizeof(Element) < bytes)
            x.element[i] = ((const Element *)from)[i];
    return x.word;
}

template <class T>
DEVICE void
store_elements(uint8_t *to, uint64_t word, uint32_t bytes)
{
    typedef typename T::Element Element;
    Elements<T> x;

    if (bytes == 8 && (uintptr_t)to % 8 == 0) {
        *(uint64_t *)to = word;
        return;
    }
    x.word = word;
    UNROLL
    for (unsigned i = 0; i < 8 / sizeof(Element); i++)
        if (i * sizeof(Element) < bytes)
            ((Element *)to)[i] = x.element[i];
}
