//! Model subject: the model engine under this crate's driver.

use super::{Form, Subject, Unfit, Wanted};
use crate::gpu::{
    Crowd, Engine, ModelEngine, ModelMemory, ModelOptions, Node, SpareEngines, SparePolicy,
};
use crate::kmd::{Ddi, Driver};
use crate::sync::Arc;
use crate::sync::plain::{Mutex, lock};

/// See the file's head. What its memory finds of wrong accesses are its misdeeds.
#[derive(Debug, Default)]
pub struct ModelSubject {
    memories: Arc<Mutex<Vec<Arc<ModelMemory>>>>,
}

fn engine(memories: &Mutex<Vec<Arc<ModelMemory>>>, stalls: bool) -> Box<dyn Engine> {
    let engine = ModelEngine::new(ModelOptions {
        stalls,
        ..ModelOptions::default()
    });
    lock(memories).push(Arc::clone(engine.memory()));
    Box::new(engine)
}

impl Subject for ModelSubject {
    fn name(&self) -> String {
        "the model engine".into()
    }

    fn driver(&self, wanted: &Wanted) -> anyhow::Result<Arc<dyn Ddi>> {
        if wanted.form == Form::Monitored {
            let why = "the model executes no command buffers: it always has native fences";
            return Err(Unfit(why.into()).into());
        }
        if wanted.local_memory {
            return Err(Unfit("the model has no memory of its own".into()).into());
        }
        let nodes = wanted.nodes.get();
        // Room for all: how long an engine stays shall not depend on the machine.
        let crowd = Arc::new(Crowd::new(nodes));
        let made = (0..nodes).map(|ordinal| {
            let engine = engine(&self.memories, wanted.hangs);
            Node::new(ordinal, engine, wanted.policy, Arc::clone(&crowd))
        });
        let made = made.collect::<Result<Vec<_>, _>>()?;
        let (memories, stalls) = (Arc::clone(&self.memories), wanted.hangs);
        let spares = SpareEngines::new(SparePolicy::OnSuspicion, move || {
            Ok(engine(&memories, stalls))
        });
        Ok(Driver::with_spares(
            made,
            wanted.driver.clone(),
            Some(spares),
        ))
    }

    fn take_misdeeds(&self) -> Vec<String> {
        let memories = std::mem::take(&mut *lock(&self.memories));
        let violations = memories.iter();
        let violations = violations.flat_map(|memory| memory.violations());
        violations
            .map(|violation| format!("{violation:?}"))
            .collect()
    }
}
