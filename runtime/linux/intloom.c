// SPDX-License-Identifier: GPL-2.0-only OR Apache-2.0
/* Linux driver of the accelerator.
 *
 * It alone writes the registers. A program is confined to a part of the buffer of its file by BASE and LIMIT, so it needs
 * no parsing. One program runs at a time; files take turns. What a file leaves behind when it is closed, or its process
 * killed, is stopped before its buffer is freed. */
#include <linux/delay.h>
#include <linux/dma-mapping.h>
#include <linux/idr.h>
#include <linux/interrupt.h>
#include <linux/io.h>
#include <linux/kref.h>
#include <linux/miscdevice.h>
#include <linux/mm.h>
#include <linux/module.h>
#include <linux/of.h>
#include <linux/of_reserved_mem.h>
#include <linux/platform_device.h>
#include <linux/uaccess.h>
#include <linux/wait.h>

#include "intloom_ioctl.h"
#include "intloom_registers.h"

#define WINDOW_ALIGNMENT 64u
#define LARGEST_BUFFER (1ull << 30)
#define LAST_PARAMETER INTLOOM_REG_CAP_MULTIPLIER_BITS
#define COUNTERS_END (INTLOOM_FIRST_COUNTER + 4u * INTLOOM_COUNTERS)
#define RESET_MS 1000u
#define ENDED (INTLOOM_REG_STATUS_DONE_MASK | INTLOOM_REG_STATUS_ERROR_MASK)
#define FLAGS (INTLOOM_REG_IRQ_STATUS_DONE_MASK | INTLOOM_REG_IRQ_STATUS_ERROR_MASK)

struct intloom {
	struct kref references; /* Of the driver's binding and of open files. */
	struct device *dev;
	void __iomem *registers;
	u32 word_bytes;
	int number;
	char name[16];
	struct miscdevice misc;
	struct mutex lock; /* Guards all below, and the registers. */
	wait_queue_head_t changed;
	struct intloom_file *running; /* The file whose program runs. */
	bool unbound;                 /* There are no registers any more. */
	bool stuck; /* A reset has not ended: the accelerator may still access the buffer of the program before it. */
};

struct intloom_file {
	struct intloom *npu;
	void *memory;
	dma_addr_t address;
	size_t bytes;
	u32 status, error_index; /* Of its last program. */
};

static DEFINE_IDA(numbers);

static unsigned int lost_interrupt_ms = 100;
module_param(lost_interrupt_ms, uint, 0644);
MODULE_PARM_DESC(lost_interrupt_ms, "Milliseconds after which a sleeper looks at the status itself");

static u32 read_register(const struct intloom *npu, u32 offset)
{
	return readl(npu->registers + offset);
}

static void write_register(const struct intloom *npu, u32 offset, u32 value)
{
	writel(value, npu->registers + offset);
}

static void free_npu(struct kref *references)
{
	struct intloom *npu = container_of(references, struct intloom, references);

	/* Only now is no buffer in use. It does nothing for a device without a memory region. */
	of_reserved_mem_device_release(npu->dev);
	put_device(npu->dev);
	kfree(npu);
}

/* A soft reset completes what is on the bus, so that nothing is written afterwards. */
static void reset(struct intloom *npu)
{
	u32 left = RESET_MS;

	write_register(npu, INTLOOM_REG_CONTROL, INTLOOM_REG_CONTROL_RESET_MASK);
	do {
		usleep_range(1000, 2000);
	} while (read_register(npu, INTLOOM_REG_STATUS) && --left);
	write_register(npu, INTLOOM_REG_IRQ_STATUS, FLAGS);
	if (!left) {
		npu->stuck = true;
		dev_err(npu->dev, "the reset does not end, a transfer is stuck on the bus: reset bus and accelerator together\n");
	}
}

/* End the program that runs: with its status if it has ended by itself, else by a reset. */
static void end_program(struct intloom *npu, u32 status)
{
	struct intloom_file *file = npu->running;

	file->status = status & ~INTLOOM_REG_STATUS_BUSY_MASK;
	file->error_index = read_register(npu, INTLOOM_REG_ERROR_INDEX);
	if (!(status & INTLOOM_REG_STATUS_DONE_MASK))
		reset(npu);
	npu->running = NULL;
	wake_up_all(&npu->changed);
}

/* Notice the end of a program, with or without an interrupt. */
static void notice_end(struct intloom *npu)
{
	u32 status;

	if (!npu->running || npu->unbound)
		return;
	status = read_register(npu, INTLOOM_REG_STATUS);
	if ((status & ENDED) && !(status & INTLOOM_REG_STATUS_BUSY_MASK))
		end_program(npu, status);
}

