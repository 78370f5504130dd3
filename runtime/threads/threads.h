/* Two threads of execution, switched by the timer's interrupt, and the C runtime's hooks for them. */
#ifndef THREADS_H
#define THREADS_H

#include "intloom_runtime.h"

/* An accelerator that threads share; `registers` is the context of the machine's register access. */
struct accelerator {
    uintptr_t registers;
    volatile int taken;       /* The mutex. */
    volatile int interrupted; /* The semaphore: given by the interrupt. */
    struct intloom_device *device; /* Any device of it, for the interrupt. */
};

/* Register access and cache of the machine, with semaphore, clock and mutex of an accelerator. */
void threads_transport(struct accelerator *accelerator, struct intloom_transport *transport);

/* Run `work(0)` and `work(1)` as threads until both end, with the interrupts of two accelerators. */
void threads_run(void (*work)(uint32_t thread), struct accelerator accelerators[2]);

#endif
