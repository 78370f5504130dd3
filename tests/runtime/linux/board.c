// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* A board for QEMU: the accelerator's registers are the shared memory of an ivshmem device, its interrupt the device's
 * first vector. The driver finds a platform device as a device tree would describe it. */
#include <linux/module.h>
#include <linux/pci.h>
#include <linux/platform_device.h>

static int board_bind(struct pci_dev *pci, const struct pci_device_id *id)
{
	struct resource resources[2] = {};
	struct platform_device_info info = {
		.parent = &pci->dev, .name = "intloom", .id = PLATFORM_DEVID_NONE, .res = resources, .num_res = 2, .dma_mask = DMA_BIT_MASK(32)};
	struct platform_device *device;
	int result = pcim_enable_device(pci);

	if (!result)
		result = pci_alloc_irq_vectors(pci, 1, 1, PCI_IRQ_MSIX);
	if (result < 0)
		return result;
	pci_set_master(pci);
	resources[0] = (struct resource)DEFINE_RES_MEM(pci_resource_start(pci, 2), pci_resource_len(pci, 2));
	resources[0].parent = &pci->resource[2];
	resources[1] = (struct resource)DEFINE_RES_IRQ(pci_irq_vector(pci, 0));
	device = platform_device_register_full(&info);
	pci_set_drvdata(pci, device);
	return PTR_ERR_OR_ZERO(device);
}

static void board_unbind(struct pci_dev *pci)
{
	platform_device_unregister(pci_get_drvdata(pci));
	pci_free_irq_vectors(pci);
}

static const struct pci_device_id ids[] = {{PCI_DEVICE(0x1af4, 0x1110)}, {}};
MODULE_DEVICE_TABLE(pci, ids);

static struct pci_driver board_driver = {.name = "intloom-board", .id_table = ids, .probe = board_bind, .remove = board_unbind};
module_pci_driver(board_driver);

MODULE_DESCRIPTION("Intloom's registers behind ivshmem");
MODULE_LICENSE("GPL");
