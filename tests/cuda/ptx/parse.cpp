#include "parse.h"

#include <algorithm>

#include "host/runtime.h"

namespace ptx {

namespace {

constexpr uint64_t unwritten = 0xdeadbeefdeadbeef; /* what a register holds before it is written */
constexpr size_t most_slots = 60000;
constexpr uint64_t most_shared_bytes = 1 << 18;

unsigned type_bytes(const std::string &type) {
    static const std::map<std::string, unsigned> bytes = {
        {".b8", 1},  {".u8", 1},  {".s8", 1},  {".b16", 2}, {".u16", 2},
        {".s16", 2}, {".f16", 2}, {".b32", 4}, {".u32", 4}, {".s32", 4},
        {".f32", 4}, {".b64", 8}, {".u64", 8}, {".s64", 8}, {".f64", 8}};
    const auto found = bytes.find(type);
    return found == bytes.end() ? 0 : found->second;
}

struct SharedVariable {
    uint64_t bytes, alignment;
    bool dynamic; /* declared [] */
};

class Parser {
  public:
    explicit Parser(const std::string &source) : tokens(tokenize(source)) {
    }

    std::vector<ParsedKernel> module() {
        std::vector<ParsedKernel> kernels;
        while (now().kind != Token::Kind::end) {
            while (accept(".visible") || accept(".extern") || accept(".weak")) continue;
            if (accept(".entry"))
                kernels.push_back(entry());
            else if (accept(".shared"))
                declare_module_shared();
            else
                header_directive();
        }
        return kernels;
    }

  private:
    std::vector<Token> tokens;
    size_t at = 0;
    std::map<std::string, SharedVariable> module_shared; /* a kernel has those it names */

    /* Of the kernel being read. */
    ParsedKernel *kernel = nullptr;
    std::vector<std::map<std::string, Slot>> scopes;
    std::map<uint64_t, Slot> constants;
    std::vector<Slot> dynamic_addresses; /* constants that wait for the size of static memory */

    /* --- tokens --- */

    const Token &now() const {
        return tokens[at];
    }

    const Token &take() {
        const Token &token = tokens[at];
        if (token.kind != Token::Kind::end) at++;
        return token;
    }

    [[noreturn]] void refuse(const std::string &why) const {
        throw Refusal(now().line, why);
    }

    bool is(const char *text) const {
        return now().text == text && now().kind != Token::Kind::string;
    }

    bool accept(const char *text) {
        if (!is(text)) return false;
        at++;
        return true;
    }

    void expect(const char *text) {
        if (!accept(text)) refuse(std::string("expected ") + text + " but found " + now().text);
    }

    std::string word() {
        if (now().kind != Token::Kind::word) refuse("expected a name but found " + now().text);
        return take().text;
    }

    uint64_t number(uint64_t most) {
        if (now().kind != Token::Kind::number || now().bits > most)
            refuse("expected a number up to " + std::to_string(most) + " but found " + now().text);
        return take().bits;
    }

    /* --- slots --- */

    Slot new_slots(size_t count, uint64_t value = unwritten) {
        const size_t first = kernel->slots.size();
        if (count > most_slots - first) refuse("more registers and constants than fit");
        kernel->slots.resize(first + count, value);
        return static_cast<Slot>(first);
    }

    Slot constant(uint64_t bits) {
        const auto found = constants.find(bits);
        if (found != constants.end()) return found->second;
        return constants[bits] = new_slots(1, bits);
    }

    void name_slot(const std::string &name, Slot slot) {
        if (!scopes.back().emplace(name, slot).second) refuse(name + " is declared twice");
    }

    /* --- declarations --- */

    void header_directive() {
        if (accept(".version") || accept(".address_size"))
            take();
        else if (accept(".target"))
            do {
                word();
            } while (accept(","));
        else
            refuse("not understood: " + now().text);
    }

    uint64_t alignment() {
        if (!accept(".align")) return 1;
        const uint64_t bytes = number(128);
        if (bytes == 0 || (bytes & (bytes - 1))) refuse("an alignment is a power of two");
        return bytes;
    }

