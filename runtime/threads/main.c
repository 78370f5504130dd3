/* Firmware of a system with two accelerators: two threads run all images on both of them, and compare outputs with the
 * golden model's. Then the same with a mutex that does nothing, which must go wrong. */
#include <stdio.h>

#include "check.h"
#include "machine.h"
#include "program.h"
#include "threads.h"

#define THREADS 2u
#define ACCELERATORS 2u
#define PAGE 4096u
#define WAIT_MS 10u /* Without the mutex a wait may be for a run of the other thread that never began. */
#define WINDOW_PAGES ((PROGRAM_WINDOW_BYTES + PAGE - 1u) / PAGE)
#define RUNS (ACCELERATORS * CHECK_IMAGES)

extern uint8_t window_start[];
extern const uint8_t check_inputs[];

static struct intloom_image image;
static struct accelerator accelerators[ACCELERATORS] = {{.registers = REGISTERS_ADDRESS},
                                                        {.registers = SECOND_REGISTERS_ADDRESS}};
/* A thread has its own window on each accelerator: nobody writes its tensors between its run and its reading. */
static struct intloom_device devices[THREADS][ACCELERATORS];
static uint8_t values[THREADS][PROGRAM_LARGEST_TENSOR];
static int results[THREADS][RUNS];

/* The inputs of image `context`. */
static int write_inputs(void *context, struct intloom_device *device, uint32_t region)
{
    const uint8_t *next = check_inputs + *(const uint32_t *)context * CHECK_INPUT_BYTES;
    struct intloom_tensor tensor;
    int result = INTLOOM_OK;

    (void)region;
    for (uint32_t i = 0; !result && !intloom_get_tensor(&image, i, &tensor); i++)
        if (tensor.role == INTLOOM_ROLE_INPUT) {
            const uint32_t count = tensor.channels * tensor.height * tensor.width;
            result = intloom_write_bytes(device, &tensor, INTLOOM_NCHW, next, count);
            next += count;
        }
    return result;
}

static int compare_outputs(struct intloom_device *device, uint8_t *bytes, uint32_t number)
{
    const uint32_t *crc = check_crcs[number];
    struct intloom_tensor tensor;
    int result = INTLOOM_OK;

    for (uint32_t i = 0; !result && !intloom_get_tensor(&image, i, &tensor); i++)
        if (tensor.role == INTLOOM_ROLE_OUTPUT) {
            const uint32_t count = tensor.channels * tensor.height * tensor.width;
            result = intloom_read_bytes(device, &tensor, INTLOOM_NCHW, bytes, count);
            if (!result && intloom_crc32(bytes, count) != *crc++)
                result = INTLOOM_E_HOST;
        }
    return result;
}

/* All images on both accelerators; the threads begin with different images, and with the same accelerator. */
static void work(uint32_t thread)
{
    for (uint32_t run = 0; run < RUNS; run++) {
        struct intloom_device *const device = &devices[thread][run % ACCELERATORS];
        uint32_t number = (run / ACCELERATORS + thread) % CHECK_IMAGES;
        const int result = intloom_run(device, write_inputs, &number);

        results[thread][run] = result ? result : compare_outputs(device, values[thread], number);
    }
}

static int start_up(void)
{
    int failed = machine_expect("image", intloom_open_image(&image, program_image, PROGRAM_IMAGE_BYTES), INTLOOM_OK);

    for (uint32_t i = 0; !failed && i < THREADS * ACCELERATORS; i++) {
        struct accelerator *const accelerator = &accelerators[i % ACCELERATORS];
        struct intloom_device *const device = &devices[i / ACCELERATORS][i % ACCELERATORS];
        uint8_t *const memory = window_start + i * WINDOW_PAGES * PAGE;
        const struct intloom_window window = {memory, (uintptr_t)memory, WINDOW_PAGES * PAGE};
        struct intloom_transport transport;

        accelerator->device = device;
        threads_transport(accelerator, &transport);
        failed = machine_expect("probe", intloom_probe(device, &transport, &window), INTLOOM_OK) ||
                 machine_expect("load", intloom_load_image(device, &image), INTLOOM_OK);
        device->use_interrupt = 1;
        device->wait_ms = WAIT_MS;
    }
    return failed;
}

/* Run both threads; the number of runs that ended in an error or with wrong outputs. */
static unsigned wrong_runs(void)
{
    unsigned wrong = 0;

    threads_run(work, accelerators);
    for (uint32_t i = 0; i < THREADS * RUNS; i++) {
        const int result = results[i / RUNS][i % RUNS];
        if (result)
            printf("thread %lu, run %lu: %s\n", (unsigned long)(i / RUNS), (unsigned long)(i % RUNS),
                   intloom_result_name(result));
        wrong += result != INTLOOM_OK;
    }
    return wrong;
}

static void no_mutex(void *context)
{
    (void)context;
}

int main(void)
{
    if (!start_up()) {
        const unsigned wrong = wrong_runs();
        unsigned unprotected;

        printf("with the mutex: %u of %u runs are wrong\n", wrong, THREADS * RUNS);
        for (uint32_t i = 0; i < THREADS * ACCELERATORS; i++)
            devices[i / ACCELERATORS][i % ACCELERATORS].transport.lock = no_mutex;
        unprotected = wrong_runs();
        printf("without it: %u of %u runs are wrong\n", unprotected, THREADS * RUNS);
        machine_failures += wrong + !unprotected;
    }
    machine_finish();
}
