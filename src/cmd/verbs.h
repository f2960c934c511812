/* The subcommands: each takes argv from its own name on and returns the exit status. */
#ifndef HEARTH_CMD_VERBS_H
#define HEARTH_CMD_VERBS_H

int verb_demo(int argc, char **argv);
int verb_tokenizer(int argc, char **argv);
int verb_data(int argc, char **argv);
int verb_train(int argc, char **argv);
int verb_eval(int argc, char **argv);
int verb_generate(int argc, char **argv);
int verb_plan(int argc, char **argv);
int verb_doctor(int argc, char **argv);

#endif
