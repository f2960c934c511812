#include "cmd/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>

#include "base/log.h"
#include "base/memory.h"
#include "base/units.h"

static bool json_output, quiet_output;
static const char *config_file;

/* What every command understands, on the command line and in YAML. */
static Option common[] = {
    {"json", OPTION_FLAG, &json_output, NULL, "machine-readable result on stdout"},
    {"quiet", OPTION_FLAG, &quiet_output, NULL, "no progress on stderr"},
    {"config", OPTION_TEXT, &config_file, "FILE",
     "read options from a YAML file; the command line wins"},
    {NULL}};

bool options_json(void) {
    return json_output;
}

int command_failed(const Error *error) {
    log_status_end();
    fprintf(stderr, "hearth: %s\n", error->message);
    return EXIT_FAILURE;
}

int command_misused(const Command *command, const Error *error) {
    fprintf(stderr, "hearth: %s\nTry 'hearth %s --help'.\n", error->message, command->name);
    return EXIT_USAGE;
}

static size_t edit_distance(const char *a, const char *b) {
    size_t row[64], length = strlen(b);
    if (length >= 64 || strlen(a) >= 64) return 64;
    for (size_t j = 0; j <= length; j++) row[j] = j;
    for (size_t i = 1; a[i - 1]; i++) {
        size_t diagonal = row[0];
        row[0] = i;
        for (size_t j = 1; j <= length; j++) {
            size_t replace = diagonal + (a[i - 1] != b[j - 1]);
            size_t insert = (row[j] < row[j - 1] ? row[j] : row[j - 1]) + 1;
            diagonal = row[j];
            row[j] = replace < insert ? replace : insert;
        }
    }
    return row[length];
}

const char *nearest_word(const char *word, const char *const *candidates) {
    const char *best = NULL;
    size_t length = strlen(word), least = length < 3 ? length : length < 5 ? 3 : 4;
    for (; *candidates; candidates++) {
        size_t distance = edit_distance(word, *candidates);
        if (distance < least) least = distance, best = *candidates;
    }
    return best;
}

Option *option_find(Option *options, const char *name, size_t length) {
    for (Option *option = options; option->name; option++)
        if (strlen(option->name) == length && !memcmp(option->name, name, length)) return option;
    return options == common ? NULL : option_find(common, name, length);
}

bool option_given(const Option *options, const char *name) {
    for (; options->name; options++)
        if (!strcmp(options->name, name)) return options->given;
    return false;
}

static bool within_bounds(const Option *option, double value, Error *error) {
    if (!(option->minimum == 0 && option->maximum == 0)) {
        if (value < option->minimum || value > option->maximum)
            return fail(error, "--%s is %g; it must be from %g to %g", option->name, value,
                        option->minimum, option->maximum);
    } else if (value < 0) {
        return fail(error, "--%s is %g; it cannot be negative", option->name, value);
    }
    return true;
}

static bool set_number(Option *option, const char *text, Error *error) {
    int64_t integer = 0;
    double number = 0;
    char *end;
    Error inner;
    bool parsed = true;
    errno = 0;
    switch (option->kind) {
    case OPTION_INTEGER:
        integer = strtoll(text, &end, 10);
        parsed = end != text && !*end && !errno;
        if (!parsed) fail(&inner, "'%s' is not a whole number", text);
        break;
    case OPTION_COUNT:
        parsed = parse_count(text, &integer, &inner);
        break;
    case OPTION_BYTES:
        parsed = parse_bytes(text, &integer, &inner);
        break;
    case OPTION_DURATION:
        parsed = parse_duration(text, &number, &inner);
        break;
    default:
        number = strtod(text, &end);
        parsed = end != text && !*end && !errno && isfinite(number);
        if (!parsed) fail(&inner, "'%s' is not a number", text);
    }
    if (!parsed) return fail(error, "--%s: %s", option->name, inner.message);
    bool whole = option->kind == OPTION_INTEGER || option->kind == OPTION_COUNT ||
                 option->kind == OPTION_BYTES;
    if (!within_bounds(option, whole ? (double)integer : number, error)) return false;
    if (whole)
        memcpy(option->value, &integer, sizeof integer);
    else
        memcpy(option->value, &number, sizeof number);
    return true;
}

/* Where `text` stands in "one|two|three", or -1. */
static int choice_index(const char *choices, const char *text) {
    size_t length = strlen(text);
    int index = 0;
    for (const char *start = choices; length; start++, index++) {
        if (!strncmp(start, text, length) && (start[length] == '|' || !start[length])) return index;
        start = strchr(start, '|');
        if (!start) break;
    }
    return -1;
}

int option_choice(const Option *options, const char *name) {
    for (; options->name; options++)
        if (!strcmp(options->name, name))
            return choice_index(options->choices, *(const char *const *)options->value);
    return -1;
}

/* Chained, so that a leak checker sees them in use. */
typedef struct KeptText {
    struct KeptText *next;
    char text[];
} KeptText;

const char *text_keep(const char *text, Error *error) {
    static KeptText *all;
    size_t size = strlen(text) + 1;
    KeptText *kept = allocate(sizeof *kept + size, 1, error);
    if (!kept) return NULL;
    memcpy(kept->text, text, size);
    kept->next = all;
    all = kept;
    return kept->text;
}

