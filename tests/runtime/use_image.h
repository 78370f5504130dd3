/* Every use of an accepted image; the sanitizers find accesses outside image and window. */
#ifndef USE_IMAGE_H
#define USE_IMAGE_H

#include "fake_device.h"

static void use_image(const struct intloom_image *image, uint32_t length)
{
    struct fake_device fake;
    struct intloom_device device;
    struct intloom_transport transport = fake_transport(&fake);
    struct intloom_window window = {NULL, 0x40000000u, image->window_bytes};
    struct intloom_tensor tensor;

    if (image->window_bytes > 1u << 22)
        return;
    window.memory = new_window(window.bytes + 64u - window.bytes % 64u);
    fake_init(&fake, image);
    if (intloom_probe(&device, &transport, &window) == INTLOOM_OK && intloom_load_image(&device, image) == INTLOOM_OK) {
        intloom_run(&device, NULL, NULL);
        for (uint32_t i = 0; !intloom_get_tensor(image, i, &tensor); i++) {
            const uint32_t count = tensor.channels * tensor.height * tensor.width;
            float *values = calloc(count, sizeof *values);
            if (!values || strlen(tensor.name) >= length)
                exit(120);
            for (uint32_t k = 0; k < count; k++)
                values[k] = (float)k * tensor.scale;
            intloom_write_floats(&device, &tensor, INTLOOM_NCHW, values, count);
            intloom_read_floats(&device, &tensor, INTLOOM_NHWC, values, count);
            free(values);
        }
    }
    free(window.memory);
}

#endif
