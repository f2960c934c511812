/* Numbers of a storage type, float or Bf16, moved 16 bytes at a time and computed with as float.
 *
 *     for (int64_t c = thread * LANES<S>; c < C; c += threads * LANES<S>) {
 *         float x[LANES<S>];
 *         load(x, row + c, C - c);
 *         ...
 *
 * Where the address does not allow it, or fewer numbers are left, they are moved one by one: so rows may
 * have any length, and each number is computed the same way wherever it lies. */
#ifndef HEARTH_CUDA_KERNELS_VECTORS_CUH
#define HEARTH_CUDA_KERNELS_VECTORS_CUH

#include "seam.h"

/* Numbers in 16 bytes. */
template <class S> constexpr int LANES = 16 / (int)sizeof(S);

template <int WORDS> struct __attribute__((may_alias, aligned(4 * WORDS))) Piece {
    uint32_t word[WORDS];
};

/* How L numbers of a storage type are cut into pieces. */
template <int L, class S> struct Pieces {
    static constexpr int BYTES = L * (int)sizeof(S);
    static constexpr int WORDS = BYTES < 16 ? BYTES / 4 : 4, COUNT = BYTES / (4 * WORDS);
    static constexpr int LANES = L / COUNT; /* of a piece */
    typedef Piece<WORDS> Type;
};

template <int BYTES> DEVICE bool is_aligned(const void *pointer) {
    return (uintptr_t)pointer % BYTES == 0;
}

DEVICE float to_float(float x) {
    return x;
}
DEVICE float to_float(Bf16 x) {
    return __bfloat162float(x);
}
DEVICE void from_float(float &to, float x) {
    to = x;
}
DEVICE void from_float(Bf16 &to, float x) {
    to = __float2bfloat16(x);
}

/* `low` in the low half: the number that comes first. */
DEVICE uint32_t pack_bf16(float low, float high) {
    const __nv_bfloat162_raw pair = __floats2bfloat162_rn(low, high);
    return (uint32_t)pair.x | (uint32_t)pair.y << 16;
}

template <int WORDS> DEVICE void unpack(float *x, const Piece<WORDS> &piece, const float *) {
#pragma unroll
    for (int i = 0; i < WORDS; i++) x[i] = __uint_as_float(piece.word[i]);
}
template <int WORDS> DEVICE void unpack(float *x, const Piece<WORDS> &piece, const Bf16 *) {
#pragma unroll
    for (int i = 0; i < WORDS; i++) {
        x[2 * i] = __uint_as_float(piece.word[i] << 16);
        x[2 * i + 1] = __uint_as_float(piece.word[i] & 0xffff0000u);
    }
}
template <int WORDS> DEVICE void pack(Piece<WORDS> &piece, const float *x, const float *) {
#pragma unroll
    for (int i = 0; i < WORDS; i++) piece.word[i] = __float_as_uint(x[i]);
}
template <int WORDS> DEVICE void pack(Piece<WORDS> &piece, const float *x, const Bf16 *) {
#pragma unroll
    for (int i = 0; i < WORDS; i++) piece.word[i] = pack_bf16(x[2 * i], x[2 * i + 1]);
}

/* x[i] = from[i] for begin <= i < end, else `otherwise`, which is not read from memory. */
template <int L, class S>
DEVICE void load_between(float (&x)[L], const S *from, int64_t begin, int64_t end,
                         float otherwise) {
    typedef Pieces<L, S> P;
    typedef typename P::Type Type;
    if (begin <= 0 && end >= L && is_aligned<sizeof(Type)>(from)) {
#pragma unroll
        for (int i = 0; i < P::COUNT; i++) {
            const Type piece = reinterpret_cast<const Type *>(from)[i];
            unpack(x + i * P::LANES, piece, from);
        }
    } else {
#pragma unroll
        for (int i = 0; i < L; i++) x[i] = i >= begin && i < end ? to_float(from[i]) : otherwise;
    }
}

/* The other way round: numbers outside are not written. */
template <int L, class S>
DEVICE void store_between(S *to, const float (&x)[L], int64_t begin, int64_t end) {
    typedef Pieces<L, S> P;
    typedef typename P::Type Type;
    if (begin <= 0 && end >= L && is_aligned<sizeof(Type)>(to)) {
#pragma unroll
        for (int i = 0; i < P::COUNT; i++) {
            Type piece;
            pack(piece, x + i * P::LANES, to);
            reinterpret_cast<Type *>(to)[i] = piece;
        }
    } else {
#pragma unroll
        for (int i = 0; i < L; i++)
            if (i >= begin && i < end) from_float(to[i], x[i]);
    }
}

/* The first `count` numbers; the rest of x is zero. */
template <int L, class S> DEVICE void load(float (&x)[L], const S *from, int64_t count) {
    load_between(x, from, 0, count, 0.0f);
}

template <int L, class S> DEVICE void store(S *to, const float (&x)[L], int64_t count) {
    store_between(to, x, 0, count);
}

/* to[i] = from[i] for i < count and LANES<S>, bit for bit. */
template <class S> DEVICE void copy_lanes(S *to, const S *from, int64_t count) {
    typedef Piece<4> Type;
    if (count >= LANES<S> && is_aligned<16>(to) && is_aligned<16>(from)) {
        *reinterpret_cast<Type *>(to) = *reinterpret_cast<const Type *>(from);
    } else {
#pragma unroll
        for (int i = 0; i < LANES<S>; i++)
            if (i < count) to[i] = from[i];
    }
}

#endif
