/* Needs configUSE_MUTEXES and configSUPPORT_STATIC_ALLOCATION. */
#include "intloom_freertos.h"

#define SLEEP_MS 10u /* At most, between two looks at STATUS: an interrupt may be lost. */

static int read32(void *context, uint32_t offset, uint32_t *value)
{
    *value = ((struct intloom_freertos *)context)->registers[offset / 4u];
    return 0;
}

static int write32(void *context, uint32_t offset, uint32_t value)
{
    ((struct intloom_freertos *)context)->registers[offset / 4u] = value;
    return 0;
}

static int idle(void *context)
{
    (void)xSemaphoreTake(((struct intloom_freertos *)context)->interrupted, pdMS_TO_TICKS(SLEEP_MS) + 1u);
    return 0;
}

/* Ticks wrap, and so do milliseconds: differences stay right. */
static uint32_t milliseconds(void *context)
{
    (void)context;
    return (uint32_t)xTaskGetTickCount() * (uint32_t)portTICK_PERIOD_MS;
}

static void lock(void *context)
{
    (void)xSemaphoreTake(((struct intloom_freertos *)context)->mutex, portMAX_DELAY);
}

static void unlock(void *context)
{
    (void)xSemaphoreGive(((struct intloom_freertos *)context)->mutex);
}

void intloom_freertos_init(struct intloom_freertos *os, volatile uint32_t *registers, struct intloom_device *device,
                           struct intloom_transport *transport)
{
    const struct intloom_transport calls = {.read32 = read32,
                                            .write32 = write32,
                                            .idle = idle,
                                            .clock = milliseconds,
                                            .lock = lock,
                                            .unlock = unlock,
                                            .context = os};

    os->registers = registers;
    os->device = device;
    os->mutex = xSemaphoreCreateMutexStatic(&os->mutex_memory);
    os->interrupted = xSemaphoreCreateBinaryStatic(&os->interrupted_memory);
    *transport = calls;
}

void intloom_freertos_interrupt(struct intloom_freertos *os)
{
    BaseType_t woken = pdFALSE;

    (void)intloom_interrupt(os->device);
    (void)xSemaphoreGiveFromISR(os->interrupted, &woken);
    portYIELD_FROM_ISR(woken);
}
