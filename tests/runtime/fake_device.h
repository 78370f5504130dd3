/* A register file that behaves as a test wants, and helpers that all test programs share. */
#ifndef FAKE_DEVICE_H
#define FAKE_DEVICE_H

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "intloom_runtime.h"

#define FAKE_REGISTERS 256u

enum fake_ending { FAKE_DONE, FAKE_ERROR, FAKE_HANG };

struct fake_device {
    uint32_t registers[FAKE_REGISTERS];
    enum fake_ending ending;
    int dead;           /* Every access fails. */
    int stuck;          /* Writes have no effect. */
    uint32_t starts;
    uint32_t flushed, invalidated; /* Bytes. */
    uint32_t idle_calls, idle_limit;
    struct intloom_device *interrupts; /* The idle hook plays the interrupt handler. */
    uint32_t finishes_at; /* The idle call during which a hanging run ends without an interrupt; 0: never. */
    uint32_t accesses; /* Of memory since the last barrier: cache maintenance stands for them. */
    uint32_t unordered; /* Starts without a barrier before. */
    int status_read;    /* Since the last barrier. */
    uint32_t early;     /* Accesses to outputs after STATUS without a barrier between. */
    uint32_t milliseconds;
    int locked, unlocked_starts;
};

static int fake_read(void *context, uint32_t offset, uint32_t *value)
{
    struct fake_device *fake = context;

    if (fake->dead)
        return 1;
    fake->status_read |= offset == INTLOOM_REG_STATUS;
    *value = fake->registers[offset / 4u % FAKE_REGISTERS];
    return 0;
}

static void fake_command(struct fake_device *fake, uint32_t value)
{
    uint32_t *status = &fake->registers[INTLOOM_REG_STATUS / 4u];

    if (value & INTLOOM_REG_CONTROL_RESET_MASK)
        *status = fake->ending == FAKE_HANG ? INTLOOM_REG_STATUS_BUSY_MASK : 0u;
    if (!(value & INTLOOM_REG_CONTROL_START_MASK))
        return;
    fake->starts++;
    fake->unordered += fake->accesses != 0u;
    fake->unlocked_starts += fake->locked != 1;
    *status = fake->ending == FAKE_DONE    ? INTLOOM_REG_STATUS_DONE_MASK
              : fake->ending == FAKE_ERROR ? INTLOOM_REG_STATUS_ERROR_MASK | INTLOOM_CAUSE_READ_DECERR << 8
                                           : INTLOOM_REG_STATUS_BUSY_MASK;
    fake->registers[INTLOOM_REG_IRQ_STATUS / 4u] = fake->ending == FAKE_HANG ? 0u : 1u;
}

static int fake_write(void *context, uint32_t offset, uint32_t value)
{
    struct fake_device *fake = context;
    uint32_t *target = &fake->registers[offset / 4u % FAKE_REGISTERS];

    if (fake->dead)
        return 1;
    if (fake->stuck)
        return 0;
    if (offset == INTLOOM_REG_CONTROL)
        fake_command(fake, value);
    else if (offset == INTLOOM_REG_IRQ_STATUS)
        *target &= ~value;
    else
        *target = value;
    return 0;
}

static int fake_idle(void *context)
{
    struct fake_device *fake = context;

    if (fake->interrupts)
        intloom_interrupt(fake->interrupts);
    if (fake->finishes_at && fake->idle_calls + 1u == fake->finishes_at)
        fake->registers[INTLOOM_REG_STATUS / 4u] = INTLOOM_REG_STATUS_DONE_MASK;
    return ++fake->idle_calls == fake->idle_limit;
}

static void fake_flush(void *context, void *start, uint32_t bytes)
{
    (void)start;
    ((struct fake_device *)context)->flushed += bytes;
    ((struct fake_device *)context)->accesses++;
}

static void fake_invalidate(void *context, void *start, uint32_t bytes)
{
    (void)start;
    ((struct fake_device *)context)->invalidated += bytes;
    ((struct fake_device *)context)->early += ((struct fake_device *)context)->status_read != 0;
}

static void fake_barrier(void *context)
{
    ((struct fake_device *)context)->accesses = 0;
    ((struct fake_device *)context)->status_read = 0;
}

static uint32_t fake_clock(void *context)
{
    return ((struct fake_device *)context)->milliseconds += 100u;
}

static void fake_lock(void *context)
{
    ((struct fake_device *)context)->locked++;
}

static void fake_unlock(void *context)
{
    ((struct fake_device *)context)->locked--;
}

static struct intloom_transport fake_transport(struct fake_device *fake)
{
    struct intloom_transport transport = {.read32 = fake_read,
                                          .write32 = fake_write,
                                          .idle = fake_idle,
                                          .flush = fake_flush,
                                          .invalidate = fake_invalidate,
                                          .barrier = fake_barrier,
                                          .context = fake};

    return transport;
}

/* Registers of hardware that fits the image. */
static void fake_init(struct fake_device *fake, const struct intloom_image *image)
{
    memset(fake, 0, sizeof *fake);
    fake->registers[INTLOOM_REG_MAGIC / 4u] = INTLOOM_MAGIC;
    fake->registers[INTLOOM_REG_VERSION / 4u] = INTLOOM_REGISTER_VERSION | INTLOOM_ISA_VERSION << 16;
    fake->registers[INTLOOM_REG_FINGERPRINT / 4u] = image->fingerprint;
    fake->registers[INTLOOM_REG_CAP_ROWS / 4u] = image->word_bytes;
    fake->registers[INTLOOM_REG_CAP_AXI_ADDR_BITS / 4u] = 32u;
}

/* A whole file, in a block of exactly its size, so that an access behind its end is found. */
static uint8_t *read_file(const char *path, uint32_t *bytes)
{
    FILE *file = fopen(path, "rb");
    uint8_t *data;
    long size;

    if (!file || fseek(file, 0, SEEK_END) || (size = ftell(file)) < 0)
        exit(100);
    rewind(file);
    *bytes = (uint32_t)size;
    data = malloc(*bytes);
    if (!data || fread(data, 1, *bytes, file) != *bytes)
        exit(101);
    fclose(file);
    return data;
}

static uint8_t *new_window(uint32_t bytes)
{
    uint8_t *memory = aligned_alloc(INTLOOM_WINDOW_ALIGNMENT, bytes);

    if (!memory)
        exit(102);
    memset(memory, 0, bytes);
    return memory;
}

#endif
