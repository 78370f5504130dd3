/* Firmware that reads: it takes a line of text from memory, runs a recognizer on the accelerator, and prints the letters.
 * Before that it damages the program and a constant in memory, and checks that the accelerator stops. */
#include <math.h>
#include <stdio.h>

#include "machine.h"
#include "program.h"
#include "reader.h"

#define COLORS 3u
#define BYTE_VALUES 256u

/* A camera, here the simulation, writes it: rows of red, green and blue bytes. Columns beyond the network are cut. */
struct picture {
    uint32_t width;
    uint8_t pixels[];
};

extern uint8_t window_start[];
extern const struct picture picture_start;

static struct intloom_device device;
static struct intloom_image image;
static struct intloom_tensor input, scores;
static uint8_t values[PROGRAM_LARGEST_TENSOR];

/* The model's value of a real number. */
static uint8_t quantized(const struct intloom_tensor *tensor, float real)
{
    const long least = -128, most = 127, value = lrintf(real / tensor->scale) + tensor->zero_point;
    const long code = value < least ? least : value > most ? most : value;

    return (uint8_t)(code + (tensor->unsigned_type ? 128 : 0));
}

/* The network takes blue, green and red from -1 to 1, and 0 on the right of the line. */
static int write_picture(void)
{
    const uint32_t width = picture_start.width, filled = width < input.width ? width : input.width;
    uint8_t codes[BYTE_VALUES];
    uint8_t *to = values;

    for (uint32_t value = 0; value < BYTE_VALUES; value++)
        codes[value] = quantized(&input, (float)value / 127.5f - 1.0f);
    for (uint32_t y = 0; y < input.height; y++)
        for (uint32_t x = 0; x < input.width; x++) {
            const uint8_t *pixel = &picture_start.pixels[COLORS * (y * width + x)];
            for (uint32_t color = 0; color < COLORS; color++)
                *to++ = x < filled ? codes[pixel[COLORS - 1u - color]] : quantized(&input, 0.0f);
        }
    return intloom_write_bytes(&device, &input, INTLOOM_NHWC, values, COLORS * input.height * input.width);
}

/* The best class of each position; one that repeats the position before, or class 0, is no letter. Softmax and scale
 * keep the order of the classes, so the accelerator's bytes are enough. */
static void print_text(void)
{
    const uint8_t sign = scores.unsigned_type ? 0 : 0x80;
    uint32_t before = 0;

    printf("text: ");
    for (uint32_t position = 0; position < scores.width; position++) {
        const uint8_t *of = &values[position * scores.channels];
        uint32_t best = 0;
        for (uint32_t class = 1; class < scores.channels; class++)
            if ((uint8_t)(of[class] ^ sign) > (uint8_t)(of[best] ^ sign))
                best = class;
        if (best != before)
            fputs(letters[best], stdout);
        before = best;
    }
    printf("\n");
}

static void read_line(void)
{
    if (machine_expect("picture", write_picture(), INTLOOM_OK) ||
        machine_expect("run", intloom_run(&device, NULL, NULL), INTLOOM_OK) ||
        machine_expect("scores", intloom_read_bytes(&device, &scores, INTLOOM_NHWC, values, scores.channels * scores.width),
                       INTLOOM_OK))
        return;
    print_text();
}

/* One bit of the copy in the window is wrong: the accelerator must stop and say so. */
static void damage(const char *what, uint8_t *byte, enum intloom_cause cause)
{
    machine_flip(byte, 0x10u);
    machine_expect(what, intloom_run(&device, NULL, NULL), INTLOOM_E_STOPPED);
    machine_expect_cause(&device, cause);
    machine_flip(byte, 0x10u);
    machine_expect("reset", intloom_reset(&device), INTLOOM_OK);
}

static int start_up(void)
{
    const struct intloom_window window = {window_start, (uintptr_t)window_start, PROGRAM_WINDOW_BYTES};

    /* The checksum of a large image takes minutes of simulation. */
    return machine_expect("probe", intloom_probe(&device, &machine_transport, &window), INTLOOM_OK) ||
           machine_expect("image", intloom_open_verified_image(&image, program_image, PROGRAM_IMAGE_BYTES), INTLOOM_OK) ||
           machine_expect("load", intloom_load_image(&device, &image), INTLOOM_OK) ||
           machine_expect("input", intloom_get_tensor(&image, 0, &input), INTLOOM_OK) ||
           machine_expect("output", intloom_get_tensor(&image, 1, &scores), INTLOOM_OK);
}

int main(void)
{
    struct intloom_region region;

    if (!start_up() && !machine_expect("region", intloom_get_region(&image, 0, &region), INTLOOM_OK)) {
        uint8_t *const at = window_start + region.window_at;
        machine_enable_interrupts(&device);
        device.use_interrupt = 1;
        damage("damaged instruction", at + region.code_to, INTLOOM_CAUSE_PROGRAM_CHECK);
#ifdef READER_FIRST_WEIGHT
        damage("damaged weight", at + region.data_to + READER_FIRST_WEIGHT, INTLOOM_CAUSE_CONSTANT_CHECK);
#endif
        read_line();
    }
    machine_finish();
}
