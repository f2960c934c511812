/* Hugging Face's tokenizer.json, byte-level BPE. What would change the ids and is not supported is
 * an error that names it. `truncation`, `padding`, `post_processor` and `decoder` do not change the
 * ids of a text (only what is put around them), so they are not looked at. */
#include <string.h>

#include "text/readers.h"

static bool is_type(const json_t *object, const char *type) {
    const char *found = json_string_value(json_object_get(object, "type"));
    return found && !strcmp(found, type);
}

static const char *type_of(const json_t *object) {
    const char *type = json_string_value(json_object_get(object, "type"));
    return type ? type : "(no type)";
}

/* Whether a member is there and neither null, false nor "". */
static bool is_set(const json_t *object, const char *key) {
    const json_t *value = json_object_get(object, key);
    return value && !json_is_null(value) && !json_is_false(value) &&
           !(json_is_string(value) && json_string_length(value) == 0);
}

static bool refuse_set(const json_t *object, const char *what, const char *const *keys,
                       Error *error) {
    for (; *keys; keys++)
        if (is_set(object, *keys))
            return fail(error, "%s has \"%s\", which is not supported", what, *keys);
    return true;
}

/* The tokens that stand outside the byte alphabet; read first, since the vocabulary may repeat
 * them. */
static bool read_added(Tokenizer *tokenizer, const json_t *root, Error *error) {
    static const char *const refused[] = {"single_word", "lstrip", "rstrip", NULL};
    const json_t *list = json_object_get(root, "added_tokens");
    for (size_t i = 0; i < json_array_size(list); i++) {
        const json_t *added = json_array_get(list, i);
        const json_t *content = json_object_get(added, "content");
        int64_t id;
        bool special = json_is_true(json_object_get(added, "special"));
        if (!json_is_string(content)) return fail(error, "added token %zu has no \"content\"", i);
        if (!json_get_integer(added, "id", 0, TOKENS_MOST - 1, &id, error) ||
            !refuse_set(added, "an added token", refused, error) ||
            !tokenizer_add_token(tokenizer, id, json_string_value(content),
                                 json_string_length(content), special ? TOKEN_SPECIAL : TOKEN_ADDED,
                                 error))
            return fail_within(error, "added token '%.100s'", json_string_value(content));
    }
    return true;
}

static bool is_added(const Tokenizer *tokenizer, const json_t *id, const char *text, size_t size) {
    json_int_t value = json_integer_value(id);
    if (!json_is_integer(id) || value < 0 || (size_t)value >= tokenizer->vocab_size) return false;
    const Token *token = &tokenizer->tokens[value];
    return token->kind >= TOKEN_ADDED && token->size == size &&
           !memcmp(tokenizer->bytes.data + token->start, text, size);
}

static bool read_vocabulary(Tokenizer *tokenizer, const json_t *model, Error *error) {
    json_t *vocabulary = json_object_get(model, "vocab");
    if (!json_is_object(vocabulary)) return fail(error, "\"model\" has no \"vocab\" object");
    for (void *at = json_object_iter(vocabulary); at; at = json_object_iter_next(vocabulary, at)) {
        const char *text = json_object_iter_key(at);
        size_t size = json_object_iter_key_len(at);
        const json_t *id = json_object_iter_value(at);
        if (!is_added(tokenizer, id, text, size) &&
            !read_token(tokenizer, text, size, id, TOKEN_TEXT, error))
            return false;
    }
    return true;
}

static bool read_merges(Tokenizer *tokenizer, const json_t *model, Error *error) {
    const json_t *merges = json_object_get(model, "merges");
    if (!json_is_array(merges)) return fail(error, "\"model\" has no \"merges\" list");
    for (size_t i = 0; i < json_array_size(merges); i++) {
        const json_t *merge = json_array_get(merges, i);
        const json_t *left = json_array_get(merge, 0), *right = json_array_get(merge, 1);
        bool done;
        if (json_is_string(merge))
            done = read_merge_line(tokenizer, json_string_value(merge), json_string_length(merge),
                                   error);
        else if (json_is_string(left) && json_is_string(right) && json_array_size(merge) == 2)
            done = read_merge(tokenizer, json_string_value(left), json_string_length(left),
                              json_string_value(right), json_string_length(right), error);
        else
            done = fail(error, "merge %zu is neither \"left right\" nor [\"left\", \"right\"]", i);
        if (!done) return false;
    }
    return true;
}

