/* From statements to instructions. Each family of opcodes is a table of functions that choose, for the
 * types and modifiers of a statement, the C++ function that does it. Whatever of the statement nobody
 * took is refused: the interpreter never guesses. */
#ifndef TEST_CUDA_PTX_DECODE_H
#define TEST_CUDA_PTX_DECODE_H

#include <initializer_list>

#include "instruction.h"

namespace ptx {

enum class Type {
    pred,
    b8,
    u8,
    s8,
    b16,
    u16,
    s16,
    b32,
    u32,
    s32,
    b64,
    u64,
    s64,
    bf16,
    bf16x2,
    f32,
    f64
};

unsigned bytes_of(Type type);

class Decoder {
  public:
    Decoder(const ParsedKernel &of, const Statement &statement);

    const ParsedKernel &kernel;
    const Statement &statement;
    Instruction result;

    [[noreturn]] void refuse(const std::string &why) const;

    /* Takes a modifier if it is there. */
    bool take(const char *modifier);
    /* Takes one of them, which has to be there, and says which. */
    unsigned choose(std::initializer_list<const char *> modifiers);
    /* Takes those that change nothing here, such as cache hints. */
    void ignore(std::initializer_list<const char *> modifiers);
    /* Takes the next modifier that is a type. */
    Type type();
    bool more_types() const;
    /* Takes all modifiers if, joined by dots, they are this text. */
    bool take_all(const char *text);

    /* Gives the result the slots of the operands: `counts` are how many each has, in order. */
    void operands(std::initializer_list<size_t> counts);
    /* `count` single values. */
    void values(size_t count);

    /* Sets the function; refuses null: a type that the opcode does not have. */
    void execute(Execute function);
    void finish() const;

  private:
    std::vector<std::string> left; /* modifiers not taken yet */
};

typedef void (*Decode)(Decoder &decoder);

struct Opcode {
    const char *name;
    Decode decode;
};

typedef std::vector<Opcode> Family;

extern const Family arithmetic_opcodes, function_opcodes, bit_opcodes, comparison_opcodes,
    conversion_opcodes, memory_opcodes, control_opcodes, warp_opcodes, tensor_opcodes;

/* Throws Refusal. */
std::vector<Instruction> decode(const ParsedKernel &kernel);

} // namespace ptx

#endif
