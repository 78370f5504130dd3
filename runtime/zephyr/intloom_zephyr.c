/* Needs CONFIG_CACHE_MANAGEMENT on a CPU with a data cache. */
#include "intloom_zephyr.h"

#include <zephyr/cache.h>
#include <zephyr/sys/sys_io.h>

#define SLEEP_MS 10 /* At most, between two looks at STATUS: an interrupt may be lost. */

static int read32(void *context, uint32_t offset, uint32_t *value)
{
    *value = sys_read32(((struct intloom_zephyr *)context)->registers + offset);
    return 0;
}

static int write32(void *context, uint32_t offset, uint32_t value)
{
    sys_write32(value, ((struct intloom_zephyr *)context)->registers + offset);
    return 0;
}

static int idle(void *context)
{
    (void)k_sem_take(&((struct intloom_zephyr *)context)->interrupted, K_MSEC(SLEEP_MS));
    return 0;
}

static void flush(void *context, void *start, uint32_t bytes)
{
    ARG_UNUSED(context);
    (void)sys_cache_data_flush_range(start, bytes);
}

/* Lines at both ends may hold other bytes of the window, which only the CPU writes: they are written back, not lost. */
static void invalidate(void *context, void *start, uint32_t bytes)
{
    ARG_UNUSED(context);
    (void)sys_cache_data_flush_and_invd_range(start, bytes);
}

static uint32_t milliseconds(void *context)
{
    ARG_UNUSED(context);
    return k_uptime_get_32();
}

static void lock(void *context)
{
    (void)k_mutex_lock(&((struct intloom_zephyr *)context)->mutex, K_FOREVER);
}

static void unlock(void *context)
{
    (void)k_mutex_unlock(&((struct intloom_zephyr *)context)->mutex);
}

void intloom_zephyr_init(struct intloom_zephyr *os, mm_reg_t registers, struct intloom_device *device,
                         struct intloom_transport *transport)
{
    const struct intloom_transport calls = {.read32 = read32,
                                            .write32 = write32,
                                            .idle = idle,
                                            .flush = flush,
                                            .invalidate = invalidate,
                                            .clock = milliseconds,
                                            .lock = lock,
                                            .unlock = unlock,
                                            .context = os};

    os->registers = registers;
    os->device = device;
    k_mutex_init(&os->mutex);
    k_sem_init(&os->interrupted, 0, 1);
    *transport = calls;
}

void intloom_zephyr_interrupt(const void *context)
{
    struct intloom_zephyr *os = (struct intloom_zephyr *)context;

    (void)intloom_interrupt(os->device);
    k_sem_give(&os->interrupted);
}
