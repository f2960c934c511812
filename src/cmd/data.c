/* hearth data: text into token shards, and a look into them. */
#include <inttypes.h>
#include <stdlib.h>
#include <string.h>

#include "base/json.h"
#include "base/log.h"
#include "base/threads.h"
#include "base/units.h"
#include "cmd/options.h"
#include "cmd/verbs.h"
#include "data/build.h"
#include "data/dataset.h"
#include "data/shard.h"

static const Command build_command = {
    .name = "data build",
    .summary = "Turns text into a dataset: tokens in shards, ready for training.",
    .usage = "hearth data build --tokenizer FILE --out DIR [options] FILES...",
    .details =
        "FILES are .txt files, .jsonl files with a document in each line, .parquet files with "
        "one in\n"
        "each row, directories of them, patterns in quotes, or - for standard input; text "
        "may be .gz or\n"
        ".zst. A .txt file is one document unless --split-on says what stands between "
        "documents. Some\n"
        "documents are held out for validation; of a single document, its last part. DIR "
        "also gets a copy\n"
        "of the tokenizer: training needs only DIR.\n"
        "\n"
        "Example: a tokenizer and a dataset from the same books\n"
        "  hearth tokenizer train --vocab 8192 --out tok books/\n"
        "  hearth data build --tokenizer tok --out data books/\n"
        "  hearth data inspect data",
};

static const Command inspect_command = {
    .name = "data inspect",
    .summary = "Shows what a dataset holds and checks it against its checksums.",
    .usage = "hearth data inspect DIR [options]",
    .details = "Example:\n  hearth data inspect data --documents 3",
};

static bool print_json(json_t *value) {
    char *text = value ? json_dumps(value, JSON_INDENT(2)) : NULL;
    if (text) puts(text);
    free(text);
    json_decref(value);
    return text != NULL;
}

static double bytes_per_token(int64_t bytes, int64_t tokens) {
    return tokens ? (double)bytes / (double)tokens : 0;
}

static json_t *split_summary(int64_t documents, int64_t tokens, int64_t bytes) {
    return json_pack("{s:I, s:I, s:I}", "documents", (json_int_t)documents, "tokens",
                     (json_int_t)tokens, "bytes", (json_int_t)bytes);
}

static void print_split(const char *name, int64_t documents, int64_t tokens, int64_t bytes) {
    char count[32], size[32] = "unknown size";
    if (bytes >= 0) format_bytes(size, bytes);
    printf("%-11s %" PRId64 " documents, %s tokens, %s of text", name, documents,
           format_count(count, (double)tokens), size);
    if (bytes >= 0) printf(", %.3f bytes per token", bytes_per_token(bytes, tokens));
    puts("");
}

static bool print_built(const BuildSummary *summary, const char *directory, double fraction) {
    int64_t tokens = summary->tokens[0] + summary->tokens[1];
    int64_t bytes = summary->bytes[0] + summary->bytes[1];
    if (options_json())
        return print_json(json_pack(
            "{s:s, s:o, s:o, s:f, s:f}", "directory", directory, "train",
            split_summary(summary->documents[0], summary->tokens[0], summary->bytes[0]), "val",
            split_summary(summary->documents[1], summary->tokens[1], summary->bytes[1]),
            "bytes_per_token", bytes_per_token(bytes, tokens), "seconds", summary->seconds));
    char time[32];
    double share = tokens ? (double)summary->tokens[1] / (double)tokens : 0;
    if (share > 2 * fraction && share > 0.05)
        log_warning(
            "%.0f%% of the tokens are held out instead of %.3g%%: the documents are few and "
            "large, and each is held out whole; --split-on makes smaller ones",
            100 * share, 100 * fraction);
    print_split("training", summary->documents[0], summary->tokens[0], summary->bytes[0]);
    print_split("validation", summary->documents[1], summary->tokens[1], summary->bytes[1]);
    printf("%s is ready after %s (%.1f MB/s)\n", directory, format_duration(time, summary->seconds),
           1e-6 * (double)bytes / (summary->seconds > 0 ? summary->seconds : 1));
    return true;
}

