/* The simulated system on a chip: memory map, console, access to the accelerator. */
#ifndef MACHINE_H
#define MACHINE_H

#include "intloom_runtime.h"

extern struct intloom_device device;
extern volatile uint32_t interrupts; /* Counted by the trap handler. */

/* Whether the CPU met a bus error since the last call; VexRiscv has no exception for it. */
int machine_bus_error(void);

/* The accelerator's registers; the context points to their address. */
int machine_read32(void *context, uint32_t offset, uint32_t *value);
int machine_write32(void *context, uint32_t offset, uint32_t value);

/* Cache maintenance. The data cache writes through, so `flush` only orders; `invalidate` empties the whole cache. */
void machine_flush(void *context, void *start, uint32_t bytes);
void machine_invalidate(void *context, void *start, uint32_t bytes);

void machine_enable_interrupts(void);
void machine_end(void);

#define REGISTERS_ADDRESS 0xf0001000u
#define NOTHING_ADDRESS 0xe0000000u /* No device answers here. */

#endif
