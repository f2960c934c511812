/* cvt. */
#include <limits>

#include "visit.h"

namespace ptx {

namespace {

bool is_float(Type type) {
    return type == Type::f32 || type == Type::f64;
}

/* --- between integers: cut off, or extended with the source's sign --- */

template <class To, class From> void integer_to_integer(Thread &thread, const Instruction &i) {
    write<To>(thread, i.slots[0], static_cast<To>(read<From>(thread, i.slots[1])));
}

template <class To> Execute to_integer_type(Type from) {
    return visit_all_integers(from, [](auto tag) -> Execute {
        return integer_to_integer<To, typename decltype(tag)::Of>;
    });
}

Execute between_integers(Type to, Type from) {
    return visit_all_integers(
        to, [from](auto tag) { return to_integer_type<typename decltype(tag)::Of>(from); });
}

template <class To, class From> void integer_to_float(Thread &thread, const Instruction &i) {
    write<To>(thread, i.slots[0], static_cast<To>(read<From>(thread, i.slots[1])));
}

Execute from_integer(Type to, Type from) {
    return visit_all_integers(from, [to](auto tag) -> Execute {
        typedef typename decltype(tag)::Of From;
        return to == Type::f32 ? integer_to_float<float, From> : integer_to_float<double, From>;
    });
}

/* --- from floats to whole numbers --- */

struct Nearest {
    template <class T> T operator()(T x) const {
        return std::nearbyint(x); /* ties to even */
    }
};

struct TowardsZero {
    template <class T> T operator()(T x) const {
        return std::trunc(x);
    }
};

struct Down {
    template <class T> T operator()(T x) const {
        return std::floor(x);
    }
};

struct Up {
    template <class T> T operator()(T x) const {
        return std::ceil(x);
    }
};

/* What does not fit becomes the nearest that does. NaN becomes 0, or the lowest number's bits where the
 * source is f64 or the result has 64 bits. */
template <class To, class From, class Round>
void float_to_integer(Thread &thread, const Instruction &i) {
    typedef std::numeric_limits<To> Limits;
    const auto x = Round()(load(read<From>(thread, i.slots[1])));
    const bool wide = sizeof(To) == 8 || std::is_same_v<From, double>;
    To result;
    if (std::isnan(x))
        result = wide ? static_cast<To>(uint64_t{1} << (8 * sizeof(To) - 1)) : To{0};
    else if (static_cast<double>(x) >= std::ldexp(1.0, Limits::digits))
        result = Limits::max();
    else if (static_cast<double>(x) < static_cast<double>(Limits::min()))
        result = Limits::min();
    else
        result = static_cast<To>(x);
    write<To>(thread, i.slots[0], result);
}

template <class Round> Execute to_integer(Type to, Type from, bool flush) {
    return visit_all_integers(to, [from, flush](auto tag) -> Execute {
        typedef typename decltype(tag)::Of To;
        if (from == Type::f64) return float_to_integer<To, double, Round>;
        return flush ? float_to_integer<To, FlushedFloat, Round>
                     : float_to_integer<To, float, Round>;
    });
}

template <class Round> Execute to_whole(Type to, Type from, bool flush) {
    if (!is_float(to)) return to_integer<Round>(to, from, flush);
    if (to != from) return nullptr;
    if (to == Type::f64) return unary<double, Round>;
    return flush ? unary<FlushedFloat, Round> : unary<float, Round>;
}

/* --- between floats --- */

template <class To, class From> void float_to_float(Thread &thread, const Instruction &i) {
    write<To>(thread, i.slots[0], store<To>(load(read<From>(thread, i.slots[1]))));
}

/* Into [0, 1]; NaN becomes 0. */
struct Saturate {
    float operator()(float x) const {
        return x > 0 ? x < 1 ? x : 1.0f : 0.0f;
    }
};

struct Same {
    float operator()(float x) const {
        return x;
    }
};

void float_to_bfloat_cut(Thread &thread, const Instruction &i) {
    const float x = read<float>(thread, i.slots[1]);
    const uint32_t bits = bit_cast<uint32_t>(x) >> 16;
    write<uint16_t>(thread, i.slots[0], std::isnan(x) ? 0x7fff : static_cast<uint16_t>(bits));
}

/* The first operand goes to the high half. */
void floats_to_pair(Thread &thread, const Instruction &i) {
    const uint32_t high = bfloat_from(static_cast<double>(read<float>(thread, i.slots[1])));
    const uint32_t low = bfloat_from(static_cast<double>(read<float>(thread, i.slots[2])));
    write<uint32_t>(thread, i.slots[0], high << 16 | low);
}

Execute between_floats(Decoder &d, Type to, Type from) {
    if (to == Type::f32 && from == Type::f32) {
        const bool saturate = d.take("sat"), flush = d.take("ftz");
        if (saturate) return flush ? unary<FlushedFloat, Saturate> : unary<float, Saturate>;
        return flush ? unary<FlushedFloat, Same> : unary<float, Same>;
    }
    if (to == Type::f64 && from == Type::f32)
        return d.take("ftz") ? float_to_float<double, FlushedFloat> : float_to_float<double, float>;
    if (to == Type::f32 && from == Type::bf16) return float_to_float<float, Bfloat>;
    if (to == Type::bf16 && from == Type::f32 && d.take("rz")) return float_to_bfloat_cut;
    if (!d.take("rn")) return nullptr;
    if (to == Type::f32 && from == Type::f64)
        return d.take("ftz") ? float_to_float<FlushedFloat, double> : float_to_float<float, double>;
    if (to == Type::bf16 && from == Type::f32) return float_to_float<Bfloat, float>;
    return nullptr;
}

void decode_cvt(Decoder &d) {
    const Type to = d.type(), from = d.type();
    if (to == Type::bf16x2 && from == Type::f32) {
        d.values(3);
        d.choose({"rn"});
        d.execute(floats_to_pair);
        return;
    }
    d.values(2);
    if (Execute integers = between_integers(to, from)) {
        d.execute(integers);
    } else if (Execute known = is_float(to) ? from_integer(to, from) : nullptr) {
        d.choose({"rn"});
        d.execute(known);
    } else if (is_float(from) && d.take("rni")) {
        d.execute(to_whole<Nearest>(to, from, d.take("ftz")));
    } else if (is_float(from) && d.take("rzi")) {
        d.execute(to_whole<TowardsZero>(to, from, d.take("ftz")));
    } else if (is_float(from) && d.take("rmi")) {
        d.execute(to_whole<Down>(to, from, d.take("ftz")));
    } else if (is_float(from) && d.take("rpi")) {
        d.execute(to_whole<Up>(to, from, d.take("ftz")));
    } else {
        d.execute(between_floats(d, to, from));
    }
}

} // namespace

const Family conversion_opcodes = {{"cvt", decode_cvt}};

} // namespace ptx
