/* hearth tokenizer: finds the action; encode and decode. */
#include <ctype.h>
#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "cmd/options.h"
#include "cmd/tokenizer.h"
#include "cmd/verbs.h"
#include "text/tokenizer.h"

/* --- encode --- */

static const Command encode_command = {
    .name = "tokenizer encode",
    .summary = "Turn text into token ids, one line for each input.",
    .usage = "hearth tokenizer encode --tokenizer FILE [--find-specials] [FILES...]",
    .details = "Reads standard input when no file is named; a file is one text, byte for byte.\n\n"
               "Example:\n"
               "  echo 'Hello world' | hearth tokenizer encode --tokenizer tokenizer",
};

static bool print_ids(const char *name, const Tokens *tokens, Error *error) {
    json_t *file = options_json() ? json_string(name) : NULL;
    if (options_json()) {
        fputs("{\"file\": ", stdout);
        if (!file || json_dumpf(file, stdout, JSON_ENCODE_ANY)) fputs("null", stdout);
        fputs(", \"ids\": [", stdout);
    }
    const char *between = options_json() ? ", " : " ";
    for (size_t i = 0; i < tokens->count; i++) printf("%s%u", i ? between : "", tokens->ids[i]);
    fputs(options_json() ? "]}\n" : "\n", stdout);
    json_decref(file);
    if (fflush(stdout) || ferror(stdout)) return fail_errno(error, "cannot write the ids");
    return true;
}

static bool encode_input(const Tokenizer *tokenizer, const char *name, bool specials,
                         Error *error) {
    Tokens tokens = {0};
    Bytes text = {0};
    const char *path = strcmp(name, "-") ? name : "/dev/stdin";
    bool done = file_read(path, SIZE_MAX, &text, error) &&
                tokenizer_encode(tokenizer, text.data, text.size, specials, &tokens, error) &&
                print_ids(name, &tokens, error);
    bytes_free(&text);
    tokens_free(&tokens);
    return done;
}

static int run_encode(int argc, char **argv) {
    const char *path = NULL;
    bool specials = false;
    Option options[] = {
        {.name = "tokenizer",
         .kind = OPTION_TEXT,
         .value = &path,
         .argument = "FILE",
         .help = "the tokenizer"},
        {.name = "find-specials",
         .kind = OPTION_FLAG,
         .value = &specials,
         .help = "special tokens spelled out in the text become their ids"},
        {0},
    };
    Error error;
    int count;
    ParseResult parsed = options_parse(&encode_command, options, argc, argv, &count);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (!path) {
        fail(&error, "--tokenizer FILE is needed");
        return command_misused(&encode_command, &error);
    }
    Tokenizer *tokenizer = tokenizer_open(path, &error);
    bool done = tokenizer != NULL;
    if (done && !count) done = encode_input(tokenizer, "-", specials, &error);
    for (int i = 0; done && i < count; i++)
        done = encode_input(tokenizer, argv[i], specials, &error);
    tokenizer_free(tokenizer);
    return done ? EXIT_SUCCESS : command_failed(&error);
}

/* --- decode --- */

static const Command decode_command = {
    .name = "tokenizer decode",
    .summary = "Turn token ids from standard input into the bytes they stand for.",
    .usage = "hearth tokenizer decode --tokenizer FILE < IDS",
    .details = "Ids are separated by white space or commas; brackets are ignored. With --json the\n"
               "result is {\"text\": ...} and must be valid UTF-8.\n\n"
               "Example:\n"
               "  echo '15496 995' | hearth tokenizer decode --tokenizer gpt2/tokenizer.json",
};