static irqreturn_t interrupt(int irq, void *context)
{
	struct intloom *npu = context;

	if (!read_register(npu, INTLOOM_REG_IRQ_STATUS))
		return IRQ_NONE;
	write_register(npu, INTLOOM_REG_IRQ_STATUS, FLAGS);
	return IRQ_WAKE_THREAD;
}

static irqreturn_t interrupt_thread(int irq, void *context)
{
	struct intloom *npu = context;

	mutex_lock(&npu->lock);
	notice_end(npu);
	mutex_unlock(&npu->lock);
	return IRQ_HANDLED;
}

/* Whether a program of `file`, or of any file if it is null, runs. */
static bool runs(const struct intloom *npu, const struct intloom_file *file)
{
	const struct intloom_file *running = READ_ONCE(npu->running);

	return running && (!file || running == file) && !READ_ONCE(npu->unbound);
}

/* Wait until it does not. Called and returns with the lock; 0, -EINTR. */
static int sleep_until_free(struct intloom *npu, const struct intloom_file *file, unsigned long jiffies_left)
{
	const unsigned long end = jiffies + jiffies_left;

	while (runs(npu, file) && time_before(jiffies, end)) {
		const long slice = min_t(long, end - jiffies, msecs_to_jiffies(READ_ONCE(lost_interrupt_ms)));
		long left;

		mutex_unlock(&npu->lock);
		left = wait_event_interruptible_timeout(npu->changed, !runs(npu, file), slice);
		mutex_lock(&npu->lock);
		if (left < 0)
			return -EINTR;
		if (!left)
			notice_end(npu);
	}
	return 0;
}

static int allocate(struct intloom_file *file, void __user *argument)
{
	struct intloom_buffer buffer;

	if (copy_from_user(&buffer, argument, sizeof(buffer)))
		return -EFAULT;
	if (!buffer.bytes || buffer.bytes > LARGEST_BUFFER)
		return -EINVAL;
	if (file->memory)
		return -EBUSY;
	buffer.bytes = PAGE_ALIGN(buffer.bytes);
	if (copy_to_user(argument, &buffer, sizeof(buffer)))
		return -EFAULT;
	file->memory = dma_alloc_coherent(file->npu->dev, buffer.bytes, &file->address, GFP_KERNEL | __GFP_ZERO | __GFP_NOWARN);
	if (!file->memory)
		return -ENOMEM;
	file->bytes = buffer.bytes;
	return 0;
}

static int check_window(const struct intloom_file *file, const struct intloom_submit *submit)
{
	if (!file->memory || submit->reserved || !submit->window_bytes)
		return -EINVAL;
	if (submit->window_at % WINDOW_ALIGNMENT || submit->window_bytes % file->npu->word_bytes)
		return -EINVAL;
	return (u64)submit->window_at + submit->window_bytes > file->bytes ? -EINVAL : 0;
}

static void start(struct intloom_file *file, const struct intloom_submit *submit)
{
	struct intloom *npu = file->npu;
	const u64 base = file->address + submit->window_at;

	write_register(npu, INTLOOM_REG_PROGRAM, submit->program);
	write_register(npu, INTLOOM_REG_LENGTH, submit->instructions);
	write_register(npu, INTLOOM_REG_BASE_LOW, lower_32_bits(base));
	write_register(npu, INTLOOM_REG_BASE_HIGH, upper_32_bits(base));
	write_register(npu, INTLOOM_REG_LIMIT, submit->window_bytes / npu->word_bytes);
	write_register(npu, INTLOOM_REG_WATCHDOG, submit->watchdog);
	write_register(npu, INTLOOM_REG_IRQ_STATUS, FLAGS);
	write_register(npu, INTLOOM_REG_IRQ_ENABLE, FLAGS);
	file->status = INTLOOM_REG_STATUS_BUSY_MASK;
	npu->running = file;
	write_register(npu, INTLOOM_REG_CONTROL, INTLOOM_REG_CONTROL_START_MASK);
}

