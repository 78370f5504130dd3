/* Registers as the driver's calls: settings are collected, and a start submits them. */
#define _POSIX_C_SOURCE 200809L
#include "intloom_linux.h"

#include <errno.h>
#include <fcntl.h>
#include <string.h>
#include <sys/ioctl.h>
#include <sys/mman.h>
#include <time.h>
#include <unistd.h>

#include "intloom_ioctl.h"

#define SLEEP_MS 1000u /* Of one call while the runtime waits. */

static uint32_t *setting(struct intloom_linux *opened, uint32_t offset)
{
    switch (offset) {
    case INTLOOM_REG_PROGRAM:
        return &opened->program;
    case INTLOOM_REG_LENGTH:
        return &opened->instructions;
    case INTLOOM_REG_BASE_LOW:
        return &opened->base;
    case INTLOOM_REG_LIMIT:
        return &opened->limit;
    case INTLOOM_REG_WATCHDOG:
        return &opened->watchdog;
    default:
        return NULL;
    }
}

static int read32(void *context, uint32_t offset, uint32_t *value)
{
    struct intloom_linux *opened = context;
    const uint32_t *kept = setting(opened, offset);
    struct intloom_register asked = {offset, 0};

    if (!kept && ioctl(opened->file, INTLOOM_READ, &asked))
        return 1;
    *value = kept ? *kept : asked.value;
    return 0;
}

static int command(struct intloom_linux *opened, uint32_t commands)
{
    const struct intloom_submit submit = {
        .window_at = opened->base,
        .window_bytes = opened->limit * opened->word_bytes,
        .program = opened->program,
        .instructions = opened->instructions,
        .watchdog = opened->watchdog,
    };

    if (commands & INTLOOM_REG_CONTROL_RESET_MASK)
        return ioctl(opened->file, INTLOOM_RESET) != 0;
    return ioctl(opened->file, INTLOOM_SUBMIT, &submit) != 0;
}

static int write32(void *context, uint32_t offset, uint32_t value)
{
    struct intloom_linux *opened = context;
    uint32_t *kept = setting(opened, offset);

    if (offset == INTLOOM_REG_CONTROL)
        return command(opened, value);
    if (kept)
        *kept = value;
    /* The window is below 4 GiB of the buffer, and interrupts are the driver's. */
    return !kept && offset != INTLOOM_REG_BASE_HIGH && offset != INTLOOM_REG_IRQ_STATUS && offset != INTLOOM_REG_IRQ_ENABLE;
}

static int idle(void *context)
{
    const struct intloom_linux *opened = context;
    struct intloom_wait wait = {SLEEP_MS, 0};

    return ioctl(opened->file, INTLOOM_WAIT, &wait) && errno != EINTR;
}

static uint32_t milliseconds(void *context)
{
    struct timespec now = {0, 0};

    (void)context;
    clock_gettime(CLOCK_MONOTONIC, &now);
    return (uint32_t)now.tv_sec * 1000u + (uint32_t)(now.tv_nsec / 1000000);
}

int intloom_linux_open(struct intloom_linux *opened, const char *path, uint32_t bytes,
                       struct intloom_transport *transport, struct intloom_window *window)
{
    struct intloom_buffer buffer = {bytes};
    struct intloom_register rows = {INTLOOM_REG_CAP_ROWS, 0};
    const struct intloom_transport calls = {
        .read32 = read32, .write32 = write32, .idle = idle, .clock = milliseconds, .context = opened};

    memset(opened, 0, sizeof *opened);
    opened->memory = MAP_FAILED;
    opened->bytes = bytes;
    opened->file = open(path, O_RDWR | O_CLOEXEC);
    if (opened->file >= 0 && !ioctl(opened->file, INTLOOM_READ, &rows) && !ioctl(opened->file, INTLOOM_ALLOCATE, &buffer))
        opened->memory = mmap(NULL, bytes, PROT_READ | PROT_WRITE, MAP_SHARED, opened->file, 0);
    if (opened->memory == MAP_FAILED) {
        const int reason = errno;
        intloom_linux_close(opened);
        errno = reason;
        return INTLOOM_E_BUS;
    }
    opened->word_bytes = rows.value;
    *transport = calls;
    *window = (struct intloom_window){opened->memory, 0, bytes};
    return INTLOOM_OK;
}

void intloom_linux_close(struct intloom_linux *opened)
{
    if (opened->memory != MAP_FAILED)
        munmap(opened->memory, opened->bytes);
    if (opened->file >= 0)
        close(opened->file);
    opened->memory = MAP_FAILED;
    opened->file = -1;
}
