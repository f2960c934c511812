/* ld, st, atom, red, cvta. */
#include <algorithm>

#include "address.h"
#include "visit.h"

namespace ptx {

namespace {

/* --- ld and st --- */

template <class T, Space SPACE, unsigned COUNT>
void load_from(Thread &thread, const Instruction &i) {
    const unsigned char *from = address<SPACE>(thread, i, COUNT, i.immediate, COUNT * sizeof(T));
    T values[COUNT];
    memcpy(values, from, sizeof values);
    for (unsigned k = 0; k < COUNT; k++) write<T>(thread, i.slots[k], values[k]);
}

template <class T, Space SPACE, unsigned COUNT>
void store_to(Thread &thread, const Instruction &i) {
    unsigned char *to = address<SPACE>(thread, i, 0, i.immediate, COUNT * sizeof(T));
    T values[COUNT];
    for (unsigned k = 0; k < COUNT; k++) values[k] = read<T>(thread, i.slots[1 + k]);
    memcpy(to, values, sizeof values);
}

template <class T, Space SPACE> Execute load_of(unsigned count) {
    return count == 1   ? load_from<T, SPACE, 1>
           : count == 2 ? load_from<T, SPACE, 2>
                        : load_from<T, SPACE, 4>;
}

template <class T, Space SPACE> Execute store_of(unsigned count) {
    return count == 1   ? store_to<T, SPACE, 1>
           : count == 2 ? store_to<T, SPACE, 2>
                        : store_to<T, SPACE, 4>;
}

/* Takes the space and what says how other threads or the caches see the access. */
Space space(Decoder &d) {
    d.ignore({"weak", "volatile", "relaxed", "acquire", "release", "acq_rel", "cta", "gpu", "sys"});
    d.ignore({"nc", "ca", "cg", "cs", "lu", "cv", "wb", "wt", "L1::no_allocate", "L1::evict_first",
              "L1::evict_last", "L1::evict_normal", "L1::evict_unchanged", "L2::128B", "L2::256B"});
    if (d.take("param")) return Space::parameter;
    if (d.take("shared") || d.take("shared::cta")) return Space::shared;
    d.take("global");
    return Space::global;
}

/* Of the operand that is an address. */
void set_offset(Decoder &d, size_t operand) {
    const auto &operands = d.statement.operands;
    if (operand >= operands.size() || operands[operand].kind != Operand::Kind::address)
        d.refuse("no address where one is expected");
    d.result.immediate = operands[operand].offset;
}

/* A parameter by its name, within which the access lies, or by an address. */
Space which_parameter(Decoder &d, size_t bytes) {
    const Operand &operand = d.statement.operands[1];
    if (operand.slots[0] >= d.kernel.parameter_slots) return Space::in_parameter;
    for (const Parameter &known : d.kernel.parameters)
        if (known.slot == operand.slots[0] && operand.offset >= 0 &&
            static_cast<uint64_t>(operand.offset) + bytes <= known.bytes)
            return Space::parameter;
    d.refuse("not within the parameter");
}

unsigned vector_length(Decoder &d) {
    return d.take("v2") ? 2 : d.take("v4") ? 4 : 1;
}

void decode_ld(Decoder &d) {
    Space from = space(d);
    const unsigned count = vector_length(d);
    const Type type = d.type();
    d.operands({count, 1});
    set_offset(d, 1);
    if (count * bytes_of(type) > 16) d.refuse("more than 16 bytes");
    if (from == Space::parameter) from = which_parameter(d, count * bytes_of(type));
    const auto pick = [from, count](auto tag) -> Execute {
        typedef typename decltype(tag)::Of T;
        return from == Space::shared         ? load_of<T, Space::shared>(count)
               : from == Space::parameter    ? load_of<T, Space::parameter>(count)
               : from == Space::in_parameter ? load_of<T, Space::in_parameter>(count)
                                             : load_of<T, Space::global>(count);
    };
    const Execute with_sign = visit_all_integers(type, pick);
    d.execute(with_sign ? with_sign : visit_widths(type, pick));
}

void decode_st(Decoder &d) {
    const Space to = space(d);
    const unsigned count = vector_length(d);
    const Type type = d.type();
    d.operands({1, count});
    set_offset(d, 0);
    if (count * bytes_of(type) > 16) d.refuse("more than 16 bytes");
    if (to == Space::parameter) d.refuse("a parameter cannot be written");
    d.execute(visit_widths(type, [to, count](auto tag) -> Execute {
        typedef typename decltype(tag)::Of T;
        return to == Space::shared ? store_of<T, Space::shared>(count)
                                   : store_of<T, Space::global>(count);
    }));
}

/* --- atom and red, on integers: the order of float additions would show in the result --- */

struct AtomicAdd {
    template <class T> T operator()(T old, T value, T) const {
        return static_cast<T>(static_cast<uint64_t>(old) + static_cast<uint64_t>(value));
    }
};

struct AtomicMin {
    template <class T> T operator()(T old, T value, T) const {
        return std::min(old, value);
    }
};

struct AtomicMax {
    template <class T> T operator()(T old, T value, T) const {
        return std::max(old, value);
    }
};

struct AtomicAnd {
    template <class T> T operator()(T old, T value, T) const {
        return static_cast<T>(old & value);
    }
};

struct AtomicOr {
    template <class T> T operator()(T old, T value, T) const {
        return static_cast<T>(old | value);
    }
};

struct AtomicXor {
    template <class T> T operator()(T old, T value, T) const {
        return static_cast<T>(old ^ value);
    }
};

struct AtomicExchange {
    template <class T> T operator()(T, T value, T) const {
        return value;
    }
};

struct AtomicCompareSwap {
    template <class T> T operator()(T old, T expected, T value) const {
        return old == expected ? value : old;
    }
};

struct AtomicIncrement {
    template <class T> T operator()(T old, T limit, T) const {
        return old >= limit ? T{0} : static_cast<T>(old + 1);
    }
};

/* slots: the old value if RETURNS, the address, one or two values. Fibers are not interrupted. */
template <class T, class Op, Space SPACE, bool RETURNS>
void atomic(Thread &thread, const Instruction &i) {
    unsigned char *at = address<SPACE>(thread, i, RETURNS, i.immediate, sizeof(T));
    T old;
    memcpy(&old, at, sizeof old);
    const T value =
        Op()(old, read<T>(thread, i.slots[RETURNS + 1]), read<T>(thread, i.slots[RETURNS + 2]));
    memcpy(at, &value, sizeof value);
    if (RETURNS) write<T>(thread, i.slots[0], old);
}

template <class Op> Execute atomic_of(Type type, Space space, bool returns) {
    const auto pick = [space, returns](auto tag) -> Execute {
        typedef typename decltype(tag)::Of T;
        if (returns)
            return space == Space::shared ? atomic<T, Op, Space::shared, true>
                                          : atomic<T, Op, Space::global, true>;
        return space == Space::shared ? atomic<T, Op, Space::shared, false>
                                      : atomic<T, Op, Space::global, false>;
    };
    switch (type) {
    case Type::b32:
    case Type::u32:
        return pick(Tag<uint32_t>());
    case Type::s32:
        return pick(Tag<int32_t>());
    case Type::b64:
    case Type::u64:
        return pick(Tag<uint64_t>());
    case Type::s64:
        return pick(Tag<int64_t>());
    default:
        return nullptr;
    }
}

template <bool RETURNS> void decode_atomic(Decoder &d) {
    const Space where = space(d);
    if (where == Space::parameter) d.refuse("a parameter cannot be written");
    const bool swaps = d.take("cas");
    Execute (*of)(Type, Space, bool) = atomic_of<AtomicCompareSwap>;
    if (!swaps) {
        static Execute (*const choices[])(Type, Space, bool) = {
            atomic_of<AtomicAdd>,      atomic_of<AtomicMin>,      atomic_of<AtomicMax>,
            atomic_of<AtomicAnd>,      atomic_of<AtomicOr>,       atomic_of<AtomicXor>,
            atomic_of<AtomicExchange>, atomic_of<AtomicIncrement>};
        of = choices[d.choose({"add", "min", "max", "and", "or", "xor", "exch", "inc"})];
    }
    if (RETURNS && swaps)
        d.operands({1, 1, 1, 1});
    else if (RETURNS || swaps)
        d.operands({1, 1, 1});
    else
        d.operands({1, 1});
    set_offset(d, RETURNS);
    d.execute(of(d.type(), where, RETURNS));
}

/* --- cvta: of shared memory only, for global memory is where it seems to be --- */

void shared_to_generic(Thread &thread, const Instruction &i) {
    const uint64_t base = reinterpret_cast<uintptr_t>(thread.shared);
    write<uint64_t>(thread, i.slots[0], base + read<uint32_t>(thread, i.slots[1]));
}

void generic_to_shared(Thread &thread, const Instruction &i) {
    const uint64_t base = reinterpret_cast<uintptr_t>(thread.shared);
    const uint64_t offset = thread.slots[i.slots[1]] - base;
    if (offset > thread.shared_bytes) fault(thread, i, "not an address of shared memory");
    write<uint64_t>(thread, i.slots[0], offset);
}

void keep_address(Thread &thread, const Instruction &i) {
    thread.slots[i.slots[0]] = thread.slots[i.slots[1]];
}

void decode_cvta(Decoder &d) {
    d.values(2);
    const bool to = d.take("to");
    d.choose({"u64"});
    if (d.take("global"))
        d.execute(keep_address);
    else if (d.take("shared"))
        d.execute(to ? generic_to_shared : shared_to_generic);
}

} // namespace

const Family memory_opcodes = {
    {"ld", decode_ld},
    {"st", decode_st},
    {"atom", decode_atomic<true>},
    {"red", decode_atomic<false>},
    {"cvta", decode_cvta},
};

} // namespace ptx
