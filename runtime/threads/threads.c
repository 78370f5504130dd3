#include "threads.h"

#include <stddef.h>

#include "machine.h"

#define PERIOD 1500u         /* Cycles between two switches: a run of the accelerator takes several. */
#define CYCLES_PER_MS 10000u /* A slow clock, so that little is simulated until a wait ends. */
#define SLEEP_MS 1u          /* At most, between two looks at STATUS: an interrupt may be lost. */
#define STACK_WORDS 1024u
#define FRAME_WORDS 32u      /* As switch_trap saves it: the address to go on at, then x1 to x31. */

extern void switch_trap(void);

static struct accelerator *shared;
static void (*thread_work)(uint32_t thread);
static uintptr_t stack_pointers[2];
static uint32_t current;
static volatile int ended;
static uint32_t stack[STACK_WORDS] __attribute__((aligned(16)));

static void take_interrupts(void)
{
    uint32_t pending;

    READ_CSR(IRQ_PENDING, pending);
    for (uint32_t i = 0; i < 2u; i++)
        if (pending >> i & 1u) {
            (void)intloom_interrupt(shared[i].device);
            shared[i].interrupted = 1;
        }
}

/* Interrupts are off here. Returns the stack pointer of the thread that goes on. */
uintptr_t threads_trap(uintptr_t stack_pointer)
{
    uint32_t cause;

    READ_CSR("mcause", cause);
    if (cause == EXTERNAL_INTERRUPT) {
        take_interrupts();
    } else if (cause == TIMER_INTERRUPT) {
        TIMER = TIMER + PERIOD;
        stack_pointers[current] = stack_pointer;
        current ^= 1u;
        stack_pointer = stack_pointers[current];
    } else {
        machine_exception(cause);
    }
    return stack_pointer;
}

static uint32_t milliseconds(void *context)
{
    (void)context;
    return TIMER / CYCLES_PER_MS;
}

/* Set a flag that is clear, or tell that it was set. */
static int take(volatile int *flag, int from)
{
    const uint32_t mask = machine_mask();
    const int good = *flag == from;

    if (good)
        *flag = !from;
    machine_restore(mask);
    return good;
}

static void lock(void *context)
{
    while (!take(&((struct accelerator *)context)->taken, 0))
        ; /* The timer gives the CPU to the owner. */
}

static void unlock(void *context)
{
    ((struct accelerator *)context)->taken = 0;
}

static int idle(void *context)
{
    const uint32_t start = milliseconds(NULL);

    while (!take(&((struct accelerator *)context)->interrupted, 1) && milliseconds(NULL) - start <= SLEEP_MS)
        ;
    return 0;
}

void threads_transport(struct accelerator *accelerator, struct intloom_transport *transport)
{
    *transport = machine_transport;
    transport->idle = idle;
    transport->clock = milliseconds;
    transport->lock = lock;
    transport->unlock = unlock;
    transport->context = accelerator;
}

static void second_thread(void)
{
    thread_work(1);
    ended = 1;
    for (;;)
        ;
}

void threads_run(void (*work)(uint32_t thread), struct accelerator accelerators[2])
{
    uint32_t *const frame = &stack[STACK_WORDS - FRAME_WORDS];

    shared = accelerators;
    thread_work = work;
    ended = 0;
    current = 0;
    frame[0] = (uint32_t)(uintptr_t)second_thread;
    __asm__ volatile("mv %0, gp" : "=r"(frame[3]));
    stack_pointers[1] = (uintptr_t)frame;
    WRITE_CSR("mtvec", switch_trap);
    WRITE_CSR(IRQ_MASK, 3u);
    WRITE_CSR("mie", EXTERNAL_INTERRUPT_ENABLE | TIMER_INTERRUPT_ENABLE);
    TIMER = TIMER + PERIOD;
    WRITE_CSR("mstatus", INTERRUPTS_ENABLE);
    work(0);
    while (!ended)
        ;
    WRITE_CSR("mstatus", 0u); /* No switch from here on. */
}