    /* .align 4 .b8 name[128]; with `unit` the bytes of its type, true in `array` for []. */
    std::string variable(uint64_t *bytes, uint64_t *align, bool *unsized) {
        *align = alignment();
        const unsigned unit = type_bytes(now().text);
        if (!unit) refuse("not the type of a variable: " + now().text);
        take();
        if (accept(".ptr")) {
            accept(".global");
            alignment(); /* of what it points to */
        }
        *align = std::max<uint64_t>(*align, unit);
        *bytes = unit;
        *unsized = false;
        const std::string name = word();
        if (accept("[")) {
            *unsized = is("]");
            *bytes = *unsized ? 0 : unit * number(most_shared_bytes);
            expect("]");
        }
        return name;
    }

    void declare_module_shared() {
        SharedVariable shared;
        const std::string name = variable(&shared.bytes, &shared.alignment, &shared.dynamic);
        module_shared[name] = shared;
        expect(";");
    }

    Slot place_shared(const std::string &name, const SharedVariable &shared) {
        size_t &end = kernel->static_shared_bytes;
        if (shared.dynamic) {
            dynamic_addresses.push_back(new_slots(1));
            scopes.front()[name] = dynamic_addresses.back();
            return dynamic_addresses.back();
        }
        end = (end + shared.alignment - 1) / shared.alignment * shared.alignment;
        const Slot slot = constant(end);
        end += shared.bytes;
        if (end > most_shared_bytes) refuse("more shared memory than any device has");
        scopes.front()[name] = slot;
        return slot;
    }

    /* .reg .b32 %r<10>; .reg .b16 low, high; */
    void declare_registers() {
        if (!is(".pred") && !type_bytes(now().text)) refuse("not a register's type: " + now().text);
        take();
        do {
            const std::string name = word();
            if (!accept("<")) {
                name_slot(name, new_slots(1));
                continue;
            }
            const uint64_t count = number(most_slots);
            const Slot first = new_slots(count);
            for (uint64_t i = 0; i < count; i++)
                name_slot(name + std::to_string(i), static_cast<Slot>(first + i));
            expect(">");
        } while (accept(","));
        expect(";");
    }

    void declare() {
        if (accept(".reg")) {
            declare_registers();
        } else if (accept(".shared")) {
            SharedVariable shared;
            const std::string name = variable(&shared.bytes, &shared.alignment, &shared.dynamic);
            place_shared(name, shared);
            expect(";");
        } else if (accept(".pragma")) {
            take();
            expect(";");
        } else {
            refuse("not understood: " + now().text);
        }
    }

    /* --- operands --- */

    Slot named(const std::string &name) {
        for (size_t i = scopes.size(); i-- > 0;) {
            const auto found = scopes[i].find(name);
            if (found != scopes[i].end()) return found->second;
        }
        if (SpecialRegister *special = special_register(name)) {
            const Slot slot = new_slots(1);
            kernel->specials.push_back({slot, special});
            return scopes.front()[name] = slot;
        }
        const auto shared = module_shared.find(name);
        if (shared != module_shared.end()) return place_shared(name, shared->second);
        if (name == "WARP_SZ") return constant(host::warp_size);
        if (name == "_") return new_slots(1); /* a result nobody wants */
        refuse("unknown name: " + name);
    }

    Slot value() {
        const bool negative = accept("-");
        if (now().kind == Token::Kind::number) {
            const uint64_t bits = take().bits;
            return constant(negative ? 0 - bits : bits);
        }
        if (negative) refuse("expected a number but found " + now().text);
        return named(word());
    }

    /* A parameter's name is its memory between brackets, its address elsewhere. */
    Slot address_if_parameter(Slot slot) {
        if (slot >= kernel->parameter_slots) return slot;
        const Slot address = new_slots(1);
        kernel->parameter_addresses.push_back({address, slot});
        return address;
    }

