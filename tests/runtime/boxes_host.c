/* Reads the outputs of a detection network from the file in argument 1, and prints the boxes that the firmware finds. The
 * reading functions of the runtime are replaced by ones for this file. */
#include <stdio.h>
#include <stdlib.h>

#include "boxes.h"

static struct intloom_tensor tensors[8];
static uint8_t data[8][65536];

int intloom_get_tensor(const struct intloom_image *image, uint32_t index, struct intloom_tensor *tensor)
{
    if (index >= image->tensors)
        return INTLOOM_E_ARGUMENT;
    *tensor = tensors[index];
    return INTLOOM_OK;
}

int intloom_read_bytes(struct intloom_device *device, const struct intloom_tensor *tensor, enum intloom_order order,
                       void *values, uint32_t count)
{
    const uint8_t *from = data[tensor->window_at];

    (void)device;
    (void)order;
    for (uint32_t i = 0; i < count; i++)
        ((uint8_t *)values)[i] = from[i];
    return INTLOOM_OK;
}

int main(int argc, char **argv)
{
    FILE *file = argc == 2 ? fopen(argv[1], "rb") : NULL;
    struct intloom_image image = {0};
    struct box boxes[BOXES_MOST];
    uint32_t fields[5], count;

    while (file && fread(fields, sizeof fields, 1, file) == 1 && image.tensors < 8u) {
        struct intloom_tensor *t = &tensors[image.tensors];
        t->role = fields[0] ? INTLOOM_ROLE_OUTPUT : INTLOOM_ROLE_INPUT;
        t->channels = fields[1], t->height = fields[2], t->width = fields[3];
        t->unsigned_type = (int)fields[4];
        t->window_at = image.tensors;
        if (fread(&t->scale, 4, 1, file) != 1 || fread(&t->zero_point, 4, 1, file) != 1 ||
            (fields[0] && fread(data[image.tensors], fields[1] * fields[2] * fields[3], 1, file) != 1))
            return 1;
        image.tensors++;
    }
    count = find_boxes(NULL, &image, 0.25f, boxes);
    for (uint32_t i = 0; i < count; i++)
        printf("%u %f %f %f %f %f\n", (unsigned)boxes[i].label, (double)boxes[i].score, (double)boxes[i].left,
               (double)boxes[i].top, (double)boxes[i].right, (double)boxes[i].bottom);
    return 0;
}
