/* A CPU with a write-back cache between it and the memory of the accelerator: `write_back_cache IMAGE`.
 *
 * The window is the CPU's view; `dram` is the memory. A line is dirty if the view differs from what the CPU last read from
 * memory or wrote to it. Any dirty line may be evicted at any time. Prints how many bytes of the outputs are wrong.
 */
#include "fake_device.h"

#define LINE 64u

static struct fake_device fake;
static uint8_t *view, *dram, *clean;
static uint32_t size;
static int cleans_at_load;

static void evict(uint32_t at, uint32_t bytes)
{
    for (uint32_t line = at - at % LINE; line < at + bytes && line < size; line += LINE)
        if (memcmp(view + line, clean + line, LINE)) {
            memcpy(dram + line, view + line, LINE);
            memcpy(clean + line, view + line, LINE);
        }
}

static void flush(void *context, void *start, uint32_t bytes)
{
    (void)context;
    if (cleans_at_load || bytes < size - LINE)
        evict((uint32_t)((uint8_t *)start - view), bytes);
}

static void invalidate(void *context, void *start, uint32_t bytes)
{
    const uint32_t at = (uint32_t)((uint8_t *)start - view);

    (void)context;
    if (!cleans_at_load && bytes >= size - LINE)
        return;
    for (uint32_t line = at - at % LINE; line < at + bytes && line < size; line += LINE) {
        memcpy(view + line, dram + line, LINE);
        memcpy(clean + line, dram + line, LINE);
    }
}

static uint8_t result_at(uint32_t at)
{
    return (uint8_t)(at * 29u + 7u);
}

int main(int argc, char **argv)
{
    struct intloom_transport transport = fake_transport(&fake);
    struct intloom_device device;
    struct intloom_image image;
    struct intloom_tensor tensor;
    uint32_t length, wrong = 0;
    uint8_t *bytes;

    if (argc != 3)
        return 1;
    cleans_at_load = argv[2][0] == '1';
    bytes = read_file(argv[1], &length);
    if (intloom_open_image(&image, bytes, length))
        return 2;
    size = image.window_bytes + (LINE - image.window_bytes % LINE) % LINE;
    view = new_window(size);
    dram = new_window(size);
    clean = new_window(size);
    memset(view, 0xaa, size); /* The application used the memory before: all of it is dirty. */
    fake_init(&fake, &image);
    transport.flush = flush;
    transport.invalidate = invalidate;
    if (intloom_probe(&device, &transport, &(struct intloom_window){view, 0x40000000u, size}) ||
        intloom_load_image(&device, &image) || intloom_start(&device, 0))
        return 3;
    /* The accelerator writes its outputs; then the cache evicts what is dirty. */
    for (uint32_t i = 0; !intloom_get_tensor(&image, i, &tensor); i++)
        for (uint32_t k = 0; tensor.role == INTLOOM_ROLE_OUTPUT && k < tensor.bytes; k++)
            dram[tensor.window_at + k] = result_at(tensor.window_at + k);
    evict(0, size);
    if (intloom_wait(&device))
        return 4;
    for (uint32_t i = 0; !intloom_get_tensor(&image, i, &tensor); i++) {
        const uint32_t count = tensor.channels * tensor.height * tensor.width;
        uint8_t *values = malloc(count);

        if (!values || intloom_read_bytes(&device, &tensor, INTLOOM_NCHW, values, count))
            return 5;
        for (uint32_t k = 0; tensor.role == INTLOOM_ROLE_OUTPUT && k < tensor.bytes; k++)
            wrong += view[tensor.window_at + k] != result_at(tensor.window_at + k);
        free(values);
    }
    printf("%u\n", (unsigned)wrong);
    free(view);
    free(dram);
    free(clean);
    free(bytes);
    return 0;
}
