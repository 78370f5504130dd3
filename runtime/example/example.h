/* An example of a run: open and load the image, run all regions, read the outputs. The two functions below are the application's. */
#ifndef EXAMPLE_H
#define EXAMPLE_H

#include "intloom_runtime.h"

/* Run the program once on a probed device; the result is an `enum intloom_result`. */
int example_run(struct intloom_device *device);

/* Give all elements of an input that no earlier region computes, as values of the model's type in NCHW order. */
void example_input(const struct intloom_tensor *tensor, uint8_t *values, uint32_t count);

/* Take all elements of an output, in the same form. */
void example_output(const struct intloom_tensor *tensor, const uint8_t *values, uint32_t count);

#endif
