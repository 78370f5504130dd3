/* Registers: probe, start, wait, interrupt, reset, status, counters. */
#include <stddef.h>

#include "intloom_runtime.h"

static int read_register(struct intloom_device *device, uint32_t offset, uint32_t *value)
{
    return device->transport.read32(device->transport.context, offset, value) ? INTLOOM_E_BUS : INTLOOM_OK;
}

static int write_register(struct intloom_device *device, uint32_t offset, uint32_t value)
{
    return device->transport.write32(device->transport.context, offset, value) ? INTLOOM_E_BUS : INTLOOM_OK;
}

#if defined __riscv
#define CPU_BARRIER() __asm__ volatile("fence iorw, iorw" : : : "memory")
#elif defined __aarch64__ || (defined __ARM_ARCH && __ARM_ARCH >= 7)
#define CPU_BARRIER() __asm__ volatile("dmb sy" : : : "memory")
#elif defined __GNUC__
#define CPU_BARRIER() __sync_synchronize()
#else
#error "name the instruction of this CPU that orders accesses to memory and registers"
#endif

static void barrier(const struct intloom_device *device)
{
    if (device->transport.barrier)
        device->transport.barrier(device->transport.context);
    else
        CPU_BARRIER();
}

/* A bus without a device behind it often reads as all ones or all zeros. */
static int check_magic(struct intloom_device *device)
{
    uint32_t magic = 0;
    int result = read_register(device, INTLOOM_REG_MAGIC, &magic);

    if (result)
        return result;
    if (magic == 0u || magic == 0xffffffffu)
        return INTLOOM_E_BUS;
    return magic == INTLOOM_MAGIC ? INTLOOM_OK : INTLOOM_E_NOT_INTLOOM;
}

static int check_versions(struct intloom_device *device)
{
    uint32_t version = 0;
    int result = read_register(device, INTLOOM_REG_VERSION, &version);

    if (result)
        return result;
    if ((version & 0xffffu) != INTLOOM_REGISTER_VERSION)
        return INTLOOM_E_REGISTER_VERSION;
    device->isa_version = version >> 16;
    return device->isa_version == INTLOOM_ISA_VERSION ? INTLOOM_OK : INTLOOM_E_ISA_VERSION;
}

/* Both values differ in every bit, so that a stuck data line is found. */
static int check_writes(struct intloom_device *device)
{
    static const uint32_t patterns[2] = {0x5aa5c33cu, 0xa55a3cc3u};
    uint32_t value = 0;

    for (unsigned i = 0; i < 2u; i++) {
        int result = write_register(device, INTLOOM_REG_WATCHDOG, patterns[i]);
        if (!result)
            result = read_register(device, INTLOOM_REG_WATCHDOG, &value);
        if (result)
            return result;
        if (value != patterns[i])
            return INTLOOM_E_BUS;
    }
    return write_register(device, INTLOOM_REG_WATCHDOG, device->watchdog);
}

static int read_parameters(struct intloom_device *device)
{
    int result = read_register(device, INTLOOM_REG_FINGERPRINT, &device->fingerprint);

    if (!result)
        result = read_register(device, INTLOOM_REG_CAP_ROWS, &device->word_bytes);
    if (!result)
        result = read_register(device, INTLOOM_REG_CAP_AXI_ADDR_BITS, &device->address_bits);
    if (!result && (device->word_bytes < 4u || device->word_bytes > INTLOOM_WINDOW_ALIGNMENT))
        result = INTLOOM_E_BUS;
    return result;
}

static int check_window(const struct intloom_device *device)
{
    const struct intloom_window *window = &device->window;
    uint64_t last = window->bus_address + window->bytes - 1u;

    if (window->bus_address % INTLOOM_WINDOW_ALIGNMENT || (uintptr_t)window->memory % INTLOOM_WINDOW_ALIGNMENT)
        return INTLOOM_E_ALIGNMENT;
    if (last < window->bus_address || (device->address_bits < 64u && last >> device->address_bits))
        return INTLOOM_E_WINDOW_ADDRESS;
    return INTLOOM_OK;
}

