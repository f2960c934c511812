/* The larger actions of `hearth tokenizer`, a file each. */
#ifndef HEARTH_CMD_TOKENIZER_H
#define HEARTH_CMD_TOKENIZER_H

int tokenizer_train(int argc, char **argv);
int tokenizer_eval(int argc, char **argv);

#endif
