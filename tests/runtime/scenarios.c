/* Uses and misuses of the runtime on a fake device: `scenarios IMAGE` prints the result of each. */
#include "fake_device.h"

#define BUS_ADDRESS 0x40000000u

static const uint8_t *bytes;
static uint32_t length;
static struct intloom_image image;
static struct fake_device fake;
static struct intloom_device device;
static struct intloom_window window;

static void show(const char *name, int result)
{
    printf("%s %s\n", name, intloom_result_name(result));
}

static int probe(void)
{
    struct intloom_transport transport = fake_transport(&fake);

    return intloom_probe(&device, &transport, &window);
}

static void fresh(void)
{
    fake_init(&fake, &image);
    window.bus_address = BUS_ADDRESS;
    if (probe() || intloom_load_image(&device, &image))
        exit(110);
    device.wait_limit = 1000;
}

static void set(uint32_t offset, uint32_t value)
{
    fake.registers[offset / 4u] = value;
}

static void show_probe(const char *name, uint32_t offset, uint32_t value)
{
    fake_init(&fake, &image);
    set(offset, value);
    show(name, probe());
}

static void hardware(void)
{
    uint32_t bytes_of_window;

    show_probe("probe", INTLOOM_REG_MAGIC, INTLOOM_MAGIC);
    show_probe("bus_of_ones", INTLOOM_REG_MAGIC, 0xffffffffu);
    show_probe("bus_of_zeros", INTLOOM_REG_MAGIC, 0);
    show_probe("other_device", INTLOOM_REG_MAGIC, 0x12345678u);
    show_probe("register_version", INTLOOM_REG_VERSION, 99u | INTLOOM_ISA_VERSION << 16);
    show_probe("isa_version", INTLOOM_REG_VERSION, INTLOOM_REGISTER_VERSION | 99u << 16);
    fake_init(&fake, &image);
    fake.dead = 1;
    show("bus_error", probe());
    fake_init(&fake, &image);
    fake.stuck = 1;
    show("stuck_writes", probe());
    fake_init(&fake, &image);
    window.memory += 16;
    show("unaligned_memory", probe());
    window.memory -= 16;
    window.bus_address += 16;
    show("unaligned_bus_address", probe());
    window.bus_address = UINT64_C(1) << 32;
    show("address_too_high", probe());
    bytes_of_window = window.bytes;
    window.bytes = 2 * INTLOOM_WINDOW_ALIGNMENT;
    window.bus_address -= window.bytes;
    show("highest_addresses", probe());
    window.bus_address += INTLOOM_WINDOW_ALIGNMENT;
    show("last_address_too_high", probe());
    window.bytes = bytes_of_window;
    window.bus_address = BUS_ADDRESS;
    show("no_device", intloom_probe(NULL, NULL, NULL));
}

/* An image with one byte changed. */
static int altered(uint32_t at)
{
    struct intloom_image other;
    uint8_t *copy = malloc(length);
    int result;

    if (!copy)
        exit(111);
    memcpy(copy, bytes, length);
    copy[at] ^= 1;
    result = intloom_open_image(&other, copy, length);
    free(copy);
    return result;
}

/* Every shorter image is rejected as truncated; the copies have no byte more than they may have. */
static int truncated(void)
{
    struct intloom_image other;

    for (uint32_t n = 0; n < length; n += n < 2000u ? 1u : 997u) {
        uint8_t *copy = malloc(n + !n);
        int result;

        if (!copy)
            exit(112);
        memcpy(copy, bytes, n);
        result = intloom_open_image(&other, copy, n);
        free(copy);
        if (result != INTLOOM_E_IMAGE_TRUNCATED)
            return result;
    }
    return INTLOOM_E_IMAGE_TRUNCATED;
}