static int submit(struct intloom_file *file, const void __user *argument, bool wait)
{
	struct intloom *npu = file->npu;
	struct intloom_submit given;
	int result;

	if (copy_from_user(&given, argument, sizeof(given)))
		return -EFAULT;
	result = check_window(file, &given);
	if (result)
		return result;
	if (npu->running == file)
		return -EBUSY;
	while (npu->running) {
		if (!wait)
			return -EAGAIN;
		result = sleep_until_free(npu, NULL, MAX_JIFFY_OFFSET);
		if (result)
			return result;
		if (npu->unbound)
			return -ENODEV;
	}
	if (npu->stuck)
		return -EIO;
	start(file, &given);
	return 0;
}

static int wait(struct intloom_file *file, void __user *argument)
{
	struct intloom_wait given;
	int result;

	if (copy_from_user(&given, argument, sizeof(given)))
		return -EFAULT;
	result = sleep_until_free(file->npu, file, msecs_to_jiffies(given.milliseconds));
	if (result)
		return result;
	given.ended = file->npu->running != file;
	return copy_to_user(argument, &given, sizeof(given)) ? -EFAULT : 0;
}

/* A hole of the register map may answer with a bus error, which a CPU need not survive. */
static bool is_readable(u32 offset)
{
	return offset % 4u == 0 && (offset <= INTLOOM_REG_FINGERPRINT ||
				    (offset >= INTLOOM_REG_CAP_ROWS && offset <= LAST_PARAMETER) ||
				    (offset >= INTLOOM_FIRST_COUNTER && offset < COUNTERS_END));
}

static int read(struct intloom_file *file, void __user *argument)
{
	struct intloom_register given;

	if (copy_from_user(&given, argument, sizeof(given)))
		return -EFAULT;
	if (given.offset == INTLOOM_REG_STATUS)
		given.value = file->status;
	else if (given.offset == INTLOOM_REG_ERROR_INDEX)
		given.value = file->error_index;
	else if (is_readable(given.offset))
		given.value = read_register(file->npu, given.offset);
	else
		return given.offset % 4u || given.offset >= COUNTERS_END ? -EINVAL : -EPERM;
	return copy_to_user(argument, &given, sizeof(given)) ? -EFAULT : 0;
}

static int stop(struct intloom_file *file)
{
	struct intloom *npu = file->npu;

	if (npu->running == file)
		end_program(npu, 0);
	file->status = 0;
	return npu->stuck ? -EIO : 0;
}

static long call(struct file *opened, unsigned int command, unsigned long argument)
{
	struct intloom_file *file = opened->private_data;
	void __user *values = (void __user *)argument;
	long result = -ENOTTY;

	mutex_lock(&file->npu->lock);
	if (file->npu->unbound)
		result = -ENODEV;
	else if (command == INTLOOM_ALLOCATE)
		result = allocate(file, values);
	else if (command == INTLOOM_SUBMIT)
		result = submit(file, values, !(opened->f_flags & O_NONBLOCK));
	else if (command == INTLOOM_WAIT)
		result = wait(file, values);
	else if (command == INTLOOM_READ)
		result = read(file, values);
	else if (command == INTLOOM_RESET)
		result = stop(file);
	mutex_unlock(&file->npu->lock);
	return result;
}

static int map(struct file *opened, struct vm_area_struct *area)
{
	struct intloom_file *file = opened->private_data;
	int result = -ENODEV;

	mutex_lock(&file->npu->lock);
	if (!file->npu->unbound)
		result = !file->memory || area->vm_pgoff || area->vm_end - area->vm_start > file->bytes
				 ? -EINVAL
				 : dma_mmap_coherent(file->npu->dev, area, file->memory, file->address, file->bytes);
	mutex_unlock(&file->npu->lock);
	return result;
}

static int opened(struct inode *inode, struct file *opened)
{
	struct intloom *npu = container_of(opened->private_data, struct intloom, misc);
	struct intloom_file *file = kzalloc(sizeof(*file), GFP_KERNEL);

	if (!file)
		return -ENOMEM;
	kref_get(&npu->references);
	file->npu = npu;
	opened->private_data = file;
	return 0;
}

/* The last reference to the file is gone, maps included. */
static int closed(struct inode *inode, struct file *opened)
{
	struct intloom_file *file = opened->private_data;
	struct intloom *npu = file->npu;

	mutex_lock(&npu->lock);
	if (npu->running == file)
		end_program(npu, 0);
	/* A stuck accelerator may still write: its program's buffer stays. */
	if (file->memory && !npu->stuck)
		dma_free_coherent(npu->dev, file->bytes, file->memory, file->address);
	mutex_unlock(&npu->lock);
	kref_put(&npu->references, free_npu);
	kfree(file);
	return 0;
}