int intloom_probe(struct intloom_device *device, const struct intloom_transport *transport,
                  const struct intloom_window *window)
{
    int result;

    if (!device || !transport || !window || !transport->read32 || !transport->write32 || !window->memory ||
        !window->bytes)
        return INTLOOM_E_ARGUMENT;
    device->transport = *transport;
    device->window = *window;
    device->image = NULL;
    device->isa_version = device->fingerprint = device->word_bytes = device->address_bits = 0;
    device->wait_limit = INTLOOM_WAIT_LIMIT;
    device->wait_ms = INTLOOM_WAIT_MS;
    device->watchdog = INTLOOM_WATCHDOG;
    device->use_interrupt = 0;
    device->interrupt_flags = 0;
    result = check_magic(device);
    if (!result)
        result = check_versions(device);
    if (!result)
        result = read_parameters(device);
    if (!result)
        result = check_writes(device);
    return result ? result : check_window(device);
}

static int read_status_register(struct intloom_device *device, uint32_t *status)
{
    int result = read_register(device, INTLOOM_REG_STATUS, status);

    /* Bits that no register has: the bus no longer answers. */
    if (!result && *status == 0xffffffffu)
        result = INTLOOM_E_BUS;
    return result;
}

int intloom_read_status(struct intloom_device *device, struct intloom_status *status)
{
    uint32_t value = 0;
    int result;

    if (!device || !status)
        return INTLOOM_E_ARGUMENT;
    result = read_status_register(device, &value);
    if (!result)
        result = read_register(device, INTLOOM_REG_ERROR_INDEX, &status->instruction);
    if (result)
        return result;
    status->busy = (value & INTLOOM_REG_STATUS_BUSY_MASK) != 0;
    status->done = (value & INTLOOM_REG_STATUS_DONE_MASK) != 0;
    status->error = (value & INTLOOM_REG_STATUS_ERROR_MASK) != 0;
    status->cause = (enum intloom_cause)((value & INTLOOM_REG_STATUS_CAUSE_MASK) >> INTLOOM_REG_STATUS_CAUSE_LSB);
    status->unit = (enum intloom_unit)((value & INTLOOM_REG_STATUS_UNIT_MASK) >> INTLOOM_REG_STATUS_UNIT_LSB);
    return INTLOOM_OK;
}

int intloom_read_counters(struct intloom_device *device, uint32_t counters[INTLOOM_COUNTERS])
{
    int result = device && counters ? INTLOOM_OK : INTLOOM_E_ARGUMENT;

    for (uint32_t i = 0; !result && i < INTLOOM_COUNTERS; i++)
        result = read_register(device, INTLOOM_FIRST_COUNTER + 4u * i, &counters[i]);
    return result;
}

static int check_idle(struct intloom_device *device)
{
    uint32_t status = 0;
    int result = read_status_register(device, &status);

    if (result)
        return result;
    if (status & INTLOOM_REG_STATUS_ERROR_MASK)
        return INTLOOM_E_HALTED;
    return status & INTLOOM_REG_STATUS_BUSY_MASK ? INTLOOM_E_BUSY : INTLOOM_OK;
}

static int write_setup(struct intloom_device *device, const struct intloom_region *region)
{
    const uint64_t base = device->window.bus_address + region->window_at;
    const uint32_t flags = INTLOOM_REG_IRQ_STATUS_DONE_MASK | INTLOOM_REG_IRQ_STATUS_ERROR_MASK;
    const struct {
        uint32_t offset, value;
    } writes[] = {
        {INTLOOM_REG_PROGRAM, region->code_to / device->word_bytes},
        {INTLOOM_REG_LENGTH, region->instructions},
        {INTLOOM_REG_BASE_LOW, (uint32_t)base},
        {INTLOOM_REG_BASE_HIGH, (uint32_t)(base >> 32)},
        {INTLOOM_REG_LIMIT, region->window_bytes / device->word_bytes},
        {INTLOOM_REG_WATCHDOG, device->watchdog},
        {INTLOOM_REG_IRQ_STATUS, flags},
        {INTLOOM_REG_IRQ_ENABLE, device->use_interrupt ? flags : 0u},
    };
    int result = INTLOOM_OK;

    for (unsigned i = 0; !result && i < sizeof writes / sizeof writes[0]; i++)
        result = write_register(device, writes[i].offset, writes[i].value);
    return result;
}

