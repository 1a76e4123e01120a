//! Reset with timeline semaphores: all that was made on the device is made anew, down to the instance.
//!
//! Nothing less helps a plain program: what is lost is the VkDevice, and on lavapipe what hangs keeps the
//! threads of its instance. What was lost is destroyed first. What hangs cannot be: nothing of it may be
//! destroyed before it ends, so it is left behind, and another thread waits for its end.

use crate::sync::thread::{Builder, JoinHandle};
use crate::workload::program::Program;
use crate::workload::reset::{DELAY, KernelTime, ResetForm};
use crate::workload::trial::Trial;
use crate::workload::{Bench, Counts, PATIENCE, Params, Runner, Sample};
use anyhow::{Context, anyhow, bail, ensure};
use std::time::Instant;

/// See the module's page.
pub struct Reset {
    form: ResetForm,
    bench: Bench,
    /// None while a batch that failed has left none.
    program: Option<Program>,
    kernel_time: KernelTime,
    left_behind: Option<JoinHandle<()>>,
    /// Of programs that are gone.
    submits: u64,
}

impl Reset {
    /// Of a form.
    ///
    /// # Errors
    /// The driver gives no device.
    pub fn new(bench: &Bench, form: ResetForm) -> anyhow::Result<Self> {
        Ok(Self {
            form,
            bench: bench.clone(),
            program: Some(Program::new(&bench.adapter)?),
            kernel_time: KernelTime::default(),
            left_behind: None,
            submits: 0,
        })
    }

    fn program(&mut self) -> anyhow::Result<&mut Program> {
        self.program.as_mut().context("there is no program")
    }

    /// Until it is known that nothing comes any more.
    fn end_it(&mut self) -> anyhow::Result<Instant> {
        match self.form {
            ResetForm::Lost => {
                let program = self.program()?;
                program.lose();
                ensure!(program.run(PATIENCE).is_err(), "the device was not lost");
            }
            ResetForm::Hung => {
                while self.program()?.run(DELAY)? {
                    self.kernel_time.lengthen()?;
                    self.hang()?;
                }
            }
        }
        Ok(Instant::now())
    }

    /// Begins a kernel, and waits until it runs.
    fn hang(&mut self) -> anyhow::Result<()> {
        let time = self.kernel_time.get();
        let program = self.program()?;
        let kernel = Trial::kernel(time, |kernel| program.time_of(kernel))?;
        let done = program.workgroups_done();
        program.begin(kernel)?;
        let begun = Instant::now();
        while program.workgroups_done() == done {
            if begun.elapsed() > PATIENCE {
                bail!("the kernel does not begin");
            }
            std::thread::yield_now();
        }
        Ok(())
    }

    /// The program is gone, or is left behind.
    fn part(&mut self) -> anyhow::Result<()> {
        let program = self.program.take().context("there is no program")?;
        self.submits += program.submits();
        if self.form == ResetForm::Lost {
            drop(program);
            return Ok(());
        }
        let wait = move || drop(program);
        let spawned = Builder::new().name("nfence-left".into()).spawn(wait);
        self.left_behind = Some(spawned.context("no thread")?);
        Ok(())
    }
}

impl Runner for Reset {
    fn work(&self) -> &'static str {
        match self.form {
            ResetForm::Lost => {
                "A submission is answered with VK_ERROR_DEVICE_LOST (injected); measured is from there: \
                 all is destroyed, instance, device, memory, pipeline, commands and semaphore are made \
                 anew, and a first dispatch is submitted and waited for."
            }
            ResetForm::Hung => {
                "A kernel runs for 2 s, and a submission behind it is waited for in vain for 500 ms; \
                 measured is from there: instance, device, memory, pipeline, commands and semaphore are \
                 made anew beside what hangs, and a first dispatch is submitted and waited for."
            }
        }
    }

    fn params(&self) -> Params {
        [("form".into(), self.form.name().into())].into()
    }

    fn ops_per_batch(&self) -> u64 {
        1
    }

    fn prepare(&mut self) -> anyhow::Result<()> {
        if let Some(left) = self.left_behind.take() {
            // Its kernel would be beside the next one.
            left.join()
                .map_err(|_| anyhow!("the thread of a program that was left behind panicked"))?;
        }
        let form = self.form;
        let program = self.program()?;
        ensure!(program.run(PATIENCE)?, "a dispatch did not end");
        if form == ResetForm::Hung {
            self.hang()?;
        }
        Ok(())
    }

    fn batch(&mut self) -> anyhow::Result<Sample> {
        let known = self.end_it()?;
        self.part()?;
        let mut program = Program::new(&self.bench.adapter)?;
        ensure!(program.run(PATIENCE)?, "a new device does nothing");
        let wall = known.elapsed();
        self.program = Some(program);
        Ok(Sample {
            wall,
            latencies: vec![wall],
            pauses: 0,
        })
    }

    fn counts(&self) -> Counts {
        let now = self.program.as_ref().map_or(0, Program::submits);
        Counts {
            submits: self.submits + now,
            notifications: None,
        }
    }
}

impl Drop for Reset {
    fn drop(&mut self) {
        if let Some(left) = self.left_behind.take() {
            let _ended = left.join();
        }
    }
}