static void images(void)
{
    struct intloom_image changed = image;
    struct intloom_region region;

    show("no_image", intloom_open_image(&changed, NULL, 0));
    show("image_magic", altered(INTLOOM_IMAGE_HEADER_MAGIC));
    show("image_version", altered(INTLOOM_IMAGE_HEADER_VERSION));
    show("image_truncated", truncated());
    show("image_crc", altered(length - 1u));
    show("image_crc_of_header", altered(INTLOOM_IMAGE_HEADER_FINGERPRINT));
    fresh();
    if (intloom_get_region(&image, 0, &region))
        exit(113);
    fake.flushed = fake.invalidated = 0;
    show("load_again", intloom_load_image(&device, &image));
    printf("window_flushed %u\n", fake.flushed - region.code_bytes - region.data_bytes == image.window_bytes);
    printf("window_invalidated %u\n", fake.invalidated == image.window_bytes);
    fresh();
    device.fingerprint ^= 1u;
    show("other_hardware", intloom_load_image(&device, &image));
    fresh();
    device.isa_version++;
    show("other_instructions", intloom_load_image(&device, &image));
    fresh();
    device.window.bytes = image.window_bytes - 1u;
    show("small_window", intloom_load_image(&device, &image));
    fresh();
    show("failed_open", intloom_open_image(&changed, bytes, length - 1u));
    show("load_after_failed_open", intloom_load_image(&device, &changed));
}

static void ends(void)
{
    struct intloom_status status;

    fresh();
    device.image = NULL;
    show("start_without_image", intloom_start(&device, 0));
    fresh();
    show("start_no_region", intloom_start(&device, image.regions));
    fresh();
    show("start", intloom_start(&device, 0));
    show("wait", intloom_wait(&device));
    fake.ending = FAKE_ERROR;
    show("start_again", intloom_start(&device, 0));
    show("wait_error", intloom_wait(&device));
    show("status", intloom_read_status(&device, &status));
    printf("cause %s\n", intloom_cause_name(status.cause));
    show("start_after_error", intloom_start(&device, 0));
    show("reset", intloom_reset(&device));
    fake.ending = FAKE_DONE;
    show("start_after_reset", intloom_start(&device, 0));
    fresh();
    set(INTLOOM_REG_STATUS, 0xffffffffu);
    show("bus_lost", intloom_poll(&device));
}

static void waits(void)
{
    fresh();
    fake.ending = FAKE_HANG;
    show("start_hanging", intloom_start(&device, 0));
    show("poll", intloom_poll(&device));
    show("start_while_busy", intloom_start(&device, 0));
    show("wait_limit", intloom_wait(&device));
    printf("idle_calls %u\n", (unsigned)fake.idle_calls);
    fake.idle_calls = 0;
    fake.idle_limit = 7;
    show("idle_ends", intloom_wait(&device));
    show("reset_hangs", intloom_reset(&device));
    device.use_interrupt = 1;
    show("no_interrupt", intloom_wait(&device));
    /* The run ends during the third sleep, but its interrupt is lost. */
    fresh();
    fake.ending = FAKE_HANG;
    device.use_interrupt = 1;
    (void)intloom_start(&device, 0);
    fake.finishes_at = 3;
    show("lost_interrupt", intloom_wait(&device));
    printf("lost_interrupt_sleeps %u\n", (unsigned)fake.idle_calls);
    /* Interrupts that report nothing do not end the wait. */
    fresh();
    fake.ending = FAKE_HANG;
    device.use_interrupt = 1;
    fake.interrupts = &device;
    (void)intloom_start(&device, 0);
    show("spurious_interrupts", intloom_wait(&device));
    /* With a clock the limit is a time: 100 ms pass in each call, across the wrap of the counter. */
    fresh();
    fake.ending = FAKE_HANG;
    fake.milliseconds = 0xfffffff0u;
    device.transport.clock = fake_clock;
    device.wait_ms = 1000;
    (void)intloom_start(&device, 0);
    show("clock_limit", intloom_wait(&device));
    printf("clock_sleeps %u\n", (unsigned)fake.idle_calls);
    fresh();
    device.use_interrupt = 1;
    fake.interrupts = &device;
    show("start_interrupt", intloom_start(&device, 0));
    show("wait_interrupt", intloom_wait(&device));
    printf("enabled %u\n", (unsigned)fake.registers[INTLOOM_REG_IRQ_ENABLE / 4u]);
}