int intloom_start(struct intloom_device *device, uint32_t index)
{
    struct intloom_region region;
    int result;

    if (!device)
        return INTLOOM_E_ARGUMENT;
    if (!device->image)
        return INTLOOM_E_NOT_LOADED;
    result = intloom_get_region(device->image, index, &region);
    if (!result)
        result = check_idle(device);
    if (!result)
        result = write_setup(device, &region);
    if (result)
        return result;
    device->interrupt_flags = 0;
    /* Inputs and constants are in memory before the accelerator reads them. */
    barrier(device);
    return write_register(device, INTLOOM_REG_CONTROL, INTLOOM_REG_CONTROL_START_MASK);
}

int intloom_poll(struct intloom_device *device)
{
    uint32_t status = 0;
    int result = device ? read_status_register(device, &status) : INTLOOM_E_ARGUMENT;

    if (result)
        return result;
    /* Outputs are read after the status that says that they are there. */
    barrier(device);
    if (status & INTLOOM_REG_STATUS_ERROR_MASK)
        return INTLOOM_E_STOPPED;
    return status & INTLOOM_REG_STATUS_DONE_MASK ? INTLOOM_OK : INTLOOM_PENDING;
}

static uint32_t now(const struct intloom_device *device)
{
    return device->transport.clock ? device->transport.clock(device->transport.context) : 0u;
}

/* One step of a wait after `polls` polls since `start`: nonzero if the wait must end. */
static int idle(struct intloom_device *device, uint32_t start, uint32_t polls)
{
    if (device->transport.clock ? now(device) - start >= device->wait_ms : polls >= device->wait_limit)
        return 1;
    return device->transport.idle ? device->transport.idle(device->transport.context) : 0;
}

int intloom_wait(struct intloom_device *device)
{
    const uint32_t start = device ? now(device) : 0u;
    int result = intloom_poll(device);

    /* Each wake-up reads STATUS, whatever woke the CPU: a lost interrupt ends the wait, a spurious one does not. */
    for (uint32_t i = 0; result == INTLOOM_PENDING; i++) {
        const int ended = idle(device, start, i);

        result = intloom_poll(device);
        if (ended && result == INTLOOM_PENDING)
            result = INTLOOM_E_TIMEOUT;
    }
    return result;
}

int intloom_interrupt(struct intloom_device *device)
{
    uint32_t flags = 0;
    int result = device ? read_register(device, INTLOOM_REG_IRQ_STATUS, &flags) : INTLOOM_E_ARGUMENT;

    if (!result)
        result = write_register(device, INTLOOM_REG_IRQ_STATUS, flags);
    if (!result)
        device->interrupt_flags |= flags;
    return result;
}

int intloom_reset(struct intloom_device *device)
{
    const uint32_t start = device ? now(device) : 0u;
    uint32_t status = 0;
    int result = device ? write_register(device, INTLOOM_REG_CONTROL, INTLOOM_REG_CONTROL_RESET_MASK)
                        : INTLOOM_E_ARGUMENT;

    for (uint32_t i = 0; !result; i++) {
        result = read_status_register(device, &status);
        if (result || !(status & INTLOOM_REG_STATUS_BUSY_MASK))
            break;
        if (idle(device, start, i))
            result = INTLOOM_E_TIMEOUT;
    }
    return result;
}

