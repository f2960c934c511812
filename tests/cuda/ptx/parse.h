/* PTX text as kernels made of statements, in which every register, constant and address has its place.
 *
 * All that a thread can read by name lies in an array of 64-bit slots: registers, the constants of the
 * text, special registers such as %tid.x, and the kernel's parameters. A register narrower than a slot
 * uses its low bytes; the rest is never read. */
#ifndef TEST_CUDA_PTX_PARSE_H
#define TEST_CUDA_PTX_PARSE_H

#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "lexer.h"

namespace ptx {

typedef uint16_t Slot;

struct Operand {
    enum class Kind {
        value,   /* slots[0] */
        vector,  /* {a, b} or, with two, a|b: slots */
        address, /* [slots[0] + offset] */
        name     /* text: a label */
    };
    Kind kind;
    std::vector<Slot> slots;
    int64_t offset;
    std::string text;
    bool negated; /* !p */
};

struct Statement {
    int line;
    std::string opcode;                 /* "ld" */
    std::vector<std::string> modifiers; /* "global", "v4", "b32" */
    std::vector<Operand> operands;
    bool guarded, guard_negated; /* @p, @!p */
    Slot guard;
};

struct Parameter {
    Slot slot; /* its first; those that follow hold the rest of its bytes */
    unsigned bytes;
};

struct ParameterAddress {
    Slot slot, parameter;
};

typedef uint64_t SpecialRegister();

/* %tid.x and its like, of the running thread; null for another name. */
SpecialRegister *special_register(const std::string &name);

struct Special {
    Slot slot;
    SpecialRegister *value;
};

struct ParsedKernel {
    std::string name;
    unsigned threads; /* most in a block */
    std::vector<Parameter> parameters;
    size_t parameter_slots; /* they come first */
    std::vector<ParameterAddress> parameter_addresses;
    std::vector<Special> specials;
    std::vector<uint64_t> slots; /* as a thread finds them */
    size_t static_shared_bytes;  /* dynamic shared memory follows */
    std::vector<Statement> statements;
    std::map<std::string, size_t> labels; /* the statement that follows each */
};

/* Throws Refusal. */
std::vector<ParsedKernel> parse(const std::string &source);

} // namespace ptx

#endif
