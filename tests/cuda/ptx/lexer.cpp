#include "lexer.h"

#include <cctype>
#include <cerrno>
#include <cstdlib>
#include <cstring>

namespace ptx {

namespace {

bool in_word(char c) {
    return isalnum(static_cast<unsigned char>(c)) || (c && strchr("_$.%", c));
}

class Lexer {
  public:
    explicit Lexer(const std::string &source) : text(source) {
    }

    std::vector<Token> all() {
        std::vector<Token> tokens;
        do {
            skip_blanks();
            tokens.push_back(next());
        } while (tokens.back().kind != Token::Kind::end);
        return tokens;
    }

  private:
    const std::string &text;
    size_t at = 0;
    int line = 1;

    char peek(size_t ahead = 0) const {
        return at + ahead < text.size() ? text[at + ahead] : '\0';
    }

    void advance() {
        if (text[at++] == '\n') line++;
    }

    void skip_comment() {
        const bool block = peek(1) == '*';
        const int begins = line;
        while (at < text.size() && (block ? peek() != '*' || peek(1) != '/' : peek() != '\n'))
            advance();
        if (!block) return;
        if (at == text.size()) throw Refusal(begins, "a comment without end");
        at += 2;
    }

    void skip_blanks() {
        for (;;) {
            if (peek() == '/' && (peek(1) == '/' || peek(1) == '*'))
                skip_comment();
            else if (at < text.size() && isspace(static_cast<unsigned char>(peek())))
                advance();
            else
                return;
        }
    }

    Token next() {
        if (at == text.size()) return {Token::Kind::end, "the end of the file", 0, line};
        const char c = peek();
        if (isdigit(static_cast<unsigned char>(c))) return number();
        if (in_word(c)) return word();
        if (c == '"') return string();
        if (!strchr("{}[]()<>,;:|!@+-=", c) || !c)
            throw Refusal(line, std::string("a character that PTX does not have: '") + c + "'");
        at++;
        return {Token::Kind::punctuation, std::string(1, c), 0, line};
    }

    /* A label's colon ends the word, the double one of L1::no_allocate does not. */
    Token word() {
        const size_t begins = at;
        while (in_word(peek()) || (peek() == ':' && peek(1) == ':')) at += peek() == ':' ? 2 : 1;
        return {Token::Kind::word, text.substr(begins, at - begins), 0, line};
    }

    /* .version's 9.0 is a word. */
    Token number() {
        const size_t begins = at;
        while (in_word(peek())) at++;
        const std::string digits = text.substr(begins, at - begins);
        if (digits.find('.') != std::string::npos) return {Token::Kind::word, digits, 0, line};
        const bool is_float = digits[0] == '0' && digits.size() > 1 && strchr("fFdD", digits[1]);
        const bool whole = !is_float || digits.size() == (tolower(digits[1]) == 'f' ? 10u : 18u);
        const char *first = digits.c_str() + (is_float ? 2 : 0);
        char *end;
        errno = 0;
        const uint64_t bits = strtoull(first, &end, is_float ? 16 : 0);
        if (strcmp(end, "U") == 0) end++;
        if (*end || errno || !whole || !isxdigit(static_cast<unsigned char>(*first)))
            throw Refusal(line, "not a number: " + digits);
        return {Token::Kind::number, digits, bits, line};
    }

    Token string() {
        const size_t end = text.find_first_of("\"\n", at + 1);
        if (end == std::string::npos || text[end] == '\n')
            throw Refusal(line, "a string without end");
        const size_t begins = at + 1;
        at = end + 1;
        return {Token::Kind::string, text.substr(begins, end - begins), 0, line};
    }
};

} // namespace

std::vector<Token> tokenize(const std::string &source) {
    return Lexer(source).all();
}

} // namespace ptx
