/* setp, set, selp, slct. */
#include "visit.h"

namespace ptx {

namespace {

/* How two values stand to each other, and the outcomes for which a comparison holds. */
enum Outcome : int64_t { LESS = 1, EQUAL = 2, GREATER = 4, UNORDERED = 8 };

template <class T> int64_t outcome(T a, T b) {
    return a < b ? LESS : a == b ? EQUAL : a > b ? GREATER : UNORDERED;
}

const struct {
    const char *name;
    int64_t holds_for;
} relations[] = {
    {"eq", EQUAL},
    {"ne", LESS | GREATER},
    {"lt", LESS},
    {"le", LESS | EQUAL},
    {"gt", GREATER},
    {"ge", GREATER | EQUAL},
    {"lo", LESS},
    {"ls", LESS | EQUAL},
    {"hi", GREATER},
    {"hs", GREATER | EQUAL},
    {"equ", EQUAL | UNORDERED},
    {"neu", LESS | GREATER | UNORDERED},
    {"ltu", LESS | UNORDERED},
    {"leu", LESS | EQUAL | UNORDERED},
    {"gtu", GREATER | UNORDERED},
    {"geu", GREATER | EQUAL | UNORDERED},
    {"num", LESS | EQUAL | GREATER},
    {"nan", UNORDERED},
};

/* Takes the relation of a statement. */
int64_t relation(Decoder &d) {
    for (const auto &known : relations)
        if (d.take(known.name)) return known.holds_for;
    d.refuse("no relation");
}

struct Alone {
    bool operator()(bool held, bool) const {
        return held;
    }
};

struct AndAlso {
    bool operator()(bool held, bool other) const {
        return held && other;
    }
};

struct OrElse {
    bool operator()(bool held, bool other) const {
        return held || other;
    }
};

struct Either {
    bool operator()(bool held, bool other) const {
        return held != other;
    }
};

/* slots: the result, the opposite result, both operands, the predicate to combine with. */
constexpr int64_t negate_other = 16;

template <class T, class Combine> void compare(Thread &thread, const Instruction &i) {
    const int64_t came =
        outcome(load(read<T>(thread, i.slots[2])), load(read<T>(thread, i.slots[3])));
    const bool held = i.immediate & came;
    const bool other = (thread.slots[i.slots[4]] & 1) != (i.immediate & negate_other ? 1 : 0);
    write<uint32_t>(thread, i.slots[1], Combine()(!held, other));
    write<uint32_t>(thread, i.slots[0], Combine()(held, other));
}

template <class Combine> Execute compare_of(Type type, bool flush) {
    const auto pick = [](auto tag) -> Execute {
        return compare<typename decltype(tag)::Of, Combine>;
    };
    switch (type) {
    case Type::b16:
        return compare<uint16_t, Combine>;
    case Type::b32:
        return compare<uint32_t, Combine>;
    case Type::b64:
        return compare<uint64_t, Combine>;
    case Type::bf16x2:
        return nullptr;
    case Type::f32:
        return flush ? compare<FlushedFloat, Combine> : compare<float, Combine>;
    case Type::f64:
        return compare<double, Combine>;
    case Type::bf16:
        return compare<Bfloat, Combine>;
    default:
        return visit_integers(type, pick);
    }
}

void decode_setp(Decoder &d) {
    d.result.immediate = relation(d);
    const auto &operands = d.statement.operands;
    const bool with_and = d.take("and"), with_or = d.take("or"), with_xor = d.take("xor");
    const bool combined = with_and || with_or || with_xor;
    if (operands.size() != (combined ? 4u : 3u) || operands[0].slots.size() > 2)
        d.refuse("another number of operands is expected");
    for (size_t k = 0; k < operands.size(); k++)
        if ((k > 0 && operands[k].kind != Operand::Kind::value) || operands[k].slots.empty() ||
            (k < 3 && operands[k].negated))
            d.refuse("an operand is not of the kind expected");
    d.result.slots[0] = operands[0].slots.front();
    d.result.slots[1] = operands[0].slots.size() == 2 ? operands[0].slots[1] : d.result.slots[0];
    for (size_t k = 1; k < operands.size(); k++) d.result.slots[1 + k] = operands[k].slots[0];
    if (combined && operands[3].negated) d.result.immediate |= negate_other;
    const Type type = d.type();
    const bool flush = d.take("ftz");
    d.execute(with_and   ? compare_of<AndAlso>(type, flush)
              : with_or  ? compare_of<OrElse>(type, flush)
              : with_xor ? compare_of<Either>(type, flush)
                         : compare_of<Alone>(type, flush));
}

/* 1.0 or, as an integer, all ones where the comparison holds. */
template <class T, bool TO_FLOAT> void set(Thread &thread, const Instruction &i) {
    const int64_t came =
        outcome(load(read<T>(thread, i.slots[1])), load(read<T>(thread, i.slots[2])));
    const uint32_t yes = TO_FLOAT ? bit_cast<uint32_t>(1.0f) : ~0u;
    write<uint32_t>(thread, i.slots[0], i.immediate & came ? yes : 0);
}

void decode_set(Decoder &d) {
    d.values(3);
    d.result.immediate = relation(d);
    const Type to = d.type(), from = d.type();
    const bool flush = d.take("ftz");
    if (to != Type::f32 && to != Type::u32 && to != Type::s32) d.refuse("not for this type");
    const auto pick = [to](auto tag) -> Execute {
        typedef typename decltype(tag)::Of T;
        return to == Type::f32 ? set<T, true> : set<T, false>;
    };
    const Execute integers = visit_integers(from, pick);
    d.execute(integers                     ? integers
              : from == Type::f32 && flush ? pick(Tag<FlushedFloat>())
              : from == Type::f32          ? pick(Tag<float>())
              : from == Type::f64          ? pick(Tag<double>())
                                           : nullptr);
}

template <class T> void select_by_predicate(Thread &thread, const Instruction &i) {
    const bool first = thread.slots[i.slots[3]] & 1;
    write<T>(thread, i.slots[0], read<T>(thread, i.slots[first ? 1 : 2]));
}

void decode_selp(Decoder &d) {
    d.values(4);
    d.execute(visit_widths(d.type(), [](auto tag) -> Execute {
        return select_by_predicate<typename decltype(tag)::Of>;
    }));
}

template <class T, class By> void select_by_sign(Thread &thread, const Instruction &i) {
    const bool first = read<By>(thread, i.slots[3]) >= 0;
    write<T>(thread, i.slots[0], read<T>(thread, i.slots[first ? 1 : 2]));
}

void decode_slct(Decoder &d) {
    d.values(4);
    const Type type = d.type();
    const bool by_float = d.choose({"s32", "f32"}) == 1;
    d.execute(visit_widths(type, [by_float](auto tag) -> Execute {
        typedef typename decltype(tag)::Of T;
        return by_float ? select_by_sign<T, float> : select_by_sign<T, int32_t>;
    }));
}

} // namespace

const Family comparison_opcodes = {
    {"setp", decode_setp},
    {"set", decode_set},
    {"selp", decode_selp},
    {"slct", decode_slct},
};

} // namespace ptx
