#include "cmd/options.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>
#include <strings.h>
#include <yaml.h>

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

static Option *find_option(Option *options, const char *name, size_t length) {
    for (Option *option = options; option->name; option++)
        if (strlen(option->name) == length && !memcmp(option->name, name, length)) return option;
    return options == common ? NULL : find_option(common, name, length);
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
        const char *copy = copy_string(text, error); /* kept for the life of the process */
        if (copy) memcpy(option->value, &copy, sizeof copy);
        return copy != NULL;
    }
    return set_number(option, text, error);
}

static bool unknown_option(Option *options, const char *prefix, const char *name, Error *error) {
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

/* One scalar event of a flat mapping: a key, or the value of the key before it. */
static bool yaml_scalar(Option *options, const char *path, const yaml_event_t *event, Option **key,
                        Error *error) {
    const char *text = (const char *)event->data.scalar.value;
    unsigned long line = (unsigned long)event->start_mark.line + 1;
    if (strlen(text) != event->data.scalar.length)
        return fail(error, "%s:%lu holds a NUL byte", path, line);
    Error inner;
    if (!*key) {
        char name[64] = "";
        for (size_t i = 0; text[i] && i < 63; i++) name[i] = text[i] == '_' ? '-' : text[i];
        *key = find_option(options, name, strlen(name));
        if (*key) return true;
        unknown_option(options, "", name, &inner);
        return fail(error, "%s:%lu: %s", path, line, inner.message);
    }
    Option *option = *key;
    *key = NULL;
    bool empty = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE &&
                 (!*text || !strcmp(text, "null") || !strcmp(text, "~"));
    if (empty || option->given) return true; /* the command line wins */
    if (!option_set(option, text, &inner))
        return fail(error, "%s:%lu: %s", path, line, inner.message);
    return true;
}

bool options_read_yaml(Option *options, const char *path, Error *error) {
    FILE *file = fopen(path, "rb");
    if (!file) return fail_errno(error, "cannot open %s", path);
    yaml_parser_t parser;
    if (!yaml_parser_initialize(&parser)) {
        fclose(file);
        return fail(error, "out of memory reading %s", path);
    }
    yaml_parser_set_input_file(&parser, file);
    bool done = false, going = true;
    int depth = 0;
    Option *key = NULL;
    while (going) {
        yaml_event_t event;
        if (!yaml_parser_parse(&parser, &event)) {
            fail(error, "%s:%zu: %s", path, parser.problem_mark.line + 1,
                 parser.problem ? parser.problem : "not valid YAML");
            break;
        }
        if (event.type == YAML_MAPPING_START_EVENT && depth == 0) {
            depth = 1;
        } else if (event.type == YAML_SCALAR_EVENT && depth == 1) {
            going = yaml_scalar(options, path, &event, &key, error);
        } else if (event.type == YAML_SEQUENCE_START_EVENT || event.type == YAML_ALIAS_EVENT ||
                   event.type == YAML_MAPPING_START_EVENT || event.type == YAML_SCALAR_EVENT) {
            if (event.type != YAML_SCALAR_EVENT || event.data.scalar.length)
                going = fail(error, "%s:%zu: expected lines of 'option: value'", path,
                             event.start_mark.line + 1);
        } else if (event.type == YAML_STREAM_END_EVENT) {
            done = true, going = false;
        }
        yaml_event_delete(&event);
    }
    yaml_parser_delete(&parser);
    fclose(file);
    return done;
}

/* The length and code of a character above ASCII that YAML does not take as it is (controls, line breaks,
 * marks); 0 when this is none. */
static size_t special_character(const unsigned char *text, unsigned *code) {
    if (text[0] == 0xc2 && text[1] < 0xa0) {
        *code = text[1];
        return 2;
    }
    if (text[0] != 0xe2 && text[0] != 0xef) return 0;
    if (!text[1] || !text[2]) return 0;
    *code = (text[0] & 15u) << 12 | (text[1] & 63u) << 6 | (text[2] & 63u);
    bool listed = *code == 0x2028 || *code == 0x2029 || *code == 0xfeff || *code >= 0xfffe;
    return listed ? 3 : 0;
}

static void write_quoted(FILE *file, const char *text) {
    fputc('"', file);
    for (const unsigned char *c = (const unsigned char *)text; *c; c++) {
        unsigned code;
        size_t length = special_character(c, &code);
        if (length) {
            fprintf(file, "\\u%04x", code);
            c += length - 1;
        } else if (*c == '"' || *c == '\\') {
            fprintf(file, "\\%c", *c);
        } else if (*c < 32 || *c == 127) {
            fprintf(file, "\\x%02x", *c);
        } else {
            fputc(*c, file);
        }
    }
    fputc('"', file);
}

/* A number below its own least value stands for "not given". */
static bool is_unset(const Option *option) {
    if (option->minimum <= 0) return false;
    if (option->kind == OPTION_NUMBER || option->kind == OPTION_DURATION)
        return *(const double *)option->value < option->minimum;
    bool whole = option->kind == OPTION_INTEGER || option->kind == OPTION_COUNT ||
                 option->kind == OPTION_BYTES;
    return whole && (double)*(const int64_t *)option->value < option->minimum;
}

void options_write_yaml(const Option *options, FILE *file) {
    for (const Option *option = options; option->name; option++) {
        const void *value = option->value;
        fprintf(file, "%s: ", option->name);
        if (is_unset(option)) {
            /* an empty value leaves the default */
        } else if (option->kind == OPTION_FLAG) {
            fputs(*(const bool *)value ? "true" : "false", file);
        } else if (option->kind == OPTION_TEXT || option->kind == OPTION_CHOICE) {
            const char *text = *(const char *const *)value;
            if (text) write_quoted(file, text);
        } else if (option->kind == OPTION_NUMBER || option->kind == OPTION_DURATION) {
            fprintf(file, "%.17g", *(const double *)value);
        } else {
            fprintf(file, "%lld", (long long)*(const int64_t *)value);
        }
        fputc('\n', file);
    }
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
    Option *option = find_option(options, word, length);
    if (!option && !strncmp(word, "no-", 3) && !equals) {
        option = find_option(options, word + 3, length - 3);
        if (option && option->kind == OPTION_FLAG) return option_set(option, "false", error);
        option = NULL;
    }
    if (!option) {
        char name[64];
        snprintf(name, sizeof name, "%.*s", (int)(length < 63 ? length : 63), word);
        return unknown_option(options, "--", name, error);
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
            good = unknown_option(options, "", argv[i], &error);
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
