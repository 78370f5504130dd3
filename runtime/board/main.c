/* Firmware of a board: starts the SDRAM and tests a part of it, then runs a small program on the accelerator and
 * compares its outputs with the golden model's. LEDs 0 to 6 show the steps that succeeded, LED 7 a failure. After that
 * it leaves the bus to the host. */
#include "board.h"
#include "check.h"
#include "intloom_runtime.h"
#include "program.h"

#define REGISTER(at) (*(volatile uint32_t *)(uintptr_t)(at))
#define FAILED 0x80u
#define TEST_FACTOR 0x9e3779b1u /* Odd: the values of the test are all different. */

extern const uint8_t program_image[], check_inputs[];

static struct intloom_device device;
static struct intloom_image image;
static uint8_t values[PROGRAM_LARGEST_TENSOR];
static uint32_t steps;

static void print(const char *text)
{
    for (; *text; text++)
        REGISTER(UART_AT) = (uint8_t)*text;
}

static void stop(void)
{
    for (;;)
        ;
}

__attribute__((interrupt("machine"), aligned(4))) void trap(void)
{
    REGISTER(LEDS_AT) = steps | FAILED;
    print("trap\n");
    stop();
}

static void expect(const char *what, int result)
{
    print(what);
    print(": ");
    print(intloom_result_name(result));
    print("\n");
    if (result == INTLOOM_OK)
        steps = steps << 1 | 1u;
    REGISTER(LEDS_AT) = result == INTLOOM_OK ? steps : steps | FAILED;
    if (result != INTLOOM_OK)
        stop();
}

static void start_memory(void)
{
    static const struct { uint32_t at, value, wait; } writes[] = {SDRAM_WRITES};

    for (uint32_t i = 0; i < sizeof writes / sizeof writes[0]; i++) {
        REGISTER(writes[i].at) = writes[i].value;
        for (volatile uint32_t wait = writes[i].wait; wait; wait--)
            ;
    }
}

static void discard_cache(void)
{
    __asm__ volatile(".word 0x500f" : : : "memory"); /* VexRiscv: discard all lines of the data cache. */
}

/* Words over the whole memory, so that each address bit differs between some two of them. */
static int test_memory(void)
{
    for (uint32_t i = 0; i < TEST_WORDS; i++)
        REGISTER(MEMORY_AT + i * (MEMORY_BYTES / TEST_WORDS) + 4u * (i % 16u)) = i * TEST_FACTOR;
    discard_cache();
    for (uint32_t i = 0; i < TEST_WORDS; i++)
        if (REGISTER(MEMORY_AT + i * (MEMORY_BYTES / TEST_WORDS) + 4u * (i % 16u)) != i * TEST_FACTOR)
            return INTLOOM_E_BUS;
    return INTLOOM_OK;
}

static int bus_error(void)
{
    static uint32_t seen;
    const uint32_t before = seen;

    seen = REGISTER(BUS_ERRORS_AT);
    return seen != before;
}

static int read32(void *context, uint32_t offset, uint32_t *value)
{
    (void)context;
    *value = REGISTER(ACCELERATOR_AT + offset);
    return bus_error();
}

static int write32(void *context, uint32_t offset, uint32_t value)
{
    (void)context;
    REGISTER(ACCELERATOR_AT + offset) = value;
    return bus_error();
}

/* The data cache writes through, and the bus acknowledges a write when the L2 cache has it. */
static void invalidate(void *context, void *start, uint32_t bytes)
{
    (void)context;
    (void)start;
    (void)bytes;
    discard_cache();
}

static int write_inputs(void *context, struct intloom_device *used, uint32_t index)
{
    const uint8_t *next = check_inputs;
    struct intloom_tensor tensor;
    int result = INTLOOM_OK;

    (void)context;
    (void)index;
    for (uint32_t i = 0; !result && i < image.tensors; i++) {
        result = intloom_get_tensor(&image, i, &tensor);
        if (!result && tensor.role == INTLOOM_ROLE_INPUT) {
            const uint32_t count = tensor.channels * tensor.height * tensor.width;
            result = intloom_write_bytes(used, &tensor, INTLOOM_NCHW, next, count);
            next += count;
        }
    }
    return result;
}

static int compare_outputs(void)
{
    const uint32_t *crc = check_crcs[0];
    struct intloom_tensor tensor;
    int result = INTLOOM_OK;

    for (uint32_t i = 0; !result && i < image.tensors; i++) {
        result = intloom_get_tensor(&image, i, &tensor);
        if (!result && tensor.role == INTLOOM_ROLE_OUTPUT) {
            const uint32_t count = tensor.channels * tensor.height * tensor.width;
            result = intloom_read_bytes(&device, &tensor, INTLOOM_NCHW, values, count);
            if (!result && intloom_crc32(values, count) != *crc++)
                result = INTLOOM_E_HOST;
        }
    }
    return result;
}

int main(void)
{
    static const struct intloom_transport transport = {.read32 = read32, .write32 = write32, .invalidate = invalidate};
    const struct intloom_window window = {(uint8_t *)(uintptr_t)MEMORY_AT, MEMORY_AT, PROGRAM_WINDOW_BYTES};

    expect("firmware", INTLOOM_OK);
    start_memory();
    expect("memory", test_memory());
    expect("accelerator", intloom_probe(&device, &transport, &window));
    expect("image", intloom_open_image(&image, program_image, PROGRAM_IMAGE_BYTES));
    expect("load", intloom_load_image(&device, &image));
    expect("run", intloom_run(&device, write_inputs, 0));
    expect("outputs", compare_outputs());
    print("PASSED\n");
    stop();
}
