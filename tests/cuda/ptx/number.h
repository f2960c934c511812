/* How values lie in slots. A "view" says how the bits of a slot become a value to compute with, and back:
 * float and the integers stand for themselves. */
#ifndef TEST_CUDA_PTX_NUMBER_H
#define TEST_CUDA_PTX_NUMBER_H

#include <cmath>
#include <cstdint>
#include <cstring>
#include <type_traits>

namespace ptx {

template <class To, class From> To bit_cast(From from) {
    static_assert(sizeof(To) == sizeof(From), "the same bits");
    To to;
    memcpy(&to, &from, sizeof to);
    return to;
}

/* Denormal numbers become zeros of their sign. */
inline float flush_denormal(float x) {
    return std::fpclassify(x) == FP_SUBNORMAL ? std::copysign(0.0f, x) : x;
}

/* To the nearest, ties to even; NaN is 0x7fff. The float between is rounded to odd, which leaves the
 * second rounding right. */
inline uint16_t bfloat_from(double x) {
    if (std::isnan(x)) return 0x7fff;
    float nearest = static_cast<float>(x);
    uint32_t bits = bit_cast<uint32_t>(nearest);
    if (static_cast<double>(nearest) != x) {
        if (std::fabs(static_cast<double>(nearest)) > std::fabs(x)) bits--;
        bits |= 1;
    }
    return static_cast<uint16_t>((bits + 0x7fff + (bits >> 16 & 1)) >> 16);
}

inline float bfloat_value(uint16_t bits) {
    return bit_cast<float>(static_cast<uint32_t>(bits) << 16);
}

struct FlushedFloat {
    uint32_t bits;
};

struct Bfloat { /* computed with in double, where products are exact */
    uint16_t bits;
};

template <class T> struct Pair { T low, high; };

template <class T> T load(T stored) {
    return stored;
}

inline float load(FlushedFloat stored) {
    return flush_denormal(bit_cast<float>(stored.bits));
}

inline double load(Bfloat stored) {
    return static_cast<double>(bfloat_value(stored.bits));
}

template <class T, class Value> T store(Value value) {
    if constexpr (std::is_same_v<T, FlushedFloat>)
        return {bit_cast<uint32_t>(flush_denormal(static_cast<float>(value)))};
    else if constexpr (std::is_same_v<T, Bfloat>)
        return {bfloat_from(static_cast<double>(value))};
    else
        return static_cast<T>(value);
}

/* op on one, two or three stored values, in each half of pairs. */
template <class Op, class T, class... More> T apply(T first, More... more) {
    return store<T>(Op()(load(first), load(more)...));
}

template <class Op, class T, class... More> Pair<T> apply(Pair<T> first, More... more) {
    return {apply<Op>(first.low, more.low...), apply<Op>(first.high, more.high...)};
}

} // namespace ptx

#endif