static bool read_model(Tokenizer *tokenizer, const json_t *root, Error *error) {
    static const char *const refused[] = {"dropout", "continuing_subword_prefix",
                                          "end_of_word_suffix", NULL};
    const json_t *model = json_object_get(root, "model");
    if (json_object_get(model, "type") && !is_type(model, "BPE"))
        return fail(error, "the model is %s; only BPE can be read", type_of(model));
    if (!refuse_set(model, "the model", refused, error)) return false;
    tokenizer->whole_first = json_is_true(json_object_get(model, "ignore_merges"));
    return read_added(tokenizer, root, error) && read_vocabulary(tokenizer, model, error) &&
           tokenizer_index(tokenizer, error) && read_merges(tokenizer, model, error);
}

static bool check_byte_level(const json_t *step, Error *error) {
    if (!is_type(step, "ByteLevel"))
        return fail(error, "pre_tokenizer %s is not supported; only Split and ByteLevel are",
                    type_of(step));
    if (is_set(step, "add_prefix_space"))
        return fail(error, "pre_tokenizer ByteLevel has \"add_prefix_space\", which is not "
                           "supported");
    return true;
}

/* The regular expression of a Split that keeps each match as a piece; NULL with an error. */
static const char *split_expression(const json_t *split, Error *error) {
    const json_t *regex = json_object_get(json_object_get(split, "pattern"), "Regex");
    const char *behavior = json_string_value(json_object_get(split, "behavior"));
    bool inverted = json_is_true(json_object_get(split, "invert"));
    if (!json_is_string(regex)) {
        fail(error, "pre_tokenizer Split has no \"pattern\" of kind \"Regex\"");
        return NULL;
    }
    bool isolated = behavior && !strcmp(behavior, "Isolated");
    bool removed = behavior && !strcmp(behavior, "Removed") && inverted;
    if (!isolated && !removed) {
        fail(error,
             "pre_tokenizer Split with behavior %s is not supported; only Isolated and "
             "inverted Removed are",
             behavior ? behavior : "(none)");
        return NULL;
    }
    if (strlen(json_string_value(regex)) != json_string_length(regex)) {
        fail(error, "the split pattern holds a NUL character");
        return NULL;
    }
    return json_string_value(regex);
}

/* The split pattern: ByteLevel's own (GPT-2's), or that of a Split before a ByteLevel without one.
 */
static const char *read_pattern(const json_t *root, Error *error) {
    const json_t *step = json_object_get(root, "pre_tokenizer");
    if (is_set(root, "normalizer")) {
        fail(error, "normalizer %s is not supported: it changes text before it is encoded",
             type_of(json_object_get(root, "normalizer")));
        return NULL;
    }
    const json_t *steps = json_object_get(step, "pretokenizers");
    const json_t *split = NULL;
    if (is_type(step, "Sequence")) {
        if (json_array_size(steps) == 1) step = json_array_get(steps, 0);
        if (json_array_size(steps) == 2)
            split = json_array_get(steps, 0), step = json_array_get(steps, 1);
    }
    if (split && !is_type(split, "Split")) {
        fail(error, "pre_tokenizer %s before ByteLevel is not supported; only Split is",
             type_of(split));
        return NULL;
    }
    if (!check_byte_level(step, error)) return NULL;
    bool own = !json_is_false(json_object_get(step, "use_regex"));
    if (own != !split) {
        fail(error, "the pre_tokenizer must split either by a Split or by ByteLevel's "
                    "\"use_regex\"");
        return NULL;
    }
    return split ? split_expression(split, error) : "gpt2";
}

Tokenizer *huggingface_open(const char *path, const json_t *root, Error *error) {
    Tokenizer *tokenizer = tokenizer_new(error);
    const char *pattern = tokenizer ? read_pattern(root, error) : NULL;
    if (pattern && read_model(tokenizer, root, error) &&
        tokenizer_finish(tokenizer, pattern, error))
        return tokenizer;
    tokenizer_free(tokenizer);
    fail_within(error, "%s", path);
    return NULL;
}
