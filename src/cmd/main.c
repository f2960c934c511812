/* hearth: finds the verb and runs it. */
#include <errno.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cmd/options.h"
#include "cmd/verbs.h"

static const struct {
    const char *name, *summary;
    int (*run)(int argc, char **argv);
} verbs[] = {
    {"demo", "the whole road on a small corpus, in about two minutes", verb_demo},
    {"tokenizer", "train, evaluate and use a tokenizer", verb_tokenizer},
    {"data", "turn text into token shards, and look into them", verb_data},
    {"train", "start or resume a training run", verb_train},
    {"eval", "loss and bits per byte of a checkpoint", verb_eval},
    {"generate", "sample text from a checkpoint", verb_generate},
    {"plan", "memory and time on any device, before the run", verb_plan},
    {"doctor", "is this machine ready, and the remedy if not", verb_doctor},
};
enum { VERBS = sizeof verbs / sizeof *verbs };

static void print_usage(FILE *file) {
    fprintf(file, "hearth pre-trains language models on the machine you own.\n\n"
                  "Usage: hearth VERB [options]\n\nVerbs:\n");
    for (int i = 0; i < VERBS; i++) fprintf(file, "  %-11s%s\n", verbs[i].name, verbs[i].summary);
    fprintf(file,
            "\n'hearth VERB --help' explains each with an example. New here? Try 'hearth demo'.\n");
}

/* A result that did not reach its reader (a full disk, a closed pipe) is a failure. */
static int flushed(int status) {
    if (fflush(stdout) == 0 && !ferror(stdout)) return status;
    if (status == EXIT_SUCCESS && errno != EPIPE)
        fprintf(stderr, "hearth: cannot write the result to standard output: %s\n",
                strerror(errno));
    return status == EXIT_SUCCESS ? EXIT_FAILURE : status;
}

int main(int argc, char **argv) {
    signal(SIGPIPE, SIG_IGN); /* a closed pipe is an error where it is written to, not a death */
    signal(SIGXFSZ, SIG_IGN); /* and so is a file that may not grow */
    if (argc < 2) {
        print_usage(stderr);
        return EXIT_USAGE;
    }
    if (!strcmp(argv[1], "--help") || !strcmp(argv[1], "-h") || !strcmp(argv[1], "help")) {
        print_usage(stdout);
        return EXIT_SUCCESS;
    }
    const char *names[VERBS + 1] = {0};
    for (int i = 0; i < VERBS; i++) {
        if (!strcmp(argv[1], verbs[i].name)) return flushed(verbs[i].run(argc - 1, argv + 1));
        names[i] = verbs[i].name;
    }
    const char *nearest = nearest_word(argv[1], names);
    fprintf(stderr, "hearth: unknown verb '%s'", argv[1]);
    if (nearest) fprintf(stderr, "; did you mean '%s'?", nearest);
    fprintf(stderr, "\nTry 'hearth --help'.\n");
    return EXIT_USAGE;
}