bool option_set(Option *option, const char *text, Error *error) {
    option->given = true;
    if (option->kind == OPTION_FLAG) {
        bool on = !strcasecmp(text, "true") || !strcasecmp(text, "yes") || !strcasecmp(text, "on");
        if (!on && strcasecmp(text, "false") && strcasecmp(text, "no") && strcasecmp(text, "off"))
            return fail(error, "--%s is on or off; '%s' is neither true nor false", option->name,
                        text);
        memcpy(option->value, &on, sizeof on);
        return true;
    }
    if (option->kind == OPTION_TEXT || option->kind == OPTION_CHOICE) {
        if (option->kind == OPTION_CHOICE && choice_index(option->choices, text) < 0)
            return fail(error, "--%s '%s' is not known; choose from %s", option->name, text,
                        option->choices);
        const char *kept = text_keep(text, error);
        if (kept) memcpy(option->value, &kept, sizeof kept);
        return kept != NULL;
    }
    return set_number(option, text, error);
}

bool option_unknown(Option *options, const char *prefix, const char *name, Error *error) {
    enum { MOST = 128 };
    const char *names[MOST + 5];
    int count = 0;
    for (Option *option = options; option->name && count < MOST; option++)
        names[count++] = option->name;
    for (Option *option = common; option->name; option++) names[count++] = option->name;
    names[count++] = "help", names[count] = NULL;
    const char *nearest = nearest_word(name, names);
    if (nearest)
        return fail(error, "unknown option %s%s; did you mean %s%s?", prefix, name, prefix,
                    nearest);
    return fail(error, "unknown option %s%s", prefix, name);
}

static void print_default(const Option *option) {
    const void *value = option->value;
    char text[32];
    switch (option->kind) {
    case OPTION_FLAG:
        if (*(const bool *)value) printf(" (on; --no-%s turns it off)", option->name);
        break;
    case OPTION_TEXT:
    case OPTION_CHOICE:
        if (*(const char *const *)value) printf(" (%s)", *(const char *const *)value);
        break;
    case OPTION_NUMBER:
        if (*(const double *)value > 0) printf(" (%g)", *(const double *)value);
        break;
    case OPTION_DURATION:
        if (*(const double *)value > 0)
            printf(" (%s)", format_duration(text, *(const double *)value));
        break;
    case OPTION_BYTES:
        if (*(const int64_t *)value) printf(" (%s)", format_bytes(text, *(const int64_t *)value));
        break;
    default:
        if (*(const int64_t *)value > 0) printf(" (%lld)", (long long)*(const int64_t *)value);
    }
}

static void print_options(const Option *options) {
    for (const Option *option = options; option->name; option++) {
        char left[64];
        const char *argument = option->choices ? option->choices : option->argument;
        snprintf(left, sizeof left, "--%s%s%s", option->name, argument ? " " : "",
                 argument ? argument : "");
        printf(strlen(left) > 28 ? "  %s\n%32s" : "  %-29s %s", left, "");
        printf("%s", option->help);
        print_default(option);
        printf("\n");
    }
}

static void print_help(const Command *command, const Option *options) {
    printf("%s\n\nUsage: %s\n", command->summary, command->usage);
    printf("\nOptions (default in brackets):\n");
    print_options(options);
    print_options(common);
    if (command->details) printf("\n%s\n", command->details);
}

/* One "--name", "--name=value" or "--name value"; advances *index over a separate value. */
static bool parse_word(Option *options, int argc, char **argv, int *index, Error *error) {
    const char *word = argv[*index] + 2, *equals = strchr(word, '=');
    size_t length = equals ? (size_t)(equals - word) : strlen(word);
    Option *option = option_find(options, word, length);
    if (!option && !strncmp(word, "no-", 3) && !equals) {
        option = option_find(options, word + 3, length - 3);
        if (option && option->kind == OPTION_FLAG) return option_set(option, "false", error);
        option = NULL;
    }
    if (!option) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), word);
        return option_unknown(options, "--", name, error);
    }
    if (equals) return option_set(option, equals + 1, error);
    if (option->kind == OPTION_FLAG) return option_set(option, "true", error);
    if (*index + 1 >= argc)
        return fail(error, "--%s needs a value (%s)", option->name,
                    option->choices ? option->choices : option->argument);
    return option_set(option, argv[++*index], error);
}

ParseResult options_parse(const Command *command, Option *options, int argc, char **argv,
                          int *positional) {
    Error error;
    bool good = true, only_words = false;
    *positional = 0;
    for (int i = 1; i < argc; i++)
        if (!strcmp(argv[i], "--"))
            break;
        else if (!strcmp(argv[i], "--help") || !strcmp(argv[i], "-h")) {
            print_help(command, options);
            return PARSE_HELP_SHOWN;
        }
    for (int i = 1; good && i < argc; i++) {
        if (!only_words && !strcmp(argv[i], "--"))
            only_words = true;
        else if (only_words || argv[i][0] != '-' || !argv[i][1])
            argv[(*positional)++] = argv[i];
        else if (argv[i][1] != '-')
            good = option_unknown(options, "", argv[i], &error);
        else
            good = parse_word(options, argc, argv, &i, &error);
    }
    if (good && config_file) good = options_read_yaml(options, config_file, &error);
    if (!good) {
        command_misused(command, &error);
        return PARSE_WRONG;
    }
    log_set_quiet(quiet_output);
    return PARSE_RUN;
}
