/* Host software for the simulated accelerator: executes requests that arrive in file `requests` of the run's folder. */
#include <stdio.h>

#include "host_machine.h"

struct request {
    uint32_t kind; /* 0: end, 1: read a register, 2: write a register, 3: run on. */
    uint32_t offset;
    uint32_t value;
};

int host_main(const struct host_machine *machine)
{
    char path[4096];
    struct request request;
    FILE *requests, *answers;

    snprintf(path, sizeof path, "%s/requests", machine->folder);
    requests = fopen(path, "rb");
    snprintf(path, sizeof path, "%s/answers", machine->folder);
    answers = fopen(path, "wb");
    if (!requests || !answers)
        return 1;
    setvbuf(requests, NULL, _IONBF, 0);
    while (fread(&request, sizeof request, 1, requests) == 1 && request.kind) {
        uint32_t answer[2] = {0, request.value};
        if (request.kind == 1)
            answer[0] = (uint32_t)machine->read32(machine->context, request.offset, &answer[1]);
        else if (request.kind == 2)
            answer[0] = (uint32_t)machine->write32(machine->context, request.offset, request.value);
        else
            answer[1] = (uint32_t)machine->advance(machine->context);
        fwrite(answer, sizeof answer, 1, answers);
        fflush(answers);
    }
    return 0;
}