static void lock(const struct intloom_device *device)
{
    if (device->transport.lock)
        device->transport.lock(device->transport.context);
}

static void unlock(const struct intloom_device *device)
{
    if (device->transport.unlock)
        device->transport.unlock(device->transport.context);
}

/* The host's work before a region: its inputs. */
static int prepare(struct intloom_device *device, uint32_t region, intloom_host_part host_part, void *context)
{
    int result = intloom_pass_tensors(device, region);

    if (!result && host_part && host_part(context, device, region))
        result = INTLOOM_E_HOST;
    return result;
}

static int run_regions(struct intloom_device *device, uint32_t first, intloom_host_part host_part, void *context)
{
    int result = INTLOOM_OK;

    for (uint32_t i = first; !result && i < device->image->regions; i++) {
        result = prepare(device, i, host_part, context);
        if (!result)
            result = intloom_start(device, i);
        if (!result)
            result = intloom_wait(device);
    }
    return result;
}

int intloom_run(struct intloom_device *device, intloom_host_part host_part, void *context)
{
    int result;

    if (!device)
        return INTLOOM_E_ARGUMENT;
    if (!device->image)
        return INTLOOM_E_NOT_LOADED;
    lock(device);
    result = run_regions(device, 0, host_part, context);
    unlock(device);
    return result;
}

/* The host's work on the other window while the accelerator runs frame `frame`. */
static int work_meanwhile(struct intloom_device *other, uint32_t frame, uint32_t frames, intloom_host_part host_part,
                          void *context)
{
    if (frame > 0 && host_part(context, other, other->image->regions))
        return INTLOOM_E_HOST;
    return frame + 1u < frames ? prepare(other, 0, host_part, context) : INTLOOM_OK;
}

int intloom_run_frames(struct intloom_device *const devices[2], uint32_t frames, intloom_host_part host_part,
                       void *context)
{
    int result;

    if (!devices || !devices[0] || !devices[1] || !frames || !host_part)
        return INTLOOM_E_ARGUMENT;
    if (!devices[0]->image || devices[1]->image != devices[0]->image)
        return INTLOOM_E_NOT_LOADED;
    lock(devices[0]);
    result = prepare(devices[0], 0, host_part, context);
    for (uint32_t i = 0; !result && i < frames; i++) {
        struct intloom_device *const device = devices[i % 2u];
        int ended;

        result = intloom_start(device, 0);
        if (result)
            break;
        result = work_meanwhile(devices[(i + 1u) % 2u], i, frames, host_part, context);
        /* Also after an error of the host: the accelerator is idle when the stream ends. */
        ended = intloom_wait(device);
        result = ended ? ended : result;
        if (!result)
            result = run_regions(device, 1, host_part, context);
    }
    if (!result && host_part(context, devices[(frames - 1u) % 2u], devices[0]->image->regions))
        result = INTLOOM_E_HOST;
    unlock(devices[0]);
    return result;
}

const char *intloom_result_name(int result)
{
    static const char *const names[INTLOOM_RESULTS] = {
        "OK",          "PENDING",        "ARGUMENT",     "BUS",           "NOT_INTLOOM",   "REGISTER_VERSION",
        "ISA_VERSION", "IMAGE_MAGIC",    "IMAGE_VERSION", "IMAGE_TRUNCATED", "IMAGE_CRC",  "IMAGE_RECORD",
        "FINGERPRINT", "ALIGNMENT",      "WINDOW_BYTES", "WINDOW_ADDRESS", "BUSY",         "HALTED",
        "TIMEOUT",     "STOPPED",        "NO_TENSOR",    "NOT_LOADED",    "HOST",
    };

    return result >= 0 && result < INTLOOM_RESULTS ? names[result] : "unknown";
}

const char *intloom_cause_name(enum intloom_cause cause)
{
    static const char *const names[INTLOOM_CAUSES] = INTLOOM_CAUSE_NAMES;

    return (unsigned)cause < INTLOOM_CAUSES ? names[cause] : "unknown";
}
