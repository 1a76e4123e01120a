//! Bad input: what the tables of wrong calls of the C interface share. One of each thing, a walk over
//! wrong calls, and a look at whether all of it is as it was.

#[path = "c_kernel.rs"]
pub(crate) mod c_kernel;
#[path = "c_walk.rs"]
pub(crate) mod c_walk;
#[path = "c_world.rs"]
pub(crate) mod c_world;
#[path = "engines.rs"]
mod engines;

use c_kernel::Kernel;
use c_walk::Walk;
use c_world::World;

/// Makes one of each thing, has `tables` walk over wrong calls, at least `least` of them, and has
/// `afterwards` look whether all is still there. Where there is no device it says so and does nothing.
pub(crate) fn walk_over(
    least: usize,
    tables: impl FnOnce(&mut Walk<'_>, &Kernel),
    afterwards: impl FnOnce(&World, &Kernel),
) {
    if engines::shader().is_none() {
        return;
    }
    let world = World::new();
    let kernel = Kernel::on(&world);
    let seen = || kernel.seen();
    let mut walk = Walk::of(&world, &seen);
    tables(&mut walk, &kernel);
    println!("{} calls refused", walk.calls);
    assert!(walk.calls >= least, "{}", walk.calls);
    // Slots of handles are used again after so many, and the next one is not the next number then.
    assert!(walk.calls < 1_000, "{}: another file", walk.calls);
    afterwards(&world, &kernel);
}
