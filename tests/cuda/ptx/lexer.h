/* PTX text as words, numbers and punctuation. */
#ifndef TEST_CUDA_PTX_LEXER_H
#define TEST_CUDA_PTX_LEXER_H

#include <cstdint>
#include <stdexcept>
#include <string>
#include <vector>

namespace ptx {

/* What is wrong with a line of the text. */
struct Refusal : std::runtime_error {
    Refusal(int at, const std::string &why) : std::runtime_error(why), line(at) {
    }
    int line; /* from 1 */
};

struct Token {
    enum class Kind { word, number, string, punctuation, end };
    Kind kind;
    std::string text; /* "ld.global.L1::no_allocate.v4.b32", "%r12", "$L__BB0_2", ".reg", "{" */
    uint64_t bits; /* of a number: an integer, or the bits of 0fXXXXXXXX and 0dXXXXXXXXXXXXXXXX */
    int line;
};

/* Ends with a token of kind `end`. Throws Refusal. */
std::vector<Token> tokenize(const std::string &source);

} // namespace ptx

#endif
