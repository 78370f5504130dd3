/* Firmware of the simulated system: runs the program by interrupt, compares its outputs with the golden model's, prints
 * boxes and counters, and checks that misuse and faults end in the runtime's result codes, and that outputs are wrong
 * without the hooks of the cache. */
#include <stdio.h>
#include <string.h>

#include "boxes.h"
#include "check.h"
#include "machine.h"
#include "program.h"

#define CACHE_BYTES 16384u
#define SECOND_WINDOW_AT ((PROGRAM_WINDOW_BYTES + INTLOOM_WINDOW_ALIGNMENT - 1u) & ~(INTLOOM_WINDOW_ALIGNMENT - 1u))

extern uint8_t window_start[];
extern const uint8_t check_inputs[];

static struct intloom_device device;
static struct intloom_image image;
static uintptr_t nothing = NOTHING_ADDRESS;
static uint8_t values[PROGRAM_LARGEST_TENSOR];

/* The image of the run in each window, and the next one of the stream. */
static uint32_t shown[2], next_shown;

static uint32_t *shown_in(const struct intloom_device *used)
{
    return &shown[used != &device];
}

/* The model's part before a region is a table here: the inputs that the golden model's run gave to the region. */
static int write_inputs(void *context, struct intloom_device *used, uint32_t index)
{
    static const uint8_t *next_inputs[2]; /* Of the frame in each window. */
    const uint8_t **next_input = &next_inputs[used != &device];
    struct intloom_region region;
    struct intloom_tensor tensor;
    int result = intloom_get_region(&image, index, &region);

    (void)context;
    if (index == 0)
        *next_input = check_inputs + *shown_in(used) * CHECK_INPUT_BYTES;
    for (uint32_t i = 0; !result && i < region.tensors; i++) {
        result = intloom_get_tensor(&image, region.first_tensor + i, &tensor);
        if (!result && tensor.role == INTLOOM_ROLE_INPUT && tensor.source == INTLOOM_NO_TENSOR) {
            const uint32_t count = tensor.channels * tensor.height * tensor.width;
            result = intloom_write_bytes(used, &tensor, INTLOOM_NCHW, *next_input, count);
            *next_input += count;
        }
    }
    return result;
}

/* The number of outputs, and in `equal` of those that equal the golden model's. */
static uint32_t compare_outputs(struct intloom_device *used, uint32_t *equal)
{
    struct intloom_tensor tensor;
    uint32_t outputs = 0;

    *equal = 0;
    for (uint32_t i = 0; i < image.tensors; i++)
        if (!intloom_get_tensor(&image, i, &tensor) && tensor.role == INTLOOM_ROLE_OUTPUT) {
            const uint32_t count = tensor.channels * tensor.height * tensor.width;
            const int result = intloom_read_bytes(used, &tensor, INTLOOM_NCHW, values, count);
            *equal += !result && intloom_crc32(values, count) == check_crcs[*shown_in(used)][outputs++];
        }
    return outputs;
}

static void check_outputs(struct intloom_device *used)
{
    uint32_t equal;
    const uint32_t outputs = compare_outputs(used, &equal);

    printf("outputs: %lu of %lu equal the golden model's\n", (unsigned long)equal, (unsigned long)outputs);
    machine_failures += outputs - equal;
}

static void print_counters(void)
{
    static const char *const names[INTLOOM_COUNTERS] = INTLOOM_COUNTER_NAMES;
    uint32_t counters[INTLOOM_COUNTERS];

    machine_expect("counters", intloom_read_counters(&device, counters), INTLOOM_OK);
    for (uint32_t i = 0; i < INTLOOM_COUNTERS; i++)
        if (counters[i])
            printf("  %-20s %lu\n", names[i], (unsigned long)counters[i]);
}

static void run(uint32_t number)
{
    *shown_in(&device) = number;
    device.use_interrupt = 1;
    interrupts = 0;
    machine_expect("run", intloom_run(&device, write_inputs, NULL), INTLOOM_OK);
    printf("interrupts: %lu\n", (unsigned long)interrupts);
    machine_failures += interrupts != image.regions;
    check_outputs(&device);
}

static void no_maintenance(void *context, void *start, uint32_t bytes)
{
    (void)context;
    (void)start;
    (void)bytes;
}

/* Memory and cache hold zeros in the place of each tensor, as after an application that used them. Returns their bytes. */
static uint32_t clear_tensors(void)
{
    struct intloom_tensor tensor;
    uint32_t bytes = 0;

    for (uint32_t i = 0; !intloom_get_tensor(&image, i, &tensor); i++) {
        memset(window_start + tensor.window_at, 0, tensor.bytes);
        machine_transport.flush(NULL, window_start + tensor.window_at, tensor.bytes);
        bytes += tensor.bytes;
    }
    return bytes;
}