static bool parse_ids(const Bytes *text, Tokens *tokens, Error *error) {
    const char *at = (const char *)text->data;
    for (;;) {
        while (*at && (isspace((unsigned char)*at) || strchr(",[]", *at))) at++;
        if (!*at) break;
        char *end;
        errno = 0;
        unsigned long id = strtoul(at, &end, 10);
        if (end == at || *at == '-' || errno || id > UINT32_MAX)
            return fail(error, "'%.*s' is not a token id", (int)strcspn(at, " \n\t,"), at);
        if (!reserve(&tokens->ids, &tokens->capacity, tokens->count + 1, sizeof *tokens->ids,
                     error))
            return false;
        tokens->ids[tokens->count++] = (uint32_t)id;
        at = end;
    }
    if (at != (const char *)text->data + text->size)
        return fail(error, "the ids hold a NUL byte: they must be decimal numbers");
    return true;
}

static bool print_text(const Bytes *text, Error *error) {
    if (!options_json()) {
        if (text->size) fwrite(text->data, 1, text->size, stdout);
    } else {
        json_t *root =
            json_pack("{ss%}", "text", text->size ? (const char *)text->data : "", text->size);
        if (!root)
            return fail(error, "the ids stand for bytes that are not UTF-8, which JSON cannot "
                               "hold; leave out --json");
        json_dumpf(root, stdout, 0);
        putchar('\n');
        json_decref(root);
    }
    if (fflush(stdout) || ferror(stdout)) return fail_errno(error, "cannot write the text");
    return true;
}

static int run_decode(int argc, char **argv) {
    const char *path = NULL;
    Option options[] = {{.name = "tokenizer",
                         .kind = OPTION_TEXT,
                         .value = &path,
                         .argument = "FILE",
                         .help = "the tokenizer"},
                        {0}};
    Error error;
    int count;
    ParseResult parsed = options_parse(&decode_command, options, argc, argv, &count);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (!path || count) {
        fail(&error,
             path ? "ids come from standard input, not from '%s'"
                  : "--tokenizer FILE is "
                    "needed",
             argv[0]);
        return command_misused(&decode_command, &error);
    }
    Bytes input = {0}, text = {0};
    Tokens tokens = {0};
    Tokenizer *tokenizer = tokenizer_open(path, &error);
    bool done = tokenizer && file_read("/dev/stdin", SIZE_MAX, &input, &error) &&
                parse_ids(&input, &tokens, &error) &&
                tokenizer_decode(tokenizer, tokens.ids, tokens.count, &text, &error) &&
                print_text(&text, &error);
    bytes_free(&input);
    bytes_free(&text);
    tokens_free(&tokens);
    tokenizer_free(tokenizer);
    return done ? EXIT_SUCCESS : command_failed(&error);
}

/* --- the verb --- */

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} actions[] = {
    {"train", "learn one from text", tokenizer_train},
    {"eval", "how many bytes a token stands for", tokenizer_eval},
    {"encode", "text to ids", run_encode},
    {"decode", "ids to text", run_decode},
};
enum { ACTIONS = sizeof actions / sizeof *actions };

static void print_usage(FILE *file) {
    fprintf(file, "Train, evaluate and use a tokenizer.\n\nUsage: hearth tokenizer ACTION ...\n\n");
    for (int i = 0; i < ACTIONS; i++)
        fprintf(file, "  %-8s %s\n", actions[i].name, actions[i].summary);
    fprintf(file, "\n'hearth tokenizer ACTION --help' explains each with an example.\n");
}

int verb_tokenizer(int argc, char **argv) {
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h")) {
        print_usage(stdout);
        return EXIT_SUCCESS;
    }
    const char *names[ACTIONS + 1] = {0};
    for (int i = 0; i < ACTIONS; i++) {
        if (!strcmp(argv[1], actions[i].name)) return actions[i].run(argc - 1, argv + 1);
        names[i] = actions[i].name;
    }
    const char *nearest = nearest_word(argv[1], names);
    fprintf(stderr, "hearth: unknown action '%s'", argv[1]);
    if (nearest) fprintf(stderr, "; did you mean '%s'?", nearest);
    fprintf(stderr, "\nTry 'hearth tokenizer --help'.\n");
    return EXIT_USAGE;
}
