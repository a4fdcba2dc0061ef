/* A module for ipmi_sim: DCMI's power reading (group extension 0xdc, command 2), with the watts that stand in a file. */
#include <OpenIPMI/mcserv.h>
#include <OpenIPMI/serv.h>
#include <stdio.h>
#include <string.h>

enum { POWER_READING = 0x02, INVALID_COMMAND = 0xc1, DCMI = 0xdc, MEASURING = 0x40 };

static char path[4096];

static void answer(lmc_data_t *mc, msg_t *msg, unsigned char *data, unsigned int *size, void *unused)
{
    unsigned int watts = 0, at = 2;
    FILE *file = fopen(path, "r");
    int found = file && fscanf(file, "%u", &watts) == 1;
    if (file)
        fclose(file);
    memset(data, 0, 19);
    if (msg->cmd != POWER_READING || !found) {
        data[0] = INVALID_COMMAND;
        *size = 1;
        return;
    }
    data[1] = DCMI;
    for (int figure = 0; figure < 4; figure++) { /* now, least, most, mean */
        data[at++] = watts & 0xff;
        data[at++] = watts >> 8;
    }
    at += 4;                 /* no time */
    data[at] = 1000 & 0xff;  /* over a second */
    data[at + 1] = 1000 >> 8;
    data[at + 4] = MEASURING;
    *size = at + 5;
}

int ipmi_sim_module_init(sys_data_t *sys, const char *options)
{
    strncpy(path, options, sizeof path - 1);
    ipmi_emu_register_group_extension_handler(DCMI, answer, 0);
    return 0;
}

int ipmi_sim_module_post_init(sys_data_t *sys)
{
    return 0;
}
