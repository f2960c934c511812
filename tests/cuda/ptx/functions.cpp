/* Functions of one float. The .approx forms are computed exactly and rounded once: a device's differ from
 * that by the errors its manual states. */
#include "visit.h"

namespace ptx {

namespace {

struct Reciprocal {
    template <class T> T operator()(T x) const {
        return 1 / x;
    }
};

struct SquareRoot {
    template <class T> T operator()(T x) const {
        return std::sqrt(x);
    }
};

/* In double, so that the result is rounded once. */
template <double (*FUNCTION)(double)> struct Rounded {
    float operator()(float x) const {
        return static_cast<float>(FUNCTION(static_cast<double>(x)));
    }
};

double reciprocal_root(double x) {
    return 1 / std::sqrt(x);
}

struct CopySign {
    template <class T> T operator()(T sign, T magnitude) const {
        return std::copysign(magnitude, sign);
    }
};

template <class Op> Execute float_or_flushed(Decoder &d) {
    const Type type = d.type();
    const bool flush = d.take("ftz");
    if (type != Type::f32) return nullptr;
    return flush ? unary<FlushedFloat, Op> : unary<float, Op>;
}

template <double (*FUNCTION)(double)> void decode_approximate(Decoder &d) {
    d.values(2);
    d.choose({"approx"});
    d.execute(float_or_flushed<Rounded<FUNCTION>>(d));
}

/* rcp, sqrt: .rn for float and double, .approx for float. */
template <class Op> void decode_rounded(Decoder &d) {
    d.values(2);
    const bool approximate = d.choose({"rn", "approx"}) == 1;
    if (!approximate && d.take("f64"))
        d.execute(unary<double, Op>);
    else
        d.execute(float_or_flushed<Op>(d));
}

void decode_copysign(Decoder &d) {
    d.values(3);
    const Type type = d.type();
    d.execute(type == Type::f32   ? binary<float, CopySign>
              : type == Type::f64 ? binary<double, CopySign>
                                  : nullptr);
}

} // namespace

const Family function_opcodes = {
    {"rcp", decode_rounded<Reciprocal>},
    {"sqrt", decode_rounded<SquareRoot>},
    {"rsqrt", decode_approximate<reciprocal_root>},
    {"ex2", decode_approximate<std::exp2>},
    {"lg2", decode_approximate<std::log2>},
    {"sin", decode_approximate<std::sin>},
    {"cos", decode_approximate<std::cos>},
    {"tanh", decode_approximate<std::tanh>},
    {"copysign", decode_copysign},
};

} // namespace ptx
