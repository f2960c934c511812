#include "decode.h"

#include <algorithm>
#include <unordered_map>

namespace ptx {

static const struct {
    const char *name;
    Type type;
    unsigned bytes;
} types[] = {{"pred", Type::pred, 1}, {"b8", Type::b8, 1},     {"u8", Type::u8, 1},
             {"s8", Type::s8, 1},     {"b16", Type::b16, 2},   {"u16", Type::u16, 2},
             {"s16", Type::s16, 2},   {"b32", Type::b32, 4},   {"u32", Type::u32, 4},
             {"s32", Type::s32, 4},   {"b64", Type::b64, 8},   {"u64", Type::u64, 8},
             {"s64", Type::s64, 8},   {"bf16", Type::bf16, 2}, {"bf16x2", Type::bf16x2, 4},
             {"f32", Type::f32, 4},   {"f64", Type::f64, 8}};

static bool find_type(const std::string &name, Type *type) {
    for (const auto &known : types)
        if (name == known.name) {
            *type = known.type;
            return true;
        }
    return false;
}

unsigned bytes_of(Type type) {
    for (const auto &known : types)
        if (type == known.type) return known.bytes;
    return 0;
}

Decoder::Decoder(const ParsedKernel &of, const Statement &from)
    : kernel(of), statement(from), result{}, left(from.modifiers) {
    result.line = from.line;
    result.guarded = from.guarded;
    result.guard_negated = from.guard_negated;
    result.guard = from.guard;
}

void Decoder::refuse(const std::string &why) const {
    throw Refusal(statement.line, why);
}

bool Decoder::take(const char *modifier) {
    const auto found = std::find(left.begin(), left.end(), modifier);
    if (found == left.end()) return false;
    left.erase(found);
    return true;
}

unsigned Decoder::choose(std::initializer_list<const char *> modifiers) {
    unsigned i = 0;
    std::string names;
    for (const char *modifier : modifiers) {
        if (take(modifier)) return i;
        names += std::string(" .") + modifier;
        i++;
    }
    refuse("expected one of" + names);
}

void Decoder::ignore(std::initializer_list<const char *> modifiers) {
    for (const char *modifier : modifiers) take(modifier);
}

Type Decoder::type() {
    Type type;
    for (size_t i = 0; i < left.size(); i++)
        if (find_type(left[i], &type)) {
            left.erase(left.begin() + static_cast<std::ptrdiff_t>(i));
            return type;
        }
    refuse("no type");
}

bool Decoder::more_types() const {
    Type type;
    return std::any_of(left.begin(), left.end(),
                       [&](const std::string &name) { return find_type(name, &type); });
}

bool Decoder::take_all(const char *text) {
    std::string joined;
    for (const std::string &modifier : left) joined += (joined.empty() ? "" : ".") + modifier;
    if (joined != text) return false;
    left.clear();
    return true;
}

void Decoder::operands(std::initializer_list<size_t> counts) {
    if (statement.operands.size() != counts.size())
        refuse("another number of operands is expected");
    size_t slot = 0;
    auto operand = statement.operands.begin();
    for (size_t count : counts) {
        if (operand->kind == Operand::Kind::name || operand->negated ||
            operand->slots.size() != count)
            refuse("an operand is not of the kind expected");
        for (Slot from : operand->slots) result.slots[slot++] = from;
        operand++;
    }
}

void Decoder::values(size_t count) {
    if (statement.operands.size() != count) refuse("another number of operands is expected");
    for (size_t i = 0; i < count; i++) {
        const Operand &operand = statement.operands[i];
        if (operand.kind != Operand::Kind::value || operand.negated)
            refuse("an operand is not of the kind expected");
        result.slots[i] = operand.slots[0];
    }
}

void Decoder::execute(Execute function) {
    if (!function) refuse("not for this type");
    result.execute = function;
}

void Decoder::finish() const {
    if (!left.empty()) refuse("unknown modifier ." + left[0]);
}

static std::unordered_map<std::string, Decode> all_opcodes() {
    std::unordered_map<std::string, Decode> all;
    for (const Family *family :
         {&arithmetic_opcodes, &function_opcodes, &bit_opcodes, &comparison_opcodes,
          &conversion_opcodes, &memory_opcodes, &control_opcodes, &warp_opcodes, &tensor_opcodes})
        for (const Opcode &opcode : *family) all.emplace(opcode.name, opcode.decode);
    return all;
}

static void run_past_the_end(Thread &thread, const Instruction &instruction) {
    fault(thread, instruction, "a thread ran past the end of its kernel");
}

std::vector<Instruction> decode(const ParsedKernel &kernel) {
    static const std::unordered_map<std::string, Decode> opcodes = all_opcodes();
    std::vector<Instruction> code;
    for (const Statement &statement : kernel.statements) {
        Decoder decoder(kernel, statement);
        const auto opcode = opcodes.find(statement.opcode);
        if (opcode == opcodes.end()) decoder.refuse("unknown opcode " + statement.opcode);
        opcode->second(decoder);
        decoder.finish();
        code.push_back(decoder.result);
    }
    Instruction end{};
    end.execute = run_past_the_end;
    code.push_back(end);
    return code;
}

} // namespace ptx
