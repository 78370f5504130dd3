/* The driver calls of a run, in order; see example.h. */
#include <stddef.h>

#include "example.h"
#include "program.h"

static uint8_t values[PROGRAM_LARGEST_TENSOR];

/* Inputs of a region that no earlier region computes. For region 0 these are the program's inputs; for later regions they
 * are results of the model's host parts, which the application computes here. */
static int write_inputs(void *context, struct intloom_device *device, uint32_t index)
{
    struct intloom_region region;
    struct intloom_tensor tensor;
    int result = intloom_get_region(device->image, index, &region);

    (void)context;
    for (uint32_t i = 0; !result && i < region.tensors; i++) {
        result = intloom_get_tensor(device->image, region.first_tensor + i, &tensor);
        if (!result && tensor.role == INTLOOM_ROLE_INPUT && tensor.source == INTLOOM_NO_TENSOR) {
            const uint32_t count = tensor.channels * tensor.height * tensor.width;
            example_input(&tensor, values, count);
            result = intloom_write_bytes(device, &tensor, INTLOOM_NCHW, values, count);
        }
    }
    return result;
}

static int read_outputs(struct intloom_device *device)
{
    struct intloom_tensor tensor;
    int result = INTLOOM_OK;

    for (uint32_t i = 0; !result && i < device->image->tensors; i++) {
        result = intloom_get_tensor(device->image, i, &tensor);
        if (!result && tensor.role == INTLOOM_ROLE_OUTPUT) {
            const uint32_t count = tensor.channels * tensor.height * tensor.width;
            result = intloom_read_bytes(device, &tensor, INTLOOM_NCHW, values, count);
            if (!result)
                example_output(&tensor, values, count);
        }
    }
    return result;
}

int example_run(struct intloom_device *device)
{
    static struct intloom_image image;
    int result = intloom_open_image(&image, program_image, PROGRAM_IMAGE_BYTES);

    if (!result)
        result = intloom_load_image(device, &image);
    if (!result)
        result = intloom_run(device, write_inputs, NULL);
    return result ? result : read_outputs(device);
}