/* Without one of the hooks the accelerator reads old inputs, or the CPU old outputs: certain if all stay in the cache. */
static void check_cache(const char *what, void (**hook)(void *, void *, uint32_t))
{
    uint32_t equal, outputs;

    if (clear_tensors() > CACHE_BYTES / 2u)
        return;
    *hook = no_maintenance;
    machine_expect(what, intloom_run(&device, write_inputs, NULL), INTLOOM_OK);
    outputs = compare_outputs(&device, &equal);
    printf("%s: %lu of %lu outputs are wrong\n", what, (unsigned long)(outputs - equal), (unsigned long)outputs);
    machine_failures += equal == outputs;
    device.transport = machine_transport;
}

/* Distinct results for a dead bus, another window, a short file, other hardware. */
static void misuse(void)
{
    static struct intloom_device other;
    static struct intloom_image changed;
    struct intloom_transport dead = machine_transport;
    struct intloom_window window = device.window;

    dead.context = &nothing;
    machine_expect("dead bus", intloom_probe(&other, &dead, &window), INTLOOM_E_BUS);
    window.bus_address += 4u;
    machine_expect("unaligned window", intloom_probe(&other, &machine_transport, &window), INTLOOM_E_ALIGNMENT);
    machine_expect("truncated image", intloom_open_image(&changed, program_image, PROGRAM_IMAGE_BYTES - 1u),
           INTLOOM_E_IMAGE_TRUNCATED);
    changed = image;
    changed.fingerprint ^= 1u;
    machine_expect("image for other hardware", intloom_load_image(&device, &changed), INTLOOM_E_FINGERPRINT);
}

/* Faults during a run: a changed instruction, and a window that is no memory. After each a reset makes runs possible. */
static void faults(void)
{
    struct intloom_region region;
    uint8_t *code;

    intloom_get_region(&image, 0, &region);
    code = window_start + region.window_at + region.code_to;
    machine_flip(code, 0x80u);
    machine_expect("corrupted program", intloom_run(&device, write_inputs, NULL), INTLOOM_E_STOPPED);
    machine_expect_cause(&device, INTLOOM_CAUSE_PROGRAM_CHECK);
    machine_expect("start after an error", intloom_start(&device, 0), INTLOOM_E_HALTED);
    machine_expect("reset", intloom_reset(&device), INTLOOM_OK);
    machine_flip(code, 0x80u);
    device.window.bus_address -= 0x40000000u;
    machine_expect("bus error", intloom_run(&device, write_inputs, NULL), INTLOOM_E_STOPPED);
    machine_expect_cause(&device, INTLOOM_CAUSE_FETCH_ERROR);
    device.window.bus_address += 0x40000000u;
    machine_expect("reset", intloom_reset(&device), INTLOOM_OK);
    device.wait_limit = 1;
    machine_expect("time-out", intloom_run(&device, write_inputs, NULL), INTLOOM_E_TIMEOUT);
    device.wait_limit = INTLOOM_WAIT_LIMIT;
    machine_expect("reset while running", intloom_reset(&device), INTLOOM_OK);
}

static int host_part(void *context, struct intloom_device *used, uint32_t region)
{
    if (region == 0)
        *shown_in(used) = next_shown++ % CHECK_IMAGES;
    if (region < image.regions)
        return write_inputs(context, used, region);
    check_outputs(used);
    return 0;
}

/* Image after image, in one window and in two. */
static void run_frames(void)
{
    static struct intloom_device second;
    struct intloom_device *const devices[2] = {&device, &second};
    struct intloom_window window = device.window;

    for (uint32_t left = CHECK_FRAMES; left > 0; left--)
        run((CHECK_FRAMES - left) % CHECK_IMAGES);
    window.memory += SECOND_WINDOW_AT;
    window.bus_address += SECOND_WINDOW_AT;
    machine_expect("second window", intloom_probe(&second, &machine_transport, &window), INTLOOM_OK);
    machine_expect("second load", intloom_load_image(&second, &image), INTLOOM_OK);
    second.use_interrupt = 1;
    machine_expect("stream", intloom_run_frames(devices, CHECK_STREAM, host_part, NULL), INTLOOM_OK);
}

static int start_up(void)
{
    const struct intloom_window window = {window_start, (uintptr_t)window_start, PROGRAM_WINDOW_BYTES};

    printf("firmware started\n");
    if (machine_expect("probe", intloom_probe(&device, &machine_transport, &window), INTLOOM_OK))
        return 1;
    printf("accelerator: fingerprint %08lx, word %lu bytes\n", (unsigned long)device.fingerprint,
           (unsigned long)device.word_bytes);
    /* The checksum of a large image takes minutes of simulation. */
    if (machine_expect("image",
                       (CHECK_PROGRAM_CRC ? intloom_open_image : intloom_open_verified_image)(&image, program_image,
                                                                                              PROGRAM_IMAGE_BYTES),
                       INTLOOM_OK))
        return 1;
    if (machine_expect("load", intloom_load_image(&device, &image), INTLOOM_OK))
        return 1;
    machine_enable_interrupts(&device);
    return 0;
}

int main(void)
{
    if (!start_up()) {
        run(0);
        print_boxes(&device, &image);
        print_counters();
        check_cache("without cleaning", &device.transport.flush);
        check_cache("without invalidating", &device.transport.invalidate);
        misuse();
        faults();
        if (CHECK_STREAM)
            run_frames();
    }
    machine_finish();
}
