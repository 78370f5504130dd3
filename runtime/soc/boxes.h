/* Detections of a YOLOv8 network, from its outputs before the float tail. */
#ifndef BOXES_H
#define BOXES_H

#include "intloom_runtime.h"

#define BOXES_MOST 8u

struct box {
    float left, top, right, bottom, score; /* Corners in pixels of the network's input. */
    uint32_t label;
};

/* Boxes with a score of at least `threshold` after non-maximum suppression, best first; returns their number. Outputs are
 * paired by size: 64 channels of distances, and the classes. Other networks give 0. */
uint32_t find_boxes(struct intloom_device *device, const struct intloom_image *image, float threshold,
                    struct box boxes[BOXES_MOST]);

void print_boxes(struct intloom_device *device, const struct intloom_image *image);

#endif
