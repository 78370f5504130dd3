/* VexRiscv and the devices around it. */
#include <stdio.h>
#include <string.h>

#include "machine.h"

#define UART (*(volatile uint32_t *)0xf0000000u)
#define END_OF_TRANSMISSION 4 /* Ends the simulation. */

#define BUS_ERRORS (*(volatile uint32_t *)0xf0002000u) /* 1 after a bus error; cleared by reading. */
#define CACHE ((volatile uint32_t *)0xf0003000u)
#define CACHE_FIRST 0 /* Address of the first byte of a range; the other two take the last byte's, and begin. */
#define CACHE_CLEAN 1
#define CACHE_INVALIDATE 2
#define ACCELERATOR_IRQ 1u

volatile uint32_t interrupts;
unsigned machine_failures;
static uintptr_t registers = REGISTERS_ADDRESS;
static struct intloom_device *interrupting;

static int put(char c, FILE *file)
{
    (void)file;
    UART = (uint8_t)c;
    return c;
}

static FILE console = FDEV_SETUP_STREAM(put, NULL, NULL, _FDEV_SETUP_WRITE);
FILE *const stdout = &console;

static void end(void)
{
    UART = END_OF_TRANSMISSION;
    for (;;)
        ;
}

static void take_interrupts(void)
{
    uint32_t pending;

    READ_CSR(IRQ_PENDING, pending);
    if (pending & ACCELERATOR_IRQ) {
        interrupts++;
        /* Without an answer the line would stay high for ever. */
        if (intloom_interrupt(interrupting))
            WRITE_CSR(IRQ_MASK, 0);
    }
}

void machine_exception(uint32_t cause)
{
    uint32_t at;

    READ_CSR("mepc", at);
    printf("trap: cause %lu at 0x%08lx\n", (unsigned long)cause, (unsigned long)at);
    end();
}

__attribute__((interrupt("machine"), aligned(4))) void trap(void)
{
    uint32_t cause;

    READ_CSR("mcause", cause);
    if (cause == EXTERNAL_INTERRUPT)
        take_interrupts();
    else
        machine_exception(cause);
}

typedef uint32_t __attribute__((may_alias)) aliased_word;

/* Debian's picolibc copies byte by byte. GCC must not turn the loop into a call of this function. */
__attribute__((optimize("no-tree-loop-distribute-patterns"))) void *memcpy(void *to, const void *from, size_t bytes)
{
    uint8_t *t = to;
    const uint8_t *f = from;

    if (((uintptr_t)t | (uintptr_t)f) % 4u == 0)
        for (; bytes >= 16u; bytes -= 16u, t += 16, f += 16) {
            const aliased_word *words = (const aliased_word *)f;
            const uint32_t a = words[0], b = words[1], c = words[2], d = words[3];
            ((aliased_word *)t)[0] = a;
            ((aliased_word *)t)[1] = b;
            ((aliased_word *)t)[2] = c;
            ((aliased_word *)t)[3] = d;
        }
    while (bytes--)
        *t++ = *f++;
    return to;
}

int machine_bus_error(void)
{
    return (int)BUS_ERRORS;
}

static volatile uint32_t *at(void *context, uint32_t offset)
{
    return (volatile uint32_t *)(*(const uintptr_t *)context + offset);
}

static int read32(void *context, uint32_t offset, uint32_t *value)
{
    *value = *at(context, offset);
    return machine_bus_error();
}

static int write32(void *context, uint32_t offset, uint32_t value)
{
    *at(context, offset) = value;
    return machine_bus_error();
}

uint32_t machine_mask(void)
{
    uint32_t status;

    READ_CSR("mstatus", status);
    WRITE_CSR("mstatus", status & ~INTERRUPTS_ENABLE);
    return status;
}

void machine_restore(uint32_t mask)
{
    WRITE_CSR("mstatus", mask);
}

/* Another thread must not set its range between the two writes. */
static void command_cache(unsigned command, void *start, uint32_t bytes)
{
    const uint32_t mask = machine_mask();

    CACHE[CACHE_FIRST] = (uint32_t)(uintptr_t)start;
    CACHE[command] = (uint32_t)(uintptr_t)start + bytes - 1u;
    machine_restore(mask);
}

static void flush(void *context, void *start, uint32_t bytes)
{
    (void)context;
    command_cache(CACHE_CLEAN, start, bytes);
}

static void invalidate(void *context, void *start, uint32_t bytes)
{
    (void)context;
    command_cache(CACHE_INVALIDATE, start, bytes);
    __asm__ volatile(".word 0x500f" : : : "memory"); /* VexRiscv: discard all lines of the data cache. */
}

void machine_flip(uint8_t *byte, uint8_t bits)
{
    *byte ^= bits;
    flush(NULL, byte, 1);
}

static int idle(void *context)
{
    (void)context;
    return 0;
}

const struct intloom_transport machine_transport = {
    .read32 = read32, .write32 = write32, .idle = idle, .flush = flush, .invalidate = invalidate, .context = &registers};

void machine_enable_interrupts(struct intloom_device *device)
{
    interrupting = device;
    WRITE_CSR(IRQ_MASK, ACCELERATOR_IRQ);
    WRITE_CSR("mie", EXTERNAL_INTERRUPT_ENABLE);
    WRITE_CSR("mstatus", INTERRUPTS_ENABLE);
}

int machine_expect(const char *what, int result, int expected)
{
    printf("%s: %s%s\n", what, intloom_result_name(result), result == expected ? "" : ", which is wrong");
    machine_failures += result != expected;
    return result != expected;
}

int machine_expect_cause(struct intloom_device *stopped, enum intloom_cause expected)
{
    struct intloom_status status;

    if (machine_expect("status", intloom_read_status(stopped, &status), INTLOOM_OK))
        return 1;
    printf("cause: %s, instruction %lu\n", intloom_cause_name(status.cause), (unsigned long)status.instruction);
    machine_failures += status.cause != expected;
    return status.cause != expected;
}

void machine_finish(void)
{
    machine_expect("memory", machine_bus_error() ? INTLOOM_E_BUS : INTLOOM_OK, INTLOOM_OK);
    printf(machine_failures ? "FAILED: %u\n" : "PASSED\n", machine_failures);
    end();
}