static int host_part(void *context, struct intloom_device *used, uint32_t region)
{
    (void)used;
    return (int)region == *(const int *)context;
}

static void runs(void)
{
    struct intloom_tensor tensor;
    uint8_t one = 0, output[5 * 5 * 5];
    int failing = -1;

    fresh();
    device.transport.lock = fake_lock;
    device.transport.unlock = fake_unlock;
    show("run", intloom_run(&device, host_part, &failing));
    printf("starts %u\n", (unsigned)fake.starts);
    printf("unordered_starts %u\n", (unsigned)fake.unordered);
    fake.invalidated = 0;
    show("find_output", intloom_find_tensor(&image, "t1", INTLOOM_ROLE_OUTPUT, &tensor));
    show("read_output", intloom_read_bytes(&device, &tensor, INTLOOM_NCHW, output, sizeof output));
    printf("invalidated %d\n", fake.invalidated == tensor.bytes);
    printf("early_reads %u\n", (unsigned)fake.early);
    printf("unlocked_starts %d\n", fake.unlocked_starts);
    failing = (int)image.regions - 1;
    show("host_part_fails", intloom_run(&device, host_part, &failing));
    show("no_tensor", intloom_find_tensor(&image, "absent", INTLOOM_ROLE_INPUT, &tensor));
    show("get_tensor", intloom_get_tensor(&image, 0, &tensor));
    show("wrong_count", intloom_write_bytes(&device, &tensor, INTLOOM_NCHW, &one, 1));
    printf("flushed %u\n", fake.flushed > 0u);
    printf("locked_after_failure %d\n", fake.locked);
    printf("unknown %s %s\n", intloom_result_name(INTLOOM_RESULTS), intloom_result_name(-1));
}

static struct intloom_device second;
static char calls[200];

/* Writes window, region (r: results) and the number of starts so far; fails at `context`'s call. */
static int frame_part(void *context, struct intloom_device *used, uint32_t region)
{
    const size_t at = strlen(calls);

    snprintf(calls + at, sizeof calls - at, "%s%c%c%u", at ? "," : "", used == &second ? 'B' : 'A',
             region < image.regions ? (char)('0' + region) : 'r', (unsigned)fake.starts);
    return --*(int *)context == 0;
}

static void show_frames(const char *name, uint32_t frames, int failing)
{
    struct intloom_device *const devices[2] = {&device, &second};

    calls[0] = 0;
    fake.starts = 0;
    show(name, intloom_run_frames(devices, frames, frame_part, &failing));
    printf("%s_calls %s\n", name, calls);
}

static void streams(void)
{
    fresh();
    second = device;
    show_frames("frames", 3, 0);
    show_frames("one_frame", 1, 0);
    show_frames("no_frame", 0, 0);
    show_frames("frame_fails", 3, 2);
    show_frames("results_fail", 2, 4);
    fake.ending = FAKE_ERROR;
    show_frames("frame_stops", 3, 0);
    second.image = NULL;
    show_frames("frames_not_loaded", 3, 0);
    fresh();
    second = device;
    fake.ending = FAKE_ERROR;
    show_frames("frame_stops_while_host_fails", 3, 2);
}

int main(int argc, char **argv)
{
    if (argc != 2)
        return 1;
    bytes = read_file(argv[1], &length);
    if (intloom_open_image(&image, bytes, length))
        return 2;
    window.bytes = image.window_bytes + 64u;
    window.memory = new_window(window.bytes + 64u - window.bytes % 64u);
    window.bus_address = BUS_ADDRESS;
    hardware();
    images();
    ends();
    waits();
    runs();
    streams();
    return 0;
}
