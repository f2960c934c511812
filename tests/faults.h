/* Failure injection by counting calls, as SQLite's tests do: fail the 1st call, then the 2nd, …
 * until the operation succeeds. A test that includes this header is linked so that calls from
 * hearth's code to the functions below pass through the counter:
 *     memory: malloc calloc realloc (and jansson's)
 *     files:  open read write fsync ftruncate rename mkdir mmap
 *
 *     for (int64_t call = 1;; call++) {
 *         faults_arm(FAULTS_ALL, FAULT_ONCE, call);
 *         bool done = operation(&error);
 *         if (!faults_disarm()) break;   // the operation ended before that call: all were tried
 *         … check what must hold after a failure …
 *     }
 */
#ifndef HEARTH_TESTS_FAULTS_H
#define HEARTH_TESTS_FAULTS_H

#include <stdbool.h>
#include <stdint.h>

enum { FAULTS_MEMORY = 1, FAULTS_FILES = 2, FAULTS_ALL = 3 };

typedef enum FaultEffect {
    FAULT_ONCE,    /* that call fails, later ones succeed */
    FAULT_LASTING, /* that call and all later ones fail: a disk that is full stays full */
    FAULT_KILL,    /* the process ends there, as by kill -9, a write half done: fork() first */
} FaultEffect;

enum { FAULT_KILL_STATUS = 137 }; /* the exit status after FAULT_KILL */

/* Call number `call`, from 1, of the chosen functions fails from now on. */
void faults_arm(int functions, FaultEffect effect, int64_t call);

/* Ends injection; says whether that call was reached. */
bool faults_disarm(void);

#endif
