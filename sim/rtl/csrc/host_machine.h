/* What a simulator gives to host software in C: the accelerator and the shared memory. */
#ifndef HOST_MACHINE_H
#define HOST_MACHINE_H

#include <stddef.h>
#include <stdint.h>

struct host_machine {
    int (*read32)(void *context, uint32_t offset, uint32_t *value);
    int (*write32)(void *context, uint32_t offset, uint32_t value);
    int (*advance)(void *context); /* Run to the interrupt, at most 256 cycles; returns the interrupt line. */
    void *context;
    uint8_t *memory;
    size_t memory_bytes;
    uint64_t bus_address;
    const char *folder; /* Folder of the run, for input and output files. */
};

/* Exported by the library as `host_main`; its result is reported. */
typedef int (*host_function)(const struct host_machine *machine);

#endif