    std::vector<Slot> list(const char *end) {
        std::vector<Slot> slots;
        do slots.push_back(value());
        while (accept(","));
        expect(end);
        return slots;
    }

    Operand operand() {
        Operand result{Operand::Kind::value, {}, 0, "", accept("!")};
        if (accept("{")) {
            result.kind = Operand::Kind::vector;
            result.slots = list("}");
        } else if (accept("[")) {
            result.kind = Operand::Kind::address;
            result.slots = {value()};
            if (accept("+")) {
                const bool negative = accept("-");
                const int64_t offset = static_cast<int64_t>(number(INT32_MAX));
                result.offset = negative ? -offset : offset;
            }
            expect("]");
        } else if (now().kind == Token::Kind::word && now().text[0] == '$') {
            result.kind = Operand::Kind::name;
            result.text = word();
        } else {
            result.slots = {address_if_parameter(value())};
            if (accept("|")) {
                result.kind = Operand::Kind::vector;
                result.slots.push_back(value());
            }
        }
        return result;
    }

    /* --- statements --- */

    void statement() {
        Statement result{};
        result.line = now().line;
        if (accept("@")) {
            result.guarded = true;
            result.guard_negated = accept("!");
            result.guard = named(word());
        }
        const std::string parts = word();
        for (size_t begins = 0, ends; begins <= parts.size(); begins = ends + 1) {
            ends = std::min(parts.find('.', begins), parts.size());
            const std::string part = parts.substr(begins, ends - begins);
            if (begins == 0)
                result.opcode = part;
            else
                result.modifiers.push_back(part);
        }
        if (!is(";")) do
                result.operands.push_back(operand());
            while (accept(","));
        expect(";");
        kernel->statements.push_back(result);
    }

    void body() {
        expect("{");
        scopes.emplace_back();
        for (size_t depth = 1; depth > 0;) {
            const bool label = tokens[std::min(at + 1, tokens.size() - 1)].text == ":";
            if (accept("{")) {
                scopes.emplace_back();
                depth++;
            } else if (accept("}")) {
                scopes.pop_back();
                depth--;
            } else if (label) {
                if (!kernel->labels.emplace(word(), kernel->statements.size()).second)
                    refuse("a label that is there twice");
                expect(":");
            } else if (now().text[0] == '.') {
                declare();
            } else if (!accept(";")) {
                statement();
            }
        }
    }

    void parameters() {
        expect("(");
        if (accept(")")) return;
        do {
            expect(".param");
            uint64_t bytes, align;
            bool unsized;
            const std::string name = variable(&bytes, &align, &unsized);
            if (bytes == 0 || bytes > 4096)
                refuse("a parameter of a size that kernels do not take");
            const Slot slot = new_slots((bytes + 7) / 8);
            name_slot(name, slot);
            kernel->parameters.push_back({slot, static_cast<unsigned>(bytes)});
        } while (accept(","));
        expect(")");
    }

    /* .maxntid 256, .maxntid 256, 1, 1 and hints for ptxas */
    void limits() {
        while (!is("{")) {
            const bool threads = is(".maxntid") || is(".reqntid");
            if (!threads && !is(".minnctapersm") && !is(".maxnreg"))
                refuse("not understood: " + now().text);
            take();
            uint64_t product = 1;
            do product *= number(1024);
            while (accept(","));
            if (threads) kernel->threads = static_cast<unsigned>(std::min<uint64_t>(product, 1024));
        }
    }

    ParsedKernel entry() {
        ParsedKernel result{};
        kernel = &result;
        scopes.assign(1, {});
        constants.clear();
        dynamic_addresses.clear();
        result.name = word();
        result.threads = 1024;
        parameters();
        result.parameter_slots = result.slots.size();
        limits();
        body();
        result.static_shared_bytes = (result.static_shared_bytes + 127) / 128 * 128;
        for (Slot slot : dynamic_addresses) result.slots[slot] = result.static_shared_bytes;
        return result;
    }
};

} // namespace

std::vector<ParsedKernel> parse(const std::string &source) {
    return Parser(source).module();
}

} // namespace ptx
