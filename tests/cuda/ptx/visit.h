/* From a Type, when decoding, to a C++ type, when compiling: visit_...(type, f) calls f with the Tag of a
 * C++ type and returns the function that f returns; null when the set does not have the type. */
#ifndef TEST_CUDA_PTX_VISIT_H
#define TEST_CUDA_PTX_VISIT_H

#include "decode.h"
#include "number.h"

namespace ptx {

template <class T> struct Tag { typedef T Of; };

template <class T, class Op> void unary(Thread &thread, const Instruction &i) {
    write<T>(thread, i.slots[0], apply<Op>(read<T>(thread, i.slots[1])));
}

template <class T, class Op> void binary(Thread &thread, const Instruction &i) {
    write<T>(thread, i.slots[0],
             apply<Op>(read<T>(thread, i.slots[1]), read<T>(thread, i.slots[2])));
}

template <class T, class Op> void ternary(Thread &thread, const Instruction &i) {
    write<T>(thread, i.slots[0],
             apply<Op>(read<T>(thread, i.slots[1]), read<T>(thread, i.slots[2]),
                       read<T>(thread, i.slots[3])));
}

/* Bits without a meaning: by width. */
template <class F> Execute visit_widths(Type type, F f) {
    switch (bytes_of(type)) {
    case 1:
        return f(Tag<uint8_t>());
    case 2:
        return f(Tag<uint16_t>());
    case 4:
        return f(Tag<uint32_t>());
    default:
        return f(Tag<uint64_t>());
    }
}

template <class F> Execute visit_integers(Type type, F f) {
    switch (type) {
    case Type::u16:
        return f(Tag<uint16_t>());
    case Type::s16:
        return f(Tag<int16_t>());
    case Type::u32:
        return f(Tag<uint32_t>());
    case Type::s32:
        return f(Tag<int32_t>());
    case Type::u64:
        return f(Tag<uint64_t>());
    case Type::s64:
        return f(Tag<int64_t>());
    default:
        return nullptr;
    }
}

template <class F> Execute visit_all_integers(Type type, F f) {
    switch (type) {
    case Type::u8:
        return f(Tag<uint8_t>());
    case Type::s8:
        return f(Tag<int8_t>());
    default:
        return visit_integers(type, f);
    }
}

/* `flush`: the statement says .ftz. */
template <class F> Execute visit_floats(Type type, bool flush, F f) {
    if (flush) return type == Type::f32 ? f(Tag<FlushedFloat>()) : nullptr;
    switch (type) {
    case Type::f32:
        return f(Tag<float>());
    case Type::f64:
        return f(Tag<double>());
    case Type::bf16:
        return f(Tag<Bfloat>());
    case Type::bf16x2:
        return f(Tag<Pair<Bfloat>>());
    default:
        return nullptr;
    }
}

} // namespace ptx

#endif
