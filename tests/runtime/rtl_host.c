/* Host software for the simulated accelerator: runs the exported example in several ways, and writes the result of each
 * into file `report`, inputs from file `inputs`, outputs of the good runs into file `outputs`. */
#include <stdio.h>
#include <string.h>

#include "example.h"
#include "host_machine.h"
#include "program.h"

static const struct host_machine *machine;
static struct intloom_device device;
static int corrupt; /* The next write-back of the cache flips a bit of the first instruction. */
static FILE *inputs, *outputs, *report;

static int read32(void *context, uint32_t offset, uint32_t *value)
{
    (void)context;
    return machine->read32(machine->context, offset, value);
}

static int write32(void *context, uint32_t offset, uint32_t value)
{
    (void)context;
    return machine->write32(machine->context, offset, value);
}

static int idle(void *context)
{
    (void)context;
    if (machine->advance(machine->context) && device.use_interrupt)
        intloom_interrupt(&device);
    return 0;
}

static void flush(void *context, void *start, uint32_t bytes)
{
    (void)context;
    (void)bytes;
    if (corrupt)
        *(uint8_t *)start ^= 0x80u;
    corrupt = 0;
}

void example_input(const struct intloom_tensor *tensor, uint8_t *values, uint32_t count)
{
    (void)tensor;
    rewind(inputs);
    if (fread(values, 1, count, inputs) != count)
        fprintf(report, "inputs are short\n");
}

void example_output(const struct intloom_tensor *tensor, const uint8_t *values, uint32_t count)
{
    (void)tensor;
    if (fwrite(values, 1, count, outputs) != count)
        fprintf(report, "outputs are short\n");
}

static int show(const char *name, int result)
{
    fprintf(report, "%s %s\n", name, intloom_result_name(result));
    return result;
}

static void show_cause(const char *name)
{
    struct intloom_status status;

    if (!show(name, intloom_read_status(&device, &status)))
        fprintf(report, "cause %s unit %d instruction %u\n", intloom_cause_name(status.cause), (int)status.unit,
                (unsigned)status.instruction);
}

static FILE *in_folder(const char *name, const char *mode)
{
    char path[4096];

    snprintf(path, sizeof path, "%s/%s", machine->folder, name);
    return fopen(path, mode);
}

static void counters(void)
{
    static const char *const names[INTLOOM_COUNTERS] = INTLOOM_COUNTER_NAMES;
    uint32_t values[INTLOOM_COUNTERS];

    show("counters", intloom_read_counters(&device, values));
    for (uint32_t i = 0; i < INTLOOM_COUNTERS; i++)
        if (!strcmp(names[i], "LOAD_DONE") || !strcmp(names[i], "STORE_DONE") || !strcmp(names[i], "MAC_DONE"))
            fprintf(report, "%s %u\n", names[i], (unsigned)values[i]);
}

static void time_out(void)
{
    device.wait_limit = 0;
    show("time_out", example_run(&device));
    show("start_while_running", intloom_start(&device, 0));
    device.wait_limit = INTLOOM_WAIT_LIMIT;
    show("reset_while_running", intloom_reset(&device));
    show("after_time_out", example_run(&device));
}

static void corruption(void)
{
    corrupt = 1;
    show("corrupted", example_run(&device));
    show_cause("corrupted_status");
    show("start_after_error", intloom_start(&device, 0));
    show("reset", intloom_reset(&device));
    show("after_corruption", example_run(&device));
}

int host_main(const struct host_machine *given)
{
    static const struct intloom_transport transport = {
        .read32 = read32, .write32 = write32, .idle = idle, .flush = flush};
    struct intloom_window window = {given->memory, given->bus_address, (uint32_t)given->memory_bytes};

    machine = given;
    inputs = in_folder("inputs", "rb");
    outputs = in_folder("outputs", "wb");
    report = in_folder("report", "w");
    if (!inputs || !outputs || !report)
        return 1;
    if (!show("probe", intloom_probe(&device, &transport, &window)) && !show("polling", example_run(&device))) {
        counters();
        device.use_interrupt = 1;
        show("interrupt", example_run(&device));
        time_out();
        corruption();
        device.window.bus_address += window.bytes;
        show("no_memory", example_run(&device));
        show_cause("no_memory_status");
    }
    fclose(inputs);
    fclose(outputs);
    fclose(report);
    return 0;
}
