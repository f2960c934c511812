/* Sums, products and quotients of integers and floats. */
#include <limits>

#include "visit.h"

namespace ptx {

namespace {

/* Integers wrap: they are added and multiplied as 64-bit numbers without sign, and the low bits kept. */
template <class T> auto wrapping(T x) {
    if constexpr (std::is_integral_v<T>)
        return static_cast<uint64_t>(x);
    else
        return x;
}

struct Add {
    template <class T> auto operator()(T a, T b) const {
        return wrapping(a) + wrapping(b);
    }
};

struct Subtract {
    template <class T> auto operator()(T a, T b) const {
        return wrapping(a) - wrapping(b);
    }
};

struct Multiply {
    template <class T> auto operator()(T a, T b) const {
        return wrapping(a) * wrapping(b);
    }
};

struct MultiplyAdd {
    template <class T> auto operator()(T a, T b, T c) const {
        if constexpr (std::is_integral_v<T>)
            return wrapping(a) * wrapping(b) + wrapping(c);
        else
            return std::fma(a, b, c);
    }
};

struct MultiplyHigh {
    template <class T> T operator()(T a, T b) const {
        typedef std::conditional_t<std::is_signed_v<T>, __int128, unsigned __int128> Wide;
        return static_cast<T>((static_cast<Wide>(a) * static_cast<Wide>(b)) >> (8 * sizeof(T)));
    }
};

/* A number gives way to NaN only with .NaN, and -0 is less than 0. */
template <bool GREATER, bool NAN_WINS> struct Extreme {
    template <class T> T operator()(T a, T b) const {
        if constexpr (!std::is_integral_v<T>) {
            if (std::isnan(a)) return NAN_WINS ? a : b;
            if (std::isnan(b)) return NAN_WINS ? b : a;
            if (a == b) return std::signbit(a) == GREATER ? b : a;
        }
        return (a < b) == GREATER ? b : a;
    }
};

struct Negate {
    template <class T> auto operator()(T x) const {
        return -wrapping(x);
    }
};

struct Absolute {
    template <class T> auto operator()(T x) const {
        if constexpr (std::is_integral_v<T>)
            return x < 0 ? -wrapping(x) : wrapping(x);
        else
            return std::fabs(x);
    }
};

struct Divide {
    template <class T> T operator()(T a, T b) const {
        return static_cast<T>(a / b);
    }
};

struct Remainder {
    template <class T> T operator()(T a, T b) const {
        return static_cast<T>(a % b);
    }
};

/* Devices give an unspecified value where C++ is undefined; a kernel must not ask. */
template <class T, class Op> void divide_integers(Thread &thread, const Instruction &i) {
    const T a = read<T>(thread, i.slots[1]), b = read<T>(thread, i.slots[2]);
    if (b == 0) fault(thread, i, "a division by zero");
    if (std::is_signed_v<T> && b == static_cast<T>(-1) && a == std::numeric_limits<T>::min())
        fault(thread, i, "a quotient that overflows");
    write<T>(thread, i.slots[0], Op()(a, b));
}

/* The full product, to which .wide adds a third operand of its width. */
template <class T, bool ADD> void multiply_wide(Thread &thread, const Instruction &i) {
    typedef std::conditional_t<std::is_signed_v<T>, int64_t, uint64_t> Wide;
    const Wide product = static_cast<Wide>(read<T>(thread, i.slots[1])) *
                         static_cast<Wide>(read<T>(thread, i.slots[2]));
    uint64_t sum = static_cast<uint64_t>(product);
    if (ADD) sum += thread.slots[i.slots[3]];
    write<uint64_t>(thread, i.slots[0], sum);
}

template <class Op> Execute binary_of(Decoder &d) {
    const Type type = d.type();
    const auto pick = [](auto tag) -> Execute { return binary<typename decltype(tag)::Of, Op>; };
    if (Execute integers = visit_integers(type, pick)) return integers;
    d.take("rn");
    return visit_floats(type, d.take("ftz"), pick);
}

template <class Op> void decode_sum(Decoder &d) {
    d.values(3);
    d.execute(binary_of<Op>(d));
}

void decode_mul(Decoder &d) {
    d.values(3);
    if (d.take("wide")) {
        const Type type = d.type();
        if (bytes_of(type) == 8) d.refuse("not for this type");
        d.execute(visit_integers(type, [](auto tag) -> Execute {
            return multiply_wide<typename decltype(tag)::Of, false>;
        }));
    } else if (d.take("hi")) {
        d.execute(visit_integers(d.type(), [](auto tag) -> Execute {
            return binary<typename decltype(tag)::Of, MultiplyHigh>;
        }));
    } else {
        d.take("lo");
        d.execute(binary_of<Multiply>(d));
    }
}

void decode_mad(Decoder &d) {
    d.values(4);
    const bool wide = d.take("wide");
    if (!wide && !d.take("lo")) d.refuse("expected .lo or .wide");
    const Type type = d.type();
    if (wide && bytes_of(type) == 8) d.refuse("not for this type");
    d.execute(visit_integers(type, [wide](auto tag) -> Execute {
        typedef typename decltype(tag)::Of T;
        return wide ? multiply_wide<T, true> : ternary<T, MultiplyAdd>;
    }));
}

/* fma.rm: down to the next float where the nearest lies above the exact sum. */
void multiply_add_down(Thread &thread, const Instruction &i) {
    const float a = read<float>(thread, i.slots[1]), b = read<float>(thread, i.slots[2]);
    const float c = read<float>(thread, i.slots[3]), nearest = std::fma(a, b, c);
    const double rest = static_cast<double>(c) - static_cast<double>(nearest);
    const bool above = std::fma(static_cast<double>(a), static_cast<double>(b), rest) < 0;
    write<float>(thread, i.slots[0], above ? std::nextafter(nearest, -INFINITY) : nearest);
}

void decode_fma(Decoder &d) {
    d.values(4);
    if (d.take("rm")) {
        d.choose({"f32"});
        d.execute(multiply_add_down);
        return;
    }
    d.choose({"rn"});
    d.execute(visit_floats(d.type(), d.take("ftz"), [](auto tag) -> Execute {
        return ternary<typename decltype(tag)::Of, MultiplyAdd>;
    }));
}

template <bool GREATER> void decode_extreme(Decoder &d) {
    d.values(3);
    d.execute(d.take("NaN") ? binary_of<Extreme<GREATER, true>>(d)
                            : binary_of<Extreme<GREATER, false>>(d));
}

template <class Op> void decode_sign(Decoder &d) {
    d.values(2);
    const auto pick = [](auto tag) -> Execute { return unary<typename decltype(tag)::Of, Op>; };
    const Type type = d.type();
    const Execute integers = visit_integers(type, pick);
    d.execute(integers ? integers : visit_floats(type, d.take("ftz"), pick));
}

/* The approximate forms of division are exact here. */
void decode_div(Decoder &d) {
    d.values(3);
    const Type type = d.type();
    Execute function = visit_integers(type, [](auto tag) -> Execute {
        return divide_integers<typename decltype(tag)::Of, Divide>;
    });
    if (!function) {
        d.choose({"rn", "approx", "full"});
        function = visit_floats(type, d.take("ftz"), [](auto tag) -> Execute {
            return binary<typename decltype(tag)::Of, Divide>;
        });
    }
    d.execute(function);
}

void decode_rem(Decoder &d) {
    d.values(3);
    d.execute(visit_integers(d.type(), [](auto tag) -> Execute {
        return divide_integers<typename decltype(tag)::Of, Remainder>;
    }));
}

} // namespace

const Family arithmetic_opcodes = {
    {"add", decode_sum<Add>},      {"sub", decode_sum<Subtract>}, {"mul", decode_mul},
    {"mad", decode_mad},           {"fma", decode_fma},           {"min", decode_extreme<false>},
    {"max", decode_extreme<true>}, {"neg", decode_sign<Negate>},  {"abs", decode_sign<Absolute>},
    {"div", decode_div},           {"rem", decode_rem},
};

} // namespace ptx
