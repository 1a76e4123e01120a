//! A tree of sums: each node of it is a queue, and waits for its two children by their fences.
//!
//! The leaves add up a share of the numbers each, in blocks, and then the sums of the blocks. Every other node adds
//! what its children found, and the root has the sum of all. The queues are spread over two engines, and are
//! submitted from the root down: a node's work stands at its waits until its children have done theirs, without the
//! CPU.
//!
//!     cargo run --example reduction_tree

use native_fence::{Adapter, AdapterOptions, CommandList, HwQueueOptions, KernelCode, Parameters};
use std::error::Error;
use std::time::{Duration, Instant};

/// Nodes are numbered as in a heap: the root is 1, and the children of `n` are `2 * n` and `2 * n + 1`.
const LEAVES: usize = 4;
/// Numbers of a leaf.
const SHARE: usize = 200_000;
/// What a workgroup of the kernel adds up.
const BLOCK: usize = 1024;
const LONG: Duration = Duration::from_secs(60);

fn main() -> Result<(), Box<dyn Error>> {
    let options = AdapterOptions {
        nodes: 2.try_into()?,
        ..AdapterOptions::default()
    };
    let adapter = Adapter::open(&options)?;
    let device = adapter.create_device();
    let code = include_bytes!("../../shaders/spv/examples/sum_blocks.spv");
    let sum_blocks = device.create_kernel(KernelCode::from_bytes(code, 24)?)?;

    // One sum a node, so that those of two children lie side by side; and one a block of each leaf.
    let sums = device.create_buffer::<u64>(2 * LEAVES)?;
    let blocks = SHARE.div_ceil(BLOCK);
    let of_blocks = device.create_buffer::<u64>(LEAVES * blocks)?;
    let numbers = device.create_buffer::<u64>(LEAVES * SHARE)?;
    let mut noise = 1_u64;
    let given: Vec<u64> = (0..numbers.len())
        .map(|_| {
            noise = noise
                .wrapping_mul(6_364_136_223_846_793_005)
                .wrapping_add(1_442_695_040_888_963_407);
            noise >> 32
        })
        .collect();
    numbers.write(0, &given)?;

    // A node's fence is 1 when its sum is there. (No node is 0.)
    let fences = (0..2 * LEAVES)
        .map(|_| device.create_fence(0))
        .collect::<Result<Vec<_>, _>>()?;
    let done = device.create_fence(0)?;
    // The addresses of words of two buffers, and how many words the kernel adds.
    let parameters = |from, first: usize, to, at: usize, words: usize| {
        let byte = |word: usize| word as u64 * 8;
        Parameters::new()
            .address(from, byte(first))
            .address(to, byte(at))
            .word(words as u64)
    };

    let begin = Instant::now();
    let (mut queues, mut root) = (Vec::new(), None);
    for node in 1..2 * LEAVES {
        let mut list = CommandList::new();
        if let Some(leaf) = node.checked_sub(LEAVES) {
            let in_blocks = parameters(&numbers, leaf * SHARE, &of_blocks, leaf * blocks, SHARE);
            let in_one = parameters(&of_blocks, leaf * blocks, &sums, node, blocks);
            list.dispatch(&sum_blocks, [blocks as u32, 1, 1], &in_blocks)?;
            list.dispatch(&sum_blocks, [1, 1, 1], &in_one)?;
        } else {
            let children = 2 * node;
            list.wait(&fences[children], 1)
                .wait(&fences[children + 1], 1);
            list.dispatch(
                &sum_blocks,
                [1, 1, 1],
                &parameters(&sums, children, &sums, node, 2),
            )?;
        }
        list.signal(&fences[node], 1);
        if node == 1 {
            root = Some(list.download(&sums, 1..2, &done, 1)?);
        }
        let options = HwQueueOptions {
            node_ordinal: node as u32 % 2,
            ..HwQueueOptions::default()
        };
        let mut queue = device.create_hw_queue_with(options)?;
        queue.submit(&list)?;
        // What a queue has not executed goes with it.
        queues.push(queue);
    }
    let root = root.ok_or("there is no root")?;
    let sum = root.wait(LONG)?[0];
    let took = begin.elapsed();
    let expected = given.iter().sum::<u64>();
    if sum != expected {
        return Err(format!("the sum is {sum}, and {expected} by the CPU").into());
    }
    println!(
        "{} numbers add up to {sum}, as they do on the CPU",
        given.len()
    );
    println!(
        "{} queues on 2 engines took {:.1} ms",
        queues.len(),
        took.as_secs_f64() * 1e3
    );
    Ok(())
}