static const struct file_operations operations = {
	.owner = THIS_MODULE,
	.open = opened,
	.release = closed,
	.unlocked_ioctl = call,
	.compat_ioctl = compat_ptr_ioctl,
	.mmap = map,
};

static int check_hardware(struct intloom *npu)
{
	const u32 version = read_register(npu, INTLOOM_REG_VERSION) & 0xffffu;
	u32 bits;

	if (read_register(npu, INTLOOM_REG_MAGIC) != INTLOOM_MAGIC)
		return dev_err_probe(npu->dev, -ENODEV, "no accelerator at these addresses\n");
	if (version != INTLOOM_REGISTER_VERSION)
		return dev_err_probe(npu->dev, -ENODEV, "register map version %u, this driver knows %u\n", version, INTLOOM_REGISTER_VERSION);
	npu->word_bytes = read_register(npu, INTLOOM_REG_CAP_ROWS);
	bits = read_register(npu, INTLOOM_REG_CAP_AXI_ADDR_BITS);
	if (npu->word_bytes < 4u || npu->word_bytes > WINDOW_ALIGNMENT || bits < 32u || bits > 64u)
		return dev_err_probe(npu->dev, -ENODEV, "the parameter registers have impossible values\n");
	return dma_set_mask_and_coherent(npu->dev, DMA_BIT_MASK(bits));
}

static void put_npu(void *npu)
{
	kref_put(&((struct intloom *)npu)->references, free_npu);
}

static void release_number(void *npu)
{
	ida_free(&numbers, ((struct intloom *)npu)->number);
}

static struct intloom *new_npu(struct device *dev)
{
	struct intloom *npu = kzalloc(sizeof(*npu), GFP_KERNEL);

	if (!npu)
		return NULL;
	kref_init(&npu->references);
	npu->dev = get_device(dev);
	mutex_init(&npu->lock);
	init_waitqueue_head(&npu->changed);
	return npu;
}

static int name_npu(struct intloom *npu)
{
	npu->number = ida_alloc(&numbers, GFP_KERNEL);
	if (npu->number < 0)
		return npu->number;
	snprintf(npu->name, sizeof(npu->name), "intloom%d", npu->number);
	npu->misc = (struct miscdevice){
		.minor = MISC_DYNAMIC_MINOR, .name = npu->name, .fops = &operations, .parent = npu->dev, .mode = 0600};
	return devm_add_action_or_reset(npu->dev, release_number, npu);
}

/* What is managed is released in the opposite order: the interrupt before the registers, both before the structure. */
static int bind(struct platform_device *pdev)
{
	struct device *dev = &pdev->dev;
	struct intloom *npu = new_npu(dev);
	int result = npu ? devm_add_action_or_reset(dev, put_npu, npu) : -ENOMEM;

	if (result)
		return result;
	/* With a memory region in the device tree, buffers come from it. */
	if (of_property_count_u32_elems(dev->of_node, "memory-region") > 0)
		result = of_reserved_mem_device_init(dev);
	npu->registers = devm_platform_ioremap_resource(pdev, 0);
	if (!result)
		result = PTR_ERR_OR_ZERO(npu->registers);
	if (!result)
		result = check_hardware(npu);
	if (result)
		return result;
	reset(npu);
	if (npu->stuck)
		return -EIO;
	result = platform_get_irq(pdev, 0);
	if (result > 0)
		result = devm_request_threaded_irq(dev, result, interrupt, interrupt_thread, 0, dev_name(dev), npu);
	if (!result)
		result = name_npu(npu);
	platform_set_drvdata(pdev, npu);
	return result ? result : misc_register(&npu->misc);
}

static int unbind(struct platform_device *pdev)
{
	struct intloom *npu = platform_get_drvdata(pdev);

	misc_deregister(&npu->misc);
	mutex_lock(&npu->lock);
	if (npu->running)
		end_program(npu, 0);
	write_register(npu, INTLOOM_REG_IRQ_ENABLE, 0);
	npu->unbound = true;
	wake_up_all(&npu->changed);
	mutex_unlock(&npu->lock);
	return 0;
}

static const struct of_device_id trees[] = {{.compatible = "intloom,npu"}, {}};
MODULE_DEVICE_TABLE(of, trees);

static struct platform_driver intloom_driver = {
	.probe = bind,
	.remove = unbind,
	.driver = {.name = "intloom", .of_match_table = trees},
};
module_platform_driver(intloom_driver);

MODULE_DESCRIPTION("Intloom int8 accelerator");
MODULE_LICENSE("GPL");
