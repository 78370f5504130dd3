/* The C runtime's hooks on FreeRTOS: several tasks share an accelerator, and sleep until its interrupt. */
#ifndef INTLOOM_FREERTOS_H
#define INTLOOM_FREERTOS_H

#include "FreeRTOS.h"
#include "intloom_runtime.h"
#include "semphr.h"

/* One accelerator; it must not move while the transport is used. */
struct intloom_freertos {
    volatile uint32_t *registers;
    struct intloom_device *device;
    SemaphoreHandle_t mutex, interrupted;
    StaticSemaphore_t mutex_memory, interrupted_memory;
};

/* Fill in a transport without `flush` and `invalidate`: set those of the port if the CPU has a data cache. Then call
 * intloom_probe, and set `use_interrupt` of the device. */
void intloom_freertos_init(struct intloom_freertos *os, volatile uint32_t *registers, struct intloom_device *device,
                           struct intloom_transport *transport);

/* Call this from the interrupt's handler. */
void intloom_freertos_interrupt(struct intloom_freertos *os);

#endif
