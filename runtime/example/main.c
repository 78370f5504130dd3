/* Entry point for a CPU that sees the registers and the shared memory at fixed addresses. */
#include <stddef.h>

#include "example.h"

#if !defined REGISTERS_ADDRESS || !defined WINDOW_ADDRESS || !defined WINDOW_BYTES
#error "define REGISTERS_ADDRESS, WINDOW_ADDRESS and WINDOW_BYTES as your system has them"
#endif
#ifndef WINDOW_BUS_ADDRESS
#define WINDOW_BUS_ADDRESS WINDOW_ADDRESS /* The address of the window on the accelerator's bus. */
#endif

static int read32(void *context, uint32_t offset, uint32_t *value)
{
    (void)context;
    *value = *(volatile uint32_t *)((uintptr_t)REGISTERS_ADDRESS + offset);
    return 0;
}

static int write32(void *context, uint32_t offset, uint32_t value)
{
    (void)context;
    *(volatile uint32_t *)((uintptr_t)REGISTERS_ADDRESS + offset) = value;
    return 0;
}

/* Replace these two functions: camera or file in, display or file out. */
void example_input(const struct intloom_tensor *tensor, uint8_t *values, uint32_t count)
{
    (void)tensor;
    for (uint32_t i = 0; i < count; i++)
        values[i] = (uint8_t)(i * 7u);
}

volatile uint32_t example_sum; /* Of all output bytes, for a debugger. */

void example_output(const struct intloom_tensor *tensor, const uint8_t *values, uint32_t count)
{
    (void)tensor;
    for (uint32_t i = 0; i < count; i++)
        example_sum += values[i];
}

int main(void)
{
    /* A CPU with a data cache needs the flush and invalidate hooks, an operating system those for threads and time. */
    static const struct intloom_transport transport = {.read32 = read32, .write32 = write32};
    const struct intloom_window window = {(uint8_t *)(uintptr_t)WINDOW_ADDRESS, WINDOW_BUS_ADDRESS, WINDOW_BYTES};
    static struct intloom_device device;
    const int result = intloom_probe(&device, &transport, &window);

    return result ? result : example_run(&device);
}