static int build(int argc, char **argv) {
    Error error;
    const char *tokenizer_path = NULL;
    BuildSettings settings = {.validation_fraction = 0.01, .shard_tokens = 100000000};
    int64_t threads = thread_count();
    Option options[] = {
        {"tokenizer", OPTION_TEXT, &tokenizer_path, .argument = "FILE",
         .help = "tokenizer.json or its directory, GPT-2's files, or a tiktoken file"},
        {"out", OPTION_TEXT, &settings.directory, .argument = "DIR", .help = "the dataset to make"},
        {"field", OPTION_TEXT, &settings.reader.field, .argument = "NAME",
         .help = "the string of each JSON line, or Parquet column, that is the document (text)"},
        {"split-on", OPTION_TEXT, &settings.reader.split_on, .argument = "SEPARATOR",
         .help = "what stands between the documents of a .txt file, such as '\\n\\n'"},
        {"val-fraction", OPTION_NUMBER, &settings.validation_fraction, .argument = "F",
         .help = "share of the documents to hold out; 0 for none", .maximum = 0.9},
        {"shard-tokens", OPTION_COUNT, &settings.shard_tokens, .argument = "N",
         .help = "tokens in each shard", .minimum = 1000, .maximum = SHARD_TOKENS_MAX},
        {"overwrite", OPTION_FLAG, &settings.overwrite,
         .help = "replace a dataset that is in DIR already"},
        {"threads", OPTION_INTEGER, &threads, .argument = "N", .help = "threads that tokenize",
         .minimum = 1, .maximum = 1024},
        {0},
    };
    int inputs;
    ParseResult parsed = options_parse(&build_command, options, argc, argv, &inputs);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (!tokenizer_path)
        fail(&error, "--tokenizer FILE is missing");
    else if (!settings.directory)
        fail(&error, "--out DIR is missing");
    else if (!inputs)
        fail(&error, "no input is named; give files, directories or -");
    if (!tokenizer_path || !settings.directory || !inputs)
        return command_misused(&build_command, &error);
    settings.threads = (int)threads;
    Tokenizer *tokenizer = tokenizer_open(tokenizer_path, &error);
    if (!tokenizer) return command_failed(&error);
    BuildSummary summary;
    bool done =
        dataset_build(tokenizer, (const char *const *)argv, inputs, &settings, &summary, &error);
    tokenizer_free(tokenizer);
    if (!done) return command_failed(&error);
    print_built(&summary, settings.directory, settings.validation_fraction);
    return EXIT_SUCCESS;
}

/* The dataset's tokenizer, or NULL where there is none to decode with. */
static Tokenizer *open_tokenizer(const char *directory) {
    Error error;
    char *path = path_join(directory, "tokenizer.json", &error);
    Tokenizer *tokenizer = path && path_exists(path) ? tokenizer_open(path, &error) : NULL;
    free(path);
    return tokenizer;
}

/* The first tokens of a document as text, or as numbers without a tokenizer. */
static bool append_document(const Dataset *dataset, const Tokenizer *tokenizer, int64_t document,
                            Bytes *out, Error *error) {
    enum { SHOWN = 200 };
    uint32_t tokens[SHOWN];
    const int64_t *starts = dataset_document_starts(dataset, SPLIT_TRAIN);
    bool last = document + 1 == dataset_documents(dataset, SPLIT_TRAIN);
    int64_t end = last ? dataset_tokens(dataset, SPLIT_TRAIN) : starts[document + 1];
    int64_t length = end - starts[document], count = length < SHOWN ? length : SHOWN;
    if (!dataset_read(dataset, SPLIT_TRAIN, starts[document], count, tokens, error)) return false;
    if (tokenizer) {
        if (!tokenizer_decode(tokenizer, tokens, (size_t)count, out, error)) return false;
    } else {
        for (int64_t i = 0; i < count; i++)
            if (!bytes_format(out, error, i ? " %u" : "%u", tokens[i])) return false;
    }
    return count == length || bytes_append(out, "...", 3, error);
}

