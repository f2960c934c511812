/* Writes tokenizer.json and tokenizer_config.json as transformers' AutoTokenizer reads them. */
#include <stdlib.h>
#include <string.h>

#include "text/alphabet.h"
#include "text/vocabulary.h"

/* Token `id` as JSON text: an added one as it is spelled, another in the byte alphabet. */
static json_t *token_text(const Tokenizer *tokenizer, uint32_t id, Bytes *scratch, Error *error) {
    const Token *token = &tokenizer->tokens[id];
    const uint8_t *bytes = tokenizer->token_bytes[id];
    scratch->size = 0;
    if (token->kind >= TOKEN_ADDED ? !bytes_append(scratch, bytes, token->size, error)
                                   : !alphabet_write(scratch, bytes, token->size, error))
        return NULL;
    json_t *text = json_stringn((const char *)scratch->data, scratch->size);
    if (!text) fail(error, "special token %u is not valid UTF-8, so JSON cannot hold it", id);
    return text;
}

static bool add_vocabulary(const Tokenizer *tokenizer, json_t *vocabulary, Bytes *scratch,
                           Error *error) {
    for (uint32_t id = 0; id < tokenizer->vocab_size; id++) {
        if (tokenizer->tokens[id].kind == TOKEN_UNUSED) continue;
        json_t *text = token_text(tokenizer, id, scratch, error);
        if (!text) return false;
        /* Special tokens too: a reader gives those that are missing here the next free ids. */
        int status = json_object_setn_new(vocabulary, json_string_value(text),
                                          json_string_length(text), json_integer(id));
        json_decref(text);
        if (status) return fail_memory(error, scratch->size);
    }
    return true;
}

static bool add_merges(const Tokenizer *tokenizer, json_t *merges, Bytes *scratch, Error *error) {
    for (size_t i = 0; i < tokenizer->merge_count; i++) {
        const Merge *merge = &tokenizer->merges[i];
        const Token *left = &tokenizer->tokens[merge->left];
        const Token *right = &tokenizer->tokens[merge->right];
        scratch->size = 0;
        if (!alphabet_write(scratch, tokenizer->token_bytes[merge->left], left->size, error) ||
            !bytes_append(scratch, " ", 1, error) ||
            !alphabet_write(scratch, tokenizer->token_bytes[merge->right], right->size, error))
            return false;
        if (json_array_append_new(merges, json_stringn((const char *)scratch->data, scratch->size)))
            return fail_memory(error, scratch->size);
    }
    return true;
}

static bool add_added(const Tokenizer *tokenizer, json_t *list, Bytes *scratch, Error *error) {
    for (uint32_t id = 0; id < tokenizer->vocab_size; id++) {
        TokenKind kind = tokenizer->tokens[id].kind;
        if (kind < TOKEN_ADDED) continue;
        json_t *text = token_text(tokenizer, id, scratch, error);
        if (!text) return false;
        json_t *added =
            json_pack("{si so sb sb sb sb sb}", "id", (int)id, "content", text, "single_word", 0,
                      "lstrip", 0, "rstrip", 0, "normalized", 0, "special", kind == TOKEN_SPECIAL);
        if (json_array_append_new(list, added)) return fail_memory(error, scratch->size);
    }
    return true;
}

static json_t *byte_level(bool use_regex) {
    return json_pack("{ss sb sb sb}", "type", "ByteLevel", "add_prefix_space", 0, "trim_offsets", 1,
                     "use_regex", use_regex);
}

static json_t *pre_tokenizer(const char *pattern) {
    if (!strcmp(pattern, pattern_expression("gpt2"))) return byte_level(true);
    return json_pack("{ss s[{ss s{ss} ss sb} o]}", "type", "Sequence", "pretokenizers", "type",
                     "Split", "pattern", "Regex", pattern, "behavior", "Isolated", "invert", 0,
                     byte_level(false));
}

static bool write_tokenizer(const Tokenizer *tokenizer, const char *path, Error *error) {
    json_t *added = json_array(), *vocabulary = json_object(), *merges = json_array();
    Bytes scratch = {0};
    bool done = add_added(tokenizer, added, &scratch, error) &&
                add_vocabulary(tokenizer, vocabulary, &scratch, error) &&
                add_merges(tokenizer, merges, &scratch, error);
    bytes_free(&scratch);
    json_t *root = json_pack(
        "{ss sn sn so sn so sn so s{ss sn sn sn sn sb sb sb so so}}", "version", "1.0",
        "truncation", "padding", "added_tokens", added, "normalizer", "pre_tokenizer",
        pre_tokenizer(pattern_text(tokenizer->pattern)), "post_processor", "decoder",
        byte_level(true), "model", "type", "BPE", "dropout", "unk_token",
        "continuing_subword_prefix", "end_of_word_suffix", "fuse_unk", 0, "byte_fallback", 0,
        "ignore_merges", tokenizer->whole_first, "vocab", vocabulary, "merges", merges);
    if (done && !root) done = fail(error, "cannot write %s: the split pattern is not UTF-8", path);
    done = done && json_write_file(path, root, error);
    json_decref(root);
    return done;
}

static bool write_config(const Tokenizer *tokenizer, const char *path, Error *error) {
    json_t *config = json_pack("{ss sb sb}", "tokenizer_class", "PreTrainedTokenizerFast",
                               "add_prefix_space", 0, "clean_up_tokenization_spaces", 0);
    int64_t separator = tokenizer_document_separator(tokenizer);
    if (separator >= 0) {
        const Token *token = &tokenizer->tokens[separator];
        const char *text = (const char *)tokenizer->token_bytes[separator];
        json_object_set_new(config, "bos_token", json_stringn(text, token->size));
        json_object_set_new(config, "eos_token", json_stringn(text, token->size));
    }
    bool done = json_write_file(path, config, error);
    json_decref(config);
    return done;
}

bool tokenizer_save(const Tokenizer *tokenizer, const char *directory, Error *error) {
    if (!directory_create(directory, error)) return false;
    char *path = path_join(directory, "tokenizer.json", error);
    char *config = path ? path_join(directory, "tokenizer_config.json", error) : NULL;
    bool done =
        config && write_tokenizer(tokenizer, path, error) && write_config(tokenizer, config, error);
    free(path);
    free(config);
    return done;
}
