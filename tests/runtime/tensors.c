/* Packing and unpacking: `tensors IMAGE write|read floats|bytes nchw|nhwc WINDOW VALUES`.
 *
 * `write` takes the elements of all inputs from file VALUES and writes the window to file WINDOW; `read` takes the window
 * from file WINDOW and writes the elements of all outputs to file VALUES. */
#include "fake_device.h"

static int transfer(struct intloom_device *device, const struct intloom_tensor *t, int floats,
                    enum intloom_order order, void *values, uint32_t count)
{
    if (t->role == INTLOOM_ROLE_INPUT)
        return floats ? intloom_write_floats(device, t, order, values, count)
                      : intloom_write_bytes(device, t, order, values, count);
    return floats ? intloom_read_floats(device, t, order, values, count)
                  : intloom_read_bytes(device, t, order, values, count);
}

static int move(struct intloom_device *device, const struct intloom_tensor *t, int floats, enum intloom_order order,
                FILE *file)
{
    const uint32_t count = t->channels * t->height * t->width;
    const size_t size = floats ? sizeof(float) : 1u;
    void *values = malloc(count * size);
    int result;

    if (!values)
        exit(130);
    if (t->role == INTLOOM_ROLE_INPUT && fread(values, size, count, file) != count)
        exit(131);
    /* A window that ends a byte before the tensor is refused. */
    device->window.bytes = t->window_at + t->bytes - 1u;
    if (transfer(device, t, floats, order, values, count) != INTLOOM_E_ARGUMENT)
        exit(133);
    device->window.bytes++;
    result = transfer(device, t, floats, order, values, count);
    if (t->role != INTLOOM_ROLE_INPUT && fwrite(values, size, count, file) != count)
        exit(132);
    free(values);
    return result;
}

int main(int argc, char **argv)
{
    struct intloom_image image;
    struct intloom_device device;
    struct fake_device fake;
    struct intloom_transport transport = fake_transport(&fake);
    struct intloom_window window = {NULL, 0x40000000u, 0};
    struct intloom_tensor tensor;
    uint32_t length;
    uint8_t *data;
    FILE *values, *memory;
    int write;

    if (argc != 7)
        return 1;
    write = !strcmp(argv[2], "write");
    data = read_file(argv[1], &length);
    if (intloom_open_image(&image, data, length))
        return 2;
    window.bytes = image.window_bytes;
    window.memory = new_window(window.bytes + 64u - window.bytes % 64u);
    fake_init(&fake, &image);
    if (intloom_probe(&device, &transport, &window) || intloom_load_image(&device, &image))
        return 3;
    memory = fopen(argv[5], write ? "wb" : "rb");
    values = fopen(argv[6], write ? "rb" : "wb");
    if (!memory || !values || (!write && fread(window.memory, 1, window.bytes, memory) != window.bytes))
        return 4;
    for (uint32_t i = 0; !intloom_get_tensor(&image, i, &tensor); i++)
        if (tensor.role == (write ? INTLOOM_ROLE_INPUT : INTLOOM_ROLE_OUTPUT)) {
            if (write) /* what was there before must not remain in the padding */
                memset(window.memory + tensor.window_at, 0xA5, tensor.bytes);
            if (move(&device, &tensor, !strcmp(argv[3], "floats"), !strcmp(argv[4], "nhwc"), values))
                return 5;
            device.window.bytes = window.bytes;
        }
    if (write && fwrite(window.memory, 1, window.bytes, memory) != window.bytes)
        return 6;
    if (!write && fake.invalidated == 0)
        return 7;
    fclose(memory);
    fclose(values);
    free(window.memory);
    free(data);
    return 0;
}