static bool print_documents(const Dataset *dataset, int64_t count, Error *error) {
    Tokenizer *tokenizer = count ? open_tokenizer(dataset_directory(dataset)) : NULL;
    if (count > dataset_documents(dataset, SPLIT_TRAIN))
        count = dataset_documents(dataset, SPLIT_TRAIN);
    Bytes text = {0};
    bool done = true;
    for (int64_t i = 0; done && i < count; i++) {
        text.size = 0;
        done = append_document(dataset, tokenizer, i, &text, error);
        if (!done) break;
        printf("\n--- training document %" PRId64 "\n", i);
        fwrite(text.data, 1, text.size, stdout);
        puts("");
    }
    bytes_free(&text);
    tokenizer_free(tokenizer);
    return done;
}

static bool print_dataset(const Dataset *dataset, bool verified) {
    int64_t documents[2], tokens[2], bytes[2];
    for (int s = 0; s < 2; s++) {
        documents[s] = dataset_documents(dataset, (Split)s);
        tokens[s] = dataset_tokens(dataset, (Split)s);
        bytes[s] = dataset_bytes(dataset, (Split)s);
    }
    const char *hash = dataset_tokenizer_hash(dataset);
    if (options_json())
        return print_json(json_pack(
            "{s:s, s:s?, s:I, s:s, s:b, s:o, s:o}", "directory", dataset_directory(dataset),
            "tokenizer_hash", hash, "vocab_size", (json_int_t)dataset_vocab_size(dataset),
            "fingerprint", dataset_fingerprint(dataset), "verified", verified, "train",
            split_summary(documents[0], tokens[0], bytes[0]), "val",
            split_summary(documents[1], tokens[1], bytes[1])));
    print_split("training", documents[0], tokens[0], bytes[0]);
    print_split("validation", documents[1], tokens[1], bytes[1]);
    printf("vocabulary  %u\ntokenizer   %s\nfingerprint %s\nchecksums   %s\n",
           dataset_vocab_size(dataset), hash ? hash : "unknown", dataset_fingerprint(dataset),
           verified ? "verified" : "not verified");
    return true;
}

static int inspect(int argc, char **argv) {
    Error error;
    int64_t documents = 0;
    bool verify = true;
    Option options[] = {
        {"documents", OPTION_INTEGER, &documents, .argument = "N",
         .help = "show the beginning of the first N training documents"},
        {"verify", OPTION_FLAG, &verify, .help = "read all shards and compare their checksums"},
        {0},
    };
    int words;
    ParseResult parsed = options_parse(&inspect_command, options, argc, argv, &words);
    if (parsed != PARSE_RUN) return parsed == PARSE_WRONG ? EXIT_USAGE : EXIT_SUCCESS;
    if (words != 1) {
        fail(&error, "name one dataset directory, not %d", words);
        return command_misused(&inspect_command, &error);
    }
    Dataset *dataset = dataset_open(argv[0], &error);
    bool done = dataset && (!verify || dataset_verify(dataset, &error));
    if (done) {
        print_dataset(dataset, verify);
        if (!options_json()) done = print_documents(dataset, documents, &error);
    }
    dataset_free(dataset);
    return done ? EXIT_SUCCESS : command_failed(&error);
}

int verb_data(int argc, char **argv) {
    if (argc > 1 && !strcmp(argv[1], "build")) return build(argc - 1, argv + 1);
    if (argc > 1 && !strcmp(argv[1], "inspect")) return inspect(argc - 1, argv + 1);
    bool help = argc > 1 && (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h"));
    FILE *to = help ? stdout : stderr;
    if (argc > 1 && !help) fprintf(to, "hearth: unknown command 'data %s'\n", argv[1]);
    fprintf(to, "Usage: hearth data build   turns text into a dataset\n"
                "       hearth data inspect shows what a dataset holds and checks it\n"
                "'hearth data build --help' explains with an example.\n");
    return help ? EXIT_SUCCESS : EXIT_USAGE;
}
