/* The C runtime on the Linux driver: a transport and a window from /dev/intloomN. */
#ifndef INTLOOM_LINUX_H
#define INTLOOM_LINUX_H

#include "intloom_runtime.h"

#ifdef __cplusplus
extern "C" {
#endif

/* One open device; it must not move while the transport is used. Threads and processes that share an accelerator
 * open it once each. */
struct intloom_linux {
    int file;
    void *memory;
    uint32_t bytes;
    uint32_t program, instructions, base, limit, watchdog; /* Registers that the driver writes at the next start. */
    uint32_t word_bytes;
};

/* Open `path` with a window of `bytes`, and fill in transport and window for intloom_probe. INTLOOM_E_BUS: errno says why. */
int intloom_linux_open(struct intloom_linux *opened, const char *path, uint32_t bytes,
                       struct intloom_transport *transport, struct intloom_window *window);
void intloom_linux_close(struct intloom_linux *opened);

#ifdef __cplusplus
}
#endif

#endif
